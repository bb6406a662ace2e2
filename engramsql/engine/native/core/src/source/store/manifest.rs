//! `manifest.json` of a store: the geometry as engramdb-python 0.3.0 writes it, and what a store of ours says about itself.

use super::description::{Described, MEMBER};
use crate::error::Result;
use crate::source::error::SourceError;
use crate::source::stamp::FileStamp;
use crate::storage::seal;
use serde_json::{Map, Value};
use std::path::Path;

/// Name of the file.
pub(crate) const MANIFEST: &str = "manifest.json";

/// What `manifest.json` says.
pub(super) struct Manifest {
    pub(super) shards: u64,
    pub(super) rows_per_shard: u64,
    pub(super) row_bytes: u64,
    pub(super) total_rows: Option<u64>,
    /// What EngramSQL wrote; `None` in a manifest of others.
    pub(super) described: Option<Described>,
}

impl Manifest {
    /// The manifest of the store in `directory`, if it has one. One of ours must prove itself.
    pub(super) fn read(directory: &Path) -> Result<Option<Manifest>> {
        let path = directory.join(MANIFEST);
        if !path.exists() {
            return Ok(None);
        }
        FileStamp::of(&path).map_err(|e| SourceError::io(&path, e))?;
        let bytes = std::fs::read(&path).map_err(|e| SourceError::io(&path, e))?;
        let json = crate::source::checkpoint::parse_json(&path, &bytes)?;
        // Either member alone is enough: no flipped bit turns a manifest of ours into one of others.
        let ours = json.get(MEMBER).is_some() || json.get("blake3").is_some();
        let described = if ours {
            let (document, digest) = seal::open(&path, &bytes)?;
            Some(Described::read(directory, &path, &document, digest)?)
        } else {
            None
        };
        Ok(Some(Manifest::of_layout(&path, &json, described)?))
    }

    fn of_layout(path: &Path, json: &Value, described: Option<Described>) -> Result<Manifest, SourceError> {
        let bad = |detail: String| SourceError::BadJson { path: path.to_owned(), detail };
        let layout =
            json.get("layout").and_then(Value::as_object).ok_or_else(|| bad("it has no layout object".into()))?;
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
        Ok(Manifest {
            shards: need("shards")?,
            rows_per_shard: need("rows_per_shard")?,
            row_bytes,
            total_rows: field("total_rows")?,
            described,
        })
    }
}

/// Most shards of what EngramSQL builds.
pub(crate) const MOST_SHARDS: u64 = 100_000;

/// How many rows of how many bytes lie in how many files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoreLayout {
    /// Bytes per row.
    pub(crate) row_bytes: u64,
    /// Rows of every shard but a shorter last one.
    pub(crate) rows_per_shard: u64,
    /// Rows.
    pub(crate) rows: u64,
}

impl StoreLayout {
    /// Bytes of a badge, the notional group of rows of engramdb-python: as many whole rows as a page holds, at least one.
    const PAGE: u64 = 4096;

    /// Number of shards.
    pub(crate) fn shards(&self) -> u64 {
        self.rows.div_ceil(self.rows_per_shard)
    }

    /// Row ids of a shard.
    pub(crate) fn rows_of(&self, shard: u64) -> std::ops::Range<u64> {
        let first = shard * self.rows_per_shard;
        first..self.rows.min(first + self.rows_per_shard)
    }

    /// Bytes of a shard's file.
    pub(crate) fn bytes_of(&self, shard: u64) -> u64 {
        let rows = self.rows_of(shard);
        (rows.end - rows.start) * self.row_bytes
    }

    /// File name of a shard.
    pub(crate) fn file_name(shard: u64) -> String {
        format!("shard_{shard:03}.bin")
    }

    /// File name of its checksums while others are being built.
    pub(crate) fn sums_name(shard: u64) -> String {
        format!("shard_{shard:03}.sums")
    }

    /// The `layout` object, with the members that engramdb-python writes.
    pub(crate) fn to_json(self) -> Map<String, Value> {
        let badge_rows = (Self::PAGE / self.row_bytes).max(1);
        let members = [
            ("shards", self.shards()),
            ("rows_per_shard", self.rows_per_shard),
            ("width", self.row_bytes),
            ("elem_bytes", 1),
            ("badge_rows", badge_rows),
            ("badge_bytes", badge_rows * self.row_bytes),
            ("total_rows", self.rows),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}
