//! Records in order, from memory or from runs.

use super::merge::Merge;
use super::runs::Runs;
use super::{Fold, Shape, prefix};
use crate::storage::StorageError;
use std::ops::Range;

/// Records in order.
pub(crate) struct Sorted {
    source: Source,
    shape: Shape,
    fold: Option<Fold>,
    /// The record that was given last.
    current: Vec<u8>,
}

enum Source {
    /// In memory, in the order of their places.
    Held { bytes: Vec<u8>, order: Vec<(u64, u32)>, at: usize },
    /// In runs.
    Merged(Merge),
}

impl Sorted {
    /// Those of `bytes`.
    pub(super) fn held(bytes: Vec<u8>, shape: Shape, fold: Option<Fold>) -> Sorted {
        let key = |place: u32| &bytes[place as usize * shape.record..][..shape.key];
        let mut order: Vec<(u64, u32)> = (0..)
            .zip(bytes.chunks_exact(shape.record))
            .map(|(at, record)| (prefix(&record[..shape.key]), at))
            .collect();
        // Beginnings usually differ; only where they do not is the memory of the records looked at.
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))));
        Sorted::new(Source::Held { bytes, order, at: 0 }, shape, fold)
    }

    /// Those of the runs `ranges` of `runs`.
    pub(super) fn merged(
        runs: Runs,
        ranges: &[Range<u64>],
        shape: Shape,
        fold: Option<Fold>,
        memory: u64,
    ) -> Result<Sorted, StorageError> {
        Ok(Sorted::new(Source::Merged(Merge::new(runs, ranges, shape, memory)?), shape, fold))
    }

    fn new(source: Source, shape: Shape, fold: Option<Fold>) -> Sorted {
        Sorted { source, shape, fold, current: vec![0; shape.record] }
    }

    /// The next record.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, StorageError> {
        let Some(record) = self.source.peek(self.shape) else { return Ok(None) };
        self.current.copy_from_slice(record);
        self.source.advance()?;
        if let Some(fold) = self.fold {
            let key = ..self.shape.key;
            while let Some(record) = self.source.peek(self.shape)
                && record[key] == self.current[key]
            {
                fold(&mut self.current, record);
                self.source.advance()?;
            }
        }
        Ok(Some(&self.current))
    }

    /// The memory of records that were in memory.
    pub(super) fn into_memory(self) -> Vec<u8> {
        match self.source {
            Source::Held { bytes, .. } => bytes,
            Source::Merged(_) => Vec::new(),
        }
    }
}

impl Source {
    fn peek(&self, shape: Shape) -> Option<&[u8]> {
        match self {
            Source::Held { bytes, order, at } => {
                order.get(*at).map(|&(_, place)| &bytes[place as usize * shape.record..][..shape.record])
            }
            Source::Merged(merge) => merge.peek(),
        }
    }

    fn advance(&mut self) -> Result<(), StorageError> {
        match self {
            Source::Held { at, .. } => {
                *at += 1;
                Ok(())
            }
            Source::Merged(merge) => merge.advance(),
        }
    }
}
