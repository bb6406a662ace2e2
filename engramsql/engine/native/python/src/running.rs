//! Engine calls that take minutes: how far they are is shown, and Ctrl-C ends them where they can be resumed.

use crate::errors;
use engram_engine::{Error, Progress};
use pyo3::prelude::*;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Between two looks at how far it is, and at whether somebody has pressed Ctrl-C.
const STEP: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own and waits for its end, with the interpreter released.
///
/// `show` is called now and then, from the calling thread, with the stage, the bytes done and the bytes to do. A signal
/// whose handler raises, or an exception of `show`, cancels the work; it is raised once the work has ended.
///
/// # Errors
/// What the work fails with, or what ended it.
pub fn run<R: Send>(
    py: Python<'_>,
    show: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Progress) -> Result<R, Error> + Send,
) -> PyResult<R> {
    let progress = Progress::new();
    let (outcome, ended) = (Mutex::new(None), Condvar::new());
    let lock = || outcome.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let body = || {
            // Caught here, so that the waiting thread learns of every end.
            let result = panic::catch_unwind(AssertUnwindSafe(|| work(&progress)));
            *lock() = Some(result);
            ended.notify_one();
        };
        let started = thread::Builder::new().name("engramsql-work".to_owned()).spawn_scoped(scope, body);
        if let Err(error) = started {
            return Err(errors::raise(py, "StorageError", format!("the system gives no thread to work on: {error}")));
        }
        let mut stopped_by = None;
        loop {
            let result = py.detach(|| {
                let waited = ended.wait_timeout_while(lock(), STEP, |outcome| outcome.is_none());
                waited.unwrap_or_else(PoisonError::into_inner).0.take()
            });
            match (result, stopped_by.take()) {
                // The signal has been answered: a result that was complete by then is not announced as one.
                (Some(_), Some(error)) => return Err(error),
                (Some(Ok(result)), None) => {
                    let result = result.map_err(|error| errors::from_engine(py, &error))?;
                    tell(show, &progress)?;
                    return Ok(result);
                }
                (Some(Err(payload)), None) => panic::resume_unwind(payload),
                (None, Some(error)) => stopped_by = Some(error),
                (None, None) => {
                    if let Err(error) = look(py, show, &progress) {
                        progress.cancel();
                        stopped_by = Some(error);
                    }
                }
            }
        }
    })
}

fn look(py: Python<'_>, show: Option<&Bound<'_, PyAny>>, progress: &Progress) -> PyResult<()> {
    py.check_signals()?;
    tell(show, progress)
}

fn tell(show: Option<&Bound<'_, PyAny>>, progress: &Progress) -> PyResult<()> {
    let (stage, done, total) = progress.snapshot();
    match show {
        Some(show) if !stage.is_empty() => show.call1((stage, done, total)).map(drop),
        _ => Ok(()),
    }
}
