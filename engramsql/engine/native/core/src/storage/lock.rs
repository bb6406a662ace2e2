//! One process at a time in a directory that is being written.

use super::error::StorageError;
use super::space::remove_file;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A lock on a directory, released when it is dropped or its process dies.
#[derive(Debug)]
pub struct DirectoryLock(#[expect(dead_code, reason = "dropping the file releases the lock")] File);

impl DirectoryLock {
    /// Name of the lock file.
    pub const FILE: &'static str = "lock";

    /// Takes the lock of `directory`, which exists.
    ///
    /// # Errors
    /// [`StorageError::Busy`] if another process has it.
    pub fn take(directory: &Path) -> Result<DirectoryLock, StorageError> {
        let path = directory.join(Self::FILE);
        let io = |error| StorageError::io("lock", &path, error);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let holder = holder.trim().parse::<u32>().map_or(String::new(), |pid| format!(" (process {pid})"));
                return Err(StorageError::Busy { path: directory.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        // Whoever had it may have renamed the directory or removed the file in the meantime: then this is the lock of
        // something else.
        let still = std::fs::metadata(&path)
            .is_ok_and(|now| file.metadata().is_ok_and(|taken| (now.dev(), now.ino()) == (taken.dev(), taken.ino())));
        if !still {
            return Err(StorageError::Busy { path: directory.to_owned(), holder: String::new() });
        }
        // For the message of whoever else comes; the lock itself needs no content.
        file.set_len(0).map_err(io)?;
        write!(file, "{}", std::process::id()).map_err(io)?;
        Ok(DirectoryLock(file))
    }

    /// Removes the lock file from `directory`, as it is called by now, and lets it go: what is there is complete.
    pub fn remove(self, directory: &Path) -> Result<(), StorageError> {
        remove_file(&directory.join(Self::FILE))
    }
}
