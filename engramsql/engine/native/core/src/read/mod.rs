//! Reading rows: a plan of what to read, and the readers that carry it out.
//!
//! A batch is planned as a whole: its ids are proven to be in range, its files proven to be those that were opened. Then
//! [`Readers`] chooses the [`CodePath`] and the [`Reader`] hands every row to a [`RowSink`].

mod direct;
mod files;
mod mapped;
mod path;
mod readers;
mod sink;
mod stats;

pub(crate) use direct::AlignedMemory;
pub use direct::{DirectFiles, IoUringReader, PreadReader, RowStream, SequentialReader, TakeBytes, Unavailable};
pub(crate) use files::FileWatch;
pub use mapped::MappedReader;
pub(crate) use mapped::{FileMap, prefetch};
pub use path::CodePath;
pub use readers::{Place, PlannedRead, Readers};
pub use sink::{Row, RowSink};
pub use stats::{PathStats, Stats};

use crate::cache::CacheError;
use crate::source::{Extent, FileStamp, Layout, Part};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a read failed.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system failed to open, map or read a file.
    #[error("reading '{}' failed: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A file that is no longer the one whose header was read.
    #[error("'{}' {what} since the table was opened; no row was returned, open the database again", path.display())]
    FileChanged {
        /// The file.
        path: PathBuf,
        /// "was replaced", "was truncated (N bytes missing)" or "has disappeared".
        what: String,
    },
    /// A setting names no reader.
    #[error("no reader '{name}' (ENGRAMSQL_READER, engram_reader); known readers: auto, {known}", known = CodePath::READERS.map(CodePath::name).join(", "))]
    UnknownReader {
        /// The value.
        name: String,
    },
    /// A setting names a reader that cannot read this table here.
    #[error(
        "reader '{path}' (ENGRAMSQL_READER, engram_reader) is not available here: {reason}; unset it or choose another"
    )]
    ReaderUnavailable {
        /// The reader.
        path: CodePath,
        /// Why.
        reason: Unavailable,
    },
    /// The RAM budget that the environment asks for is no size.
    #[error(transparent)]
    RamBudget(#[from] CacheError),
}

impl ReadError {
    pub(crate) fn io(path: &Path, error: std::io::Error) -> ReadError {
        ReadError::Io { path: path.to_owned(), error }
    }
}

/// A batch to read: row ids that are known to be in range.
#[derive(Debug, Clone, Copy)]
pub struct ReadPlan<'a> {
    layout: &'a Layout,
    ids: &'a [i64],
}

impl<'a> ReadPlan<'a> {
    /// Plans a batch, or returns the first id that is not in `0..layout.rows`.
    pub fn new(layout: &'a Layout, ids: &'a [i64]) -> Result<ReadPlan<'a>, i64> {
        // As unsigned, a negative id is beyond any row count.
        let outside = |id: i64| id as u64 >= layout.rows;
        // No early exit: this loop vectorises, and ids are rarely wrong.
        if ids.iter().fold(false, |any, &id| any | outside(id))
            && let Some(&id) = ids.iter().find(|&&id| outside(id))
        {
            return Err(id);
        }
        Ok(ReadPlan { layout, ids })
    }

    /// The plan of a batch whose ids are known to be in range.
    ///
    /// # Panics
    /// In debug builds, if one is not. A reader stays memory safe all the same.
    pub(crate) fn proven(layout: &'a Layout, ids: &'a [i64]) -> ReadPlan<'a> {
        debug_assert!(ReadPlan::new(layout, ids).is_ok());
        ReadPlan { layout, ids }
    }

    /// The row ids, in the order asked for.
    pub fn ids(&self) -> &'a [i64] {
        self.ids
    }

    /// From the first row to the last, of a plan in file order.
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        match self.ids {
            [] => 0..0,
            [first, ..] => *first as u64..self.ids[self.ids.len() - 1] as u64 + 1,
        }
    }

    /// For each file of the layout, whether the batch reads from it.
    pub(crate) fn touched_files(&self) -> Vec<bool> {
        let mut touched = vec![false; self.layout.files.len()];
        for part in &self.layout.parts {
            for &id in self.ids {
                touched[part.extent_of(id as u64).file] = true;
            }
        }
        touched
    }

    /// The layout they address.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }
}

/// Carries out plans over the files of one layout.
///
/// Whoever calls proves before and after a batch that the files are still those of the layout (`FileWatch`); a reader
/// only has to fail where it did not get every byte of every row.
pub trait Reader: Send + Sync {
    /// The code path, as settings and reports name it.
    fn path(&self) -> CodePath;
    /// Reads every row of `plan`, which was made for this reader's layout, into `sink` and counts what that took; on an
    /// error some rows may have been handed over and none may be used.
    fn read(&self, plan: &ReadPlan<'_>, sink: &mut dyn RowSink, tally: &mut Tally) -> Result<(), ReadError>;
}

/// What a batch took from the disk or the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Reads: system calls or submissions; for mapped files, parts of rows.
    pub reads: u64,
    /// Bytes that these reads brought.
    pub bytes_read: u64,
}

#[cfg(test)]
mod tests;

/// Hands the bytes of the file at `path` to `take` in order, as (offset, bytes), at the disk's rate and past every cache.
/// What was taken counts only once this has returned without an error.
pub fn stream_file<E: From<ReadError>>(path: &Path, take: &mut TakeBytes<'_, E>) -> Result<(), E> {
    let stamp = FileStamp::of(path).map_err(|error| ReadError::io(path, error))?;
    let bytes = stamp.bytes();
    let extent = Extent { shard: 0, file: 0, first_row: 0, rows: bytes, offset: 0 };
    let extents = if bytes > 0 { vec![extent] } else { Vec::new() };
    let layout = Layout { files: vec![(path.to_owned(), stamp)], rows: bytes, parts: vec![Part::new(1, extents)] };
    let watch = Arc::new(FileWatch::new(&layout.files)?);
    RowStream::open(Arc::new(DirectFiles::look(watch.clone()))).read(&layout, 0..bytes, take)?;
    Ok(watch.prove(&[true])?)
}
