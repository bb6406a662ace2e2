//! Rows from memory maps: the fast path while the page cache holds the rows, correct always.

mod bus_error;
mod map;

use super::{CodePath, FileWatch, ReadError, ReadPlan, Reader, Row, RowSink, Tally};
use crate::source::{Layout, Part};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Rows whose bytes are located and prefetched together before the first is used; 32 is enough to cover a cache miss
/// and small enough to stay in registers and L1.
const GROUP: usize = 32;

/// Rows that are announced to the disk ahead of the one that is used, while rows come from there: enough reads
/// outstanding to fill it (192 gave 11-12 us a row where waiting for one page after the other gave 62-106).
const AHEAD: usize = 192;
/// A row that takes longer, on average over a group, came from the disk: from memory it takes 0.03 to 0.1 us, from the
/// fastest disk, all reads announced, about 10.
const FROM_DISK: Duration = Duration::from_micros(3);

/// Reads rows through read-only maps of the table's files. Holds no descriptors of the files.
pub struct MappedReader {
    watch: Arc<FileWatch>,
    maps: Vec<map::FileMap>,
    parts: Vec<Part>,
    /// Whether the last rows came from the disk. Only decides about hints.
    cold: AtomicBool,
}

impl MappedReader {
    /// Maps every file of `layout`, each proven to be the one whose header or size was checked.
    pub fn open(layout: &Layout, watch: Arc<FileWatch>) -> Result<MappedReader, ReadError> {
        let map = |index| map::FileMap::open(&watch.open(index)?).map_err(|e| ReadError::io(watch.path(index), e));
        let maps = (0..watch.len()).map(map).collect::<Result<Vec<_>, ReadError>>()?;
        // Every extent is proven to lie inside its map once, here; afterwards slicing cannot fail.
        for part in &layout.parts {
            for extent in part.extents() {
                let end = extent.offset + extent.rows * part.width() as u64;
                let mapped = maps[extent.file].bytes().len() as u64;
                if mapped < end {
                    let what = format!("was truncated ({} bytes missing)", end - mapped);
                    return Err(ReadError::FileChanged { path: watch.path(extent.file).to_owned(), what });
                }
            }
        }
        // Cold until a group shows otherwise: announcing 32 rows in vain costs less than waiting for one.
        Ok(MappedReader { watch, maps, parts: layout.parts.clone(), cold: AtomicBool::new(true) })
    }

    #[inline]
    fn row(&self, part: &Part, id: u64) -> &[u8] {
        let extent = part.extent_of(id);
        let start = (extent.offset + (id - extent.first_row) * part.width() as u64) as usize;
        &self.maps[extent.file].bytes()[start..start + part.width()]
    }

    /// Asks the disk for every part of row `id`.
    fn announce_row(&self, id: u64) {
        for part in &self.parts {
            let extent = part.extent_of(id);
            let offset = extent.offset + (id - extent.first_row) * part.width() as u64;
            self.maps[extent.file].announce(offset, part.width() as u64);
        }
    }

    /// An error if a page of a file that `plan` reads from could not be read: what the sink got is then not the row. A map
    /// that failed once has pages that are not the file's, so it stays unusable.
    fn check_faults(&self, plan: &ReadPlan<'_>) -> Result<(), ReadError> {
        if !bus_error::any() {
            return Ok(());
        }
        let failed = |(map, touched): (&map::FileMap, bool)| touched && map.failed();
        match self.maps.iter().zip(plan.touched_files()).position(failed) {
            None => Ok(()),
            Some(index) => {
                // Usually the file was shortened, which the file itself tells better.
                self.watch.check_file(index)?;
                let error = std::io::Error::other("a page of the file could not be read");
                Err(ReadError::io(self.watch.path(index), error))
            }
        }
    }
}

impl MappedReader {
    /// Says that the rows of `rows` will be read soon and in order; a hint without effect on results.
    pub fn announce(&self, rows: Range<u64>) {
        for part in &self.parts {
            let mut first = rows.start;
            while first < rows.end {
                let extent = part.extent_of(first);
                let last = rows.end.min(extent.first_row + extent.rows);
                let offset = extent.offset + (first - extent.first_row) * part.width() as u64;
                self.maps[extent.file].announce(offset, (last - first) * part.width() as u64);
                first = last;
            }
        }
    }

    /// Bytes of an extent (file of the layout, offset, length) that the page cache holds, or `None` if unknown.
    pub fn resident_bytes(&self, file: usize, offset: u64, bytes: u64) -> Option<u64> {
        self.maps[file].resident_bytes(offset, bytes)
    }
}

impl Reader for MappedReader {
    fn path(&self) -> CodePath {
        CodePath::Mapped
    }

    fn read(&self, plan: &ReadPlan<'_>, sink: &mut dyn RowSink, tally: &mut Tally) -> Result<(), ReadError> {
        let mut group = [Row { position: 0, values: &[], scales: &[] }; GROUP];
        let mut cold = self.cold.load(Ordering::Relaxed);
        let mut announced = 0;
        for (index, ids) in plan.ids().chunks(GROUP).enumerate() {
            let started = Instant::now();
            if cold {
                let first = index * GROUP;
                let end = plan.ids().len().min(first + GROUP + AHEAD);
                for &id in &plan.ids()[announced.max(first)..end] {
                    self.announce_row(id as u64);
                }
                announced = end;
            }
            for ((row, &id), position) in group.iter_mut().zip(ids).zip(index * GROUP..) {
                row.position = position;
                row.values = self.row(&self.parts[0], id as u64);
                map::prefetch(row.values);
                if let Some(scales) = self.parts.get(1) {
                    row.scales = self.row(scales, id as u64);
                    map::prefetch(row.scales);
                }
            }
            sink.take(&group[..ids.len()]);
            cold = started.elapsed() > FROM_DISK * ids.len() as u32;
        }
        self.cold.store(cold, Ordering::Relaxed);
        tally.reads += (plan.ids().len() * self.parts.len()) as u64;
        tally.bytes_read += plan.ids().len() as u64 * plan.layout().row_bytes() as u64;
        self.check_faults(plan)
    }
}
