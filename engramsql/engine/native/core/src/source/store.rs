//! Store directories: headerless row files `shard_000.bin`, ..., with an optional `manifest.json`.
//!
//! The layout is that of engramdb-python 0.3.0; its `badge_NNN.bin` files are accepted in place of the shards.
//! Geometry comes from the files: a width nobody can derive must be declared, everything declared is checked.

use super::checkpoint::read_json;
use super::error::SourceError;
use super::layout::{Layout, LayoutBuilder};
use super::stamp::FileStamp;
use super::{SourceKind, SourceTable, TokenMaps, spec_file};
use crate::catalog::RegisterOptions;
use crate::error::Result;
use crate::format::ValueFormat;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Widest row, far above any that exists: keeps row ids x width within 64 bits.
const MAX_WIDTH: u64 = 1 << 24;
const PREFIXES: [&str; 2] = ["shard_", "badge_"];

/// Whether the directory holds row files.
pub(super) fn is_store(path: &Path) -> Result<bool, SourceError> {
    Ok(!list(path)?.is_empty() || path.join("manifest.json").exists())
}

/// The table of a store.
pub(super) fn open(path: &Path, options: &RegisterOptions, token_maps: TokenMaps<'_>) -> Result<SourceTable> {
    refuse_idle_options(path, options)?;
    let manifest = Manifest::read(path)?;
    let files = list(path)?;
    check_sequence(path, &files, manifest.as_ref())?;
    let geometry = Geometry::resolve(path, manifest.as_ref(), options)?;
    let layout = lay_out(path, &files, &geometry)?;
    if layout.rows == 0 {
        return Err(SourceError::NoRows { path: path.to_owned() }.into());
    }

    let format = match &options.format {
        Some(name) => Some(ValueFormat::from_name(name, options.scale)?),
        None => None,
    };
    if let Some(format) = &format
        && format.dim_of(layout.row_bytes()).is_none()
    {
        return Err(format_mismatch(path, &layout, format, ""));
    }
    let spec = match &options.spec {
        Some(name) => {
            let file = spec_file(name)?;
            let token_map = match &options.tokenizer {
                Some(tokenizer) => Some(token_maps(tokenizer)?),
                None => None,
            };
            Some(file.spec(options.layer, token_map)?)
        }
        None => None,
    };
    if let Some(spec) = &spec {
        if layout.rows < spec.reachable_rows() {
            return Err(SourceError::TooFewRows {
                path: path.to_owned(),
                rows: layout.rows,
                spec: spec.name().to_owned(),
                reachable: spec.reachable_rows(),
            }
            .into());
        }
        if let (Some(format), Some(dim)) = (&format, spec.head_dim())
            && format.dim_of(layout.row_bytes()) != Some(dim as usize)
        {
            let detail = format!("; spec '{}' has {dim} values per row", spec.name());
            return Err(format_mismatch(path, &layout, format, &detail));
        }
    }
    Ok(SourceTable {
        kind: SourceKind::Store,
        layer: spec.as_ref().and_then(|spec| spec.layer()),
        layout,
        format,
        spec,
        digest: None,
    })
}

/// An option that nothing would use is a mistake, not a detail.
fn refuse_idle_options(path: &Path, options: &RegisterOptions) -> Result<(), SourceError> {
    let idle = |option, needs| Err(SourceError::IdleOption { path: path.to_owned(), option, needs });
    if options.format.is_none() && options.scale.is_some() {
        return idle("scale", "format");
    }
    if options.spec.is_none() {
        if options.tokenizer.is_some() {
            return idle("tokenizer", "spec");
        }
        if options.layer.is_some() {
            return idle("layer", "spec");
        }
    }
    Ok(())
}

fn format_mismatch(path: &Path, layout: &Layout, format: &ValueFormat, detail: &str) -> crate::Error {
    SourceError::FormatMismatch {
        path: path.to_owned(),
        row_bytes: layout.row_bytes(),
        format: format.name().to_owned(),
        detail: detail.to_owned(),
    }
    .into()
}

