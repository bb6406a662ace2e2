//! Writing rows that come from anywhere as a store that describes itself.

use super::directory::WorkingDirectory;
use super::error::BuildError;
use super::geometry;
use super::plan::{CHECKSUMS, PLAN, Plan};
use crate::clock::now;
use crate::error::Result;
use crate::source::{StoreDescription, StoreLayout, TOKEN_MAP};
use crate::spec::Spec;
use crate::storage::checksum::{Checksums, FileSums};
use crate::storage::{OrderedWriter, StorageError, building_path};
use std::path::{Path, PathBuf};

/// Writes a store; nothing is under its name before [`finish`](StoreWriter::finish), and dropped before that it leaves
/// nothing.
pub struct StoreWriter {
    directory: PathBuf,
    /// `None` once it was renamed.
    work: Option<WorkingDirectory>,
    plan: Plan,
    shard: Option<OrderedWriter>,
    /// Bytes of the current shard.
    filled: u64,
    finished: Vec<FileSums>,
    /// Whether a write has failed, so that rows are missing.
    failed: bool,
}

impl StoreWriter {
    /// Begins a store of rows of `row_bytes` bytes, in shards of as many whole rows as `shard_bytes` hold (at least one).
    ///
    /// # Errors
    /// A directory that is there and not empty, or that another process writes; a description that such rows contradict.
    pub fn create(
        directory: &Path,
        row_bytes: usize,
        shard_bytes: u64,
        description: StoreDescription,
    ) -> Result<StoreWriter> {
        let directory = std::path::absolute(directory).map_err(|e| StorageError::io("find", directory, e))?;
        check_description(&directory, row_bytes, &description)?;
        let layout = geometry(row_bytes as u64, 0, shard_bytes)?;
        if std::fs::read_dir(&directory).is_ok_and(|mut entries| entries.next().is_some()) || directory.is_file() {
            return Err(BuildError::NotEmpty { path: directory }.into());
        }
        let path = building_path(&directory);
        let work = match WorkingDirectory::take(&path)? {
            // A plan belongs to a build that can be resumed; without one it is what a process that died left.
            Some(work) if work.path().join(PLAN).exists() => return Err(BuildError::NotEmpty { path }.into()),
            Some(work) => {
                work.remove_files(|_| true)?;
                work
            }
            None => WorkingDirectory::create(&path)?,
        };
        let plan = Plan { layout, description, source_identity: None, built_at: now() };
        Ok(StoreWriter {
            directory,
            work: Some(work),
            plan,
            shard: None,
            filled: 0,
            finished: Vec::new(),
            failed: false,
        })
    }

    /// Where the store will be.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.plan.layout.rows
    }

    /// The next rows: their bytes, back to back.
    ///
    /// # Errors
    /// Bytes that are no whole number of rows (nothing of them was written); a disk that is full or fails (the store can
    /// only be dropped then).
    pub fn write_rows(&mut self, rows: &[u8]) -> Result<()> {
        self.require_whole()?;
        let width = self.plan.layout.row_bytes;
        if !rows.len().is_multiple_of(width as usize) {
            let path = self.directory.clone();
            return Err(BuildError::PartialRow { path, bytes: rows.len(), row_bytes: width as usize }.into());
        }
        let written = self.write_whole_rows(rows);
        self.failed = written.is_err();
        written
    }

    fn write_whole_rows(&mut self, mut rows: &[u8]) -> Result<()> {
        let width = self.plan.layout.row_bytes;
        let full = self.plan.layout.rows_per_shard * width;
        while !rows.is_empty() {
            let mut shard = match self.shard.take() {
                Some(shard) => shard,
                None => {
                    super::check_shards(self.finished.len() as u64 + 1)?;
                    let name = StoreLayout::file_name(self.finished.len() as u64);
                    OrderedWriter::create(&self.work().join(name), 0)?
                }
            };
            let fits = (full - self.filled).min(rows.len() as u64);
            let (head, rest) = rows.split_at(fits as usize);
            shard.write(head)?;
            self.filled += fits;
            self.plan.layout.rows += fits / width;
            rows = rest;
            if self.filled == full {
                self.finished.push(shard.finish()?);
                self.filled = 0;
            } else {
                self.shard = Some(shard);
            }
        }
        Ok(())
    }

    /// Gives the store its name; returns the digest of its manifest.
    ///
    /// # Errors
    /// No rows; an earlier write that failed; a disk that is full or fails.
    pub fn finish(mut self) -> Result<String> {
        self.require_whole()?;
        if let Some(shard) = self.shard.take() {
            self.finished.push(shard.finish()?);
        }
        if self.plan.layout.rows == 0 {
            return Err(BuildError::NoRows { path: self.directory.clone() }.into());
        }
        let finished = std::mem::take(&mut self.finished);
        let digest = complete(&self.plan, self.work(), finished)?;
        if let Some(work) = self.work.take() {
            work.rename(&self.directory)?.release()?;
        }
        Ok(digest)
    }

    fn require_whole(&self) -> Result<(), BuildError> {
        if self.failed { Err(BuildError::WriteFailed { path: self.directory.clone() }) } else { Ok(()) }
    }

    fn work(&self) -> &Path {
        self.work.as_ref().map_or(&self.directory, WorkingDirectory::path)
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        drop(self.shard.take());
        if let Some(work) = self.work.take() {
            // Whoever opens the directory again finds it unfinished, whatever is left.
            let _ = work.remove();
        }
    }
}

/// Writes what makes the shards in `directory` a store: token map, checksums, manifest. Returns the manifest's digest.
pub(super) fn complete(plan: &Plan, directory: &Path, files: Vec<FileSums>) -> Result<String> {
    if let Some(map) = plan.description.spec.as_ref().and_then(Spec::token_map) {
        map.write(directory.join(TOKEN_MAP))?;
    }
    let checksums = Checksums { files }.publish(&directory.join(CHECKSUMS))?;
    Ok(plan.publish_manifest(directory, &checksums)?)
}

/// Refuses rows that could not be opened again as what they are said to be.
fn check_description(directory: &Path, row_bytes: usize, description: &StoreDescription) -> Result<(), BuildError> {
    let mismatch = |what: String| Err(BuildError::Mismatch { path: directory.to_owned(), row_bytes, what });
    let Some(format) = &description.format else { return Ok(()) };
    let Some(dim) = format.dim_of(row_bytes) else {
        return mismatch(format!("value format '{}'", format.name()));
    };
    if let Some(spec) = &description.spec
        && spec.head_dim().is_some_and(|wanted| wanted != dim as u64)
    {
        let wanted = spec.head_dim().unwrap_or(0);
        return mismatch(format!("spec '{}', which has {wanted} values per row, as '{}'", spec.name(), format.name()));
    }
    Ok(())
}
