//! The readers of one table, and the choice among them.
//!
//! While rows come from the page cache they are copied from the maps, and nothing else is asked. From the first row on that
//! does not, the row cache is asked, and what it does not have is read by the path that [`Readers::choose`] names and
//! kept there.

mod plan;

pub use plan::{Place, PlannedRead};

use super::{
    CodePath, DirectFiles, FileWatch, IoUringReader, MappedReader, PreadReader, ReadError, ReadPlan, Reader, Row,
    RowSink, RowStream, SequentialReader, Stats, TakeBytes, Tally, Unavailable,
};
use crate::cache::{CachedTable, NewRow, RowCache, Stay};
use crate::settings;
use crate::source::Layout;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a scattered row costs when the disk is kept busy, and what the disk reads meanwhile in file order. A batch whose
/// rows would take longer than the whole table is read in blocks. The ratio of the two is what matters, and disks that
/// differ tenfold in speed differ little in that.
const ROW_FROM_DISK: Duration = Duration::from_nanos(7_500);
const BYTES_PER_SECOND: u64 = 1_200_000_000;

/// Rows whose residency is asked for: each costs a system call of about a microsecond, and a row from the disk ten.
const SAMPLE: usize = 16;
/// The same for batches of a decode step, where asking for more would show.
const SMALL_SAMPLE: usize = 4;
const SMALL_BATCH: usize = 256;

/// Rows that make asking the system about one more file cheap, about a microsecond. The system tells of a write to a file
/// when it is over; asked about the file, it tells when the write has begun. Smaller batches do not notice a write that is
/// still under way.
const ROWS_PER_LOOK: usize = 1024;

/// Rows that are read from maps before they enter the row cache, and their bytes unless one row has more: they are held
/// beside the budget.
const MAPPED_ROWS: usize = 4096;
const MAPPED_BYTES: usize = 2 << 20;

