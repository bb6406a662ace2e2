//! Rows from memory maps: the fast path while the page cache holds the rows, correct always.

mod bus_error;
mod map;

use super::{FileWatch, Locator, ReadError, ReadPlan, Reader, RowBytes, RowSink};
use crate::source::Layout;
use std::fs::File;
use std::path::Path;

/// Rows whose bytes are located and prefetched together before the first is used; 32 is enough to cover a cache miss
/// and small enough to stay in registers and L1.
const GROUP: usize = 32;

/// Reads rows through private read-only maps of the table's files. Holds no file descriptors.
pub struct MappedReader {
    watch: FileWatch,
    maps: Vec<map::FileMap>,
    parts: Vec<MappedPart>,
}

struct MappedPart {
    width: usize,
    locator: Locator,
}

impl MappedReader {
    /// Maps every file of `layout`.
    pub fn open(layout: &Layout) -> Result<MappedReader, ReadError> {
        let watch = FileWatch::new(&layout.files)?;
        let maps = layout.files.iter().map(|path| map_file(path)).collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<_> =
            layout.parts.iter().map(|part| MappedPart { width: part.width, locator: Locator::new(part) }).collect();
        // Every extent is proven to lie inside its map once, here; afterwards slicing cannot fail.
        for part in &parts {
            for segment in part.locator.segments() {
                let end = segment.offset + segment.rows * part.width as u64;
                let (path, _) = &watch.files()[segment.file];
                if (maps[segment.file].bytes().len() as u64) < end {
                    let missing = end - maps[segment.file].bytes().len() as u64;
                    let what = format!("was truncated ({missing} bytes missing)");
                    return Err(ReadError::FileChanged { path: path.clone(), what });
                }
            }
        }
        Ok(MappedReader { watch, maps, parts })
    }

    /// An error if a page of a file that `plan` reads from could not be read: what the sink got is then not the row. A map
    /// that failed once has pages that are not the file's, so it stays unusable.
    fn check_faults(&self, plan: &ReadPlan<'_>) -> Result<(), ReadError> {
        if bus_error::count() == 0 {
            return Ok(());
        }
        let failed = |(map, touched): (&map::FileMap, bool)| touched && map.failed();
        match self.maps.iter().zip(plan.touched_files()).position(failed) {
            None => Ok(()),
            Some(index) => {
                // Usually the file was shortened, which the file itself tells better.
                self.watch.check_file(index)?;
                let (path, _) = &self.watch.files()[index];
                Err(ReadError::io(path, std::io::Error::other("a page of the file could not be read")))
            }
        }
    }

    #[inline]
    fn row(&self, part: &MappedPart, id: u64) -> &[u8] {
        let segment = &part.locator.segments()[part.locator.segment(id)];
        let start = (segment.offset + (id - segment.first_row) * part.width as u64) as usize;
        &self.maps[segment.file].bytes()[start..start + part.width]
    }
}

impl Reader for MappedReader {
    fn name(&self) -> &'static str {
        "mapped"
    }

    fn read(&self, plan: &ReadPlan<'_>, sink: RowSink<'_>) -> Result<(), ReadError> {
        self.watch.check(|| plan.touched_files())?;
        let empty: &[u8] = &[];
        let mut group = [RowBytes { values: empty, scales: empty }; GROUP];
        for (index, ids) in plan.ids().chunks(GROUP).enumerate() {
            for (row, &id) in group.iter_mut().zip(ids) {
                row.values = self.row(&self.parts[0], id as u64);
                map::prefetch(row.values);
                if let Some(scales) = self.parts.get(1) {
                    row.scales = self.row(scales, id as u64);
                    map::prefetch(row.scales);
                }
            }
            for (offset, row) in group[..ids.len()].iter().enumerate() {
                sink(index * GROUP + offset, *row);
            }
        }
        self.check_faults(plan)
    }

    fn resident_bytes(&self, file: usize, offset: u64, bytes: u64) -> Option<u64> {
        self.maps[file].resident_bytes(offset, bytes)
    }
}

fn map_file(path: &Path) -> Result<map::FileMap, ReadError> {
    let io = |e| ReadError::io(path, e);
    map::FileMap::open(&File::open(path).map_err(io)?).map_err(io)
}
