//! One writer at a time: an advisory lock on `engram.lock` that the system releases when its holder dies.

use super::error::CatalogError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the lock file in a database directory.
pub(super) const FILE: &str = "engram.lock";
/// Catalog changes take milliseconds; whoever holds the lock longer is stuck or building.
const PATIENCE: Duration = Duration::from_secs(5);

/// Held while what a writer makes is looked at: none is at work.
pub(super) struct AtRest(#[expect(dead_code, reason = "dropping the file releases the lock")] Option<File>);

impl AtRest {
    /// `None` if a writer is at work on the database in `directory`, or if that cannot be told. Writes nothing and does not
    /// wait.
    pub(super) fn look(directory: &Path) -> Option<AtRest> {
        match File::open(directory.join(FILE)) {
            Ok(file) => file.try_lock_shared().is_ok().then_some(AtRest(Some(file))),
            // A writer makes it first.
            Err(error) if error.kind() == ErrorKind::NotFound => Some(AtRest(None)),
            Err(_) => None,
        }
    }
}

/// Held while a catalog is changed.
pub(super) struct WriterLock(#[expect(dead_code, reason = "dropping the file releases the lock")] File);

impl WriterLock {
    /// Takes the lock of the database in `directory`, waiting a little for another writer.
    pub(super) fn take(directory: &Path) -> Result<WriterLock, CatalogError> {
        let path = directory.join(FILE);
        let io = |error| CatalogError::Io { action: "lock", path: path.clone(), error };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(5))
                }
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    let _ = file.read_to_string(&mut holder);
                    let holder = holder.trim().parse::<u32>().map_or(String::new(), |pid| format!(" (process {pid})"));
                    return Err(CatalogError::Locked { path: directory.to_owned(), holder });
                }
                Err(TryLockError::Error(error)) => return Err(io(error)),
            }
        }
        // For the message of whoever waits; the lock itself needs no content.
        file.set_len(0).map_err(io)?;
        write!(file, "{}", std::process::id()).map_err(io)?;
        Ok(WriterLock(file))
    }
}
