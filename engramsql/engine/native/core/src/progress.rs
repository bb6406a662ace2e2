//! How far a long operation is, and the wish to end it.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Shared between the threads that work and whoever shows how far they are or stops them.
#[derive(Debug, Default)]
pub struct Progress {
    stage: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Nothing done of nothing.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Begins a stage of `total` bytes.
    pub fn begin(&self, stage: &'static str, total: u64) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Says that `bytes` more are done.
    ///
    /// # Errors
    /// [`Error::Cancelled`] once somebody wants the end: whoever works stops there and leaves things as they are.
    pub fn advance(&self, bytes: u64) -> Result<()> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.check()
    }

    /// The same without progress.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Ends the operation at its next step.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// The stage, and the bytes done and to do in it.
    pub fn snapshot(&self) -> (&'static str, u64, u64) {
        let stage = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        (stage, self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}
