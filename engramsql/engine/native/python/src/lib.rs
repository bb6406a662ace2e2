//! PyO3 skin over the engine.
