//! The readers of one table, and the choice among them.

use super::{CodePath, FileWatch, MappedReader, PositionalReader, ReadError, ReadPlan, Reader, RowSink, Tally};
use crate::settings;
use crate::source::Layout;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// All ways to read one layout.
pub struct Readers {
    watch: Arc<FileWatch>,
    mapped: MappedReader,
    positional: PositionalReader,
    /// Every batch takes this path.
    forced: Option<CodePath>,
    /// Whether the last rows came from the page cache.
    in_memory: AtomicBool,
}

impl Readers {
    /// Opens the files of `layout`, each proven to be the one whose header or size was checked.
    pub fn open(layout: &Layout) -> Result<Readers, ReadError> {
        settings::from_environment()?;
        Readers::forced(layout, None)
    }

    /// The same with every batch on one code path.
    pub(crate) fn forced(layout: &Layout, forced: Option<CodePath>) -> Result<Readers, ReadError> {
        let watch = Arc::new(FileWatch::new(&layout.files)?);
        let mapped = MappedReader::open(layout, watch.clone())?;
        let positional = PositionalReader::open(layout, watch.clone());
        Ok(Readers { watch, mapped, positional, forced, in_memory: AtomicBool::new(false) })
    }

    fn forced_path(&self) -> Option<CodePath> {
        self.forced.or_else(settings::reader)
    }

    /// The code path of the next batch.
    pub fn path(&self) -> CodePath {
        self.forced_path().unwrap_or(CodePath::Mapped)
    }

    /// Whether the last rows came from memory.
    pub fn in_memory(&self) -> bool {
        self.path() == CodePath::Mapped && self.in_memory.load(Ordering::Relaxed)
    }

    /// Reads every row of `plan` into `sink`; on an error none may be used.
    pub fn read(&self, plan: &ReadPlan<'_>, sink: &mut dyn RowSink) -> Result<(), ReadError> {
        self.watch.check(|| plan.touched_files())?;
        let reader: &dyn Reader = match self.path() {
            CodePath::Mapped => &self.mapped,
            _ => &self.positional,
        };
        reader.read(plan, sink, &mut Tally::default())?;
        self.in_memory.store(true, Ordering::Relaxed);
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