/// One row file.
struct RowFile {
    number: u32,
    path: PathBuf,
    bytes: u64,
    stamp: FileStamp,
    /// `badge_` files may be padded with zeros at the end.
    padded: bool,
}

fn list(path: &Path) -> Result<Vec<RowFile>, SourceError> {
    let io = |e| SourceError::io(path, e);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".bin")) else { continue };
        for prefix in PREFIXES {
            let Some(digits) = name.strip_prefix(prefix) else { continue };
            // At least three digits, as written by the format's own tools; anything else is another file.
            if let Ok(number) = digits.parse::<u32>()
                && format!("{number:03}") == digits
            {
                let path = entry.path();
                let stamp = FileStamp::of(&path).map_err(|e| SourceError::io(&path, e))?;
                files.push(RowFile { number, path, bytes: stamp.bytes(), stamp, padded: prefix == "badge_" });
            }
        }
    }
    files.sort_by_key(|file| (file.number, file.padded));
    Ok(files)
}

fn check_sequence(path: &Path, files: &[RowFile], manifest: Option<&Manifest>) -> Result<(), SourceError> {
    if let Some(pair) = files.windows(2).find(|pair| pair[0].number == pair[1].number) {
        let name = |file: &RowFile| file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(SourceError::AmbiguousTensor {
            path: path.to_owned(),
            first: name(&pair[0]),
            second: name(&pair[1]),
        });
    }
    let missing = |number: u32, reason: String| SourceError::MissingShard {
        path: path.to_owned(),
        file: format!("shard_{number:03}.bin"),
        reason,
    };
    for (expected, file) in (0u32..).zip(files) {
        if file.number != expected {
            return Err(missing(expected, format!("shard {} is there", file.number)));
        }
    }
    let found = files.len() as u64;
    match manifest {
        Some(manifest) if found < manifest.shards => {
            Err(missing(found as u32, format!("manifest.json announces {} shards", manifest.shards)))
        }
        Some(manifest) if found > manifest.shards => Err(SourceError::Contradiction {
            path: path.to_owned(),
            what: "shards in manifest.json",
            declared: manifest.shards.to_string(),
            found: format!("{found} row files"),
        }),
        _ => Ok(()),
    }
}

/// What `manifest.json` says under `layout`.
struct Manifest {
    shards: u64,
    rows_per_shard: u64,
    row_bytes: u64,
    total_rows: Option<u64>,
}

impl Manifest {
    fn read(directory: &Path) -> Result<Option<Manifest>, SourceError> {
        let path = directory.join("manifest.json");
        if !path.exists() {
            return Ok(None);
        }
        let json = read_json(&path)?;
        let bad = |detail: String| SourceError::BadJson { path: path.clone(), detail };
        let layout = json
            .get("layout")
            .filter(|layout| layout.is_object())
            .ok_or_else(|| bad("it has no layout object".into()))?;
        let field = |name: &str| match layout.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .filter(|&n| n > 0)
                .map(Some)
                .ok_or_else(|| bad(format!("layout.{name} must be a positive integer, found {value}"))),
        };
        let need = |name: &str| field(name)?.ok_or_else(|| bad(format!("layout.{name} is missing")));
        let row_bytes = need("width")?
            .checked_mul(field("elem_bytes")?.unwrap_or(1))
            .ok_or_else(|| bad("layout.width x layout.elem_bytes overflows".into()))?;
        Ok(Some(Manifest {
            shards: need("shards")?,
            rows_per_shard: need("rows_per_shard")?,
            row_bytes,
            total_rows: field("total_rows")?,
        }))
    }
}

/// Row width and rows per shard, from whoever says so.
struct Geometry {
    row_bytes: u64,
    rows_per_shard: Option<u64>,
    total_rows: Option<u64>,
}

