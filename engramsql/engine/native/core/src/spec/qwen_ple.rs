//! `qwen_ple_v1`: Qwen's per-layer embeddings (model_type `qwen4_exp`), as in vLLM 0.33.0 and transformers 5.24.0.
//!
//! Raw token ids; splitmix64 multipliers; consecutive primes; EOS is both the boundary inside a sequence and the
//! filler before its start.

use super::config::{Config, MAX_ORDER};
use super::error::SpecError;
use super::heads::{Heads, Mixer};
use super::kernels::{TILE, Tile};
use super::splitmix::{GAMMA, splitmix64};
use super::{Checked, Constants, NgramHash, Window, primes};
use crate::cpu::Level;

const MAX_I64: u64 = i64::MAX as u64;

/// 0-based decoder layers with a table. The config counts from one; duplicates and order do not matter (vLLM 0.33.0).
pub(super) fn layers(config: Config<'_>) -> Result<Vec<u32>, SpecError> {
    if config.get("ple_layer_ids").is_none() {
        return Err(config.missing("ple_layer_ids"));
    }
    let ids = config.ints("ple_layer_ids", 1, u64::from(u32::MAX))?;
    config.check_layer_count("ple_layer_ids", ids.len())?;
    // In range: 1..=u32::MAX was checked.
    let mut layers: Vec<u32> = ids.into_iter().map(|id| (id - 1) as u32).collect();
    layers.sort_unstable();
    layers.dedup();
    Ok(layers)
}

/// Constants of one layer; without `ple_layer_ids` and without a layer, those of the first table.
pub(super) fn derive(config: Config<'_>, layer: Option<u32>) -> Result<Constants, SpecError> {
    let (layer, rank) = if layer.is_none() && config.get("ple_layer_ids").is_none() {
        (None, 0)
    } else {
        let (layer, rank) = super::pick_layer(&layers(config)?, layer)?;
        (Some(layer), rank as u64)
    };
    // Defaults are those of transformers' Qwen4ExpTextConfig.
    let order = config.int("ngram_size", Some(3), 2, MAX_ORDER)?;
    let per_order = config.int("heads_per_ngram", Some(8), 1, MAX_I64)?;
    let head_count = config.head_count("heads_per_ngram", order - 1, per_order)?;
    let base = config.int("ngram_vocab_size_base", Some(20_000_000), 1, MAX_I64)?;
    let divisor = config.int("make_ngram_vocab_size_divisible_by", Some(128), 1, MAX_I64)?;
    let seed = config.int("seed", Some(1234), 0, u64::MAX)?;
    let vocab_size = config.int("vocab_size", Some(248_320), 1, MAX_I64)?;
    let eos = end_of_sequence(config, vocab_size)?;
    let head_dim = head_dim(config, head_count)?;

    let bound = MAX_I64 / vocab_size;
    let half = (bound / 2).max(1);
    let layer_seed = seed.wrapping_add(rank.wrapping_mul(10_007));
    let multipliers = (1..=order)
        .map(|k| splitmix64(layer_seed.wrapping_add(GAMMA.wrapping_mul(k))) % half)
        // Odd and below `bound`, so token x multiplier stays below 2^63.
        .map(|r| (2 * r + 1) as i64)
        .collect();

    let mut sizes = Vec::new();
    let mut prime = base - 1;
    for global in 0..(rank + 1) * head_count {
        prime = primes::next_prime(prime).filter(|&p| p <= MAX_I64).ok_or(SpecError::Overflow {
            family: config.family,
            what: "a head size",
            remedy: "ngram_vocab_size_base",
        })?;
        if global >= rank * head_count {
            sizes.push(prime);
        }
    }
    let orders = orders(2..=order, per_order);
    let heads = Heads::new(config.family, orders, sizes, "ngram_vocab_size_base")?;
    let table_rows =
        heads.rows.checked_next_multiple_of(divisor).filter(|&rows| rows <= MAX_I64).ok_or(SpecError::Overflow {
            family: config.family,
            what: "the padded number of rows",
            remedy: "make_ngram_vocab_size_divisible_by",
        })?;
    Ok(Constants {
        family: config.family,
        layer,
        multipliers,
        heads,
        table_rows,
        vocab_size,
        history_len: order as usize - 1,
        head_dim,
        eos: Some(eos),
        pad: None,
        dead: None,
        rule: "",
    })
}

