//! Rows from memory maps: the fast path while the page cache holds the rows, correct always.

mod bus_error;
mod map;

use super::{CodePath, FileWatch, ReadError, ReadPlan, Reader, Row, RowSink, Tally};
use crate::source::{Layout, Part};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows that are located, and handed over, together.
const GROUP: usize = 2;
/// Groups in the pipeline: the bytes of the last are prefetched while those of the first are used. About 14 rows ahead
/// cover a cache miss; more rows at once would wait for each other (with 16 and 4 a row took half as long again).
const GROUPS: usize = 8;
/// Rows between two looks at the clock.
const STRETCH: usize = 256;

/// Rows that are announced to the disk ahead of those that are used, while rows come from there: enough reads
/// outstanding to fill it (192 gave 11-12 us a row where waiting for one page after the other gave 62-106).
const AHEAD: usize = 192;
/// A row that takes longer, on average over a stretch, came from the disk: from memory it takes 0.03 to 0.1 us, from the
/// fastest disk, all reads announced, about 7.
const FROM_DISK: Duration = Duration::from_micros(3);

/// Reads rows through read-only maps of the table's files. Holds no descriptors of the files.
pub struct MappedReader {
    watch: Arc<FileWatch>,
    maps: Vec<map::FileMap>,
    parts: Vec<Part>,
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
        Ok(MappedReader { watch, maps, parts: layout.parts.clone() })
    }

    #[inline]
    fn row(&self, part: &Part, id: u64) -> &[u8] {
        let extent = part.extent_of(id);
        let start = (extent.offset + (id - extent.first_row) * part.width() as u64) as usize;
        &self.maps[extent.file].bytes()[start..start + part.width()]
    }

    /// Asks the disk for the rows of `ids`; results do not depend on it.
    pub fn announce_rows(&self, ids: &[i64]) {
        ids.iter().for_each(|&id| self.announce_row(id as u64));
    }

    /// Points `group` at the rows of `ids`, the first of which is at `position` of its batch, and prefetches them.
    #[inline]
    fn locate<'a>(&'a self, group: &mut [Row<'a>; GROUP], ids: &[i64], position: usize) {
        for ((row, &id), position) in group.iter_mut().zip(ids).zip(position..) {
            row.position = position;
            row.values = self.row(&self.parts[0], id as u64);
            map::prefetch(row.values);
            if let Some(scales) = self.parts.get(1) {
                row.scales = self.row(scales, id as u64);
                map::prefetch(row.scales);
            }
        }
    }

    /// Hands over the rows at `range` of the batch.
    fn copy(&self, ids: &[i64], range: Range<usize>, sink: &mut dyn RowSink) {
        let none = Row { position: 0, values: &[], scales: &[] };
        let mut groups = [[none; GROUP]; GROUPS];
        let part = |group: usize| {
            let start = range.end.min(range.start + group * GROUP);
            start..range.end.min(start + GROUP)
        };
        for (index, group) in groups.iter_mut().enumerate().take(GROUPS - 1) {
            self.locate(group, &ids[part(index)], part(index).start);
        }
        for index in 0..range.len().div_ceil(GROUP) {
            let ahead = index + GROUPS - 1;
            self.locate(&mut groups[ahead % GROUPS], &ids[part(ahead)], part(ahead).start);
            sink.take(&groups[index % GROUPS][..part(index).len()]);
        }
    }

    /// Reads rows in order as long as they come from memory; how many were read, all of them or up to the first that
    /// the disk had to be asked for.
    pub fn read_resident(
        &self,
        plan: &ReadPlan<'_>,
        sink: &mut dyn RowSink,
        tally: &mut Tally,
    ) -> Result<usize, ReadError> {
        let rows = plan.ids().len();
        let mut done = 0;
        while done < rows {
            let started = Instant::now();
            let end = rows.min(done + STRETCH);
            self.copy(plan.ids(), done..end, sink);
            let slow = started.elapsed() > FROM_DISK * (end - done) as u32;
            done = end;
            if slow {
                break;
            }
        }
        self.count(plan, done, tally);
        self.check_faults(plan)?;
        Ok(done)
    }

    /// How many of `sample` rows, spread over the batch, the page cache holds; `None` where the system does not tell.
    pub fn resident_of(&self, plan: &ReadPlan<'_>, sample: usize) -> Option<usize> {
        let ids = plan.ids();
        let part = &self.parts[0];
        let picks = (0..sample).map(|pick| ids[pick * ids.len() / sample] as u64);
        picks
            .map(|id| {
                let extent = part.extent_of(id);
                let offset = extent.offset + (id - extent.first_row) * part.width() as u64;
                let bytes = part.width() as u64;
                Some(usize::from(self.resident_bytes(extent.file, offset, bytes)? == bytes))
            })
            .sum()
    }

    fn count(&self, plan: &ReadPlan<'_>, rows: usize, tally: &mut Tally) {
        tally.reads += (rows * self.parts.len()) as u64;
        tally.bytes_read += rows as u64 * plan.layout().row_bytes() as u64;
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
        let ids = plan.ids();
        // Cold until a stretch shows otherwise: announcing some rows in vain costs less than waiting for one.
        let mut cold = true;
        let (mut done, mut announced) = (0, 0);
        while done < ids.len() {
            let started = Instant::now();
            let end = ids.len().min(done + STRETCH);
            if cold {
                let ahead = ids.len().min(end + AHEAD);
                self.announce_rows(&ids[announced.max(done)..ahead]);
                announced = ahead;
            }
            self.copy(ids, done..end, sink);
            cold = started.elapsed() > FROM_DISK * (end - done) as u32;
            done = end;
        }
        self.count(plan, ids.len(), tally);
        self.check_faults(plan)
    }
}
