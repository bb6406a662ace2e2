//! `engram_peft`: engram-peft 1.2.7 with `engine="deepseek"`.
//!
//! Three differences from `engram_demo`, all on purpose here: the vocabulary setting is a total per n-gram order,
//! primes are handed out over SORTED layers, and the window starts at the oldest token of the largest order.

use super::config::{Config, MAX_ORDER};
use super::error::SpecError;
use super::heads::Heads;
use super::primes::UnusedPrimes;
use super::qwen_ple::orders;
use super::token_map::TokenMap;
use super::{Constants, engram};

const MAX_I64: u64 = i64::MAX as u64;
const VOCAB: &str = "engram_vocab_size_per_ngram";

/// 0-based decoder layers with a table, ascending: the order in which primes are handed out.
pub(super) fn layers(config: Config<'_>) -> Result<Vec<u32>, SpecError> {
    let mut layers = config.layer_ids("layer_ids")?;
    layers.sort_unstable();
    Ok(layers)
}

/// Constants of one layer.
pub(super) fn derive(
    config: Config<'_>,
    layer: Option<u32>,
    token_map: Option<&TokenMap>,
) -> Result<Constants, SpecError> {
    let (layer, index) = super::pick_layer(&layers(config)?, layer)?;
    let sizes_of_ngrams = config.ints("ngram_sizes", 2, MAX_ORDER)?;
    if !sizes_of_ngrams.is_sorted_by(|a, b| a < b) {
        return Err(config.bad("ngram_sizes", format!("{sizes_of_ngrams:?}"), "ascending n-gram sizes"));
    }
    let largest = sizes_of_ngrams.last().copied().unwrap_or(2);
    let per_order = config.int("n_head_per_ngram", None, 1, MAX_I64)?;
    config.head_count("n_head_per_ngram", sizes_of_ngrams.len() as u64, per_order)?;
    let totals = config.ints(VOCAB, per_order, MAX_I64)?;
    if totals.len() != sizes_of_ngrams.len() {
        return Err(config.bad(
            VOCAB,
            format!("a list of {}", totals.len()),
            format!("one entry per entry of ngram_sizes ({})", sizes_of_ngrams.len()),
        ));
    }
    let seed = config.int("seed", Some(0), 0, u64::MAX)?;
    let (compressed, vocab_size) = engram::compressed_size(config, token_map)?;
    let pad_field = config.spelled(&["pad_id", "pad"])?;
    let pad = config.int(pad_field, None, 0, vocab_size - 1)?;

    let mut pool = UnusedPrimes::default();
    let mut sizes = Vec::new();
    for _ in 0..=index {
        sizes.clear();
        for &total in &totals {
            let primes = pool.draw(total / per_order, per_order);
            sizes.extend(primes.ok_or_else(|| engram::no_primes(config.family, VOCAB))?);
        }
    }
    let orders = orders(sizes_of_ngrams.into_iter(), per_order);
    let heads = Heads::new(config.family, orders, sizes, VOCAB)?;
    Ok(Constants {
        family: config.family,
        layer: Some(layer),
        multipliers: engram::multipliers(seed, layer, compressed, largest),
        table_rows: heads.rows,
        heads,
        vocab_size,
        history_len: largest as usize - 1,
        head_dim: None,
        eos: None,
        pad: Some(pad),
        dead: None,
        rule: "",
    })
}
