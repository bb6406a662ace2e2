//! From sorted rows to reads: aligned, merged where they touch, in file order.

use super::files::DirectFiles;
use super::order::Order;
use crate::source::{Extent, Layout, Part};

/// How rows are gathered into reads, and how many reads are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bytes up to which reads of neighbouring rows become one.
    pub(super) merge: usize,
    /// Unwanted bytes between two rows that are read rather than skipped.
    pub(super) gap: u64,
    /// Reads in flight at most.
    pub(super) depth: usize,
    /// Bytes of all buffers at most, unless rows are so wide that two do not fit.
    pub(super) memory: usize,
}

impl Shape {
    /// Bytes of one read's buffer and number of buffers for `layout`.
    pub(super) fn buffers(&self, layout: &Layout, files: &DirectFiles) -> (usize, usize) {
        let alignment = files.most_alignment();
        let widest = layout.parts.iter().map(Part::width).max().unwrap_or(0);
        // A row that begins just before a border needs one unit more than its width.
        let bytes = (widest.next_multiple_of(alignment) + alignment).max(self.merge).next_multiple_of(alignment);
        (bytes, (self.memory / bytes).clamp(2, self.depth))
    }
}

/// One read that serves the rows `first..end` of an order in one part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) part: usize,
    pub(super) extent: Extent,
    /// Offset in the extent's file.
    pub(super) start: u64,
    /// Bytes to ask for, aligned; the file may end before.
    pub(super) bytes: usize,
    /// Bytes that must come: up to the end of the last row.
    pub(super) needed: usize,
    pub(super) first: usize,
    pub(super) end: usize,
    /// How many distinct rows of the order come before `first`.
    pub(super) rank: usize,
}

/// Where the planner is in one part.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    next: usize,
    rank: usize,
}

/// Cuts an order into segments.
pub(super) struct Planner<'a> {
    files: &'a DirectFiles,
    parts: &'a [Part],
    order: &'a Order,
    cursors: Vec<Cursor>,
    most_bytes: u64,
    gap: u64,
    /// Distinct rows between the oldest unfinished one and the newest that may be asked for.
    window: usize,
}

impl<'a> Planner<'a> {
    /// Plans reads of at most `most_bytes`, none further ahead than `window` distinct rows.
    pub(super) fn new(
        files: &'a DirectFiles,
        parts: &'a [Part],
        order: &'a Order,
        shape: Shape,
        most_bytes: usize,
        window: usize,
    ) -> Planner<'a> {
        let cursors = vec![Cursor::default(); parts.len()];
        Planner { files, parts, order, cursors, most_bytes: most_bytes as u64, gap: shape.gap, window }
    }

    /// As many reads as there can be.
    pub(super) fn most_segments(&self) -> usize {
        self.order.len() * self.parts.len()
    }

    /// Whether every row of every part was asked for.
    pub(super) fn is_done(&self) -> bool {
        self.cursors.iter().all(|cursor| cursor.next == self.order.len())
    }

    /// The next read, or `None` if there is none or the window is full. `oldest`: rank of the oldest unfinished row;
    /// `idle`: no read is in flight, so waiting for a wider window would be for ever.
    pub(super) fn next(&mut self, oldest: usize, idle: bool) -> Option<Segment> {
        // The part that is behind, so that the parts of a row are asked for close together.
        let part = (0..self.parts.len()).min_by_key(|&part| self.cursors[part].next)?;
        let Cursor { next: first, rank } = self.cursors[part];
        if first == self.order.len() {
            return None;
        }
        let room = (oldest.saturating_add(self.window)).saturating_sub(rank);
        // Room comes back a few rows at a time; reads that small would cost more than waiting.
        if room == 0 || (!idle && room < self.window / 8) {
            return None;
        }
        let segment = self.segment(part, first, rank, room);
        Some(segment)
    }

    fn segment(&mut self, part_index: usize, first: usize, rank: usize, room: usize) -> Segment {
        let part = &self.parts[part_index];
        let width = part.width() as u64;
        let extent = *part.extent_of(self.order.id(first));
        let alignment = self.files.alignment(extent.file);
        let down = |offset: u64| offset & !(alignment - 1);
        let up = |offset: u64| down(offset + alignment - 1);
        let offset = |id: u64| extent.offset + (id - extent.first_row) * width;
        let mut last = offset(self.order.id(first)) + width;
        let start = down(last - width);
        let mut end = self.order.run_end(first);
        let mut rows = 1;
        while end < self.order.len() && rows < room {
            let id = self.order.id(end);
            if id - extent.first_row >= extent.rows {
                break;
            }
            let begin = offset(id);
            if down(begin) > up(last) + self.gap || up(begin + width) - start > self.most_bytes {
                break;
            }
            last = begin + width;
            rows += 1;
            end = self.order.run_end(end);
        }
        self.cursors[part_index] = Cursor { next: end, rank: rank + rows };
        let (bytes, needed) = ((up(last) - start) as usize, (last - start) as usize);
        Segment { part: part_index, extent, start, bytes, needed, first, end, rank }
    }
}
