//! What a reader would read of a batch, without reading it.

use super::files::DirectFiles;
use super::order::Order;
use super::planner::{Planner, Shape};
use super::readers::{BLOCKS, POOL, RING};
use crate::read::{CodePath, ReadPlan};
use crate::source::Extent;

/// Runs of pages that rows in maps lie on. They are read as far as they are not in the page cache, whatever lies between
/// them is not.
const PAGES: Shape = Shape { merge: 512 << 10, gap: 0, depth: 2, memory: 0 };

/// One read of a batch.
#[derive(Debug, Clone, Copy)]
pub(in crate::read) struct Planned {
    /// The rows' extent: its file is the one that is read.
    pub(in crate::read) extent: Extent,
    /// Offset in the file.
    pub(in crate::read) offset: u64,
    /// Bytes that come, up to the end of the file.
    pub(in crate::read) bytes: u64,
    /// Positions of the batch that it serves.
    pub(in crate::read) rows: u64,
    /// Bytes that it hands over.
    pub(in crate::read) used: u64,
}

/// The reads of a batch on a code path that reads, in file order within each part of the rows.
///
/// They are those of the path's reader. Only where rows have two parts and the batch more of them than may wait for one
/// another, the reader cuts some reads in two, depending on which arrive first.
pub(in crate::read) fn look(plan: &ReadPlan<'_>, files: &DirectFiles, path: CodePath) -> Vec<Planned> {
    let layout = plan.layout();
    let pages;
    let (files, shape) = match path {
        CodePath::IoUring => (files, RING),
        CodePath::Pread => (files, POOL),
        CodePath::Sequential => (files, BLOCKS),
        CodePath::Mapped | CodePath::Cache => {
            pages = files.paged(rustix::param::page_size() as u32);
            (&pages, PAGES)
        }
    };
    let (most_bytes, _) = shape.buffers(layout, files);
    let mut reads = Vec::new();
    for order in Order::pieces(plan.ids(), layout.rows) {
        let mut planner = Planner::new(files, &layout.parts, &order, shape, most_bytes, usize::MAX);
        while let Some(segment) = planner.next(0, true) {
            let (rows, width) = ((segment.end - segment.first) as u64, layout.parts[segment.part].width() as u64);
            let (_, stamp) = &layout.files[segment.extent.file];
            let end = stamp.bytes().min(segment.start + segment.bytes as u64);
            let bytes = end.saturating_sub(segment.start);
            reads.push(Planned { extent: segment.extent, offset: segment.start, bytes, rows, used: rows * width });
        }
    }
    reads
}
