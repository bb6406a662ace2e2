//! The shards of a store: written whole, one by one, each done once its checksums are there.

use super::directory::WorkingDirectory;
use super::plan::PLAN;
use super::sample::first_failure;
use super::source_sums::SourceSums;
use crate::error::{Error, Result};
use crate::fault;
use crate::progress::Progress;
use crate::source::StoreLayout;
use crate::storage::checksum::{Checksums, FileSums};
use crate::storage::{OrderedWriter, StorageError};
use crate::table::Table;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The file of checksums that says that a shard is done.
fn sums_path(directory: &Path, shard: u64) -> PathBuf {
    directory.join(StoreLayout::sums_name(shard))
}

/// Checksums of a shard that is done.
pub(super) fn sums_of(directory: &Path, layout: StoreLayout, shard: u64) -> Option<FileSums> {
    let (sums, _) = Checksums::read(&sums_path(directory, shard)).ok()?;
    let [sums] = <[FileSums; 1]>::try_from(sums.files).ok()?;
    let bytes = layout.bytes_of(shard);
    let written = std::fs::metadata(directory.join(StoreLayout::file_name(shard))).ok()?;
    (sums.bytes == bytes && written.is_file() && written.len() == bytes).then_some(sums)
}

/// Writes the checksums that make a shard done.
pub(super) fn publish_sums(directory: &Path, shard: u64, sums: FileSums) -> Result<(), StorageError> {
    let path = sums_path(directory, shard);
    fault::io("build.sums").map_err(|error| StorageError::io("write", &path, error))?;
    Checksums { files: vec![sums] }.publish(&path).map(drop)
}

/// Removes everything but the plan and the shards that are done: what is not done is written anew and needs the room, and
/// what a writer that died left beside its file must not end up in the store.
pub(super) fn remove_unfinished(directory: &WorkingDirectory, layout: StoreLayout) -> Result<Vec<u64>, StorageError> {
    let (mut done, mut pending) = (std::collections::HashSet::new(), Vec::new());
    for shard in 0..layout.shards() {
        if sums_of(directory.path(), layout, shard).is_some() {
            done.extend([StoreLayout::file_name(shard), StoreLayout::sums_name(shard)]);
        } else {
            pending.push(shard);
        }
    }
    directory.remove_files(|name| name != PLAN && !done.contains(name))?;
    Ok(pending)
}

/// Builds the shards `pending` in `directory` from the rows of `table`, `jobs` at a time.
pub(super) fn build(
    table: &Table,
    sums: Option<&SourceSums>,
    layout: StoreLayout,
    directory: &Path,
    pending: &[u64],
    jobs: usize,
    progress: &Progress,
) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || -> Result<()> {
        while let Some(&shard) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
            let built = build_one((table, sums), layout, directory, shard, progress, &failed);
            if built.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            built?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let others = jobs.min(pending.len()).saturating_sub(1);
        // Where the system gives fewer threads, fewer do the work.
        let threads: Vec<_> = (0..others)
            .map_while(|_| {
                std::thread::Builder::new().name("engramsql-build".to_owned()).spawn_scoped(scope, work).ok()
            })
            .collect();
        let mut answers = vec![work()];
        answers.extend(
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        );
        first_failure(answers)
    })
}

fn build_one(
    (table, sums): (&Table, Option<&SourceSums>),
    layout: StoreLayout,
    directory: &Path,
    shard: u64,
    progress: &Progress,
    failed: &AtomicBool,
) -> Result<()> {
    let path = directory.join(StoreLayout::file_name(shard));
    fault::io("build.shard").map_err(|error| StorageError::io("create", &path, error))?;
    let mut writer = OrderedWriter::create(&path, layout.bytes_of(shard))?;
    let mut check = sums.map(|sums| sums.check(table));
    let proven = |check: Result<()>| {
        check.map_err(|error| match table.check_files() {
            Ok(()) => error,
            // What was written to meanwhile is no damage.
            Err(changed) => changed,
        })
    };
    table.stream(layout.rows_of(shard), &mut |first, rows: &[u8]| {
        if failed.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if let Some(check) = &mut check {
            proven(check.take(first, rows))?;
        }
        writer.write(rows)?;
        progress.advance(rows.len() as u64)
    })?;
    if let Some(check) = check {
        proven(check.finish())?;
    }
    publish_sums(directory, shard, writer.finish()?)?;
    Ok(())
}
