//! Qwen3.8 PLE checkpoints (`model_type` qwen4_exp): row shards as tensors, one table per PLE layer.
//!
//! Shard rule as vLLM 0.33.0 enforces it: with S = `split_ngram_parts`, every shard has ceil(padded / S) rows except
//! that the last ones may be short or empty. Row counts are taken from the headers and must follow that rule.

use super::checkpoint::{Checkpoint, Located};
use super::error::SourceError;
use super::layout::LayoutBuilder;
use super::{SourceKind, SourceTable, wanted_layers};
use crate::catalog::RegisterOptions;
use crate::error::Result;
use crate::format::{NVFP4_BLOCK, ValueFormat};
use crate::spec::Spec;
use serde_json::Value;

const ROW_DTYPES: &str = "PLE rows are F8_E4M3, BF16, F16, F32, or U8 for NVFP4";

/// The tables of a qwen4_exp checkpoint.
pub(super) fn open(checkpoint: &Checkpoint, options: &RegisterOptions) -> Result<Vec<SourceTable>> {
    let layers = wanted_layers(&checkpoint.path, "qwen_ple_v1", &checkpoint.config, options)?;
    layers.into_iter().map(|layer| open_layer(checkpoint, layer, options)).collect()
}

fn open_layer(checkpoint: &Checkpoint, layer: u32, options: &RegisterOptions) -> Result<SourceTable> {
    let spec = Spec::from_config("qwen_ple_v1", &checkpoint.config, Some(layer), None)?;
    let prefix = format!("layers.{layer}.ple.ple_embedding.");
    // First of all, so that every missing file is named at once.
    checkpoint.require_files(checkpoint.names().filter(|name| is_under(name, &prefix)))?;
    check_constants(checkpoint, &prefix, &spec)?;

    let head_dim = spec.head_dim().ok_or_else(|| SourceError::BadJson {
        path: checkpoint.path.join("config.json"),
        detail: "it has neither ple_embed_dim nor hidden_size".to_owned(),
    })?;
    let shards = find_shards(checkpoint, &prefix, &spec)?;
    check_shapes(&shards, head_dim)?;
    let format = value_format(checkpoint, &prefix, &shards, options)?;
    let row_bytes = format.value_bytes(head_dim as usize);

    let mut layout = LayoutBuilder::default();
    layout.part(row_bytes);
    for shard in &shards {
        layout.push(shard.number, shard.located.stamped(), shard.located.tensor.offset, shard.rows);
    }
    if matches!(format, ValueFormat::Nvfp4 { .. }) {
        let blocks = head_dim / NVFP4_BLOCK as u64;
        layout.part(blocks as usize);
        for shard in &shards {
            let suffix = format!("{prefix}ngram_embedding.shard_{}.weight_scale", shard.number);
            let scales = checkpoint
                .find(&suffix)?
                .ok_or_else(|| missing(checkpoint, &suffix, "; NVFP4 rows need their block scales"))?;
            scales.require_dtype(&["F8_E4M3"], "NVFP4 block scales are F8_E4M3")?;
            if scales.tensor.shape != [shard.rows, blocks] {
                return Err(scales.wrong_shape(format!("[{}, {blocks}]: one scale per 16 columns", shard.rows)).into());
            }
            layout.push(shard.number, scales.stamped(), scales.tensor.offset, shard.rows);
        }
    }
    Ok(SourceTable {
        kind: SourceKind::Checkpoint,
        layer: Some(layer),
        layout: layout.finish(),
        format: Some(format),
        spec: Some(spec),
        tokenizer: None,
        digest: None,
        checksums: None,
        identity: None,
    })
}

struct Shard {
    number: u32,
    rows: u64,
    located: Located,
}

