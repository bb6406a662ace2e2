//! Where rows lie: files, shards and extents, and the arithmetic from a row id to bytes.

use super::stamp::FileStamp;
use std::path::{Path, PathBuf};

/// Rows of one shard in one file: `rows` rows back to back from `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Shard number.
    pub shard: u32,
    /// Index into [`Layout::files`].
    pub file: usize,
    /// First row id.
    pub first_row: u64,
    /// Rows.
    pub rows: u64,
    /// Byte offset of the first row in the file.
    pub offset: u64,
}

/// One part of every row: all of it, or its values, or its block scales.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    width: usize,
    extents: Vec<Extent>,
    /// Rows of every extent but a shorter last one; 0 if they differ.
    stride: u64,
    /// 2^64 / `stride`, rounded up, where a product with it finds the extent of every row; else 0.
    reciprocal: u64,
}

impl Part {
    /// A part of `width` bytes per row. `extents` lie by `first_row` without gaps, none empty.
    pub fn new(width: usize, extents: Vec<Extent>) -> Part {
        let stride = match &extents[..] {
            [] => 0,
            [first, rest @ ..] => {
                let even = rest.split_last().is_none_or(|(last, between)| {
                    between.iter().all(|extent| extent.rows == first.rows) && last.rows <= first.rows
                });
                if even { first.rows } else { 0 }
            }
        };
        let rows = extents.last().map_or(0, |last| last.first_row + last.rows);
        // Rounding adds less than `stride` to 2^64, and so less than rows * stride / 2^64 / stride < 1 / stride to a quotient:
        // too little to reach the next whole number.
        let exact = stride > 1 && rows.checked_mul(stride).is_some();
        let reciprocal = if exact { u64::MAX / stride + 1 } else { 0 };
        Part { width, extents, stride, reciprocal }
    }

    /// Bytes per row in this part.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Its extents, by `first_row`.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The extent that holds row `id`, which is in range.
    #[inline(always)]
    pub fn extent_of(&self, id: u64) -> &Extent {
        let index = match (self.extents.len(), self.reciprocal) {
            (1, _) => 0,
            (_, 0) => match id.checked_div(self.stride) {
                Some(index) => index as usize,
                None => self.extents.partition_point(|extent| extent.first_row <= id) - 1,
            },
            (_, reciprocal) => ((u128::from(id) * u128::from(reciprocal)) >> 64) as usize,
        };
        &self.extents[index]
    }

    /// Rows per shard, if all shards but the last agree.
    fn rows_per_shard(&self) -> Option<u64> {
        (self.stride > 0).then_some(self.stride)
    }
}

/// Where the rows of a table lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Files, each once, as they were when their headers or sizes were checked.
    pub files: Vec<(PathBuf, FileStamp)>,
    /// Number of rows.
    pub rows: u64,
    /// One part, or two: values, then block scales. A fetched row is its parts in this order.
    pub parts: Vec<Part>,
}

impl Layout {
    /// Bytes of one row as fetched: all parts.
    pub fn row_bytes(&self) -> usize {
        self.parts.iter().map(Part::width).sum()
    }

    /// Rows per shard, if all shards but the last agree.
    pub fn rows_per_shard(&self) -> Option<u64> {
        self.parts.first()?.rows_per_shard()
    }

    /// Number of shards.
    pub fn shard_count(&self) -> u32 {
        self.parts.first().and_then(|part| part.extents.last()).map_or(0, |extent| extent.shard + 1)
    }

    /// Per file, whether any row of `rows` lies in it.
    pub fn touched_files(&self, rows: std::ops::Range<u64>) -> Vec<bool> {
        let mut touched = vec![false; self.files.len()];
        for extent in self.parts.iter().flat_map(Part::extents) {
            if extent.first_row < rows.end && rows.start < extent.first_row + extent.rows {
                touched[extent.file] = true;
            }
        }
        touched
    }

    /// BLAKE3, 64 hex digits, over what tells these files from others without reading them: names without directories,
    /// sizes, modification times, and where the rows lie in them.
    pub fn identity(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |numbers: &[u64], name: &[u8]| {
            for number in numbers {
                hasher.update(&number.to_le_bytes());
            }
            hasher.update(name);
        };
        add(&[self.rows], &[]);
        for part in &self.parts {
            add(&[part.width() as u64], &[]);
            for extent in part.extents() {
                add(&[extent.shard.into(), extent.file as u64, extent.first_row, extent.rows, extent.offset], &[]);
            }
        }
        for (path, stamp) in &self.files {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            let (seconds, nanoseconds) = stamp.modified();
            add(&[name.len() as u64, stamp.bytes(), seconds as u64, nanoseconds as u64], name);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.rows * self.row_bytes() as u64
    }
}

/// Collects the extents of one table from shards given in order.
#[derive(Default)]
pub(super) struct LayoutBuilder {
    files: Vec<(PathBuf, FileStamp)>,
    parts: Vec<(usize, Vec<Extent>)>,
}

impl LayoutBuilder {
    /// Begins the next part: all of every row, or its values, or its block scales.
    pub(super) fn part(&mut self, width: usize) {
        self.parts.push((width, Vec::new()));
    }

    /// Adds `rows` rows of shard `shard` to the part begun last. Empty shards leave no extent.
    pub(super) fn push(&mut self, shard: u32, file: (&Path, FileStamp), offset: u64, rows: u64) {
        let Some((_, extents)) = self.parts.last_mut().filter(|_| rows > 0) else { return };
        let index = match self.files.iter().position(|(known, _)| known == file.0) {
            Some(index) => index,
            None => {
                self.files.push((file.0.to_owned(), file.1));
                self.files.len() - 1
            }
        };
        let first_row = extents.last().map_or(0, |last| last.first_row + last.rows);
        extents.push(Extent { shard, file: index, first_row, rows, offset });
    }

    /// The layout. All parts have the same rows; the callers checked that against the headers.
    pub(super) fn finish(self) -> Layout {
        let parts: Vec<Part> = self.parts.into_iter().map(|(width, extents)| Part::new(width, extents)).collect();
        let rows = parts.first().and_then(|part| part.extents().last()).map_or(0, |last| last.first_row + last.rows);
        Layout { files: self.files, rows, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_in_its_extent() {
        // Extents of equal size, few and many rows, and more rows than the product can tell apart.
        for (rows, count) in [(1, 3), (2, 5), (3, 7), (2_500_012, 128), ((1 << 32) - 5, 3), (1 << 40, 4)] {
            let extents = (0..count)
                .map(|shard| Extent { shard, file: 0, first_row: u64::from(shard) * rows, rows, offset: 0 })
                .collect();
            let part = Part::new(1, extents);
            for shard in 0..count {
                let first = u64::from(shard) * rows;
                for id in [first, first + rows / 3, first + rows - 1] {
                    assert_eq!(part.extent_of(id).shard, shard, "row {id} of {count} x {rows}");
                }
            }
        }
    }
}
