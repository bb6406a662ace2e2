//! `longcat`: LongCat-Flash's n-gram embedding, as in vLLM 0.33.0.
//!
//! One table per model. A polynomial hash per head with powers of the vocabulary size; a missing older token is left
//! out of the sum.

use super::config::{Config, MAX_ORDER};
use super::error::SpecError;
use super::heads::{Bucket, Heads};
use super::primes::mul_mod;
use super::qwen_ple::orders;
use super::{Checked, Constants, NgramHash, Window};
use serde_json::Value;

const MAX_I64: u64 = i64::MAX as u64;
/// Integers up to here are exact in a double.
const MAX_EXACT: u64 = 1 << 53;

/// Config field that chooses between [`HF`] and [`ENGINE_0_33`].
const RULE: &str = "eos_rule";
/// An EOS as current token hashes itself and looks back normally.
const HF: &str = "hf";
/// An EOS as current token gets bucket 0 of every head (vLLM 0.33.0).
const ENGINE_0_33: &str = "engine_0_33";

/// Constants of the model's table.
pub(super) fn derive(config: Config<'_>, layer: Option<u32>) -> Result<Constants, SpecError> {
    if let Some(layer) = layer {
        return Err(SpecError::UnknownLayer { layer, layers: Vec::new() });
    }
    let order = config.int("emb_neighbor_num", None, 2, MAX_ORDER)?;
    let per_order = config.int("emb_split_num", None, 1, MAX_I64)?;
    let count = config.head_count("emb_split_num", order - 1, per_order)?;
    let vocab_size = config.int("vocab_size", None, 1, MAX_I64)?;
    let hidden = config.int("hidden_size", None, 1, MAX_I64)?;
    if !hidden.is_multiple_of(count) {
        return Err(config.bad("hidden_size", hidden, format!("a multiple of the number of heads ({count})")));
    }
    let eos = config.int("eos_token_id", None, 0, vocab_size - 1)?;
    let rule = eos_rule(config, eos)?;
    let sizes = head_sizes(config, vocab_size, count)?;
    // Products of a token id and a weight below the head size, and a sum of MAX_ORDER remainders, must fit.
    let largest = sizes.iter().copied().max().unwrap_or(0);
    if largest.checked_mul(vocab_size.max(MAX_ORDER)).is_none_or(|product| product > MAX_I64) {
        return Err(SpecError::Overflow {
            family: config.family,
            what: "vocab_size x head size",
            remedy: "ngram_vocab_size_ratio",
        });
    }
    let heads = Heads::new(config.family, orders(2..=order, per_order), sizes, "ngram_vocab_size_ratio")?;
    Ok(Constants {
        family: config.family,
        layer: None,
        multipliers: Vec::new(),
        table_rows: heads.rows,
        heads,
        vocab_size,
        history_len: order as usize - 1,
        head_dim: Some(hidden / count),
        eos: Some(eos),
        pad: None,
        dead: None,
        rule,
    })
}