/// The row shards in numeric order, with the row count each must have.
fn find_shards(checkpoint: &Checkpoint, prefix: &str, spec: &Spec) -> Result<Vec<Shard>> {
    let stem = format!("{prefix}ngram_embedding.");
    let mut found: Vec<(u32, &str)> = Vec::new();
    let mut whole = None;
    for name in checkpoint.names() {
        let Some(rest) = name.strip_suffix(".weight") else { continue };
        let Some(at) = rest.find(&stem) else {
            if rest.strip_suffix("ngram_embedding").is_some_and(|head| head.ends_with(prefix)) {
                whole = Some(name);
            }
            continue;
        };
        if at > 0 && !rest[..at].ends_with('.') {
            continue;
        }
        if let Some(number) = rest[at + stem.len()..].strip_prefix("shard_") {
            // Decimal without padding: `shard_07` would be a second name for shard 7.
            match number.parse::<u32>() {
                Ok(n) if n.to_string() == number => found.push((n, name)),
                _ => {
                    return Err(SourceError::BadTensor {
                        path: checkpoint.path.clone(),
                        tensor: name.to_owned(),
                        detail: format!("'{number}' is no shard number"),
                    }
                    .into());
                }
            }
        }
    }
    found.sort_unstable();
    if let Some(pair) = found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (first, second) = (pair[0].1.to_owned(), pair[1].1.to_owned());
        return Err(SourceError::AmbiguousTensor { path: checkpoint.path.clone(), first, second }.into());
    }
    let padded = spec.table_rows();
    if let (Some(whole), true) = (whole, found.is_empty()) {
        return Ok(vec![Shard { number: 0, rows: padded, located: checkpoint.locate(whole)? }]);
    }
    let Some(&(last, last_name)) = found.last() else {
        let first = format!("{stem}shard_0.weight");
        return Err(missing(checkpoint, &first, "; the checkpoint holds no PLE table for this layer").into());
    };
    let parts = config_u64(checkpoint, "split_ngram_parts")?.unwrap_or(512);
    if u64::from(last) >= parts {
        return Err(SourceError::BadTensor {
            path: checkpoint.path.clone(),
            tensor: last_name.to_owned(),
            detail: format!("config.json says split_ngram_parts = {parts}, so its shard number must be below that"),
        }
        .into());
    }
    let size = padded.div_ceil(parts);
    let mut shards = Vec::with_capacity(found.len());
    let mut present = found.into_iter().peekable();
    // Beyond the shards that have rows, only those that are there: split_ngram_parts may be any number.
    let with_rows = padded.div_ceil(size).min(u64::from(u32::MAX)) as u32;
    for number in 0..with_rows.max(last + 1) {
        let begin = (u64::from(number) * size).min(padded);
        let rows = size.min(padded - begin);
        match present.next_if(|(n, _)| *n == number) {
            Some((_, name)) => shards.push(Shard { number, rows, located: checkpoint.locate(name)? }),
            // A shard without rows need not be written.
            None if rows == 0 => {}
            None => {
                let name = format!("{stem}shard_{number}.weight");
                return Err(missing(checkpoint, &name, &format!("; shards 0 to {} are expected", with_rows - 1)).into());
            }
        }
    }
    Ok(shards)
}

/// Whether `name` lies under `prefix`, whatever stands before it.
fn is_under(name: &str, prefix: &str) -> bool {
    name.find(prefix).is_some_and(|at| at == 0 || name[..at].ends_with('.'))
}

/// Every shard has one dtype, and the shape that dtype and head_dim demand: other packings of the same bytes are refused here.
fn check_shapes(shards: &[Shard], head_dim: u64) -> Result<(), SourceError> {
    for shard in shards {
        let located = &shard.located;
        located.require_dtype(&["F8_E4M3", "BF16", "F16", "F32", "U8"], ROW_DTYPES)?;
        if located.tensor.dtype != shards[0].located.tensor.dtype {
            located.require_dtype(&[], "all shards of a table must have one dtype")?;
        }
        let (columns, packing) = match located.tensor.dtype.as_str() {
            "U8" => (head_dim / 2, "NVFP4, two values a byte"),
            _ => (head_dim, "one value a column"),
        };
        if located.tensor.dtype == "U8" && !head_dim.is_multiple_of(NVFP4_BLOCK as u64) {
            return Err(located.wrong_shape(format!("whole 16-value blocks, which head_dim {head_dim} has not")));
        }
        if located.tensor.shape != [shard.rows, columns] {
            let rows = shard.rows;
            return Err(located.wrong_shape(format!(
                "[{rows}, {columns}] (head_dim {head_dim}, {packing}; rows by split_ngram_parts)"
            )));
        }
    }
    Ok(())
}

