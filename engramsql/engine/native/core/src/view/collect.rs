//! From the token sequences of a corpus to the keys of a view, in bounded memory.

use super::error::ViewError;
use super::fields::{number, put, sortable, store};
use super::options::Order;
use super::tally::Tally;
use crate::error::Result;
use crate::progress::Progress;
use crate::slot_index::KeyShape;
use crate::sort::{Shape, Sorted, Sorter};
use crate::spec::{Sequence, Spec};
use crate::storage::OrderedWriter;
use std::path::{Path, PathBuf};

/// Tokens whose row ids are computed at once: they stay in the processor's cache.
const PIECE: usize = 1024;
/// Keys between two looks at whether somebody wants the end.
const STRETCH: u64 = 1 << 14;

/// What a corpus came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Collected {
    /// Keys written.
    pub(super) slots: u64,
    /// Tokens of the corpus.
    pub(super) tokens: u64,
    /// Tokens whose key was written.
    pub(super) covered: u64,
}

/// Collects the distinct keys of a corpus.
pub(super) struct Collector {
    spec: Spec,
    shape: KeyShape,
    directory: PathBuf,
    memory: u64,
    tally: Tally,
    tokens: u64,
    /// Sequences begun, and tokens of the last one.
    sequences: u64,
    length: usize,
    rowids: Vec<i64>,
    key: Vec<u8>,
}

impl Collector {
    /// Collects in `memory` bytes and in files without names in `directory`.
    pub(super) fn new(spec: Spec, shape: KeyShape, directory: &Path, memory: u64) -> Collector {
        Collector {
            // Half of it: the keys found are still in memory while they are brought into another order.
            tally: Tally::new(directory, shape.bytes(), memory / 2),
            rowids: vec![0; PIECE * shape.heads()],
            key: vec![0; shape.bytes()],
            directory: directory.to_owned(),
            tokens: 0,
            sequences: 0,
            length: 0,
            spec,
            shape,
            memory,
        }
    }

    /// The next tokens: sequence `i` begins at `starts[i]`. With a history the first one goes on with the sequence before.
    pub(super) fn add(&mut self, tokens: &[i64], starts: &[usize], history: &[i64]) -> Result<()> {
        check_starts(tokens.len(), starts)?;
        for (number, &start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(tokens.len());
            let goes_on = number == 0 && !history.is_empty() && self.sequences > 0;
            if !goes_on {
                self.sequences += 1;
                self.length = 0;
            }
            let history = if number == 0 { history } else { &[] };
            self.add_sequence(&tokens[start..end], history)?;
        }
        Ok(())
    }

    fn add_sequence(&mut self, tokens: &[i64], history: &[i64]) -> Result<()> {
        let (heads, reach) = (self.shape.heads(), self.spec.history_len());
        for first in (0..tokens.len()).step_by(PIECE) {
            let piece = &tokens[first..tokens.len().min(first + PIECE)];
            let rowids = &mut self.rowids[..piece.len() * heads];
            // Of the tokens before a piece, as many as a window reaches are looked at.
            let joined: Vec<i64>;
            let before = if first >= reach {
                &tokens[first - reach..first]
            } else {
                joined = [history, &tokens[..first]].concat();
                &joined
            };
            let sequence = Sequence::new(piece).with_history(before);
            self.spec
                .rowids_into(sequence, rowids)
                .map_err(|error| ViewError::token(self.sequences.saturating_sub(1), self.length, error))?;
            for (key, position) in rowids.chunks_exact(heads).zip(self.tokens..) {
                sortable(self.shape, key, &mut self.key);
                self.tally.add(&self.key, position)?;
            }
            self.tokens += piece.len() as u64;
            self.length += piece.len();
        }
        Ok(())
    }

