//! `engram.json.bak`: the catalog before its last change, for whoever finds `engram.json` damaged.

use super::document::{Document, FILE, TEMPORARY};
use crate::publish::publish;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Name of the backup in a database directory.
pub(super) const BACKUP: &str = "engram.json.bak";

/// Makes the present catalog file the backup, without a moment in which either is missing. The caller holds the lock.
pub(super) fn keep(directory: &Path) -> Result<()> {
    let (present, backup) = (directory.join(FILE), directory.join(BACKUP));
    let found = match present.metadata() {
        Ok(found) => found,
        // The first change of a database.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // So it is after a change that failed at its last step; to rename one name of a file to another does nothing.
    if backup.metadata().is_ok_and(|kept| (kept.dev(), kept.ino()) == (found.dev(), found.ino())) {
        return Ok(());
    }
    let second_name = directory.join(format!("{TEMPORARY}bak"));
    match std::fs::hard_link(&present, &second_name) {
        Ok(()) => std::fs::rename(&second_name, &backup),
        // A file system without hard links.
        Err(_) => publish(&backup, &std::fs::read(&present)?),
    }
}

/// What to do about a damaged catalog, starting with "; ": take the backup if it is there and reads.
pub(super) fn remedy(directory: &Path, damaged: &Path) -> String {
    let backup = directory.join(BACKUP);
    let reads = damaged != backup
        && std::fs::read(&backup).is_ok_and(|bytes| Document::parse(directory, &backup, &bytes).is_ok());
    if reads {
        format!("; '{}' is the catalog before the last change and reads well: copy it over", backup.display())
    } else {
        "; restore it from a copy, or remove it and register the tables again".to_owned()
    }
}
