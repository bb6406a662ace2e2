//! A table: rows that lie somewhere, a spec that addresses them, a format that decodes them.

use crate::error::Result;
use crate::format::ValueFormat;
use crate::spec::Spec;

/// One row of `engram_shards()`: an extent of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardInfo {
    /// Shard number, 0-based; a shard whose rows lie in two extents (values, scales) appears twice.
    pub shard: u32,
    /// File that holds the extent.
    pub file: String,
    /// First row id of the shard.
    pub first_row: u64,
    /// Rows of the shard.
    pub rows: u64,
    /// Byte offset of the extent in the file.
    pub offset: u64,
    /// Bytes of the extent.
    pub bytes: u64,
    /// Whether the file is there now and long enough.
    pub present: bool,
    /// Bytes of the extent in the page cache, or `None` where the system does not say.
    pub resident_bytes: Option<u64>,
}

/// One row of `engram_heads()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadInfo {
    /// Head, 0-based.
    pub head: u32,
    /// n-gram order: 2 for bigrams, ...
    pub ngram_order: u32,
    /// Head size: buckets of this head.
    pub size: u64,
    /// First row id of this head (its offset).
    pub first_row: u64,
    /// Rows of this head.
    pub rows: u64,
}

/// An open table. Cheap to share (`Arc`), safe to use from many threads.
pub struct Table {
    _p: (),
}

impl Table {
    /// Catalog name, or the path it was opened from.
    pub fn name(&self) -> &str {
        todo!()
    }
    /// Number of rows; valid row ids are `0..rows`.
    pub fn rows(&self) -> u64 {
        todo!()
    }
    /// Bytes of one row as `fetch` returns it (all extents, in order).
    pub fn row_bytes(&self) -> usize {
        todo!()
    }
    /// Values per row, if the format is known.
    pub fn dim(&self) -> Option<usize> {
        todo!()
    }
    /// Value format, if known.
    pub fn format(&self) -> Option<&ValueFormat> {
        todo!()
    }
    /// Hash spec, if known.
    pub fn spec(&self) -> Option<&Spec> {
        todo!()
    }
    /// Decoder layer (0-based), if the source has layers.
    pub fn layer(&self) -> Option<u32> {
        todo!()
    }
    /// Number of shards.
    pub fn shard_count(&self) -> u32 {
        todo!()
    }
    /// Bytes of all rows on disk.
    pub fn bytes(&self) -> u64 {
        todo!()
    }
    /// The source path.
    pub fn source(&self) -> &std::path::Path {
        todo!()
    }
    /// One line per extent.
    pub fn shards(&self) -> Vec<ShardInfo> {
        todo!()
    }
    /// One line per head; empty without a spec.
    pub fn heads(&self) -> Vec<HeadInfo> {
        todo!()
    }
    /// Head of each row id, or `None` for rows that no head reaches (padding) and tables without a spec.
    pub fn head_of(&self, _rowid: u64) -> Option<u32> {
        todo!()
    }
    /// Every id is in `0..rows`, or the error names the first that is not.
    pub fn check_ids(&self, _ids: &[i64]) -> Result<()> {
        todo!()
    }
    /// Row bytes of `ids` in order, duplicates kept: `out.len() == ids.len() * row_bytes()`.
    pub fn fetch_into(&self, _ids: &[i64], _out: &mut [u8]) -> Result<()> {
        todo!()
    }
    /// Decoded rows of `ids` in order: `out.len() == ids.len() * dim`. The exact product value x scale in float32.
    pub fn vectors_into(&self, _ids: &[i64], _out: &mut [f32]) -> Result<()> {
        todo!()
    }
    /// The same rounded once to bfloat16 (nearest, ties to even), as bit patterns: what the model consumes.
    pub fn vectors_bf16_into(&self, _ids: &[i64], _out: &mut [u16]) -> Result<()> {
        todo!()
    }
    /// Row ids of one sequence (tokens x heads, token-major). `history`: tokens before, newest last.
    pub fn rowids(&self, _tokens: &[i64], _history: &[i64]) -> Result<Vec<i64>> {
        todo!()
    }
}
