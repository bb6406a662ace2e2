//! The row files of a store, and where their rows lie.

use super::geometry::Geometry;
use super::manifest::Manifest;
use crate::error::Result;
use crate::source::error::SourceError;
use crate::source::layout::{Layout, LayoutBuilder};
use crate::source::safetensors;
use crate::source::stamp::FileStamp;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const PREFIXES: [&str; 2] = ["shard_", "badge_"];

/// One row file.
pub(super) struct RowFile {
    number: u32,
    path: PathBuf,
    bytes: u64,
    stamp: FileStamp,
    /// `badge_` files may be padded with zeros at the end.
    padded: bool,
}

/// The row files of the directory, by number.
pub(super) fn list(path: &Path) -> Result<Vec<RowFile>, SourceError> {
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

/// Refuses a sequence with gaps, or of another length than the manifest says.
pub(super) fn check_sequence(path: &Path, files: &[RowFile], manifest: Option<&Manifest>) -> Result<(), SourceError> {
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
            let noun = if manifest.shards == 1 { "shard" } else { "shards" };
            Err(missing(found as u32, format!("manifest.json announces {} {noun}", manifest.shards)))
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

/// A file of the wrong size may not be a row file at all.
fn refuse_impostor(file: &RowFile) -> Result<(), SourceError> {
    let mut head = Vec::with_capacity(64);
    let io = |e| SourceError::io(&file.path, e);
    File::open(&file.path).map_err(io)?.take(64).read_to_end(&mut head).map_err(io)?;
    safetensors::refuse_impostor(&file.path, &head)
}

/// Where the rows lie; every file has the size that its rows need.
pub(super) fn lay_out(path: &Path, files: &[RowFile], geometry: &Geometry) -> Result<Layout> {
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
