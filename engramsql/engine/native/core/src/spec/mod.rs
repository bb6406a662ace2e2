//! Hash specs: which row ids the token at one position looks up.
//!
//! A [`Spec`] is a hash family plus its constants. All constants are derived from the model's configuration; what a
//! checkpoint stores is compared with the derived values ([`Spec::check_stored`]), never silently preferred. One
//! module per family; a new model of a known family is a new spec file ([`SpecFile`]), no code.

mod config;
mod deepseek_v41;
mod engram;
mod engram_demo;
mod engram_peft;
mod error;
mod family;
mod heads;
mod kernels;
mod longcat;
mod ngrams;
mod numpy_rng;
mod packed;
pub mod primes;
mod qwen_ple;
mod released;
mod sequence;
mod splitmix;
mod text;
mod token_map;
mod tokenizer;

pub use error::SpecError;
pub(crate) use family::takes_token_map;
pub use family::{family_of, layers};
pub use ngrams::{HeadRun, Ngrams};
pub use packed::PackedSequences;
pub use released::SpecFile;
pub use sequence::Sequence;
pub use text::TextTokenizer;
pub use token_map::TokenMap;

use crate::cpu;
use config::MAX_ORDER;
use family::pick_layer;
use heads::Heads;
use sequence::Checked;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Names of the hash families, as used in spec files and in `engram_tables()`.
pub const FAMILIES: &[&str] = &["qwen_ple_v1", "deepseek_v41", "engram_demo", "engram_peft", "longcat"];

/// The tokens of one n-gram, on the stack.
type Window = [u64; MAX_ORDER as usize];

/// How a family turns a checked sequence into row ids.
trait NgramHash: std::fmt::Debug + Send + Sync {
    /// Row ids of every token: `out.len() == tokens.len() * heads`, token-major, in head order.
    fn rows_into(&self, seq: Checked<'_>, out: &mut [i64]);
    /// What every token's heads hash, token by token: a head of order k takes the first k ids, or all where there are
    /// fewer.
    fn windows(&self, seq: Checked<'_>, take: &mut dyn FnMut(&[u64]));
    /// Whether those windows begin with the newest id, else with the oldest.
    fn newest_first(&self) -> bool {
        true
    }
}

/// What a configuration derives for one table.
#[derive(Debug)]
struct Constants {
    family: &'static str,
    layer: Option<u32>,
    multipliers: Vec<i64>,
    heads: Heads,
    table_rows: u64,
    vocab_size: u64,
    history_len: usize,
    head_dim: Option<u64>,
    eos: Option<u64>,
    pad: Option<u64>,
    dead: Option<u64>,
    /// Variant within the family, "" where there is one only.
    rule: &'static str,
}

impl Constants {
    /// Whether both turn the same (compressed) tokens into the same row ids.
    fn same_hash(&self, other: &Constants) -> bool {
        self.family == other.family
            && self.multipliers == other.multipliers
            && self.heads == other.heads
            && (self.eos, self.pad, self.dead) == (other.eos, other.pad, other.dead)
            && self.rule == other.rule
    }
}

/// A hash family with its constants for one table (one layer). Cheap to clone.
#[derive(Debug, Clone)]
pub struct Spec {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    constants: Constants,
    config: Value,
    token_map: Option<Arc<TokenMap>>,
    /// `None`: the family hashes compressed ids and there is no map to them.
    hash: Option<Box<dyn NgramHash>>,
}

impl Spec {
    /// The spec of one hash layer of a model, from its whole `config.json`.
    ///
    /// `layer` is 0-based and may be left out where the model has one table. `token_map` belongs to the families that
    /// hash compressed ids: `deepseek_v41` needs it to hash (everything else works without), for `engram_demo` and
    /// `engram_peft` token ids count as compressed already when it is left out.
    ///
    /// # Errors
    /// An unknown family or layer; a missing, negative, fractional or impossible field; a foreign token map; an `ENGRAMSQL_KERNEL` that
    /// names no level that can run.
    pub fn from_config(
        family: &str,
        config: &Value,
        layer: Option<u32>,
        token_map: Option<Arc<TokenMap>>,
    ) -> Result<Spec, SpecError> {
        Self::named(None, family, config, layer, token_map)
    }

    /// The same under a spec file's name, unless the constants are a released model's.
    pub(crate) fn named(
        name: Option<&str>,
        family: &str,
        config: &Value,
        layer: Option<u32>,
        token_map: Option<Arc<TokenMap>>,
    ) -> Result<Spec, SpecError> {
        let constants = family::derive(family, config, layer, token_map.as_deref())?;
        let hash = family::hash(cpu::level()?, &constants, token_map.clone());
        let name = released::name_of(&constants).or(name).unwrap_or(constants.family);
        Ok(Spec {
            inner: Arc::new(Inner { name: name.to_owned(), constants, config: config.clone(), token_map, hash }),
        })
    }

    fn constants(&self) -> &Constants {
        &self.inner.constants
    }

    /// Family name, one of [`FAMILIES`].
    pub fn family(&self) -> &'static str {
        self.constants().family
    }

    /// Name of the released spec these constants equal (`qwen3.8-flash-next`, ...), if any; else the name of the spec
    /// file it came from; else the family name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The settings that the constants were derived from, with the field names of a `config.json`: family, layer and token
    /// map with them make this spec again.
    pub fn config(&self) -> &Value {
        &self.inner.config
    }

    /// Number of heads: row ids per token.
    pub fn heads(&self) -> usize {
        self.head_sizes().len()
    }

    /// n-gram order of each head (2 for bigrams, ...).
    pub fn ngram_orders(&self) -> &[u32] {
        &self.constants().heads.orders
    }

    /// Head sizes (buckets per head), in head order.
    pub fn head_sizes(&self) -> &[u64] {
        &self.constants().heads.sizes
    }

    /// First row id of each head.
    pub fn head_offsets(&self) -> &[u64] {
        &self.constants().heads.offsets
    }

    /// Odd multipliers, one per window position (for longcat: empty).
    pub fn multipliers(&self) -> &[i64] {
        &self.constants().multipliers
    }

    /// Rows that hashes can reach: the sum of the head sizes.
    pub fn reachable_rows(&self) -> u64 {
        self.constants().heads.rows
    }

    /// Rows of the table the config announces, padding included.
    pub fn table_rows(&self) -> u64 {
        self.constants().table_rows
    }

    /// Size of the vocabulary; valid token ids are `0..vocab_size`.
    pub fn vocab_size(&self) -> u64 {
        self.constants().vocab_size
    }

    /// Decoder layer (0-based), if the family has layers.
    pub fn layer(&self) -> Option<u32> {
        self.constants().layer
    }

    /// Tokens of history that matter: n - 1.
    pub fn history_len(&self) -> usize {
        self.constants().history_len
    }

    /// Values per row, where the config says so.
    pub fn head_dim(&self) -> Option<u64> {
        self.constants().head_dim
    }

    /// Token id that bounds segments (`qwen_ple_v1`, `longcat`).
    pub fn eos_token(&self) -> Option<u64> {
        self.constants().eos
    }

    /// Token id that stands for a missing one (Engram families); compressed where the spec takes compressed ids.
    pub fn pad_token(&self) -> Option<u64> {
        self.constants().pad
    }

    /// Token id whose positions are dead (`deepseek_v41`: image tokens).
    pub fn dead_token(&self) -> Option<u64> {
        self.constants().dead
    }

    /// Map from token ids to compressed ids, if the spec was given one.
    pub fn token_map(&self) -> Option<&Arc<TokenMap>> {
        self.inner.token_map.as_ref()
    }

    /// Whether token ids can be hashed: `false` for a `deepseek_v41` spec without a token map.
    pub fn can_hash(&self) -> bool {
        self.inner.hash.is_some()
    }

    /// The released reference spec behind `rowids_for_seq(tokens)`: Qwen3.8-Flash-Next's PLE.
    pub fn released_qwen_ple() -> Result<Spec, SpecError> {
        static CACHED: OnceLock<Spec> = OnceLock::new();
        if let Some(spec) = CACHED.get() {
            return Ok(spec.clone());
        }
        let spec = SpecFile::released(released::QWEN)?.spec(None, None)?;
        Ok(CACHED.get_or_init(|| spec).clone())
    }

    /// Checks the hash constants a checkpoint stores against the derived ones. `None`: not stored.
    ///
    /// # Errors
    /// The first constant whose length or value differs, with both values.
    pub fn check_stored(
        &self,
        multipliers: Option<&[i64]>,
        sizes: Option<&[i64]>,
        offsets: Option<&[i64]>,
    ) -> Result<(), SpecError> {
        // All derived constants fit an i64: checked when the heads were summed up.
        let wide = |values: &[u64]| values.iter().map(|&v| v as i64).collect::<Vec<i64>>();
        let compare = |constant: &'static str, stored: Option<&[i64]>, derived: &[i64]| {
            let Some(stored) = stored else { return Ok(()) };
            if stored.len() != derived.len() {
                return Err(SpecError::StoredShape { constant, stored: stored.len(), derived: derived.len() });
            }
            match (0..derived.len()).find(|&i| stored[i] != derived[i]) {
                None => Ok(()),
                Some(index) => {
                    Err(SpecError::StoredDiffers { constant, index, stored: stored[index], derived: derived[index] })
                }
            }
        };
        compare("multipliers", multipliers, self.multipliers())?;
        compare("head sizes", sizes, &wide(self.head_sizes()))?;
        compare("head offsets", offsets, &wide(self.head_offsets()))
    }

