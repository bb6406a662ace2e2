//! Packed batches: the tokens of several sequences in one list, as inference engines and Arrow lists hold them.

use super::sequence::{check_history, check_mask, check_tokens};
use super::{Sequence, Spec, SpecError};

/// Several sequences in one list. Sequences never see each other; empty ones are legal.
#[derive(Debug, Clone, Copy, Default)]
pub struct PackedSequences<'a> {
    /// Token ids of all sequences, one after the other.
    pub tokens: &'a [i64],
    /// Boundaries: sequence `i` is `tokens[starts[i]..starts[i + 1]]`; first 0, last `tokens.len()`.
    pub starts: &'a [i64],
    /// Histories of all sequences, one after the other, each newest last. Empty: every sequence starts cold.
    pub history: &'a [i64],
    /// Boundaries of the histories, as many as `starts`; may be empty if `history` is.
    pub history_starts: &'a [i64],
    /// One flag per token, or empty; see [`Sequence::dead`].
    pub dead: &'a [bool],
    /// One flag per token of `history`, or empty.
    pub history_dead: &'a [bool],
}

impl Spec {
    /// Row ids of a packed batch: `tokens.len() * heads()` values, in the order of `tokens`, into `out`.
    ///
    /// Positions in errors count within the whole `tokens` or `history` list.
    ///
    /// # Errors
    /// As [`rowids_into`](Spec::rowids_into); also boundaries that do not cut the lists. `out` is then unchanged.
    pub fn rowids_packed_into(&self, batch: PackedSequences<'_>, out: &mut [i64]) -> Result<(), SpecError> {
        let hash = self.hash()?;
        self.check_output(batch.tokens.len(), out.len())?;
        let constants = self.constants();
        check_boundaries("starts", batch.starts, batch.tokens.len())?;
        let cold = batch.history.is_empty() && batch.history_starts.is_empty();
        if !cold {
            check_boundaries("history_starts", batch.history_starts, batch.history.len())?;
            if batch.history_starts.len() != batch.starts.len() {
                return Err(SpecError::PackedBoundaries {
                    what: "history_starts",
                    reason: format!(
                        "{} entries, starts has {}; give one history per sequence, empty where there is none",
                        batch.history_starts.len(),
                        batch.starts.len()
                    ),
                });
            }
        }
        check_mask("dead", batch.dead, batch.tokens.len(), constants.family)?;
        check_mask("history_dead", batch.history_dead, batch.history.len(), constants.family)?;
        check_tokens(batch.tokens, constants.vocab_size)?;
        check_history(batch.history, constants.vocab_size)?;

        // Boundaries are checked: 0 <= start <= end <= length. An empty mask stays empty in every part.
        let heads = self.heads();
        for (i, bounds) in batch.starts.windows(2).enumerate() {
            let part = bounds[0] as usize..bounds[1] as usize;
            let past = match batch.history_starts.get(i..i + 2) {
                Some(bounds) => bounds[0] as usize..bounds[1] as usize,
                None => 0..0,
            };
            let seq = Sequence {
                tokens: &batch.tokens[part.clone()],
                dead: batch.dead.get(part.clone()).unwrap_or_default(),
                history: &batch.history[past.clone()],
                history_dead: batch.history_dead.get(past).unwrap_or_default(),
            };
            let rows = &mut out[part.start * heads..part.end * heads];
            hash.rows_into(seq.cut(constants.history_len), rows);
        }
        Ok(())
    }
}

fn check_boundaries(what: &'static str, bounds: &[i64], length: usize) -> Result<(), SpecError> {
    let fail = |reason: String| Err(SpecError::PackedBoundaries { what, reason });
    let (Some(&first), Some(&last)) = (bounds.first(), bounds.last()) else {
        return fail("no entries; give one more than there are sequences, the first 0".to_owned());
    };
    if first != 0 {
        return fail(format!("the first entry is {first}, expected 0"));
    }
    if let Some(i) = (1..bounds.len()).find(|&i| bounds[i] < bounds[i - 1]) {
        return fail(format!("entry {i} ({}) is below entry {} ({})", bounds[i], i - 1, bounds[i - 1]));
    }
    // Not negative: ascending from 0.
    if last as usize != length {
        return fail(format!("the last entry is {last}, the list holds {length} token ids"));
    }
    Ok(())
}
