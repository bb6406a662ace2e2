//! Where rows lie: files, shards and extents, and the arithmetic from a row id to bytes.

use std::path::PathBuf;

/// Rows of one shard in one file: `rows` rows back to back from `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
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

/// One extent of every row: all of it, or its values, or its block scales.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Bytes per row in this part.
    pub width: usize,
    /// Segments by `first_row`, without gaps, none empty.
    pub segments: Vec<Segment>,
}

impl Part {
    /// Rows of every segment but the last (which may be shorter), or `None` if they differ.
    fn uniform_rows(&self) -> Option<u64> {
        let (last, rest) = self.segments.split_last()?;
        let rows = rest.first().unwrap_or(last).rows;
        (rest.iter().all(|segment| segment.rows == rows) && last.rows <= rows).then_some(rows)
    }
}

/// Where the rows of a table lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Files, each once.
    pub files: Vec<PathBuf>,
    /// Number of rows.
    pub rows: u64,
    /// One part, or two: values, then block scales. A fetched row is its parts in this order.
    pub parts: Vec<Part>,
}

impl Layout {
    /// Bytes of one row as fetched: all parts.
    pub fn row_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.width).sum()
    }

    /// Rows per shard, if all shards but the last agree.
    pub fn rows_per_shard(&self) -> Option<u64> {
        self.parts.first()?.uniform_rows()
    }

    /// Number of shards.
    pub fn shard_count(&self) -> u32 {
        self.parts.first().and_then(|part| part.segments.last()).map_or(0, |segment| segment.shard + 1)
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.rows * self.row_bytes() as u64
    }
}

/// Collects segments of one table from shards given in order.
#[derive(Default)]
pub(super) struct LayoutBuilder {
    files: Vec<PathBuf>,
    parts: Vec<Part>,
}

impl LayoutBuilder {
    /// Adds `rows` rows of shard `shard` to part `part` (created with `width` at its first shard). Empty shards leave no segment.
    pub(super) fn push(&mut self, part: usize, width: usize, shard: u32, file: PathBuf, offset: u64, rows: u64) {
        if self.parts.len() == part {
            self.parts.push(Part { width, segments: Vec::new() });
        }
        if rows == 0 {
            return;
        }
        let file = match self.files.iter().position(|known| *known == file) {
            Some(index) => index,
            None => {
                self.files.push(file);
                self.files.len() - 1
            }
        };
        let segments = &mut self.parts[part].segments;
        let first_row = segments.last().map_or(0, |last| last.first_row + last.rows);
        segments.push(Segment { shard, file, first_row, rows, offset });
    }

    /// The layout. All parts have the same rows; the callers checked that against the headers.
    pub(super) fn finish(self) -> Layout {
        let rows =
            self.parts.first().and_then(|part| part.segments.last()).map_or(0, |last| last.first_row + last.rows);
        Layout { files: self.files, rows, parts: self.parts }
    }
}
