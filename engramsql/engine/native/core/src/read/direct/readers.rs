//! The three readers.

use super::files::DirectFiles;
use super::handover::Handover;
use super::order::Order;
use super::planner::{Planner, Shape};
use super::queue::{Queue, drive};
use super::ring::{self, Rings};
use super::threads::PoolQueue;
use crate::read::{CodePath, ReadError, ReadPlan, Reader, RowSink, Tally};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Single rows by io_uring. 128 in flight fill the disk (256 measured no faster). Rows merge only within a few sectors:
/// merging over gaps reads more than it saves while rows are scattered, and buffers a page apart would share cache sets.
pub(super) const RING: Shape = Shape { merge: 5 * 512, gap: 0, depth: 128, memory: 4 << 20 };

/// Single rows by threads: two reads for each, so that none waits for the batch's thread.
pub(super) const POOL: Shape = Shape { merge: 4096, gap: 0, depth: 64, memory: 4 << 20 };

/// Blocks. A gap of 16 KiB takes the disk as long to read (1.2 GB/s) as another read takes it (12 us).
pub(super) const BLOCKS: Shape = Shape { merge: 512 << 10, gap: 16 << 10, depth: 8, memory: 4 << 20 };

/// Bytes of rows of two parts that may wait for one another.
const STAGING: usize = 4 << 20;

/// Why a table cannot be read by io_uring.
#[non_exhaustive]
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unavailable {
    /// The kernel has no io_uring, or a sandbox forbids it.
    #[error("the system refuses it ({reason})")]
    Refused {
        /// What the system said.
        reason: String,
    },
    /// Without direct reads io_uring is slower than a memory map.
    #[error("'{}' lies on a file system without direct reads (O_DIRECT)", path.display())]
    Buffered {
        /// The first such file.
        path: PathBuf,
    },
}

impl Unavailable {
    /// The system's answer.
    pub(super) fn of_the_system() -> Option<Unavailable> {
        ring::refusal().map(|error| Unavailable::Refused { reason: error.to_string() })
    }
}

/// Reads scattered rows by io_uring and direct reads, 128 at a time, on the calling thread.
pub struct IoUringReader {
    files: Arc<DirectFiles>,
    rings: Rings,
}

impl IoUringReader {
    /// A reader of `files`, or why there is none; no ring is made before the first batch.
    pub fn open(files: Arc<DirectFiles>) -> Result<IoUringReader, Unavailable> {
        if let Some(refused) = Unavailable::of_the_system() {
            return Err(refused);
        }
        match files.first_buffered().map(Path::to_owned) {
            Some(path) => Err(Unavailable::Buffered { path }),
            None => Ok(IoUringReader { files, rings: Rings::default() }),
        }
    }
}

impl Reader for IoUringReader {
    fn path(&self) -> CodePath {
        CodePath::IoUring
    }

    fn read(&self, plan: &ReadPlan<'_>, sink: &mut dyn RowSink, tally: &mut Tally) -> Result<(), ReadError> {
        let (bytes, buffers) = RING.buffers(plan.layout(), &self.files);
        let lease = || self.rings.lease(buffers, bytes, &self.files).map_err(|e| ReadError::io(self.files.path(0), e));
        read_rows(plan, sink, tally, &self.files, RING, lease)
    }
}

/// Reads scattered rows by a pool of threads: direct reads where the file system allows them, else through the page cache
/// without reading ahead.
pub struct PreadReader {
    files: Arc<DirectFiles>,
}

impl PreadReader {
    /// A reader of `files`; no thread runs and nothing is opened before the first batch.
    pub fn open(files: Arc<DirectFiles>) -> PreadReader {
        PreadReader { files }
    }
}

impl Reader for PreadReader {
    fn path(&self) -> CodePath {
        CodePath::Pread
    }

    fn read(&self, plan: &ReadPlan<'_>, sink: &mut dyn RowSink, tally: &mut Tally) -> Result<(), ReadError> {
        let (bytes, buffers) = POOL.buffers(plan.layout(), &self.files);
        read_rows(plan, sink, tally, &self.files, POOL, || Ok(PoolQueue::new(buffers, bytes, &self.files, true)))
    }
}

/// Reads dense batches in blocks, in file order, skipping what lies far from any wanted row: by io_uring where
/// [`IoUringReader`] is available, else by the pool of threads.
pub struct SequentialReader {
    files: Arc<DirectFiles>,
    rings: Rings,
}

impl SequentialReader {
    /// A reader of `files`; nothing is opened before the first batch.
    pub fn open(files: Arc<DirectFiles>) -> SequentialReader {
        SequentialReader { files, rings: Rings::default() }
    }
}

impl Reader for SequentialReader {
    fn path(&self) -> CodePath {
        CodePath::Sequential
    }

    fn read(&self, plan: &ReadPlan<'_>, sink: &mut dyn RowSink, tally: &mut Tally) -> Result<(), ReadError> {
        let (bytes, buffers) = BLOCKS.buffers(plan.layout(), &self.files);
        if Unavailable::of_the_system().is_none() && self.files.first_buffered().is_none() {
            let lease =
                || self.rings.lease(buffers, bytes, &self.files).map_err(|e| ReadError::io(self.files.path(0), e));
            return read_rows(plan, sink, tally, &self.files, BLOCKS, lease);
        }
        read_rows(plan, sink, tally, &self.files, BLOCKS, || Ok(PoolQueue::new(buffers, bytes, &self.files, false)))
    }
}

/// Reads every row of `plan` through the queue that `queue` makes; an empty plan makes none.
fn read_rows<Q: Queue>(
    plan: &ReadPlan<'_>,
    sink: &mut dyn RowSink,
    tally: &mut Tally,
    files: &DirectFiles,
    shape: Shape,
    queue: impl FnOnce() -> Result<Q, ReadError>,
) -> Result<(), ReadError> {
    let layout = plan.layout();
    if plan.ids().is_empty() {
        return Ok(());
    }
    let (most_bytes, _) = shape.buffers(layout, files);
    let window = if layout.parts.len() > 1 { (STAGING / layout.row_bytes()).max(shape.depth) } else { usize::MAX };
    let mut queue = queue()?;
    for order in Order::pieces(plan.ids(), layout.rows) {
        let planner = Planner::new(files, &layout.parts, &order, shape, most_bytes, window);
        let handover = Handover::new(sink, &layout.parts, &order, window);
        drive(&mut queue, files, planner, handover, tally)?;
    }
    Ok(())
}
