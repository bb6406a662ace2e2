//! `engram_demo`: the demo of the Engram paper (deepseek-ai/Engram, `engram_demo_v1.py`).
//!
//! As `deepseek_v41` without dead tokens, with a prime start per n-gram order and a seed. Settings live in Python
//! there; here they come as a JSON or TOML table of the same names.

use super::config::{Config, MAX_ORDER};
use super::error::SpecError;
use super::heads::Heads;
use super::primes::UnusedPrimes;
use super::qwen_ple::orders;
use super::token_map::TokenMap;
use super::{Constants, engram};

const MAX_I64: u64 = i64::MAX as u64;

/// 0-based decoder layers with a table, in the given order.
pub(super) fn layers(config: Config<'_>) -> Result<Vec<u32>, SpecError> {
    config.layer_ids("layer_ids")
}

/// Constants of one layer.
pub(super) fn derive(
    config: Config<'_>,
    layer: Option<u32>,
    token_map: Option<&TokenMap>,
) -> Result<Constants, SpecError> {
    let (layer, index) = super::pick_layer(&layers(config)?, layer)?;
    let order = config.int("max_ngram_size", None, 2, MAX_ORDER)?;
    let per_order = config.int("n_head_per_ngram", None, 1, MAX_I64)?;
    config.head_count("n_head_per_ngram", order - 1, per_order)?;
    let bases = config.ints("engram_vocab_size", 1, MAX_I64)?;
    if bases.len() as u64 != order - 1 {
        return Err(config.bad(
            "engram_vocab_size",
            format!("a list of {}", bases.len()),
            format!("one entry per n-gram order 2..={order} ({})", order - 1),
        ));
    }
    let seed = config.int("seed", Some(0), 0, u64::MAX)?;
    let (compressed, vocab_size) = engram::compressed_size(config, token_map)?;
    let pad_field = config.spelled(&["pad_id", "pad"])?;
    let pad = config.int(pad_field, None, 0, vocab_size - 1)?;
    let head_dim = match config.int_if_any("n_embed_per_ngram", 1, MAX_I64)? {
        Some(width) if !width.is_multiple_of(per_order) => {
            let expected = format!("a multiple of n_head_per_ngram ({per_order})");
            return Err(config.bad("n_embed_per_ngram", width, expected));
        }
        width => width.map(|w| w / per_order),
    };

    let mut pool = UnusedPrimes::default();
    let mut sizes = Vec::new();
    for _ in 0..=index {
        sizes.clear();
        for &base in &bases {
            let primes = pool.draw(base, per_order);
            sizes.extend(primes.ok_or_else(|| engram::no_primes(config.family, "engram_vocab_size"))?);
        }
    }
    let heads = Heads::new(config.family, orders(2..=order, per_order), sizes, "engram_vocab_size")?;
    Ok(Constants {
        family: config.family,
        layer: Some(layer),
        multipliers: engram::multipliers(seed, layer, compressed, order),
        table_rows: heads.rows,
        heads,
        vocab_size,
        history_len: order as usize - 1,
        head_dim,
        eos: None,
        pad: Some(pad),
        dead: None,
        rule: "",
    })
}
