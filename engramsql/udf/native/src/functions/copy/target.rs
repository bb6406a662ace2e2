//! Where a store may appear.

use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The directory that `path` will be: not there yet, or empty, in one that is there.
pub fn check(path: &Path) -> Result<PathBuf> {
    let refuse = |path: &Path, why: &str| Err(Error::argument(format!("{} {why}", path.display())));
    let path = std::path::absolute(path).map_err(|error| refused(path, error))?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return refuse(&path, "names no new directory");
    };
    // So DuckDB names the files of partitions and of threads: their directories are none that the user named.
    if name.ends_with('.') {
        return refuse(&path, "is not what the statement names: PARTITION_BY and PER_THREAD_OUTPUT are not offered");
    }
    // DuckDB writes beside a file that it means to replace, under this name.
    if let Some(real) = name.strip_prefix("tmp_").map(|real| parent.join(real))
        && real.is_file()
    {
        return refuse(&real, "is a file; name a directory that does not exist yet");
    }
    match std::fs::read_dir(&path) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return refuse(&path, "exists and is not empty; name a directory that does not exist yet");
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if !parent.is_dir() {
                return refuse(parent, "is no directory; make it first");
            }
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return refuse(&path, "is a file; name a directory that does not exist yet");
        }
        Err(error) => return Err(refused(&path, error)),
    }
    Ok(path)
}

fn refused(path: &Path, error: std::io::Error) -> Error {
    Error::argument(format!("{}: {error}", path.display()))
}
