//! Where the rows of a table lie, as `engram_shards()` reports it.

use super::ProbeError;
use std::path::{Path, PathBuf};

/// One extent: consecutive rows, or one part of them, in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeExtent {
    /// The file.
    pub file: PathBuf,
    /// Shard; the extents of one shard are the parts of its rows, in order.
    pub shard: u32,
    /// First row id.
    pub first_row: u64,
    /// Rows.
    pub rows: u64,
    /// Byte offset of the extent in the file.
    pub offset: u64,
    /// Bytes of the extent: rows x width of the part.
    pub bytes: u64,
}

/// One part of every row: a width, and the extents in row order.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) width: usize,
    /// (first row, rows, file, offset).
    extents: Vec<(u64, u64, usize, u64)>,
}

impl Part {
    /// (file, offset) of a row that exists.
    #[inline]
    pub(super) fn address(&self, row: u64) -> (usize, u64) {
        // A division finds it where shards are even; else the search does.
        let guess = (row / self.extents[0].1) as usize;
        let holds = |&(first, rows, _, _): &(u64, u64, usize, u64)| row >= first && row - first < rows;
        let extent = match self.extents.get(guess).filter(|extent| holds(extent)) {
            Some(extent) => extent,
            None => &self.extents[self.extents.partition_point(|extent| extent.0 <= row) - 1],
        };
        (extent.2, extent.3 + (row - extent.0) * self.width as u64)
    }
}

/// All extents of a table, checked to hold every row in full.
#[derive(Debug)]
pub struct Extents {
    pub(super) files: Vec<PathBuf>,
    pub(super) parts: Vec<Part>,
    rows: u64,
}

impl Extents {
    /// Sorts extents into the parts of rows.
    ///
    /// # Errors
    /// No rows, extents that leave a row out, or extents whose bytes are no whole rows.
    pub fn new(extents: &[ProbeExtent]) -> Result<Extents, ProbeError> {
        let mut files: Vec<PathBuf> = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        let mut seen = std::collections::HashMap::new();
        let mut ordered: Vec<&ProbeExtent> = extents.iter().collect();
        // Stable: parts of one shard keep their order.
        ordered.sort_by_key(|extent| extent.first_row);
        for extent in ordered {
            let whole = extent.bytes.checked_div(extent.rows).filter(|width| width * extent.rows == extent.bytes);
            let Some(width) = whole.filter(|&width| width > 0) else {
                let file = extent.file.display();
                let what = format!("{} bytes of '{file}' are not {} whole rows", extent.bytes, extent.rows);
                return Err(ProbeError::argument(what));
            };
            let file = files.iter().position(|file| *file == extent.file).unwrap_or_else(|| {
                files.push(extent.file.clone());
                files.len() - 1
            });
            let part: &mut usize = seen.entry(extent.shard).or_default();
            if *part == parts.len() {
                parts.push(Part { width: width as usize, extents: Vec::new() });
            }
            let entry = (extent.first_row, extent.rows, file, extent.offset);
            parts[*part].extents.push(entry);
            if parts[*part].width as u64 != width {
                let what = format!("shard {} has rows of {width} bytes, others have not", extent.shard);
                return Err(ProbeError::argument(what));
            }
            *part += 1;
        }
        let mut totals = parts.iter().map(|part| {
            part.extents.iter().try_fold(0, |next, &(first, rows, _, _)| (first == next).then_some(next + rows))
        });
        let rows = match totals.next() {
            Some(Some(rows)) if totals.all(|total| total == Some(rows)) => rows,
            Some(_) => return Err(ProbeError::argument("extents leave rows out or overlap")),
            None => return Err(ProbeError::argument("a table without rows cannot be probed")),
        };
        Ok(Extents { files, parts, rows })
    }

    /// Rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of one row, all parts.
    pub fn row_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.width).sum()
    }

    /// The files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    /// (file, offset, bytes) of every extent, in file order.
    pub(super) fn ranges(&self) -> Vec<(usize, u64, u64)> {
        let all = self.parts.iter().flat_map(|part| {
            part.extents.iter().map(|&(_, rows, file, offset)| (file, offset, rows * part.width as u64))
        });
        let mut ranges: Vec<_> = all.collect();
        ranges.sort_unstable();
        ranges
    }

    /// Refuses ids outside `0..rows`, and an output that does not hold their rows.
    pub(super) fn check(&self, ids: &[i64], out: &[u8]) -> Result<(), ProbeError> {
        if let Some(id) = ids.iter().find(|&&id| id as u64 >= self.rows) {
            return Err(ProbeError::argument(format!("row id {id} is out of range: the table has {} rows", self.rows)));
        }
        let expected = ids.len() * self.row_bytes();
        if out.len() != expected {
            let what = format!("output holds {} bytes, {} rows need {expected}", out.len(), ids.len());
            return Err(ProbeError::argument(what));
        }
        Ok(())
    }
}
