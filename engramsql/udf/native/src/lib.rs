//! DuckDB extension over the engine.