/// All ways to read one layout.
pub struct Readers {
    watch: Arc<FileWatch>,
    mapped: MappedReader,
    io_uring: Result<IoUringReader, Unavailable>,
    pread: PreadReader,
    sequential: SequentialReader,
    stream: RowStream,
    files: Arc<DirectFiles>,
    cache: CachedTable,
    stats: Arc<Stats>,
    /// Every batch takes this path.
    forced: Option<CodePath>,
    /// Whether the last rows came from the page cache.
    resident: AtomicBool,
    /// Whether the last batch did without the disk.
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
        let cache = RowCache::global()?;
        let watch = Arc::new(FileWatch::new(&layout.files)?);
        let mapped = MappedReader::open(layout, watch.clone())?;
        let files = Arc::new(DirectFiles::look(watch.clone()));
        Ok(Readers {
            watch,
            mapped,
            io_uring: IoUringReader::open(files.clone()),
            pread: PreadReader::open(files.clone()),
            sequential: SequentialReader::open(files.clone()),
            stream: RowStream::open(files.clone()),
            files,
            cache: cache.table(layout),
            stats: Stats::of(layout),
            forced,
            resident: AtomicBool::new(false),
            in_memory: AtomicBool::new(false),
        })
    }

    /// The path that a setting forces on every batch.
    pub fn forced_path(&self) -> Option<CodePath> {
        self.forced.or_else(settings::reader)
    }

    fn reader(&self, path: CodePath) -> Result<&dyn Reader, ReadError> {
        Ok(match path {
            CodePath::Mapped | CodePath::Cache => &self.mapped,
            CodePath::IoUring => match &self.io_uring {
                Ok(reader) => reader,
                Err(reason) => return Err(ReadError::ReaderUnavailable { path, reason: reason.clone() }),
            },
            CodePath::Pread => &self.pread,
            CodePath::Sequential => &self.sequential,
        })
    }

    /// Whether rows that are not in memory come by io_uring.
    pub fn reads_directly(&self) -> bool {
        self.forced_path().map_or(self.io_uring.is_ok(), |path| path == CodePath::IoUring)
    }

    /// What reading this table cost so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Its rows in the row cache.
    pub fn cache(&self) -> &CachedTable {
        &self.cache
    }

    /// Whether the last batch did without the disk.
    pub fn in_memory(&self) -> bool {
        match self.forced_path() {
            Some(path) => path == CodePath::Mapped,
            None => self.in_memory.load(Ordering::Relaxed),
        }
    }

    /// Reads every row of `plan` into `sink`; on an error none may be used.
    pub fn read<S: RowSink>(&self, plan: &ReadPlan<'_>, sink: &mut S) -> Result<(), ReadError> {
        self.watched(plan, || match self.forced_path() {
            Some(path) => self.read_by(path, plan, sink),
            None => self.read_chosen(plan, sink),
        })
    }

    /// The same for rows that follow each other and that nobody is expected to ask for again: through the page cache, past
    /// the row cache.
    pub fn scan(&self, plan: &ReadPlan<'_>, sink: &mut dyn RowSink) -> Result<(), ReadError> {
        self.watched(plan, || match self.forced_path().unwrap_or(CodePath::Mapped) {
            CodePath::Mapped => {
                self.timed(CodePath::Mapped, plan, |tally| self.mapped.read_in_order(plan, sink, tally))
            }
            path => self.read_by(path, plan, sink),
        })
    }

    /// Hands the rows `rows` of `layout`, which is the one that was opened, to `take` in order, as (first row, whole rows),
    /// at the disk's rate and past every cache. What was taken counts only once this has returned without an error.
    pub fn stream<E: From<ReadError>>(
        &self,
        layout: &Layout,
        rows: Range<u64>,
        take: &mut TakeBytes<'_, E>,
    ) -> Result<(), E> {
        let touched = layout.touched_files(rows.clone());
        self.watch.prove(&touched)?;
        self.stream.read(layout, rows, take)?;
        Ok(self.watch.prove(&touched)?)
    }

    /// Brings the rows of `plan` into the row cache, or, where it is off, asks the system to bring them into the page
    /// cache.
    pub fn prefetch(&self, plan: &ReadPlan<'_>) -> Result<(), ReadError> {
        if self.cache.budget() == 0 {
            self.mapped.announce_rows(plan.ids());
            return Ok(());
        }
        let mut missing = Vec::new();
        self.cache.find_missing(plan.ids(), &mut missing);
        let ids: Vec<i64> = missing.iter().map(|&position| plan.ids()[position]).collect();
        let plan = ReadPlan::proven(plan.layout(), &ids);
        if ids.is_empty() {
            return Ok(());
        }
        self.watched(&plan, || {
            // What is read ahead says nothing of what is read now.
            let path = self.forced_path().unwrap_or_else(|| self.look(&plan).0);
            self.read_and_keep(path, &plan, Stay::UntilUsed, &mut |_: Row<'_>| {})
        })
    }

    /// Brings the rows of `plan`, which are in file order, into memory, and returns how many of them are there then:
    /// into the row cache if somebody set a budget, else into the page cache.
    pub fn warm(&self, plan: &ReadPlan<'_>) -> Result<usize, ReadError> {
        if !self.cache.budget_is_explicit() || self.cache.budget() == 0 {
            self.watched(plan, || {
                self.mapped.announce(plan.range());
                // A page is in memory once a byte of it was read.
                self.read_by(CodePath::Mapped, plan, &mut |row: Row<'_>| {
                    let byte = |byte: Option<&u8>| byte.copied().unwrap_or_default();
                    std::hint::black_box(byte(row.values.first()) ^ byte(row.values.last()) ^ byte(row.scales.first()));
                })
            })?;
            // Other programs may have driven some out meanwhile.
            let resident = self.mapped.resident_in(plan.range());
            return Ok(resident.map_or(plan.ids().len(), |bytes| (bytes / plan.layout().row_bytes() as u64) as usize));
        }
        let mut missing = Vec::new();
        self.cache.find_missing(plan.ids(), &mut missing);
        if !missing.is_empty() {
            let ids: Vec<i64> = missing.iter().map(|&position| plan.ids()[position]).collect();
            let rest = ReadPlan::proven(plan.layout(), &ids);
            self.watched(&rest, || {
                let path = self.forced_path().unwrap_or_else(|| match self.look(&rest).0 {
                    CodePath::IoUring | CodePath::Pread => CodePath::Sequential,
                    path => path,
                });
                self.read_and_keep(path, &rest, Stay::UntilUsed, &mut |_: Row<'_>| {})
            })?;
            missing.clear();
            self.cache.find_missing(plan.ids(), &mut missing);
        }
        Ok(plan.ids().len() - missing.len())
    }

    /// Runs `read` and proves before and after it that the files are those of the layout.
    fn watched(&self, plan: &ReadPlan<'_>, read: impl FnOnce() -> Result<(), ReadError>) -> Result<(), ReadError> {
        self.watch.check(|| plan.touched_files())?;
        // What was read is the table's only if the files did not change meanwhile.
        let read = read().and_then(|()| {
            if plan.ids().len() >= ROWS_PER_LOOK * self.watch.len() {
                self.watch.prove_any(|| plan.touched_files())
            } else {
                self.watch.check(|| plan.touched_files())
            }
        });
        if read.is_err() {
            // Some of it may be in the row cache, which would never ask the files again.
            self.cache.clear();
        }
        read
    }

    fn read_by(&self, path: CodePath, plan: &ReadPlan<'_>, sink: &mut dyn RowSink) -> Result<(), ReadError> {
        self.timed(path, plan, |tally| self.reader(path)?.read(plan, sink, tally))
    }

    /// Runs `read`, which reads all of `plan`, and counts it.
    fn timed(
        &self,
        path: CodePath,
        plan: &ReadPlan<'_>,
        read: impl FnOnce(&mut Tally) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let started = Instant::now();
        let mut tally = Tally::default();
        read(&mut tally)?;
        self.stats.add(path, plan.ids().len(), plan.layout().row_bytes(), tally, started.elapsed());
        Ok(())
    }

    fn read_chosen<S: RowSink>(&self, plan: &ReadPlan<'_>, sink: &mut S) -> Result<(), ReadError> {
        let mut first = 0;
        // Somebody who set a budget wants rows where no other program's files can drive them out.
        if self.resident.load(Ordering::Relaxed) && !self.cache.budget_is_explicit() {
            let started = Instant::now();
            let mut tally = Tally::default();
            first = self.mapped.read_resident(plan, sink, &mut tally)?;
            self.stats.add(CodePath::Mapped, first, plan.layout().row_bytes(), tally, started.elapsed());
            if first == plan.ids().len() {
                return Ok(());
            }
            self.resident.store(false, Ordering::Relaxed);
        }
        let missing = self.read_cached(plan, first, sink);
        if missing.is_empty() {
            self.in_memory.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let ids: Vec<i64> = missing.iter().map(|&position| plan.ids()[position]).collect();
        let plan = ReadPlan::proven(plan.layout(), &ids);
        let path = self.choose(&plan);
        let mut sink = |row: Row<'_>| sink.take(&[Row { position: missing[row.position], ..row }]);
        if self.cache.budget() > 0 && (path != CodePath::Mapped || self.cache.budget_is_explicit()) {
            self.read_and_keep(path, &plan, Stay::Normal, &mut sink)
        } else {
            self.read_by(path, &plan, &mut sink)
        }
    }

    /// Reads every row of `plan` into `sink` and into the row cache.
    fn read_and_keep(
        &self,
        path: CodePath,
        plan: &ReadPlan<'_>,
        stay: Stay,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReadError> {
        let ids = plan.ids();
        let mut inserter = self.cache.inserter(stay);
        if path != CodePath::Mapped {
            return self.read_by(path, plan, &mut |row: Row<'_>| {
                sink.take(&[row]);
                inserter.push(NewRow { id: ids[row.position], values: row.values, scales: row.scales });
            });
        }
        // Whether mapped rows are those of the file shows only after the read; the cache would never ask again.
        let (mut kept, first_part) = (Vec::new(), plan.layout().parts.first().map_or(0, |part| part.width()));
        let touched = plan.touched_files();
        let rows = (MAPPED_BYTES / plan.layout().row_bytes()).clamp(1, MAPPED_ROWS);
        for (ids, first) in ids.chunks(rows).zip((0..).step_by(rows)) {
            kept.clear();
            self.read_by(path, &ReadPlan::proven(plan.layout(), ids), &mut |row: Row<'_>| {
                sink.take(&[Row { position: first + row.position, ..row }]);
                kept.extend_from_slice(row.values);
                kept.extend_from_slice(row.scales);
            })?;
            self.watch.prove(&touched)?;
            // Mapped rows come in order.
            for (&id, row) in ids.iter().zip(kept.chunks_exact(plan.layout().row_bytes())) {
                let (values, scales) = row.split_at(first_part);
                inserter.push(NewRow { id, values, scales });
            }
        }
        Ok(())
    }

    /// Hands over what the row cache holds of the batch from position `first` on; the positions of the others.
    fn read_cached(&self, plan: &ReadPlan<'_>, first: usize, sink: &mut dyn RowSink) -> Vec<usize> {
        let started = Instant::now();
        let mut missing = Vec::new();
        let found = self.cache.lookup(&plan.ids()[first..], &mut Shifted { first, sink }, &mut missing);
        if found > 0 {
            self.stats.add(CodePath::Cache, found, plan.layout().row_bytes(), Tally::default(), started.elapsed());
        }
        missing.iter_mut().for_each(|position| *position += first);
        missing
    }

    /// The code path for a batch of rows that are not in the row cache.
    fn choose(&self, plan: &ReadPlan<'_>) -> CodePath {
        let (path, resident) = self.look(plan);
        self.resident.store(resident, Ordering::Relaxed);
        self.in_memory.store(resident, Ordering::Relaxed);
        path
    }

    /// The code path for a batch of rows that are not in the row cache, and whether the page cache holds all that were
    /// looked at.
    fn look(&self, plan: &ReadPlan<'_>) -> (CodePath, bool) {
        let rows = plan.ids().len();
        let sample = if rows < SMALL_BATCH { SMALL_SAMPLE } else { SAMPLE }.min(rows);
        let resident = self.mapped.resident_of(plan.ids(), sample);
        (self.path_of(plan, resident, sample), resident == Some(sample))
    }

    fn path_of(&self, plan: &ReadPlan<'_>, resident: Option<usize>, sample: usize) -> CodePath {
        // Where the system does not tell, the map finds out.
        if resident.is_none_or(|resident| 2 * resident >= sample) {
            return CodePath::Mapped;
        }
        let scattered = ROW_FROM_DISK.as_secs_f64() * plan.ids().len() as f64;
        if scattered > plan.layout().bytes() as f64 / BYTES_PER_SECOND as f64 {
            return CodePath::Sequential;
        }
        // Announced a window ahead, mapped pages arrive sooner than threads fetch them, but they arrive in the page cache.
        match &self.io_uring {
            Ok(_) => CodePath::IoUring,
            Err(_) if self.cache.budget_is_explicit() => CodePath::Pread,
            Err(_) => CodePath::Mapped,
        }
    }

    /// An error if any file is no longer the one that was opened.
    pub fn check(&self) -> Result<(), ReadError> {
        self.watch.check(|| vec![true; self.watch.len()])
    }

    /// Says that the rows of `rows` will be read soon and in order; a hint without effect on results.
    pub fn announce(&self, rows: Range<u64>) {
        if self.forced_path().is_none_or(|path| path == CodePath::Mapped) {
            self.mapped.announce(rows);
        }
    }

    /// Bytes of an extent (file of the layout, offset, length) that the page cache holds, or `None` if unknown.
    pub fn resident_bytes(&self, file: usize, offset: u64, bytes: u64) -> Option<u64> {
        self.mapped.resident_bytes(file, offset, bytes)
    }
}

/// A sink for the rows of a batch from position `first` on.
struct Shifted<'a> {
    first: usize,
    sink: &'a mut dyn RowSink,
}

impl RowSink for Shifted<'_> {
    fn take(&mut self, rows: &[Row<'_>]) {
        /// Rows that are handed on together.
        const GROUP: usize = 32;
        let none = Row { position: 0, values: &[], scales: &[] };
        for rows in rows.chunks(GROUP) {
            let mut shifted = [none; GROUP];
            for (to, row) in shifted.iter_mut().zip(rows) {
                *to = Row { position: row.position + self.first, ..*row };
            }
            self.sink.take(&shifted[..rows.len()]);
        }
    }
}
