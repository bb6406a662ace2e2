//! The directory in which a store grows: `.NAME.building` beside its final place, one builder at a time.

use crate::error::Result;
use crate::fault;
use crate::storage::{DirectoryLock, StorageError, remove_directory, remove_file, sync_directory};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory that nothing names yet, held by this process.
pub(super) struct WorkingDirectory {
    path: PathBuf,
    lock: DirectoryLock,
}

impl WorkingDirectory {
    /// Makes the directory and takes it.
    pub(super) fn create(path: &Path) -> Result<WorkingDirectory, StorageError> {
        let io = |error| StorageError::io("create", path, error);
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
        match std::fs::create_dir(path) {
            // Somebody else made it since this process looked.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(StorageError::Busy { path: path.to_owned(), holder: String::new() });
            }
            made => made.map_err(io)?,
        }
        let lock = DirectoryLock::take(path)?;
        // What was made on the way must survive a power cut before anything in it counts.
        if let Some(folder) = path.parent() {
            sync_directory(folder)?;
            folder.parent().map_or(Ok(()), sync_directory)?;
        }
        Ok(WorkingDirectory { path: path.to_owned(), lock })
    }

    /// Takes the directory that another process left, if it is there.
    ///
    /// # Errors
    /// [`StorageError::Busy`] if that process still works in it.
    pub(super) fn take(path: &Path) -> Result<Option<WorkingDirectory>, StorageError> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StorageError::io("open", path, error)),
            Ok(_) => Ok(Some(WorkingDirectory { path: path.to_owned(), lock: DirectoryLock::take(path)? })),
        }
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what `unwanted` names; the lock stays.
    pub(super) fn remove_files(&self, unwanted: impl Fn(&str) -> bool) -> Result<(), StorageError> {
        let io = |error| StorageError::io("list", &self.path, error);
        for entry in std::fs::read_dir(&self.path).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let wanted = name.to_str().is_some_and(|name| name == DirectoryLock::FILE || !unwanted(name));
            if !wanted {
                remove_file(&self.path.join(name))?;
            }
        }
        Ok(())
    }

    /// Gives the directory its final name, which nothing else has; the lock moves with it.
    pub(super) fn rename(mut self, directory: &Path) -> Result<WorkingDirectory, StorageError> {
        let io = |error| StorageError::io("rename", directory, error);
        sync_directory(&self.path)?;
        fault::io("build.rename").and_then(|()| std::fs::rename(&self.path, directory)).map_err(io)?;
        directory.clone_into(&mut self.path);
        directory.parent().map_or(Ok(()), sync_directory)?;
        Ok(self)
    }

    /// Lets the directory go, which is complete.
    pub(super) fn release(self) -> Result<(), StorageError> {
        self.lock.remove(&self.path)
    }

    /// Removes the directory and all that is in it.
    pub(super) fn remove(self) -> Result<(), StorageError> {
        remove_directory(&self.path)
    }
}
