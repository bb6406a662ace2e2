//! Sorting more fixed-width records than fit in memory: sorted runs in a file without a name, merged in as few passes as
//! the memory allows.
//!
//! Records are compared as byte strings, so numbers in them are written big endian. The result depends on the records
//! only, neither on the memory nor on the order in which they came.

mod merge;
mod runs;
mod sorted;

use crate::storage::StorageError;
use runs::Runs;
pub(crate) use sorted::Sorted;
use std::path::{Path, PathBuf};

/// What an entry of the order of held records takes: the first bytes of its key and its place.
const ORDER_BYTES: usize = size_of::<(u64, u32)>();

/// The bytes of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of a record.
    pub(crate) record: usize,
    /// Bytes from its beginning that are compared.
    pub(crate) key: usize,
}

/// Folds the second of two records with equal keys into the first. It must not matter in which order many are folded.
pub(crate) type Fold = fn(&mut [u8], &[u8]);

/// Takes records in any order.
pub(crate) struct Sorter {
    directory: PathBuf,
    shape: Shape,
    fold: Option<Fold>,
    /// Records that may be held.
    capacity: usize,
    held: Vec<u8>,
    runs: Option<Runs>,
}

impl Sorter {
    /// A sorter that holds records in `memory` bytes, `overhead` bytes of them the caller's for each record; what does not
    /// fit lies in `directory`. Records with equal keys are folded into one if `fold` is given.
    pub(crate) fn new(directory: &Path, shape: Shape, fold: Option<Fold>, memory: u64, overhead: usize) -> Sorter {
        let each = (shape.record + ORDER_BYTES + overhead) as u64;
        // Two at least: with one, every record would be a run. And numbers of records have 32 bits, those of twice as many
        // places in the caller's table of them too.
        let capacity = (memory / each).clamp(2, 1 << 31) as usize;
        Sorter { directory: directory.to_owned(), shape, fold, capacity, held: Vec::new(), runs: None }
    }

    /// Records that may be held.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Records that are held; the next one gets this number.
    pub(crate) fn held(&self) -> usize {
        self.held.len() / self.shape.record
    }

    /// Whether the next record makes those held a run.
    pub(crate) fn is_full(&self) -> bool {
        self.held() >= self.capacity
    }

    /// A held record, by its number since the last run.
    pub(crate) fn record(&self, number: usize) -> &[u8] {
        &self.held[number * self.shape.record..][..self.shape.record]
    }

    /// The same, to be changed behind its key.
    pub(crate) fn record_mut(&mut self, number: usize) -> &mut [u8] {
        &mut self.held[number * self.shape.record..][..self.shape.record]
    }

    /// Takes a record.
    pub(crate) fn push(&mut self, record: &[u8]) -> Result<(), StorageError> {
        debug_assert_eq!(record.len(), self.shape.record);
        if self.is_full() {
            self.spill()?;
        }
        if self.held.capacity() == 0 && self.runs.is_some() {
            // It was filled once and will be again.
            self.held.reserve_exact(self.capacity * self.shape.record);
        }
        self.held.extend_from_slice(record);
        Ok(())
    }

    /// Makes those that are held a run.
    pub(crate) fn spill(&mut self) -> Result<(), StorageError> {
        if self.held.is_empty() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        let mut sorted = Sorted::held(held, self.shape, self.fold);
        let runs = match &mut self.runs {
            Some(runs) => runs,
            runs => runs.insert(Runs::new(&self.directory)?),
        };
        runs.append(&mut sorted)?;
        // The same memory takes the next ones.
        self.held = sorted.into_memory();
        self.held.clear();
        Ok(())
    }

    /// All records in order, merged in `memory` bytes, if they were ever too many to be held.
    pub(crate) fn finish(mut self, memory: u64) -> Result<Sorted, StorageError> {
        if self.runs.is_none() {
            return Ok(Sorted::held(self.held, self.shape, self.fold));
        }
        self.spill()?;
        let (directory, shape, fold) = (self.directory, self.shape, self.fold);
        let Some(mut runs) = self.runs.take() else { return Ok(Sorted::held(Vec::new(), shape, fold)) };
        drop(self.held);
        while runs.count() > merge::most_runs(memory) {
            runs = runs.merged(&directory, shape, fold, memory)?;
        }
        let all = runs.ranges().to_vec();
        Sorted::merged(runs, &all, shape, fold, memory)
    }
}

/// The first eight bytes of a key as a number that compares as they do.
#[expect(clippy::big_endian_bytes, reason = "big endian numbers compare as their bytes")]
fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = key.len().min(8);
    first[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests;
