//! The slot index of a view that is there, built anew.

use super::manifest::{CHECKSUMS, INDEX, KEYS, Manifest};
use crate::catalog::{Session, ViewEntry};
use crate::error::Result;
use crate::progress::Progress;
use crate::read::stream_file;
use crate::slot_index::{Keys, SlotIndex};
use crate::storage::checksum::{Checksums, Summer};
use crate::storage::{DirectoryLock, StorageError};
use std::path::Path;

/// Memory for sorting, unless the caller names it.
const MEMORY: u64 = 64 << 20;

/// Builds the slot index of the view called `name` anew, with about `memory` bytes for sorting. The index that is there,
/// whole or damaged, stays until the new one is complete; the same keys give the same bytes.
///
/// # Errors
/// An unknown view, a read-only database, another process that builds the index now, keys that are not those of the view any more, a full disk, cancellation.
pub fn build_index(session: &Session, name: &str, memory: Option<u64>, progress: &Progress) -> Result<()> {
    let entry = session.view_entry(name)?;
    session.require_writable()?;
    // Two builds at a time would write to one file, and a view that is removed meanwhile is not to be written to.
    let lock = DirectoryLock::take(&entry.directory)?;
    let built = build_locked(&entry, memory.unwrap_or(MEMORY), progress);
    let removed = lock.remove(&entry.directory);
    built?;
    Ok(removed?)
}

fn build_locked(entry: &ViewEntry, memory: u64, progress: &Progress) -> Result<()> {
    let (manifest, _) = Manifest::read(&entry.directory)?;
    let view = &manifest.view;
    check_keys(&entry.directory, &view.checksums.blake3, progress)?;
    let (heads, key_bytes) = (view.heads as usize, view.key_bytes as usize);
    let keys = Keys::open(&entry.directory.join(KEYS), heads, key_bytes, view.slots)?;
    let index = entry.directory.join(INDEX);
    SlotIndex::build(&keys, &index, &view.checksums.blake3, memory, progress)
}

/// Whether the keys are those that the view was built with: an index over others would lead to wrong records.
fn check_keys(directory: &Path, digest: &str, progress: &Progress) -> Result<()> {
    let (path, sums_path) = (directory.join(KEYS), directory.join(CHECKSUMS));
    let (mut sums, found) = Checksums::read(&sums_path)?;
    if found != digest {
        return Err(StorageError::damaged(&sums_path, "it is not the checksum file that the manifest means").into());
    }
    let expected = sums.files.pop().unwrap_or_default();
    progress.begin("check keys", expected.bytes);
    let mut summer = Summer::new();
    stream_file(&path, &mut |_, bytes| {
        summer.update(bytes);
        progress.advance(bytes.len() as u64)
    })?;
    if summer.finish() != expected {
        return Err(StorageError::damaged(&path, "it does not match its checksums; build the view again").into());
    }
    Ok(())
}
