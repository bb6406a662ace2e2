//! Rows in order, at the disk's sequential rate: what builds and verification read.

use super::files::DirectFiles;
use super::queue::{Completion, Queue, Request};
use super::readers::Unavailable;
use super::ring::Rings;
use super::threads::PoolQueue;
use crate::fault;
use crate::read::ReadError;
use crate::source::{Extent, Layout, Part};
use std::collections::VecDeque;
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of one read, and reads in flight: 512 KiB and 8 reach the disk's rate, more gain nothing.
const READ_BYTES: usize = 512 << 10;
const DEPTH: usize = 8;
/// How often the system may say "interrupted" or "try again" to one read before it counts as failed.
const RETRIES: u32 = 1000;

/// A stretch of rows of one part, as it lies in a file.
#[derive(Debug, Clone, Copy)]
struct Piece {
    extent: Extent,
    /// Offset of its first wanted byte, and wanted bytes.
    offset: u64,
    bytes: usize,
}

/// A piece on its way.
struct Flight {
    piece: Piece,
    slot: usize,
    /// Bytes of the read that came, from its aligned start.
    got: usize,
    retries: u32,
    done: bool,
}

/// Takes bytes as they come, in order: the first row or the offset, and whole rows or the bytes there. An error ends the
/// stream.
pub type TakeBytes<'a, E> = dyn FnMut(u64, &[u8]) -> Result<(), E> + 'a;

/// Reads rows in order, around the page cache where the file system allows it, with reads in flight ahead of whoever
/// takes the rows.
pub struct RowStream {
    files: Arc<DirectFiles>,
    rings: Rings,
}

impl RowStream {
    /// A stream over `files`; nothing is opened before the first read.
    pub fn open(files: Arc<DirectFiles>) -> RowStream {
        RowStream { files, rings: Rings::default() }
    }

    /// Hands the rows `rows` of `layout` to `take`, in order, as (first row, bytes of whole rows with their parts side by
    /// side), about half a megabyte at a time. An error of `take` ends it.
    pub fn read<E: From<ReadError>>(
        &self,
        layout: &Layout,
        rows: Range<u64>,
        take: &mut TakeBytes<'_, E>,
    ) -> Result<(), E> {
        if rows.is_empty() {
            return Ok(());
        }
        let alignment = self.files.most_alignment();
        let widest = layout.parts.iter().map(Part::width).max().unwrap_or(1);
        // A piece may begin just after one border and end just after another.
        let bytes = READ_BYTES.max(widest).next_multiple_of(alignment) + 2 * alignment;
        if Unavailable::of_the_system().is_none() && self.files.first_buffered().is_none() {
            let ring = self.rings.lease(DEPTH, bytes, &self.files);
            let ring = ring.map_err(|error| ReadError::io(self.files.path(0), error))?;
            return read(Ahead::new(ring, &self.files), layout, rows, take);
        }
        let pool = PoolQueue::new(DEPTH, bytes, &self.files, false);
        read(Ahead::new(pool, &self.files), layout, rows, take)
    }
}

/// The rows that are handed over together, in pieces: part, first row in the block, piece.
struct Blocks<'a> {
    layout: &'a Layout,
    rows: Range<u64>,
    /// Rows of a block at most.
    most: u64,
}

impl Iterator for Blocks<'_> {
    type Item = (Range<u64>, Vec<(usize, usize, Piece)>);

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.rows.start;
        if self.rows.is_empty() {
            return None;
        }
        // Cut where a shard ends, so that the rows of one part lie in one piece.
        let extent = self.layout.parts.first()?.extent_of(first);
        let end = self.rows.end.min(first + self.most).min(extent.first_row + extent.rows);
        self.rows.start = end;
        let mut pieces = Vec::with_capacity(self.layout.parts.len());
        for (index, part) in self.layout.parts.iter().enumerate() {
            let mut row = first;
            while row < end {
                let extent = *part.extent_of(row);
                let rows = end.min(extent.first_row + extent.rows) - row;
                let width = part.width() as u64;
                let offset = extent.offset + (row - extent.first_row) * width;
                pieces.push((index, (row - first) as usize, Piece { extent, offset, bytes: (rows * width) as usize }));
                row += rows;
            }
        }
        Some((first..end, pieces))
    }
}

