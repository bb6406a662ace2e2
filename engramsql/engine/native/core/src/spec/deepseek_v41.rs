//! `deepseek_v41`: the Engram tables of DeepSeek-V4.1, as in vLLM 0.33.0 and DeepSeek's inference code.
//!
//! Compressed ids; one set of used primes for the whole model; image tokens are dead: they and all older tokens read
//! as pad.

use super::config::{Config, MAX_ORDER};
use super::error::SpecError;
use super::heads::Heads;
use super::primes::UnusedPrimes;
use super::qwen_ple::orders;
use super::token_map::TokenMap;
use super::{Constants, engram};

const MAX_I64: u64 = i64::MAX as u64;

/// 0-based decoder layers with a table, in config order: the order in which primes are handed out.
pub(super) fn layers(config: Config<'_>) -> Result<Vec<u32>, SpecError> {
    config.layer_ids("engram_layer_ids")
}

/// Constants of one layer. Without a token map everything but hashing works.
pub(super) fn derive(
    config: Config<'_>,
    layer: Option<u32>,
    token_map: Option<&TokenMap>,
) -> Result<Constants, SpecError> {
    let layers = layers(config)?;
    let (layer, index) = super::pick_layer(&layers, layer)?;
    let order = config.int("engram_max_ngram_size", None, 2, MAX_ORDER)?;
    let per_order = config.int("engram_n_heads", None, 1, MAX_I64)?;
    config.head_count("engram_n_heads", order - 1, per_order)?;
    let base = config.int("engram_vocab_size", None, 1, MAX_I64)?;
    let head_dim = config.int("engram_head_dim", None, 1, MAX_I64)?;
    let compressed = config.int("engram_compressed_vocab_size", None, 1, engram::MAX_COMPRESSED)?;
    let announced_vocab = config.int_if_any("vocab_size", 1, MAX_I64)?;
    let dead = config.int_if_any("image_token_id", 0, MAX_I64)?;
    let rows = config.ints("engram_num_embeddings", 1, MAX_I64)?;
    if rows.len() != layers.len() {
        return Err(config.bad(
            "engram_num_embeddings",
            format!("a list of {}", rows.len()),
            format!("one entry per layer of engram_layer_ids ({})", layers.len()),
        ));
    }
    if let Some(map) = token_map {
        map.check_compressed_size("engram_compressed_vocab_size", compressed)?;
        // A tokenizer shorter than the vocabulary is usual (padded embeddings); its ids are then the valid ones.
        if let Some(vocab_size) = announced_vocab.filter(|&size| map.tokens() > size) {
            return Err(SpecError::TokenMapTooLong { tokens: map.tokens(), vocab_size });
        }
    }
    let vocab_size = token_map.map(TokenMap::tokens).or(announced_vocab).unwrap_or(compressed);
    let pad_field = config.spelled(&["engram_pad_token_id", "engram_pad_id"])?;
    let pad = config.int(pad_field, None, 0, vocab_size - 1)?;

    let mut pool = UnusedPrimes::default();
    let mut sizes = Vec::new();
    for _ in 0..=index {
        sizes.clear();
        for _ in 2..=order {
            let primes = pool.draw(base, per_order);
            sizes.extend(primes.ok_or_else(|| engram::no_primes(config.family, "engram_vocab_size"))?);
        }
    }
    let heads = Heads::new(config.family, orders(2..=order, per_order), sizes, "engram_vocab_size")?;
    if heads.rows > rows[index] {
        return Err(SpecError::TooFewRows {
            layer,
            field: "engram_num_embeddings",
            needed: heads.rows,
            announced: rows[index],
        });
    }
    Ok(Constants {
        family: config.family,
        layer: Some(layer),
        multipliers: engram::multipliers(0, layer, compressed, order),
        heads,
        table_rows: rows[index],
        vocab_size,
        history_len: order as usize - 1,
        head_dim: Some(head_dim),
        eos: None,
        pad: Some(pad),
        dead,
        rule: "",
    })
}
