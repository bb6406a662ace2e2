//! Merging sorted runs: a heap of runs by their first record.

use super::Shape;
use super::runs::Runs;
use crate::storage::StorageError;
use std::ops::Range;

/// Bytes of a run that are read at once at least: shorter reads would cost more than what they bring.
const LEAST_READ: u64 = 64 << 10;
/// And at most: longer ones bring nothing more.
const MOST_READ: u64 = 4 << 20;
/// Runs that are merged at once at most.
const MOST_RUNS: u64 = 4096;

/// Runs that can be merged at once in `memory` bytes.
pub(super) fn most_runs(memory: u64) -> usize {
    (memory / LEAST_READ).clamp(2, MOST_RUNS) as usize
}

/// A run that is being read.
struct Run {
    /// Bytes of the file that were not read yet.
    rest: Range<u64>,
    buffer: Vec<u8>,
    /// Where in the buffer its first record is.
    at: usize,
}

/// The records of several runs in order.
pub(super) struct Merge {
    file: Runs,
    shape: Shape,
    /// Bytes of one read, whole records.
    read_bytes: u64,
    runs: Vec<Run>,
    /// Numbers of the runs that have records, each before the two that follow it in the tree.
    heap: Vec<usize>,
}

impl Merge {
    pub(super) fn new(file: Runs, ranges: &[Range<u64>], shape: Shape, memory: u64) -> Result<Merge, StorageError> {
        let each = shape.record as u64;
        let share = (memory / ranges.len().max(1) as u64).clamp(LEAST_READ, MOST_READ);
        let runs = ranges.iter().map(|range| Run { rest: range.clone(), buffer: Vec::new(), at: 0 }).collect();
        let read_bytes = (share / each).max(1) * each;
        let mut merge = Merge { file, shape, read_bytes, runs, heap: Vec::new() };
        for run in 0..merge.runs.len() {
            if merge.fill(run)? {
                merge.heap.push(run);
            }
        }
        for place in (0..merge.heap.len() / 2).rev() {
            merge.sink(place);
        }
        Ok(merge)
    }

    /// The first record.
    pub(super) fn peek(&self) -> Option<&[u8]> {
        self.heap.first().map(|&run| self.record(run))
    }

    /// Goes on to the next record.
    pub(super) fn advance(&mut self) -> Result<(), StorageError> {
        let Some(&run) = self.heap.first() else { return Ok(()) };
        self.runs[run].at += self.shape.record;
        if !self.fill(run)? {
            self.heap.swap_remove(0);
        }
        self.sink(0);
        Ok(())
    }

    /// The first record of a run that has one.
    fn record(&self, run: usize) -> &[u8] {
        let run = &self.runs[run];
        &run.buffer[run.at..run.at + self.shape.record]
    }

    /// Reads the next records of `run` if those in memory are used up; false if there are none.
    fn fill(&mut self, run: usize) -> Result<bool, StorageError> {
        let run = &mut self.runs[run];
        if run.at < run.buffer.len() {
            return Ok(true);
        }
        let bytes = self.read_bytes.min(run.rest.end - run.rest.start);
        run.buffer.resize(bytes as usize, 0);
        run.at = 0;
        self.file.read(&mut run.buffer, run.rest.start)?;
        run.rest.start += bytes;
        Ok(bytes > 0)
    }

    /// Moves the run at `place` down to where it belongs.
    fn sink(&mut self, mut place: usize) {
        let mut heap = std::mem::take(&mut self.heap);
        let key = |heap: &[usize], place: usize| &self.record(heap[place])[..self.shape.key];
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < heap.len() && key(&heap, child) < key(&heap, least) {
                    least = child;
                }
            }
            if least == place {
                break;
            }
            heap.swap(place, least);
            place = least;
        }
        self.heap = heap;
    }
}
