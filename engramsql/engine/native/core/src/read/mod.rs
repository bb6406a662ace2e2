//! Reading rows: a plan of what to read, and the readers that carry it out.
//!
//! A batch is planned as a whole: its ids are proven to be in range, its files proven to be those that were opened. A
//! [`Reader`] then hands every row to a sink. Readers: [`MappedReader`] (memory maps, the default) and
//! [`PositionalReader`] (plain reads, for file systems that cannot be mapped; `ENGRAMSQL_READER=positional` forces it).

mod files;
mod mapped;
mod positional;

pub(crate) use files::FileWatch;
pub use mapped::MappedReader;
pub use positional::PositionalReader;

use crate::source::Layout;
use std::path::{Path, PathBuf};

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
    /// `ENGRAMSQL_READER` names no reader.
    #[error("ENGRAMSQL_READER is '{name}'; known readers: mapped, positional")]
    UnknownReader {
        /// The value.
        name: String,
    },
}

impl ReadError {
    pub(crate) fn io(path: &Path, error: std::io::Error) -> ReadError {
        ReadError::Io { path: path.to_owned(), error }
    }
}

/// One row as it lies in its files.
#[derive(Debug, Clone, Copy)]
pub struct RowBytes<'a> {
    /// The first part: the whole row, or its values.
    pub values: &'a [u8],
    /// The second part: block scales; empty for tables of one part.
    pub scales: &'a [u8],
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
        match ids.iter().find(|&&id| id as u64 >= layout.rows) {
            Some(&id) => Err(id),
            None => Ok(ReadPlan { layout, ids }),
        }
    }

    /// The row ids, in the order asked for.
    pub fn ids(&self) -> &'a [i64] {
        self.ids
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

/// Receives the rows of a plan: position in the batch, bytes. Every position comes exactly once, in any order.
pub type RowSink<'a> = &'a mut dyn FnMut(usize, RowBytes<'_>);

/// Carries out plans over the files of one layout.
pub trait Reader: Send + Sync {
    /// Name of the code path, as reports show it.
    fn name(&self) -> &'static str;
    /// Reads every row of `plan`, which was made for this reader's layout, into `sink`; on an error some rows may have
    /// been handed over and none may be used.
    fn read(&self, plan: &ReadPlan<'_>, sink: RowSink<'_>) -> Result<(), ReadError>;
    /// An error if any file is no longer the one that was opened.
    fn check(&self) -> Result<(), ReadError>;
    /// Says that the rows of `rows` will be read soon and in order; a hint without effect on results.
    fn announce(&self, _rows: std::ops::Range<u64>) {}
    /// Bytes of an extent (file of the layout, offset, length) that the page cache holds, or `None` if unknown.
    fn resident_bytes(&self, _file: usize, _offset: u64, _bytes: u64) -> Option<u64> {
        None
    }
}

/// The reader for `layout`: mapped unless `ENGRAMSQL_READER` says otherwise.
pub fn reader_for(layout: &Layout) -> Result<Box<dyn Reader>, ReadError> {
    match std::env::var("ENGRAMSQL_READER").as_deref() {
        Ok("positional") => Ok(Box::new(PositionalReader::open(layout)?)),
        Ok("mapped" | "") | Err(_) => Ok(Box::new(MappedReader::open(layout)?)),
        Ok(name) => Err(ReadError::UnknownReader { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests;