    /// Writes the keys in `order`, at most `limit` of them, those that appear most often.
    pub(super) fn finish(
        self,
        limit: Option<u64>,
        order: Order,
        out: &mut OrderedWriter,
        progress: &Progress,
    ) -> Result<Collected> {
        let quarter = self.memory / 4;
        let (shape, bytes) = (self.shape, self.shape.bytes());
        let sorter = |bytes: usize| Sorter::new(&self.directory, Shape { record: bytes, key: bytes }, None, quarter, 0);
        let mut collected = Collected { tokens: self.tokens, ..Collected::default() };
        let mut found = self.tally.finish(quarter)?;
        progress.begin("keys", 0);
        let mut write = |key: &[u8], scratch: &mut Vec<u8>| -> Result<()> {
            scratch.clear();
            scratch.extend_from_slice(key);
            store(shape, scratch);
            out.write(scratch)?;
            progress.advance(bytes as u64)
        };
        let mut scratch = Vec::with_capacity(bytes + 16);

        // Records of the key, its first position and its count.
        let mut chosen: Chosen = match limit {
            None => Chosen::All(found),
            Some(limit) => {
                let mut by_count = sorter(bytes + 16);
                let mut keys = 0u64;
                while let Some(record) = found.next()? {
                    scratch.clear();
                    // The largest count first.
                    scratch.resize(8, 0);
                    put(&mut scratch, u64::MAX - number(&record[bytes + 8..]));
                    scratch.extend_from_slice(&record[..bytes + 8]);
                    by_count.push(&scratch)?;
                    keys += 1;
                    if keys.is_multiple_of(STRETCH) {
                        progress.check()?;
                    }
                }
                drop(found);
                Chosen::First(by_count.finish(quarter)?, limit)
            }
        };
        match (order, limit) {
            (Order::Key, None) => {
                while let Some(Found { key, count, .. }) = chosen.next(bytes)? {
                    write(key, &mut scratch)?;
                    collected.slots += 1;
                    collected.covered += count;
                }
            }
            _ => {
                // By position or by key; a key has one position only.
                let front = if order == Order::Access { 8 } else { 0 };
                let mut ordered = sorter(front + bytes);
                while let Some(Found { key, position, count }) = chosen.next(bytes)? {
                    scratch.clear();
                    scratch.extend_from_slice(&position[..front]);
                    scratch.extend_from_slice(key);
                    ordered.push(&scratch)?;
                    collected.slots += 1;
                    collected.covered += count;
                    if collected.slots.is_multiple_of(STRETCH) {
                        progress.check()?;
                    }
                }
                drop(chosen);
                let mut ordered = ordered.finish(quarter)?;
                while let Some(record) = ordered.next()? {
                    write(&record[front..], &mut scratch)?;
                }
            }
        }
        Ok(collected)
    }
}

/// The keys that a view is to hold, in any order.
enum Chosen {
    /// All that were found: key, position, count.
    All(Sorted),
    /// As many of the beginning as are left: inverted count, key, position.
    First(Sorted, u64),
}

impl Chosen {
    /// The next key, of `bytes` bytes.
    fn next(&mut self, bytes: usize) -> Result<Option<Found<'_>>> {
        Ok(match self {
            Chosen::All(found) => found.next()?.map(|record| Found {
                key: &record[..bytes],
                position: &record[bytes..bytes + 8],
                count: number(&record[bytes + 8..]),
            }),
            Chosen::First(_, 0) => None,
            Chosen::First(by_count, left) => {
                *left -= 1;
                by_count.next()?.map(|record| Found {
                    key: &record[8..8 + bytes],
                    position: &record[8 + bytes..],
                    count: u64::MAX - number(record),
                })
            }
        })
    }
}

/// A distinct key, sortable, and what is known of it.
struct Found<'a> {
    key: &'a [u8],
    /// Where it appeared first, sortable.
    position: &'a [u8],
    count: u64,
}

fn check_starts(tokens: usize, starts: &[usize]) -> Result<(), ViewError> {
    let fail = |reason: String| Err(ViewError::Starts { tokens, reason });
    match starts.first() {
        None if tokens > 0 => return fail("there are none; the first is 0".to_owned()),
        Some(&first) if first != 0 => return fail(format!("the first is {first}, expected 0")),
        _ => (),
    }
    if let Some(at) = (1..starts.len()).find(|&at| starts[at] < starts[at - 1]) {
        return fail(format!("start {at} ({}) is below start {} ({})", starts[at], at - 1, starts[at - 1]));
    }
    match starts.last() {
        Some(&last) if last > tokens => fail(format!("the last is {last}")),
        _ => Ok(()),
    }
}
