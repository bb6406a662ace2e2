//! Sorting more than fits in memory: sorted runs in a file without a name, merged in one pass.

use super::SlotIndexError;
use crate::error::Result;
use crate::storage::StorageError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a run that are read at once at least; shorter reads would cost more than what they bring.
const LEAST_READ: u64 = 1024;

/// Something with an order and a fixed number of bytes.
pub(super) trait Record: Ord {
    /// Appends the record's bytes.
    fn encode(&self, out: &mut Vec<u8>);
    /// The record of bytes that [`encode`](Record::encode) wrote.
    fn decode(bytes: &[u8]) -> Self;
}

/// Takes records in any order.
pub(super) struct Sorter<R> {
    directory: PathBuf,
    /// Bytes of an encoded record.
    record_bytes: usize,
    /// Bytes of memory to use, and records that fill them.
    memory: u64,
    most: usize,
    held: Vec<R>,
    runs: Option<Runs>,
}

/// Sorted runs, one after the other in a file that ends with this process.
struct Runs {
    file: File,
    /// Byte where each run ends.
    ends: Vec<u64>,
}

impl<R: Record> Sorter<R> {
    /// For about `expected` records of `record_bytes` bytes, `overhead` more in memory each, in `memory` bytes;
    /// what does not fit lies in `directory`.
    ///
    /// # Errors
    /// [`SlotIndexError::Memory`] if so little memory cannot sort so much.
    pub(super) fn new(
        directory: &Path,
        record_bytes: usize,
        overhead: usize,
        expected: u64,
        memory: u64,
    ) -> Result<Sorter<R>, SlotIndexError> {
        let each = (record_bytes + overhead) as u64;
        let bytes = expected.saturating_mul(each);
        let least = LEAST_READ.max(each);
        // Every run needs a buffer when they are merged: bytes / memory * least <= memory.
        let needed = bytes.saturating_mul(least).isqrt().saturating_add(2 * least);
        if memory < needed && memory < bytes {
            return Err(SlotIndexError::Memory { found: memory, bytes, needed: needed.min(bytes) });
        }
        let most = usize::try_from(memory / each).unwrap_or(usize::MAX).max(1);
        let held = Vec::with_capacity(usize::try_from(expected).unwrap_or(usize::MAX).min(most));
        Ok(Sorter { directory: directory.to_owned(), record_bytes, memory, most, held, runs: None })
    }

    /// One record more.
    pub(super) fn push(&mut self, record: R) -> Result<()> {
        if self.held.len() == self.most {
            self.spill()?;
        }
        self.held.push(record);
        Ok(())
    }

    /// Writes what is held as a sorted run.
    fn spill(&mut self) -> Result<()> {
        let failed = |error| StorageError::io("write to", &self.directory, error);
        self.held.sort_unstable();
        let mut runs = match self.runs.take() {
            Some(runs) => runs,
            None => Runs { file: tempfile::tempfile_in(&self.directory).map_err(failed)?, ends: Vec::new() },
        };
        let mut out = BufWriter::with_capacity(256 << 10, &runs.file);
        let mut bytes = Vec::with_capacity(self.record_bytes);
        for record in self.held.drain(..) {
            bytes.clear();
            record.encode(&mut bytes);
            out.write_all(&bytes).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        drop(out);
        let begin = runs.ends.last().copied().unwrap_or(0);
        runs.ends.push(begin + self.written(&runs, begin)?);
        self.runs = Some(runs);
        Ok(())
    }

    /// Bytes of the run that was just written from `begin` on.
    fn written(&self, runs: &Runs, begin: u64) -> Result<u64, StorageError> {
        let size = runs.file.metadata().map_err(|error| StorageError::io("look at", &self.directory, error))?.len();
        Ok(size - begin)
    }

    /// The records in order.
    pub(super) fn finish(mut self) -> Result<Sorted<R>> {
        if self.runs.is_none() {
            self.held.sort_unstable();
            return Ok(Sorted::Held(self.held.into_iter()));
        }
        self.spill()?;
        self.held = Vec::new();
        let Some(Runs { file, ends }) = self.runs else { return Ok(Sorted::Held(Vec::new().into_iter())) };
        let each = self.record_bytes as u64;
        let buffer = (self.memory / ends.len() as u64 / each).max(1) * each;
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let run = |(begin, &end)| Run { next: begin, end, buffer: Vec::new(), at: 0 };
        let runs: Vec<Run> = begins.zip(&ends).map(run).collect();
        let mut merge = Merge {
            file,
            directory: self.directory,
            record_bytes: self.record_bytes,
            read_bytes: buffer,
            heap: BinaryHeap::with_capacity(runs.len()),
            runs,
        };
        for run in 0..merge.runs.len() {
            merge.refill(run)?;
        }
        Ok(Sorted::Spilled(merge))
    }
}

/// Records in order.
pub(super) enum Sorted<R> {
    /// All were in memory.
    Held(std::vec::IntoIter<R>),
    /// From sorted runs.
    Spilled(Merge<R>),
}

/// A run that is being read.
struct Run {
    /// Bytes of the file that were not read yet.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    at: usize,
}

/// Merges runs.
pub(super) struct Merge<R> {
    file: File,
    directory: PathBuf,
    record_bytes: usize,
    read_bytes: u64,
    /// The first record of every run that has any left.
    heap: BinaryHeap<Reverse<(R, usize)>>,
    runs: Vec<Run>,
}

impl<R: Record> Merge<R> {
    /// Puts the next record of `run` on the heap.
    fn refill(&mut self, run: usize) -> Result<(), StorageError> {
        let state = &mut self.runs[run];
        if state.at == state.buffer.len() {
            let bytes = self.read_bytes.min(state.end - state.next);
            if bytes == 0 {
                return Ok(());
            }
            state.buffer.resize(bytes as usize, 0);
            let read = self.file.read_exact_at(&mut state.buffer, state.next);
            read.map_err(|error| StorageError::io("read from", &self.directory, error))?;
            state.next += bytes;
            state.at = 0;
        }
        let record = R::decode(&state.buffer[state.at..state.at + self.record_bytes]);
        state.at += self.record_bytes;
        self.heap.push(Reverse((record, run)));
        Ok(())
    }
}

impl<R: Record> Sorted<R> {
    /// The next record.
    pub(super) fn next(&mut self) -> Result<Option<R>, StorageError> {
        match self {
            Sorted::Held(records) => Ok(records.next()),
            Sorted::Spilled(merge) => {
                let Some(Reverse((record, run))) = merge.heap.pop() else { return Ok(None) };
                merge.refill(run)?;
                Ok(Some(record))
            }
        }
    }
}
