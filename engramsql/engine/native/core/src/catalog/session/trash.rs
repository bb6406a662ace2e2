//! Directories on their way out: first renamed, so that a crash leaves what nobody takes for a store, then removed.

use super::super::error::CatalogError;
use crate::error::{Error, Result};
use crate::fault;
use crate::storage::{DirectoryLock, StorageError};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// How the names of such directories begin.
pub(super) const TRASH: &str = ".trash-";

/// A directory, or a link to one, that is to go and that nobody writes to.
pub(super) struct Doomed {
    path: PathBuf,
    lock: Option<DirectoryLock>,
}

/// The same under a trash name.
pub(super) struct Trash(Doomed);

impl Doomed {
    /// What is at `path`, or `None` if nothing is; an error if somebody writes to it. Changes nothing, unless `always`
    /// takes the lock of a directory that has no lock file yet.
    pub(super) fn claim(path: &Path, always: bool) -> Result<Option<Doomed>> {
        let lock = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CatalogError::NotRemoved { path: path.to_owned(), error }.into()),
            Ok(found) if found.is_dir() && (always || path.join(DirectoryLock::FILE).exists()) => {
                Some(DirectoryLock::take(path)?)
            }
            // A link is removed; what it leads to is not ours.
            Ok(_) => None,
        };
        Ok(Some(Doomed { path: path.to_owned(), lock }))
    }

    /// [`Doomed::claim`] of an orphan; `None` too if somebody writes to it. A build makes its directory before it takes the
    /// lock, so the lock is taken even if nobody had it so far.
    pub(super) fn claim_idle(path: &Path) -> Result<Option<Doomed>> {
        match Doomed::claim(path, true) {
            Err(Error::Storage(StorageError::Busy { .. })) => Ok(None),
            result => result,
        }
    }

    /// Gives it a trash name. The caller is the only writer of the database.
    pub(super) fn rename(self) -> Result<Trash> {
        let folder = self.path.parent().unwrap_or_else(|| Path::new("."));
        let mut number = 0u64;
        let trash = loop {
            let trash = folder.join(format!("{TRASH}{}-{number}", std::process::id()));
            if trash.symlink_metadata().is_err() {
                break trash;
            }
            number += 1;
        };
        fault::point("trash.rename");
        std::fs::rename(&self.path, &trash)
            .and_then(|()| File::open(folder)?.sync_all())
            .map_err(|error| CatalogError::NotRemoved { path: self.path.clone(), error })?;
        fault::point("trash.renamed");
        let lock = match self.lock {
            // Nobody else is to remove it at the same time.
            None if !trash.is_symlink() => Some(DirectoryLock::take(&trash)?),
            lock => lock,
        };
        Ok(Trash(Doomed { path: trash, lock }))
    }
}

impl Trash {
    /// Removes it; may take a while, and needs no lock of the database.
    pub(super) fn remove(self) -> Result<()> {
        let Doomed { path, lock } = self.0;
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(CatalogError::NotRemoved { path, error }.into());
            }
            _ => fault::point("trash.removed"),
        }
        drop(lock);
        Ok(())
    }
}

/// Whether a process holds the lock of the directory at `path`.
pub(super) fn is_claimed(path: &Path) -> bool {
    match File::open(path.join(DirectoryLock::FILE)) {
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}
