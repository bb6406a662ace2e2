//! What a user may set for the whole process: environment variables at the start, calls later.

use crate::read::{CodePath, ReadError};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Threads for one call; 0: not set, as many as the process may use.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Threads that the host gives to a query, as it said last; 0: it said nothing.
static HOST_THREADS: AtomicUsize = AtomicUsize::new(0);
/// Place of the forced code path in [`CodePath::READERS`], plus one; 0: chosen per batch; [`UNSET`]: as the environment
/// says.
static READER: AtomicU8 = AtomicU8::new(UNSET);
const UNSET: u8 = u8::MAX;

/// Threads that one call may use for rows in memory.
pub fn threads() -> usize {
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    match THREADS.load(Ordering::Relaxed) {
        0 => *AVAILABLE.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)),
        threads => threads,
    }
}

/// The same, but no more than the host has for a query.
pub(crate) fn threads_of_call() -> usize {
    match HOST_THREADS.load(Ordering::Relaxed) {
        0 => threads(),
        host => threads().min(host),
    }
}

/// Notes how many threads the host gives to a query: a program that was told to keep to one must not find two busy.
pub fn set_host_threads(threads: usize) {
    HOST_THREADS.store(threads, Ordering::Relaxed);
}

/// Sets [`threads`]; `None` means as many as the process may use.
pub fn set_threads(threads: Option<usize>) {
    THREADS.store(threads.unwrap_or(0), Ordering::Relaxed);
}

/// The code path that every batch takes, or `None` where it is chosen per batch: what [`set_reader`] said last, else what
/// `ENGRAMSQL_READER` says.
pub fn reader() -> Option<CodePath> {
    let place = match READER.load(Ordering::Relaxed) {
        UNSET => environment().as_ref().copied().unwrap_or(0),
        place => place,
    };
    CodePath::READERS.get(usize::from(place).wrapping_sub(1)).copied()
}

/// Forces a code path by name for every table of the process; "auto" leaves the choice to each batch, and "" is what the
/// environment says.
pub fn set_reader(name: &str) -> Result<(), ReadError> {
    let place = match name {
        "" => UNSET,
        _ => place(name).ok_or_else(|| ReadError::UnknownReader { name: name.to_owned() })?,
    };
    READER.store(place, Ordering::Relaxed);
    Ok(())
}

/// An error if the environment names no reader.
pub(crate) fn from_environment() -> Result<(), ReadError> {
    environment().as_ref().map(|_| ()).map_err(|name| ReadError::UnknownReader { name: name.clone() })
}

/// The place that `ENGRAMSQL_READER` names, or the name that is none.
fn environment() -> &'static Result<u8, String> {
    static READ: OnceLock<Result<u8, String>> = OnceLock::new();
    READ.get_or_init(|| match std::env::var_os("ENGRAMSQL_READER") {
        Some(name) if !name.is_empty() => {
            // What is no UTF-8 names no reader, and is told like any other such name.
            let name = name.to_string_lossy().into_owned();
            place(&name).ok_or(name)
        }
        _ => Ok(0),
    })
}

fn place(name: &str) -> Option<u8> {
    if name == "auto" {
        return Some(0);
    }
    CodePath::READERS.iter().position(|path| path.name() == name).map(|place| place as u8 + 1)
}