fn value_format(
    checkpoint: &Checkpoint,
    prefix: &str,
    shards: &[Shard],
    options: &RegisterOptions,
) -> Result<ValueFormat> {
    let scale = |suffix: &str, format: &str| -> Result<f32> {
        let name = format!("{prefix}ngram_embedding.{suffix}");
        match (checkpoint.find(&name)?, options.scale) {
            (Some(located), _) => Ok(located.read_scalar()?),
            (None, Some(declared)) => Ok(declared),
            (None, None) => {
                let remedy = format!(
                    "; {format} rows need it (a missing scale is never taken as 1.0), or give the scale at registration"
                );
                Err(missing(checkpoint, &name, &remedy).into())
            }
        }
    };
    let format = match shards[0].located.tensor.dtype.as_str() {
        "F8_E4M3" => ValueFormat::from_name("fp8_e4m3", Some(scale("weight_scale", "F8_E4M3")?))?,
        "U8" => ValueFormat::from_name("nvfp4", Some(scale("weight_scale_2", "NVFP4")?))?,
        "BF16" => ValueFormat::Bf16,
        "F16" => ValueFormat::F16,
        _ => ValueFormat::F32,
    };
    let config = text_config(&checkpoint.config);
    if let Some(declared) = config.get("ple_embedding_dtype").and_then(Value::as_str) {
        let expected = match declared {
            "nvfp4" => "nvfp4",
            "float8_e4m3fn" => "fp8_e4m3",
            "bfloat16" => "bf16",
            "float16" => "f16",
            "float32" => "f32",
            other => other,
        };
        if expected != format.name() {
            return Err(SourceError::Contradiction {
                path: shards[0].located.file().to_owned(),
                what: "ple_embedding_dtype in config.json",
                declared: declared.to_owned(),
                found: shards[0].located.tensor.dtype.clone(),
            }
            .into());
        }
    }
    Ok(format)
}

fn check_constants(checkpoint: &Checkpoint, prefix: &str, spec: &Spec) -> Result<()> {
    for name in ["layer_multipliers", "ngram_heads_vocab_sizes", "ngram_heads_offsets"] {
        let Some(located) = checkpoint.find(&format!("{prefix}{name}"))? else { continue };
        let stored = located.read_i64()?;
        let of = |wanted| (name == wanted).then_some(&stored[..]);
        spec.check_stored(of("layer_multipliers"), of("ngram_heads_vocab_sizes"), of("ngram_heads_offsets")).map_err(
            |error| SourceError::WrongConstant {
                path: located.file().to_owned(),
                tensor: located.tensor.name.clone(),
                error,
            },
        )?;
    }
    Ok(())
}

fn missing(checkpoint: &Checkpoint, tensor: &str, remedy: &str) -> SourceError {
    SourceError::MissingTensor { path: checkpoint.path.clone(), tensor: tensor.to_owned(), remedy: remedy.to_owned() }
}

fn text_config(config: &Value) -> &Value {
    config.get("text_config").filter(|value| value.is_object()).unwrap_or(config)
}

fn config_u64(checkpoint: &Checkpoint, field: &str) -> Result<Option<u64>, SourceError> {
    match text_config(&checkpoint.config).get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().filter(|&n| n > 0).map(Some).ok_or_else(|| SourceError::BadJson {
            path: checkpoint.path.join("config.json"),
            detail: format!("{field} must be a positive integer, found {value}"),
        }),
    }
}
