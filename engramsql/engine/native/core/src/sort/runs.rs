//! Sorted runs, one after the other in a file that ends with this process.

use super::merge::most_runs;
use super::{Fold, Shape, Sorted};
use crate::fault;
use crate::storage::StorageError;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of one write.
const WRITE_BYTES: usize = 1 << 20;

/// Sorted runs.
pub(super) struct Runs {
    directory: PathBuf,
    file: Arc<File>,
    /// Bytes of each run.
    ranges: Vec<Range<u64>>,
}

impl Runs {
    pub(super) fn new(directory: &Path) -> Result<Runs, StorageError> {
        // Without a name: a process that ends in the middle leaves nothing.
        let file = tempfile::tempfile_in(directory);
        let file = file.map_err(|error| StorageError::io("write to", directory, error))?;
        Ok(Runs { directory: directory.to_owned(), file: Arc::new(file), ranges: Vec::new() })
    }

    pub(super) fn count(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Writes what `records` gives as one more run.
    pub(super) fn append(&mut self, records: &mut Sorted) -> Result<(), StorageError> {
        let begin = self.ranges.last().map_or(0, |last| last.end);
        let mut end = begin;
        let failed = |error| StorageError::io("write to", &self.directory, error);
        fault::io("sort.run").map_err(failed)?;
        let mut out = BufWriter::with_capacity(WRITE_BYTES, &*self.file);
        while let Some(record) = records.next()? {
            out.write_all(record).map_err(failed)?;
            end += record.len() as u64;
        }
        out.flush().map_err(failed)?;
        self.ranges.push(begin..end);
        Ok(())
    }

    /// Fills `out` with the bytes from `offset` on.
    pub(super) fn read(&self, out: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.file.read_exact_at(out, offset).map_err(|error| StorageError::io("read from", &self.directory, error))
    }

    /// The same records in fewer runs, in another file.
    pub(super) fn merged(
        self,
        directory: &Path,
        shape: Shape,
        fold: Option<Fold>,
        memory: u64,
    ) -> Result<Runs, StorageError> {
        let mut fewer = Runs::new(directory)?;
        for group in self.ranges.chunks(most_runs(memory)) {
            let runs = Runs { directory: self.directory.clone(), file: self.file.clone(), ranges: Vec::new() };
            fewer.append(&mut Sorted::merged(runs, group, shape, fold, memory)?)?;
        }
        Ok(fewer)
    }
}
