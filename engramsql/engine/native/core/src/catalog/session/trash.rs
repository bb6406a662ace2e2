//! Directories on their way out: first renamed, so that a crash leaves what nobody takes for a store, then removed.

use super::super::error::CatalogError;
use crate::fault;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// How the names of such directories begin.
pub(super) const TRASH: &str = ".trash-";
/// The file in a directory that whoever writes into it holds locked.
const LOCK: &str = "lock";

/// A directory or link that was renamed and waits for its removal.
pub(super) struct Trash {
    path: PathBuf,
    /// Held until it is gone, so that nobody else removes it too.
    #[expect(dead_code, reason = "dropping the file releases the lock")]
    lock: Option<File>,
}

impl Trash {
    /// Renames what is at `path` to a trash name beside it; `None` if nothing is there. The caller is the only writer.
    pub(super) fn take(path: &Path) -> Result<Option<Trash>, CatalogError> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(not_removed(path, error)),
            Ok(found) => {
                // A finished directory has no lock file unless its writer is still about to publish it.
                let lock = match found.is_dir() && path.join(LOCK).exists() {
                    true => Some(claim(path)?.ok_or_else(|| in_use(path))?),
                    false => None,
                };
                Trash::rename(path, lock).map(Some)
            }
        }
    }

    /// [`Trash::take`] of an orphan; `None` too if somebody is working in it.
    pub(super) fn take_orphan(path: &Path) -> Result<Option<Trash>, CatalogError> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(not_removed(path, error)),
            // A link is removed; what it leads to is not ours.
            Ok(found) if !found.is_dir() => Trash::rename(path, None).map(Some),
            // The lock is made if it is not there: whoever has just made the directory has not come to that yet.
            Ok(_) => match claim(path)? {
                Some(lock) => Trash::rename(path, Some(lock)).map(Some),
                None => Ok(None),
            },
        }
    }

    fn rename(path: &Path, lock: Option<File>) -> Result<Trash, CatalogError> {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let mut number = 0u64;
        let trash = loop {
            let trash = folder.join(format!("{TRASH}{}-{number}", std::process::id()));
            if trash.symlink_metadata().is_err() {
                break trash;
            }
            number += 1;
        };
        fault::point("trash-rename");
        std::fs::rename(path, &trash)
            .and_then(|()| File::open(folder)?.sync_all())
            .map_err(|error| not_removed(path, error))?;
        fault::point("trash-renamed");
        Ok(Trash { path: trash, lock })
    }

    /// Removes it; may take a while, and needs no lock of the database.
    pub(super) fn remove(self) -> Result<(), CatalogError> {
        match std::fs::remove_dir_all(&self.path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(not_removed(&self.path, error)),
        }
    }
}

/// Whether a process holds the lock of the directory at `path`.
pub(super) fn is_claimed(path: &Path) -> bool {
    match File::open(path.join(LOCK)) {
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

/// Takes the lock of the directory at `path`, which is made if it is not there; `None` if another process holds it.
fn claim(path: &Path) -> Result<Option<File>, CatalogError> {
    let file = path.join(LOCK);
    let io = |error| CatalogError::Io { action: "lock", path: file.clone(), error };
    let lock = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&file).map_err(io)?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

fn in_use(path: &Path) -> CatalogError {
    not_removed(path, Error::new(ErrorKind::ResourceBusy, "a process is writing to it"))
}

fn not_removed(path: &Path, error: Error) -> CatalogError {
    CatalogError::NotRemoved { path: path.to_owned(), error }
}
