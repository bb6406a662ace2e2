//! What a user may set for the whole process: environment variables at the start, calls later.

use crate::read::{CodePath, ReadError};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Threads for one call; 0: not set, as many as the process may use.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Place of the forced code path in [`CodePath::READERS`], plus one; 0: chosen per batch.
static READER: AtomicU8 = AtomicU8::new(0);

/// Threads that one call may use for rows in memory.
pub fn threads() -> usize {
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    match THREADS.load(Ordering::Relaxed) {
        0 => *AVAILABLE.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)),
        threads => threads,
    }
}

/// Sets [`threads`]; `None` means as many as the process may use.
pub fn set_threads(threads: Option<usize>) {
    THREADS.store(threads.unwrap_or(0), Ordering::Relaxed);
}

/// The code path that every batch takes, or `None` where it is chosen per batch. `ENGRAMSQL_READER` sets it first.
pub fn reader() -> Option<CodePath> {
    let place = READER.load(Ordering::Relaxed);
    CodePath::READERS.get(usize::from(place).wrapping_sub(1)).copied()
}

/// Forces a code path by name for every table of the process; "" or "auto" leaves the choice to each batch again.
pub fn set_reader(name: &str) -> Result<(), ReadError> {
    let place = match name {
        "" | "auto" => 0,
        _ => match CodePath::READERS.iter().position(|path| path.name() == name) {
            Some(place) => place as u8 + 1,
            None => return Err(ReadError::UnknownReader { name: name.to_owned() }),
        },
    };
    READER.store(place, Ordering::Relaxed);
    Ok(())
}

/// Applies the environment, once; an error every time if it is wrong.
pub(crate) fn from_environment() -> Result<(), ReadError> {
    static READ: OnceLock<Result<(), String>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        let name = std::env::var("ENGRAMSQL_READER").unwrap_or_default();
        set_reader(&name).map_err(|_| name)
    });
    read.clone().map_err(|name| ReadError::UnknownReader { name })
}
