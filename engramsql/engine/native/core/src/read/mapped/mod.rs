//! Rows from memory maps: the fast path while the page cache holds the rows, correct always.

mod bus_error;
mod map;

pub(crate) use map::{FileMap, prefetch};

use super::{CodePath, FileWatch, ReadError, ReadPlan, Reader, Row, RowSink, Tally};
use crate::source::{Layout, Part};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows between the one that is located and prefetched and the one that is used: enough to cover a cache miss.
const PREFETCHED: usize = 16;
/// Rows between two looks at the clock.
const STRETCH: usize = 256;

/// Rows that are announced to the disk ahead of those that are used, while rows come from there: enough reads
/// outstanding to fill it (192 gave 11-12 us a row where waiting for one page after the other gave 62-106).
const AHEAD: usize = 192;
/// A row that takes longer, on average over a stretch, came from the disk: from memory it takes 0.03 to 0.1 us, from the
/// fastest disk, all reads announced, about 7.
const FROM_DISK: Duration = Duration::from_micros(3);

/// Rows whose residency is asked for when the clock says that the rows before them came from the disk.
const SUSPECTED: usize = 8;

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

    #[inline(always)]
    fn row(&self, part: &Part, id: u64) -> &[u8] {
        let extent = part.extent_of(id);
        let start = (extent.offset + (id - extent.first_row) * part.width() as u64) as usize;
        &self.maps[extent.file].bytes()[start..start + part.width()]
    }

    /// Asks the disk for the rows of `ids`; results do not depend on it.
    pub fn announce_rows(&self, ids: &[i64]) {
        ids.iter().for_each(|&id| self.announce_row(id as u64));
    }

    /// Reads the rows of `plan`, which follow each other, into `sink`. Whoever reads rows in order has
    /// [announced](Self::announce) them, many at a time; here they are announced again, all that are left, only where the disk is
    /// waited for all the same. Row by row that would cost more than reading rows from memory does.
    pub fn read_in_order(
        &self,
        plan: &ReadPlan<'_>,
        sink: &mut dyn RowSink,
        tally: &mut Tally,
    ) -> Result<(), ReadError> {
        let ids = plan.ids();
        let (mut clock, mut announced) = (Stopwatch::new(), false);
        self.copy(ids, sink, |done| {
            if let Some((&last, &next)) = ids.last().zip(ids.get(done))
                && clock.was_slow(done)
                && !announced
            {
                self.announce(next as u64..last as u64 + 1);
                announced = true;
            }
            true
        });
        self.count(plan, ids.len(), tally);
        self.check_faults(plan)
    }

    /// Hands over the rows of `ids` in order, one by one: with a sink that is known here, nothing but an address, a prefetch
    /// and the sink's own work is left of a row. Asks `go_on` before the first row and after every [`STRETCH`], with the
    /// number of rows done, and returns that number when it says no or all are done.
    #[inline]
    fn copy<S: RowSink + ?Sized>(&self, ids: &[i64], sink: &mut S, go_on: impl FnMut(usize) -> bool) -> usize {
        match &self.parts[..] {
            [part] => self.copy_parts(ids, sink, go_on, part, |_| &[]),
            [values, scales, ..] => self.copy_parts(ids, sink, go_on, values, |id| self.row(scales, id)),
            [] => 0,
        }
    }

    #[inline(always)]
    fn copy_parts<'a, S: RowSink + ?Sized>(
        &'a self,
        ids: &[i64],
        sink: &mut S,
        mut go_on: impl FnMut(usize) -> bool,
        part: &'a Part,
        scales: impl Fn(u64) -> &'a [u8],
    ) -> usize {
        let mut ahead = [Row { position: 0, values: &[], scales: &[] }; PREFETCHED];
        for (position, slot) in ahead.iter_mut().enumerate().take(ids.len()) {
            *slot = self.locate(ids, position, part, &scales);
        }
        for position in 0..ids.len() {
            if position % STRETCH == 0 && !go_on(position) {
                return position;
            }
            let slot = &mut ahead[position % PREFETCHED];
            let row = *slot;
            if position + PREFETCHED < ids.len() {
                *slot = self.locate(ids, position + PREFETCHED, part, &scales);
            }
            sink.take(&[row]);
        }
        ids.len()
    }

    /// The row at `position`, prefetched.
    #[inline(always)]
    fn locate<'a>(
        &'a self,
        ids: &[i64],
        position: usize,
        part: &'a Part,
        scales: &impl Fn(u64) -> &'a [u8],
    ) -> Row<'a> {
        let id = ids[position] as u64;
        let row = Row { position, values: self.row(part, id), scales: scales(id) };
        map::prefetch(row.values);
        map::prefetch(row.scales);
        row
    }

    /// Reads rows in order as long as they come from memory; how many were read, all of them or some up to the first that
    /// the disk had to be asked for.
    pub fn read_resident<S: RowSink + ?Sized>(
        &self,
        plan: &ReadPlan<'_>,
        sink: &mut S,
        tally: &mut Tally,
    ) -> Result<usize, ReadError> {
        let mut clock = Stopwatch::new();
        let done = self.copy(plan.ids(), sink, |done| {
            // A thread that had to wait for the processor is slow too.
            !clock.was_slow(done) || self.resident_of(&plan.ids()[done..], SUSPECTED) == Some(SUSPECTED)
        });
        self.count(plan, done, tally);
        self.check_faults(plan)?;
        Ok(done)
    }

    /// How many of `sample` rows, spread over `ids`, the page cache holds; `None` where the system does not tell.
    pub fn resident_of(&self, ids: &[i64], sample: usize) -> Option<usize> {
        if ids.is_empty() {
            return Some(sample);
        }
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
        self.stretches(rows).for_each(|(file, offset, bytes)| self.maps[file].announce(offset, bytes));
    }

    /// Bytes of the rows of `rows` that the page cache holds, or `None` if unknown.
    pub fn resident_in(&self, rows: Range<u64>) -> Option<u64> {
        self.stretches(rows).map(|(file, offset, bytes)| self.resident_bytes(file, offset, bytes)).sum()
    }

    /// File, offset and length of the bytes of `rows`, extent by extent.
    fn stretches(&self, rows: Range<u64>) -> impl Iterator<Item = (usize, u64, u64)> {
        self.parts.iter().flat_map(move |part| {
            let (mut first, end, width) = (rows.start, rows.end, part.width() as u64);
            std::iter::from_fn(move || {
                let extent = (first < end).then(|| part.extent_of(first))?;
                let last = end.min(extent.first_row + extent.rows);
                let stretch = (extent.file, extent.offset + (first - extent.first_row) * width, (last - first) * width);
                first = last;
                Some(stretch)
            })
        })
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
        let mut clock = Stopwatch::new();
        let mut announced = 0;
        self.copy(ids, sink, |done| {
            // Cold until a stretch shows otherwise: announcing some rows in vain costs less than waiting for one.
            if done == 0 || clock.was_slow(done) {
                let until = ids.len().min(done + STRETCH + AHEAD);
                self.announce_rows(&ids[announced.max(done)..until]);
                announced = until;
            }
            true
        });
        self.count(plan, ids.len(), tally);
        self.check_faults(plan)
    }
}

/// Tells rows from memory and rows from the disk apart by their time.
struct Stopwatch {
    since: Instant,
    done: usize,
}

impl Stopwatch {
    fn new() -> Stopwatch {
        Stopwatch { since: Instant::now(), done: 0 }
    }

    /// Whether the rows since the last call, up to `done`, came from the disk; no for none.
    fn was_slow(&mut self, done: usize) -> bool {
        let now = Instant::now();
        let slow = now - self.since > FROM_DISK * (done - self.done) as u32;
        let any = done > self.done;
        (self.since, self.done) = (now, done);
        slow && any
    }
}
