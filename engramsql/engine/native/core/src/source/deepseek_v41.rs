//! DeepSeek V4.1 Engram checkpoints: per layer one tensor of values and one of block scales, two extents per row.

use super::checkpoint::{Checkpoint, Located};
use super::error::SourceError;
use super::layout::LayoutBuilder;
use super::{SourceKind, SourceTable, TOKENIZER, TokenMaps, wanted_layers};
use crate::catalog::RegisterOptions;
use crate::error::Result;
use crate::format::{E8M0_BLOCK, ValueFormat};
use crate::spec::Spec;

// On disk first, then as vLLM 0.33.0 renames them (re-exports).
const WEIGHT_NAMES: [&str; 2] = ["embed.weight", "embed_tokens.weight"];
const SCALE_NAMES: [&str; 3] = ["embed.scale", "embed.weight_scale_inv", "embed_tokens.weight_scale_inv"];

/// The tables of a deepseek_v41 checkpoint, in config order.
pub(super) fn open(
    checkpoint: &Checkpoint,
    options: &RegisterOptions,
    token_maps: TokenMaps<'_>,
) -> Result<Vec<SourceTable>> {
    let layers = wanted_layers(&checkpoint.path, "deepseek_v41", &checkpoint.config, options)?;
    // The rows first: a broken download is told in milliseconds, a token map takes seconds.
    let rows: Vec<_> = layers.iter().map(|&layer| find_rows(checkpoint, layer)).collect::<Result<_>>()?;
    let tokenizer = options.tokenizer.clone().unwrap_or_else(|| checkpoint.path.join(TOKENIZER));
    if !tokenizer.exists() {
        return Err(SourceError::MissingTokenizer { path: checkpoint.path.clone(), tokenizer }.into());
    }
    let token_map = token_maps(&tokenizer)?;
    layers
        .into_iter()
        .zip(rows)
        .map(|(layer, rows)| {
            let spec = Spec::from_config("deepseek_v41", &checkpoint.config, Some(layer), Some(token_map.clone()))?;
            open_layer(layer, rows, spec)
        })
        .collect()
}

struct Rows {
    values: Located,
    scales: Located,
}

fn find_rows(checkpoint: &Checkpoint, layer: u32) -> Result<Rows> {
    let prefix = format!("layers.{layer}.engram.");
    let parts: Vec<String> = WEIGHT_NAMES.iter().chain(&SCALE_NAMES).map(|name| format!("{prefix}{name}")).collect();
    checkpoint.require_files(parts.iter().flat_map(|suffix| checkpoint.names_ending(suffix)))?;
    let find = |names: &[&str], remedy: &str| -> Result<Located> {
        let suffixes: Vec<String> = names.iter().map(|name| format!("{prefix}{name}")).collect();
        let found: Vec<&str> = suffixes.iter().flat_map(|suffix| checkpoint.names_ending(suffix)).collect();
        match found[..] {
            [name] => Ok(checkpoint.locate(name)?),
            [] => Err(SourceError::MissingTensor {
                path: checkpoint.path.clone(),
                tensor: suffixes[0].clone(),
                remedy: remedy.to_owned(),
            }
            .into()),
            [first, second, ..] => Err(SourceError::AmbiguousTensor {
                path: checkpoint.path.clone(),
                first: first.to_owned(),
                second: second.to_owned(),
            }
            .into()),
        }
    };
    let values = find(&WEIGHT_NAMES, "; the checkpoint holds no Engram table for this layer")?;
    values.require_dtype(&["F8_E4M3"], "Engram rows are F8_E4M3")?;
    let scales = find(&SCALE_NAMES, "; FP8 rows need their block scales, a missing scale is never taken as 1.0")?;
    scales.require_dtype(&["F8_E8M0"], "Engram block scales are F8_E8M0")?;
    Ok(Rows { values, scales })
}

fn open_layer(layer: u32, rows: Rows, spec: Spec) -> Result<SourceTable> {
    let Rows { values, scales } = rows;
    let count = spec.table_rows();
    let dim = spec.head_dim().unwrap_or(0);
    if values.tensor.shape != [count, dim] {
        return Err(values
            .wrong_shape(format!("[{count}, {dim}] by engram_num_embeddings and engram_head_dim"))
            .into());
    }
    if dim == 0 || !dim.is_multiple_of(E8M0_BLOCK as u64) {
        return Err(values.wrong_shape("columns in whole blocks of 32").into());
    }
    let blocks = dim / E8M0_BLOCK as u64;
    if scales.tensor.shape != [count, blocks] {
        return Err(scales.wrong_shape(format!("[{count}, {blocks}]: one scale byte per 32 columns")).into());
    }
    let mut layout = LayoutBuilder::default();
    layout.part(dim as usize);
    layout.push(0, values.stamped(), values.tensor.offset, count);
    layout.part(blocks as usize);
    layout.push(0, scales.stamped(), scales.tensor.offset, count);
    Ok(SourceTable {
        kind: SourceKind::Checkpoint,
        layer: Some(layer),
        layout: layout.finish(),
        format: Some(ValueFormat::Fp8E4m3E8m0),
        spec: Some(spec),
        tokenizer: None,
        digest: None,
        checksums: None,
        identity: None,
    })
}