    /// Row ids of one sequence: `tokens.len() * heads()` values, token-major, in head order, into `out`.
    ///
    /// Row ids are global: bucket + head offset. History shorter than [`history_len`](Self::history_len) means that
    /// the sequence starts there; of a longer one the last tokens count.
    ///
    /// # Errors
    /// A token id outside the vocabulary (named with its position), a buffer or mask of the wrong length, a dead mask
    /// for a family without dead tokens, a spec that [cannot hash](Self::can_hash). `out` is then unchanged.
    pub fn rowids_into(&self, seq: Sequence<'_>, out: &mut [i64]) -> Result<(), SpecError> {
        let hash = self.hash()?;
        self.check_output(seq.tokens.len(), out.len())?;
        let checked = seq.check(self.constants())?;
        hash.rows_into(checked, out);
        Ok(())
    }

    /// [`rowids_into`](Self::rowids_into) a new vector.
    pub fn rowids(&self, seq: Sequence<'_>) -> Result<Vec<i64>, SpecError> {
        self.hash()?;
        // Checked before the allocation: a refused list costs nothing.
        seq.check(self.constants())?;
        let mut out = vec![0; seq.tokens.len() * self.heads()];
        self.rowids_into(seq, &mut out)?;
        Ok(out)
    }

    fn hash(&self) -> Result<&dyn NgramHash, SpecError> {
        self.inner.hash.as_deref().ok_or(SpecError::NoTokenMap { family: self.family() })
    }

    fn check_output(&self, tokens: usize, found: usize) -> Result<(), SpecError> {
        let heads = self.heads();
        match tokens.checked_mul(heads) {
            Some(expected) if expected == found => Ok(()),
            expected => Err(SpecError::OutputLength { tokens, heads, expected: expected.unwrap_or(usize::MAX), found }),
        }
    }
}
