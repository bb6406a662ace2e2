//! Rows by positional reads: for file systems that cannot be mapped, and as the reader others are compared with.

use super::{CodePath, FileWatch, ReadError, ReadPlan, Reader, Row, RowSink, Tally};
use crate::source::{Layout, Part};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Reads rows with one positional read per row and part, in file order, one open file per part at a time.
pub struct PositionalReader {
    watch: Arc<FileWatch>,
    parts: Vec<Part>,
}

impl PositionalReader {
    /// A reader for `layout`; holds no file open between batches.
    pub fn open(layout: &Layout, watch: Arc<FileWatch>) -> PositionalReader {
        PositionalReader { watch, parts: layout.parts.clone() }
    }
}

/// The file a part was last read from, and the bytes of the current row.
struct Cursor {
    open: Option<(usize, File)>,
    row: Vec<u8>,
}

impl Reader for PositionalReader {
    fn path(&self) -> CodePath {
        CodePath::Pread
    }

    fn read(&self, plan: &ReadPlan<'_>, sink: &mut dyn RowSink, tally: &mut Tally) -> Result<(), ReadError> {
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
                tally.reads += 1;
                tally.bytes_read += part.width() as u64;
            }
            let scales = cursors.get(1).map_or(&[][..], |cursor| &cursor.row);
            sink.take(&[Row { position, values: &cursors[0].row, scales }]);
        }
        Ok(())
    }
}
