//! Rows by positional reads: for file systems that cannot be mapped, and as the reader others are compared with.

use super::{FileWatch, ReadError, ReadPlan, Reader, RowBytes, RowSink};
use crate::source::{Layout, Part};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Reads rows with one positional read per row and part, in file order, one open file per part at a time.
pub struct PositionalReader {
    watch: FileWatch,
    parts: Vec<Part>,
}

impl PositionalReader {
    /// A reader for `layout`; holds no file open between batches.
    pub fn open(layout: &Layout) -> Result<PositionalReader, ReadError> {
        Ok(PositionalReader { watch: FileWatch::new(&layout.files)?, parts: layout.parts.clone() })
    }
}

/// The file a part was last read from, and the bytes of the current row.
struct Cursor {
    open: Option<(usize, File)>,
    row: Vec<u8>,
}

impl Reader for PositionalReader {
    fn name(&self) -> &'static str {
        "positional"
    }

    fn check(&self) -> Result<(), ReadError> {
        self.watch.check(|| vec![true; self.watch.len()])
    }

    fn read(&self, plan: &ReadPlan<'_>, sink: RowSink<'_>) -> Result<(), ReadError> {
        self.watch.check(|| plan.touched_files())?;
        let mut order: Vec<usize> = (0..plan.ids().len()).collect();
        order.sort_unstable_by_key(|&position| plan.ids()[position]);
        let mut cursors: Vec<Cursor> =
            self.parts.iter().map(|part| Cursor { open: None, row: vec![0; part.width()] }).collect();
        for position in order {
            let id = plan.ids()[position] as u64;
            for (part, cursor) in self.parts.iter().zip(&mut cursors) {
                let extent = part.extent_of(id);
                let file = match &cursor.open {
                    Some((index, file)) if *index == extent.file => file,
                    _ => &cursor.open.insert((extent.file, self.watch.open(extent.file)?)).1,
                };
                let offset = extent.offset + (id - extent.first_row) * part.width() as u64;
                file.read_exact_at(&mut cursor.row, offset)
                    .map_err(|e| ReadError::io(self.watch.path(extent.file), e))?;
            }
            let scales = cursors.get(1).map_or(&[][..], |cursor| &cursor.row);
            sink(position, RowBytes { values: &cursors[0].row, scales });
        }
        // What was read is the table's only if the files did not change meanwhile.
        self.watch.check(|| plan.touched_files())
    }
}
