//! Row width and rows per shard, from whoever says so.

use super::manifest::Manifest;
use crate::catalog::RegisterOptions;
use crate::source::error::SourceError;
use std::path::Path;

/// Widest row, far above any that exists: keeps row ids x width within 64 bits.
const MAX_WIDTH: u64 = 1 << 24;

/// Row width and rows per shard, from whoever says so.
pub(super) struct Geometry {
    pub(super) row_bytes: u64,
    pub(super) rows_per_shard: Option<u64>,
    pub(super) total_rows: Option<u64>,
}

impl Geometry {
    pub(super) fn resolve(
        path: &Path,
        manifest: Option<&Manifest>,
        options: &RegisterOptions,
    ) -> Result<Geometry, SourceError> {
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
