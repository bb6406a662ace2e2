//! Hash specs: which row ids the token at one position looks up.
//!
//! A [`Spec`] is a hash family plus its constants. All constants are derived from the model's configuration; what a
//! checkpoint stores is compared with the derived values, never silently preferred. One module per family.

use crate::error::ErrorKind;
use std::sync::Arc;

/// Names of the hash families, as used in spec files and in `engram_tables()`.
pub const FAMILIES: &[&str] = &["qwen_ple_v1", "deepseek_v41", "engram_demo", "engram_peft", "longcat"];

/// Why token ids or hash constants were refused.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// A token id outside `0..vocab_size`.
    #[error("token id {token} at position {position} is outside the vocabulary (0 to {last})", last = vocab_size.saturating_sub(1))]
    TokenOutOfVocabulary {
        /// The offending id.
        token: i128,
        /// 0-based position in the list it came in.
        position: usize,
        /// Size of the vocabulary.
        vocab_size: u64,
    },
}

impl SpecError {
    /// The class of remedy.
    pub fn kind(&self) -> ErrorKind {
        match self {
            SpecError::TokenOutOfVocabulary { .. } => ErrorKind::TokenId,
        }
    }
}

/// One sequence to hash.
#[derive(Debug, Clone, Copy)]
pub struct Sequence<'a> {
    /// Token ids, oldest first.
    pub tokens: &'a [i64],
    /// Tokens before `tokens[0]`, newest last; may be empty, and longer than the family needs.
    pub history: &'a [i64],
}

/// A hash family with its constants for one table (one layer).
#[derive(Debug, Clone)]
pub struct Spec {
    inner: Arc<()>,
}

impl Spec {
    /// Family name, one of [`FAMILIES`].
    pub fn family(&self) -> &'static str {
        todo!()
    }
    /// Name of the released spec these constants equal (`qwen3.8-flash-next`, ...), if any; else the family name.
    pub fn name(&self) -> &str {
        todo!()
    }
    /// Number of heads: row ids per token.
    pub fn heads(&self) -> usize {
        self.head_sizes().len()
    }
    /// n-gram order of each head (2 for bigrams, ...).
    pub fn ngram_orders(&self) -> &[u32] {
        todo!()
    }
    /// Head sizes (buckets per head), in head order.
    pub fn head_sizes(&self) -> &[u64] {
        todo!()
    }
    /// First row id of each head.
    pub fn head_offsets(&self) -> &[u64] {
        todo!()
    }
    /// Odd multipliers, one per window position (for longcat: empty).
    pub fn multipliers(&self) -> &[i64] {
        todo!()
    }
    /// Rows that hashes can reach: the sum of the head sizes.
    pub fn reachable_rows(&self) -> u64 {
        todo!()
    }
    /// Rows of the table the config announces, padding included.
    pub fn table_rows(&self) -> u64 {
        todo!()
    }
    /// Size of the vocabulary; valid token ids are `0..vocab_size`.
    pub fn vocab_size(&self) -> u64 {
        todo!()
    }
    /// Decoder layer (0-based), if the family has layers.
    pub fn layer(&self) -> Option<u32> {
        todo!()
    }
    /// Tokens of history that matter: n - 1.
    pub fn history_len(&self) -> usize {
        todo!()
    }
    /// The released reference spec behind `rowids_for_seq(tokens)`: Qwen3.8-Flash-Next's PLE.
    pub fn released_qwen_ple() -> Result<Spec, SpecError> {
        todo!()
    }
    /// Row ids of one sequence: `tokens.len() * heads()` values, token-major, in head order, into `out`.
    pub fn rowids_into(&self, _seq: Sequence<'_>, _out: &mut [i64]) -> Result<(), SpecError> {
        todo!()
    }
}
