//! The n-grams behind row ids: which ids each head hashes at each token.

use super::{Sequence, Spec, SpecError};
use std::ops::Range;

/// What the heads of every token of a sequence hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ngrams {
    ids: Vec<i64>,
    ranges: Vec<Range<usize>>,
}

impl Ngrams {
    /// The ids of all n-grams.
    pub fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// Place of each n-gram in [`ids`](Self::ids): tokens x heads, token-major. Heads of one order share a place.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// The n-grams, tokens x heads, token-major, each oldest id first.
    pub fn iter(&self) -> impl Iterator<Item = &[i64]> {
        self.ranges.iter().map(|range| &self.ids[range.clone()])
    }
}

impl Spec {
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
        let orders = self.ngram_orders();
        let mut ngrams = Ngrams { ids: Vec::new(), ranges: Vec::with_capacity(seq.tokens.len() * orders.len()) };
        let newest_first = hash.newest_first();
        hash.windows(checked, &mut |window| {
            let mut before = None;
            for &order in orders {
                if before != Some(order) {
                    let hashed = &window[..window.len().min(order as usize)];
                    let start = ngrams.ids.len();
                    // Ids are below the vocabulary size, which fits an i64.
                    ngrams.ids.extend(hashed.iter().map(|&id| id as i64));
                    if newest_first {
                        ngrams.ids[start..].reverse();
                    }
                    before = Some(order);
                    ngrams.ranges.push(start..ngrams.ids.len());
                } else if let Some(range) = ngrams.ranges.last().cloned() {
                    ngrams.ranges.push(range);
                }
            }
        });
        Ok(ngrams)
    }
}
