//! Why something could not be written, or what was written cannot be trusted.

use std::path::{Path, PathBuf};

/// Why something could not be written, or what was written cannot be trusted.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The system refused.
    #[error("cannot {action} '{}': {error}", path.display())]
    Io {
        /// "write", "create", ...
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The disk became full.
    #[error(
        "no space is left for '{}': {error}; free some space and resume, or discard what was built (restart)", path.display()
    )]
    DiskFull {
        /// The file being written.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The process may open no more files.
    #[error("cannot {action} '{}': this process may have {limit} files open (ulimit -n); raise the limit, or do fewer things at a time", path.display())]
    TooManyFiles {
        /// "write", "create", ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Files that the process may have open.
        limit: u64,
    },
    /// Not enough space, found before anything was written.
    #[error("'{}' needs {needed} bytes and its disk has {free} free; free {missing} bytes or choose another place", path.display(), missing = needed - free)]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// Bytes to be written.
        needed: u64,
        /// Bytes that the disk has.
        free: u64,
    },
    /// Content that does not prove itself.
    #[error("'{}' is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Content of a newer version.
    #[error("'{}' has format version {found}, this version of EngramSQL reads up to {supported}; upgrade engramsql", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Version found.
        found: u64,
        /// Newest version known.
        supported: u64,
    },
    /// Another process works in the directory.
    #[error("'{}' is being written by another process{holder}; wait until it is done", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
        /// " (process N)" or nothing.
        holder: String,
    },
}

impl StorageError {
    /// What the system said when `action` was tried on `path`.
    pub fn io(action: &'static str, path: &Path, error: std::io::Error) -> StorageError {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => StorageError::DiskFull { path: path.to_owned(), error },
            Some(libc::EMFILE) => {
                let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
                StorageError::TooManyFiles { action, path: path.to_owned(), limit }
            }
            _ => StorageError::Io { action, path: path.to_owned(), error },
        }
    }

    /// Content of `path` that does not prove itself.
    pub fn damaged(path: &Path, what: impl Into<String>) -> StorageError {
        StorageError::Damaged { path: path.to_owned(), what: what.into() }
    }
}
