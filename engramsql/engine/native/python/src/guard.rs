//! The boundary: panics stop here, and the interpreter is released for native work.

use crate::errors;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    /// Where the last panic of this thread happened; the payload alone does not say.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps panics off stderr: each one reaches the caller as an exception that carries the same text.
///
/// The hook belongs to this shared object's own copy of the standard library; other Rust in the process is unaffected.
/// The SQL functions in this module put a hook of theirs before it, which passes on what does not happen under their guard.
pub fn quiet_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        PLACE.with(|slot| *slot.borrow_mut() = place);
    }));
}

/// Runs the body of one entry; a panic becomes `InternalError`, and the module stays usable.
pub fn guard<R>(py: Python<'_>, body: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => {
            let place = PLACE.with(|slot| slot.borrow_mut().take());
            let message = format!(
                "internal error: {}{}; this is a bug in engramsql, please report it",
                text_of(payload.as_ref()),
                place.map(|at| format!(" (at {at})")).unwrap_or_default()
            );
            Err(errors::raise(py, "InternalError", message))
        }
    }
}

/// Runs engine work with the interpreter released and turns its error into an exception.
pub fn detached<R: Send, E: Into<engram_engine::Error> + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R, E> + Send,
) -> PyResult<R> {
    py.detach(work).map_err(|error| errors::from_engine(py, &error.into()))
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
