//! Room on the disk, and directories.

use super::error::StorageError;
use std::path::Path;

/// Refuses what the disk of `directory`, which exists, has no room for.
///
/// # Errors
/// [`StorageError::NoSpace`] with both figures.
pub fn require_space(directory: &Path, needed: u64) -> Result<(), StorageError> {
    let said = rustix::fs::statvfs(directory).map_err(|e| StorageError::io("look at", directory, e.into()))?;
    let free = said.f_bavail.saturating_mul(said.f_frsize);
    if free < needed { Err(StorageError::NoSpace { path: directory.to_owned(), needed, free }) } else { Ok(()) }
}

/// Makes the names in `directory` survive a power cut.
pub fn sync_directory(directory: &Path) -> Result<(), StorageError> {
    let sync = || std::fs::File::open(directory)?.sync_all();
    sync().map_err(|error| StorageError::io("sync", directory, error))
}

/// Removes `directory` and what is in it; one that is not there is removed already.
pub fn remove_directory(directory: &Path) -> Result<(), StorageError> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StorageError::io("remove", directory, error)),
        _ => Ok(()),
    }
}

/// Removes the file at `path`; one that is not there is removed already.
pub fn remove_file(path: &Path) -> Result<(), StorageError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StorageError::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Removes what is in `directory` but the files `keep`.
pub fn clear_directory(directory: &Path, keep: &[&str]) -> Result<(), StorageError> {
    let io = |error| StorageError::io("look at", directory, error);
    for entry in std::fs::read_dir(directory).map_err(io)? {
        let entry = entry.map_err(io)?;
        if keep.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type().map_err(io)?.is_dir() {
            remove_directory(&entry.path())?;
        } else {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes what writers that died left in `directory` beside the files they were to publish: names that begin with a dot.
/// Nobody else writes there.
pub fn remove_leftovers(directory: &Path) -> Result<(), StorageError> {
    let io = |error| StorageError::io("look at", directory, error);
    for entry in std::fs::read_dir(directory).map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") && !entry.file_type().map_err(io)?.is_dir() {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}