/// n-gram order of every head: each order `per_order` times.
pub(super) fn orders(orders: impl Iterator<Item = u64>, per_order: u64) -> Vec<u32> {
    orders.flat_map(|order| (0..per_order).map(move |_| order as u32)).collect()
}

/// `eos_token_id`, or its first element where it is a list (transformers 5.24.0).
fn end_of_sequence(config: Config<'_>, vocab_size: u64) -> Result<u64, SpecError> {
    match config.get("eos_token_id") {
        Some(serde_json::Value::Array(_)) => Ok(config.ints("eos_token_id", 0, vocab_size - 1)?[0]),
        _ => config.int("eos_token_id", None, 0, vocab_size - 1),
    }
}

/// Width of a row: `ple_embed_dim` (default: the hidden size) over the heads, if the config names either.
fn head_dim(config: Config<'_>, heads: u64) -> Result<Option<u64>, SpecError> {
    for field in ["ple_embed_dim", "hidden_size"] {
        if let Some(width) = config.int_if_any(field, 1, MAX_I64)? {
            if !width.is_multiple_of(heads) {
                return Err(config.bad(field, width, format!("a multiple of the number of heads ({heads})")));
            }
            return Ok(Some(width / heads));
        }
    }
    Ok(None)
}

#[derive(Debug)]
pub(super) struct QwenPle {
    mixer: Mixer,
    eos: u64,
}

impl QwenPle {
    pub(super) fn new(level: Level, constants: &Constants, eos: u64) -> Self {
        Self { mixer: Mixer::new(level, &constants.multipliers, &constants.heads, false), eos }
    }

    /// Moves the window one token on. An EOS hides itself from nobody but everything older from its successors.
    #[inline(always)]
    fn push(&self, window: &mut [u64], token: i64) {
        if window[0] == self.eos {
            window.fill(self.eos);
        } else {
            for s in (1..window.len()).rev() {
                window[s] = window[s - 1];
            }
        }
        window[0] = token as u64;
    }

    /// The window behind the history, in `buffer`.
    fn start<'w>(&self, seq: Checked<'_>, buffer: &'w mut Window) -> &'w mut [u64] {
        *buffer = [self.eos; MAX_ORDER as usize];
        let window = &mut buffer[..self.mixer.window()];
        for &token in seq.history {
            self.push(window, token);
        }
        window
    }
}

impl NgramHash for QwenPle {
    fn rows_into(&self, seq: Checked<'_>, out: &mut [i64]) {
        let mut buffer = Window::default();
        let window = self.start(seq, &mut buffer);
        if let Some(wide) = self.mixer.wide(seq.tokens.len()) {
            let mut tile = Tile::new(window.iter().copied());
            for (tokens, rows) in seq.tokens.chunks(TILE).zip(out.chunks_mut(TILE * self.mixer.heads())) {
                let mut before = tile.newest();
                tile.advance(
                    self.eos,
                    tokens.iter().map(|&token| {
                        let older = std::mem::replace(&mut before, token as u64);
                        (token as u64, older == self.eos)
                    }),
                );
                wide.rows(&tile, rows);
            }
            return;
        }
        for (&token, rows) in seq.tokens.iter().zip(out.chunks_exact_mut(self.mixer.heads())) {
            self.push(window, token);
            self.mixer.rows(window, rows);
        }
    }

    fn windows(&self, seq: Checked<'_>, take: &mut dyn FnMut(&[u64])) {
        let mut buffer = Window::default();
        let window = self.start(seq, &mut buffer);
        for &token in seq.tokens {
            self.push(window, token);
            take(window);
        }
    }
}
