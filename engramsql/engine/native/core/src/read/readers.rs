//! The readers of one table, and the choice among them.

use super::{
    CodePath, DirectFiles, FileWatch, IoUringReader, MappedReader, PreadReader, ReadError, ReadPlan, Reader, RowSink,
    SequentialReader, Tally,
};
use crate::source::Layout;
use std::ops::Range;
use std::sync::Arc;

/// All ways to read one layout.
pub struct Readers {
    watch: Arc<FileWatch>,
    mapped: MappedReader,
    /// Takes every batch, by `ENGRAMSQL_READER`.
    forced: Option<Box<dyn Reader>>,
}

impl Readers {
    /// Opens the files of `layout`, each proven to be the one whose header or size was checked.
    pub fn open(layout: &Layout) -> Result<Readers, ReadError> {
        let forced = match std::env::var("ENGRAMSQL_READER").as_deref() {
            Err(_) | Ok("") => None,
            Ok(name) => match CodePath::from_name(name) {
                Some(path) => Some(path),
                None => return Err(ReadError::UnknownReader { name: name.to_owned() }),
            },
        };
        Readers::forced(layout, forced)
    }

    /// The same with every batch on one code path.
    pub(crate) fn forced(layout: &Layout, forced: Option<CodePath>) -> Result<Readers, ReadError> {
        let watch = Arc::new(FileWatch::new(&layout.files)?);
        let mapped = MappedReader::open(layout, watch.clone())?;
        let direct = || Arc::new(DirectFiles::look(watch.clone()));
        let forced: Option<Box<dyn Reader>> = match forced {
            None | Some(CodePath::Mapped) => None,
            Some(path @ CodePath::IoUring) => match IoUringReader::open(direct()) {
                Ok(reader) => Some(Box::new(reader)),
                Err(reason) => return Err(ReadError::ReaderUnavailable { path, reason }),
            },
            Some(CodePath::Pread) => Some(Box::new(PreadReader::open(direct()))),
            Some(CodePath::Sequential) => Some(Box::new(SequentialReader::open(direct()))),
        };
        Ok(Readers { watch, mapped, forced })
    }

    /// The code path of the next batch.
    pub fn path(&self) -> CodePath {
        self.reader().path()
    }

    fn reader(&self) -> &dyn Reader {
        self.forced.as_deref().unwrap_or(&self.mapped)
    }

    /// Reads every row of `plan` into `sink`; on an error none may be used.
    pub fn read(&self, plan: &ReadPlan<'_>, sink: &mut dyn RowSink) -> Result<(), ReadError> {
        self.watch.check(|| plan.touched_files())?;
        self.reader().read(plan, sink, &mut Tally::default())?;
        // What was read is the table's only if the files did not change meanwhile.
        self.watch.check(|| plan.touched_files())
    }

    /// An error if any file is no longer the one that was opened.
    pub fn check(&self) -> Result<(), ReadError> {
        self.watch.check(|| vec![true; self.watch.len()])
    }

    /// Says that the rows of `rows` will be read soon and in order; a hint without effect on results.
    pub fn announce(&self, rows: Range<u64>) {
        if self.path() == CodePath::Mapped {
            self.mapped.announce(rows);
        }
    }

    /// Bytes of an extent (file of the layout, offset, length) that the page cache holds, or `None` if unknown.
    pub fn resident_bytes(&self, file: usize, offset: u64, bytes: u64) -> Option<u64> {
        self.mapped.resident_bytes(file, offset, bytes)
    }
}