fn eos_rule(config: Config<'_>, eos: u64) -> Result<&'static str, SpecError> {
    match config.get(RULE) {
        None => Ok(HF),
        Some(Value::String(rule)) if rule == HF => Ok(HF),
        Some(Value::String(rule)) if rule == ENGINE_0_33 && eos == 0 => {
            // That engine marks EOS by negating the id, which leaves 0 unmarked: its answer would be an accident.
            let expected = format!("a token id of at least 1 under {RULE} '{ENGINE_0_33}'");
            Err(config.bad("eos_token_id", eos, expected))
        }
        Some(Value::String(rule)) if rule == ENGINE_0_33 => Ok(ENGINE_0_33),
        Some(other) => Err(config.bad(RULE, other, format!("\"{HF}\" or \"{ENGINE_0_33}\""))),
    }
}

/// `int(ratio * vocab_size + 2 e + 1)` in the arithmetic of Python: whole for a whole ratio, double for a fraction.
fn head_sizes(config: Config<'_>, vocab_size: u64, count: u64) -> Result<Vec<u64>, SpecError> {
    const FIELD: &str = "ngram_vocab_size_ratio";
    let value = config.get(FIELD).ok_or_else(|| config.missing(FIELD))?;
    let too_large = || SpecError::Overflow { family: config.family, what: "a head size", remedy: FIELD };
    if let Some(ratio) = value.as_u64().filter(|&ratio| ratio >= 1) {
        let m = ratio.checked_mul(vocab_size).ok_or_else(too_large)?;
        let size = |e: u64| m.checked_add(2 * e + 1).filter(|&s| s <= MAX_I64);
        return (0..count).map(|e| size(e).ok_or_else(too_large)).collect();
    }
    let ratio = value
        .as_f64()
        .filter(|&ratio| value.is_f64() && ratio.is_finite() && ratio > 0.0)
        .ok_or_else(|| config.bad(FIELD, value, "a number above 0"))?;
    let m = ratio * vocab_size as f64;
    if m + 2.0 * count as f64 >= MAX_EXACT as f64 || vocab_size > MAX_EXACT {
        return Err(too_large());
    }
    // A head needs at least two buckets to be worth a remainder; below, the setting cannot be meant.
    if m < 1.0 {
        return Err(config.bad(FIELD, value, "a ratio that makes at least one bucket: ratio x vocab_size >= 1"));
    }
    Ok((0..count).map(|e| (m + (2 * e) as f64 + 1.0) as u64).collect())
}

#[derive(Debug)]
pub(super) struct Longcat {
    heads: Vec<Term>,
    window: usize,
    eos: i64,
    eos_gets_bucket_0: bool,
}

/// One head: its weights, one per window position of its order, from the current token back.
#[derive(Debug)]
struct Term {
    bucket: Bucket,
    weights: Vec<u64>,
}

impl Longcat {
    pub(super) fn new(constants: &Constants, eos: u64) -> Self {
        let orders = constants.heads.orders.iter();
        let heads = orders
            .zip(&constants.heads.sizes)
            .zip(Bucket::of(&constants.heads))
            .map(|((&order, &size), bucket)| {
                let mut power = 1;
                let weights = (0..order).map(|_| {
                    let weight = power;
                    power = mul_mod(power, constants.vocab_size, size);
                    weight
                });
                Term { bucket, weights: weights.collect() }
            })
            .collect();
        Self {
            heads,
            window: constants.history_len + 1,
            // The id is below the vocabulary size, which fits an i64.
            eos: eos as i64,
            eos_gets_bucket_0: constants.rule == ENGINE_0_33,
        }
    }

    /// Moves the window one token on and returns how many tokens of it count.
    #[inline(always)]
    fn push(&self, window: &mut [u64], visible: usize, token: i64) -> usize {
        let visible = if visible > 0 && window[0] as i64 == self.eos { 0 } else { visible };
        for s in (1..window.len()).rev() {
            window[s] = window[s - 1];
        }
        window[0] = token as u64;
        (visible + 1).min(window.len())
    }
}

impl Longcat {
    /// Hands the ids that count at each token to `take`, newest first.
    #[inline(always)]
    fn counted(&self, seq: Checked<'_>, mut take: impl FnMut(&[u64])) {
        let mut buffer: Window = [0; MAX_ORDER as usize];
        let window = &mut buffer[..self.window];
        let mut visible = 0;
        for &token in seq.history {
            visible = self.push(window, visible, token);
        }
        for &token in seq.tokens {
            visible = self.push(window, visible, token);
            take(if self.eos_gets_bucket_0 && token == self.eos { &window[..0] } else { &window[..visible] });
        }
    }
}

impl NgramHash for Longcat {
    fn rows_into(&self, seq: Checked<'_>, out: &mut [i64]) {
        let mut rows = out.chunks_exact_mut(self.heads.len());
        self.counted(seq, |counted| {
            let Some(rows) = rows.next() else { return };
            for (head, row) in self.heads.iter().zip(rows) {
                let terms = counted.iter().zip(&head.weights);
                let sum = terms.map(|(t, w)| head.bucket.divisor.remainder(t * w)).sum();
                *row = head.bucket.row(sum);
            }
        });
    }

    fn windows(&self, seq: Checked<'_>, take: &mut dyn FnMut(&[u64])) {
        self.counted(seq, take);
    }
}