fn read<Q: Queue, E: From<ReadError>>(
    mut ahead: Ahead<'_, Q>,
    layout: &Layout,
    rows: Range<u64>,
    take: &mut TakeBytes<'_, E>,
) -> Result<(), E> {
    let widest = layout.parts.iter().map(Part::width).max().unwrap_or(1);
    let most = (READ_BYTES / widest).max(1) as u64;
    let mut to_start = Blocks { layout, rows: rows.clone(), most }.flat_map(|(_, pieces)| pieces);
    let mut packed = Vec::new();
    for (rows, pieces) in (Blocks { layout, rows, most }) {
        for (part, at, _) in &pieces {
            while !ahead.free.is_empty() {
                let Some((_, _, piece)) = to_start.next() else { break };
                ahead.start(piece)?;
            }
            if pieces.len() == 1 {
                // Nothing to put side by side: the bytes are handed on where they are.
                let mut answer = Ok(());
                ahead.next(|bytes| answer = take(rows.start, bytes))?;
                answer?;
                continue;
            }
            let width = layout.parts[*part].width();
            let lead: usize = layout.parts[..*part].iter().map(Part::width).sum();
            packed.resize((rows.end - rows.start) as usize * layout.row_bytes(), 0);
            ahead.next(|bytes| {
                let targets = packed.chunks_exact_mut(layout.row_bytes()).skip(*at);
                for (row, target) in bytes.chunks_exact(width).zip(targets) {
                    target[lead..lead + width].copy_from_slice(row);
                }
            })?;
        }
        if pieces.len() > 1 {
            take(rows.start, &packed)?;
        }
    }
    Ok(())
}

/// Reads pieces in order, some ahead.
struct Ahead<'a, Q: Queue> {
    queue: Q,
    files: &'a DirectFiles,
    flights: VecDeque<Flight>,
    free: Vec<usize>,
    done: Vec<Completion>,
}

impl<'a, Q: Queue> Ahead<'a, Q> {
    fn new(queue: Q, files: &'a DirectFiles) -> Ahead<'a, Q> {
        let free = (0..queue.slots()).rev().collect();
        Ahead { queue, files, flights: VecDeque::new(), free, done: Vec::new() }
    }

    /// Starts reading `piece`; there is a free slot.
    fn start(&mut self, piece: Piece) -> Result<(), ReadError> {
        let Some(slot) = self.free.pop() else { return Ok(()) };
        self.flights.push_back(Flight { piece, slot, got: 0, retries: 0, done: false });
        self.push(self.flights.len() - 1)
    }

    /// Asks for what is missing of a flight.
    fn push(&mut self, flight: usize) -> Result<(), ReadError> {
        let Flight { piece, slot, got, .. } = self.flights[flight];
        let alignment = self.files.alignment(piece.extent.file);
        let start = piece.offset & !(alignment - 1);
        let bytes = (piece.offset + piece.bytes as u64 - start).next_multiple_of(alignment) as usize;
        let at = got & !(alignment as usize - 1);
        let request = Request { slot, at, file: piece.extent.file, offset: start + at as u64, bytes: bytes - at };
        // A queue that has too many files open takes no more until one of its reads has finished.
        while !self.queue.push(request)? {
            self.settle()?;
        }
        Ok(())
    }

    /// Waits for at least one read and notes what came.
    fn settle(&mut self) -> Result<(), ReadError> {
        let path = |flights: &VecDeque<Flight>| flights.front().map_or(0, |flight| flight.piece.extent.file);
        self.queue
            .wait(1, &mut self.done)
            .map_err(|error| ReadError::io(self.files.path(path(&self.flights)), error))?;
        let mut again = Vec::new();
        for Completion { slot, result } in self.done.drain(..) {
            let Some(index) = self.flights.iter().position(|flight| flight.slot == slot) else { continue };
            let flight = &mut self.flights[index];
            let file = flight.piece.extent.file;
            let came = match result.and_then(|came| fault::io("stream").map(|()| came)) {
                Ok(came) => came,
                Err(e)
                    if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
                        && flight.retries < RETRIES =>
                {
                    flight.retries += 1;
                    again.push(index);
                    continue;
                }
                Err(e) => return Err(ReadError::io(self.files.path(file), e)),
            };
            let alignment = self.files.alignment(file);
            let lead = (flight.piece.offset & (alignment - 1)) as usize;
            let reached = (flight.got & !(alignment as usize - 1)) + came;
            if reached >= lead + flight.piece.bytes {
                flight.done = true;
            } else if reached > flight.got {
                flight.got = reached;
                again.push(index);
            } else {
                let end = flight.piece.offset + flight.piece.bytes as u64;
                let what = format!("the file ends before byte {end}, where a row ends");
                // Usually the file was shortened, which the file itself tells better.
                let shortened = self.files.check(file).err();
                let ended = || ReadError::io(self.files.path(file), Error::new(ErrorKind::UnexpectedEof, what));
                return Err(shortened.unwrap_or_else(ended));
            }
        }
        again.into_iter().try_for_each(|index| self.push(index))
    }

    /// Waits for the oldest piece and hands its bytes to `take`.
    fn next(&mut self, take: impl FnOnce(&[u8])) -> Result<(), ReadError> {
        while self.flights.front().is_some_and(|flight| !flight.done) {
            self.settle()?;
        }
        let Some(Flight { piece, slot, .. }) = self.flights.pop_front() else { return Ok(()) };
        let lead = (piece.offset & (self.files.alignment(piece.extent.file) - 1)) as usize;
        take(&self.queue.buffer(slot)[lead..lead + piece.bytes]);
        self.free.push(slot);
        Ok(())
    }
}