impl Geometry {
    fn resolve(path: &Path, manifest: Option<&Manifest>, options: &RegisterOptions) -> Result<Geometry, SourceError> {
        let agree = |what, declared: Option<u64>, found: Option<u64>| match (declared, found) {
            (Some(declared), Some(found)) if declared != found => Err(SourceError::Contradiction {
                path: path.join("manifest.json"),
                what,
                declared: declared.to_string(),
                found: found.to_string(),
            }),
            (declared, found) => Ok(found.or(declared)),
        };
        let row_bytes = agree("width", options.width, manifest.map(|m| m.row_bytes))?;
        let rows_per_shard = agree("rows_per_shard", options.rows_per_shard, manifest.map(|m| m.rows_per_shard))?;
        let row_bytes = row_bytes.ok_or(SourceError::UnknownWidth { path: path.to_owned() })?;
        if !(1..=MAX_WIDTH).contains(&row_bytes) {
            let path = if manifest.is_some() { path.join("manifest.json") } else { path.to_owned() };
            return Err(SourceError::BadWidth { path, width: row_bytes });
        }
        Ok(Geometry { row_bytes, rows_per_shard, total_rows: manifest.and_then(|m| m.total_rows) })
    }
}

/// A file of the wrong size may not be a row file at all.
fn refuse_impostor(file: &RowFile) -> Result<(), SourceError> {
    let mut head = Vec::with_capacity(64);
    let io = |e| SourceError::io(&file.path, e);
    File::open(&file.path).map_err(io)?.take(64).read_to_end(&mut head).map_err(io)?;
    super::safetensors::refuse_impostor(&file.path, &head)
}

fn lay_out(path: &Path, files: &[RowFile], geometry: &Geometry) -> Result<Layout> {
    let width = geometry.row_bytes;
    for file in files {
        if file.bytes == 0 {
            return Err(SourceError::EmptyFile { path: file.path.clone() }.into());
        }
    }
    // Where nobody says how many rows a shard has, the largest does; only the last may have fewer.
    let largest = files.iter().map(|file| file.bytes / width).max();
    if let Some(file) = files.iter().find(|file| file.padded)
        && (geometry.total_rows.is_none() || geometry.rows_per_shard.is_none())
    {
        return Err(SourceError::UnknownPadding { path: file.path.clone() }.into());
    }
    let rows_per_shard = geometry.rows_per_shard.or(largest).unwrap_or(0);
    let mut rows_left = geometry.total_rows;
    let mut layout = LayoutBuilder::default();
    layout.part(width as usize);
    for (position, file) in files.iter().enumerate() {
        let last = position + 1 == files.len();
        let whole = file.bytes / width;
        // Without a row total only the last shard may be short.
        let rows = match rows_left {
            Some(left) => left.min(rows_per_shard),
            None if last && file.bytes % width == 0 => whole.min(rows_per_shard),
            None => rows_per_shard,
        };
        // Saturating: a manifest may announce any number, and no file has 2^64 - 1 bytes.
        let expected = rows.saturating_mul(width);
        // A badge file is padded to a multiple of at most 4096 bytes.
        let padding = if file.padded { 4096.max(width) } else { 1 };
        if file.bytes < expected || file.bytes - expected >= padding {
            files.iter().try_for_each(refuse_impostor)?;
            if files.len() == 1 && geometry.rows_per_shard.is_none() {
                let extra = file.bytes % width;
                return Err(SourceError::PartialRow { path: file.path.clone(), found: file.bytes, width, extra }.into());
            }
            let (path, found) = (file.path.clone(), file.bytes);
            return Err(SourceError::WrongShardSize { path, found, expected, rows, width }.into());
        }
        rows_left = rows_left.map(|left| left - rows);
        layout.push(file.number, (&file.path, file.stamp), 0, rows);
    }
    if let Some(left) = rows_left.filter(|&left| left > 0) {
        return Err(SourceError::Contradiction {
            path: path.join("manifest.json"),
            what: "total_rows",
            declared: geometry.total_rows.unwrap_or(0).to_string(),
            found: format!("{} rows in the shards", geometry.total_rows.unwrap_or(0) - left),
        }
        .into());
    }
    Ok(layout.finish())
}
