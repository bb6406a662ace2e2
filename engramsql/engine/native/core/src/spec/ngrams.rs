//! The n-grams behind row ids: which ids each head hashes at each token.

use super::{Sequence, Spec, SpecError};
use std::ops::Range;
use xxhash_rust::xxh3::Xxh3;

/// Keys that hold the ids of an n-gram stay below this: they are numbers of SQL's HUGEINT.
const KEYS: u128 = 1 << 127;

/// What the heads of every token of a sequence hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ngrams {
    ids: Vec<i64>,
    runs: Vec<HeadRun>,
    ranges: Vec<Range<usize>>,
}

impl Ngrams {
    /// The ids of all n-grams.
    pub fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// Place of each n-gram in [`ids`](Self::ids): tokens x heads, token-major. Heads of one run share a place.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let runs = self.runs.iter().cycle();
        self.ranges.iter().zip(runs).flat_map(|(range, run)| std::iter::repeat_n(range.clone(), run.heads.len()))
    }

    /// The n-grams, tokens x heads, token-major, each oldest id first.
    pub fn iter(&self) -> impl Iterator<Item = &[i64]> {
        self.ranges().map(|range| &self.ids[range])
    }
}

/// Heads that hash the same n-gram of every token: neighbours of one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadRun {
    /// The heads.
    pub heads: Range<usize>,
    /// Their n-gram order.
    pub order: u32,
}

/// What a head of this order hashes of a window.
fn hashed(window: &[u64], order: u32) -> &[u64] {
    &window[..window.len().min(order as usize)]
}

impl Spec {
    /// The heads, in order, by the n-gram that they hash.
    pub fn head_runs(&self) -> Vec<HeadRun> {
        let mut runs: Vec<HeadRun> = Vec::new();
        for (head, &order) in self.ngram_orders().iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.order == order => run.heads.end = head + 1,
                _ => runs.push(HeadRun { heads: head..head + 1, order }),
            }
        }
        runs
    }

    /// An error for what [`rowids_into`](Self::rowids_into) would refuse.
    ///
    /// # Errors
    /// As for that.
    pub fn check(&self, seq: Sequence<'_>) -> Result<(), SpecError> {
        self.hash()?;
        seq.check(self.constants())?;
        Ok(())
    }

    /// One more than there are ids that n-grams can hold, if every n-gram is a number of such digits below [`KEYS`].
    fn key_base(&self) -> Option<u128> {
        let special = [self.pad_token(), self.eos_token()].into_iter().flatten().map(|id| id.saturating_add(1));
        let ids = special.fold(self.vocab_size(), u64::max);
        let base = u128::from(ids) + 1;
        let order = self.ngram_orders().iter().copied().max().unwrap_or(0);
        base.checked_pow(order).filter(|&keys| keys <= KEYS)?;
        Some(base)
    }

    /// A key for the n-gram that each [run](Self::head_runs) of heads hashes at each token: tokens x runs, token-major.
    /// Equal n-grams of a run have equal keys. Different ones have different keys, as long as the ids of an n-gram fit
    /// 127 bits; where they do not, the key is XXH3-128 of them, by which two n-grams are taken for one with a chance of
    /// 2^-128, unless somebody made them to.
    ///
    /// # Errors
    /// As for [`rowids_into`](Self::rowids_into).
    ///
    /// # Panics
    /// If `out` has another length.
    pub fn ngram_keys_into(&self, seq: Sequence<'_>, out: &mut [u128]) -> Result<(), SpecError> {
        let hash = self.hash()?;
        let checked = seq.check(self.constants())?;
        let (runs, base) = (self.head_runs(), self.key_base());
        assert_eq!(out.len(), seq.tokens.len() * runs.len());
        let mut slots = out.iter_mut();
        hash.windows(checked, &mut |window| {
            for (run, slot) in runs.iter().zip(slots.by_ref()) {
                let ids = hashed(window, run.order);
                *slot = match base {
                    // No digit is 0, so that a shorter n-gram is another number.
                    Some(base) => ids.iter().fold(0, |key, &id| key * base + u128::from(id) + 1),
                    None => {
                        let mut hasher = Xxh3::new();
                        ids.iter().for_each(|id| hasher.update(&id.to_le_bytes()));
                        hasher.digest128()
                    }
                };
            }
        });
        Ok(())
    }

    /// The n-grams that [`rowids_into`](Self::rowids_into) hashes, in the order of its row ids, each oldest id first.
    ///
    /// They are the ids as the hash sees them: compressed where the family compresses token ids, EOS or pad where a token is
    /// missing, dead or hidden behind a boundary. `longcat` leaves missing tokens out of its sum, so its n-grams are
    /// shorter there. `engram_peft` takes the oldest ids of the window of its largest order, so an n-gram of a smaller
    /// order does not end at the token. Equal n-grams of one head have equal row ids.
    ///
    /// # Errors
    /// As for [`rowids_into`](Self::rowids_into).
    pub fn ngrams(&self, seq: Sequence<'_>) -> Result<Ngrams, SpecError> {
        let hash = self.hash()?;
        let checked = seq.check(self.constants())?;
        let runs = self.head_runs();
        let count = seq.tokens.len() * runs.len();
        let mut ngrams = Ngrams { ids: Vec::new(), runs: runs.clone(), ranges: Vec::with_capacity(count) };
        let newest_first = hash.newest_first();
        hash.windows(checked, &mut |window| {
            for HeadRun { order, .. } in &runs {
                let start = ngrams.ids.len();
                // Ids are below the vocabulary size, which fits an i64.
                ngrams.ids.extend(hashed(window, *order).iter().map(|&id| id as i64));
                if newest_first {
                    ngrams.ids[start..].reverse();
                }
                ngrams.ranges.push(start..ngrams.ids.len());
            }
        });
        Ok(ngrams)
    }
}
