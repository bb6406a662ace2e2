//! Limit probes: what this machine can do with the files of one table, whatever the readers make of it.
//!
//! A probe shares no code with [`crate::read`], so that it can judge it: it takes extents, does the least work that
//! delivers the rows, and keeps time itself. Nothing here is used to answer a query.

mod aligned;
mod clock;
mod compute;
mod copy;
mod direct;
mod extents;
mod gather;
mod ring;
mod workers;

pub use compute::{Memory, copy_rate, decode_rate, widen_rate};
pub use direct::{Direct, Executor};
pub use extents::{Extents, ProbeExtent};
pub use gather::MappedRows;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a probe could not measure.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The system failed to open, map or read a file.
    #[error("probing '{}' failed: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file system has no reads around the page cache.
    #[error("'{}' cannot be read around the page cache (O_DIRECT: {error}); measure a table on a local disk", path.display())]
    NoDirect {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// io_uring was asked for by name and is refused.
    #[error("io_uring is refused here ({error}); ask for no executor, and threads are used")]
    NoRing {
        /// What the system said.
        error: std::io::Error,
    },
    /// An argument without meaning.
    #[error("{what}")]
    Argument {
        /// What is wrong, with the remedy.
        what: String,
    },
}

impl ProbeError {
    fn io(path: &Path, error: std::io::Error) -> ProbeError {
        ProbeError::Io { path: path.to_owned(), error }
    }

    fn argument(what: impl Into<String>) -> ProbeError {
        ProbeError::Argument { what: what.into() }
    }
}

/// One measurement of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Time from the first read to the last row; opening, mapping and making rings or threads is not in it.
    pub elapsed: Duration,
    /// Reads: submissions or system calls; copies for memory.
    pub reads: u64,
    /// Bytes asked for by these reads.
    pub bytes: u64,
    /// The code path really taken.
    pub path: String,
}

#[cfg(test)]
mod tests;
