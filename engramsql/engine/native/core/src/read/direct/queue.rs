//! Carrying out a plan of reads through a queue that has many of them in flight.

use super::files::DirectFiles;
use super::handover::Handover;
use super::planner::{Planner, Segment};
use crate::read::{ReadError, Tally};
use std::io::{Error, ErrorKind, Result};

/// While more reads are to come, the queue is asked for this many finished ones at once: it stays 7/8 full, and the
/// system is called once for 16 rows instead of once a row.
const WAKE: usize = 16;

/// How often the system may say "interrupted" or "try again" to one read before it counts as failed.
const RETRIES: u32 = 1000;

/// A read: `bytes` from `offset` of file `file` into the buffer of `slot`, from its byte `at` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) slot: usize,
    pub(super) at: usize,
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) bytes: usize,
}

/// A finished read: bytes that came, or what the system said.
#[derive(Debug)]
pub(super) struct Completion {
    pub(super) slot: usize,
    pub(super) result: Result<usize>,
}

/// Has reads in flight, each into the buffer of its slot. Dropped at any moment, it frees no buffer that is written to.
pub(super) trait Queue {
    /// Number of slots.
    fn slots(&self) -> usize;
    /// Starts a read in a slot that is not busy, or returns false if it can only after another one has finished; with
    /// nothing in flight it can.
    fn push(&mut self, request: Request) -> std::result::Result<bool, ReadError>;
    /// Waits for `enough` finished reads, or fewer after an interruption, and takes all that have finished. At least as
    /// many are in flight.
    fn wait(&mut self, enough: usize, done: &mut Vec<Completion>) -> Result<()>;
    /// The buffer of a slot that is not busy.
    fn buffer(&self, slot: usize) -> &[u8];
}

/// A segment being read.
#[derive(Debug, Clone, Copy)]
struct Flight {
    segment: Segment,
    /// Bytes that came, from the segment's start.
    got: usize,
    retries: u32,
}

impl Flight {
    /// The read for what is still missing. Where a read ended early, it goes on from the last aligned byte.
    fn request(&self, slot: usize, alignment: u64) -> Request {
        let at = self.got & !(alignment as usize - 1);
        let Segment { extent, start, bytes, .. } = self.segment;
        Request { slot, at, file: extent.file, offset: start + at as u64, bytes: bytes - at }
    }
}

/// Reads all that `planner` plans and hands it over.
pub(super) fn drive<Q: Queue>(
    queue: &mut Q,
    files: &DirectFiles,
    mut planner: Planner<'_>,
    mut handover: Handover<'_>,
    tally: &mut Tally,
) -> std::result::Result<(), ReadError> {
    // 16 rows need no lists for 128 reads.
    let slots = queue.slots().min(planner.most_segments());
    let mut flights: Vec<Option<Flight>> = vec![None; slots];
    let mut free: Vec<usize> = (0..slots).rev().collect();
    // Slots whose read is to be started: a new one, or one that needs another attempt.
    let mut starting: Vec<usize> = Vec::new();
    let mut done = Vec::with_capacity(slots);
    let mut in_flight: usize = 0;
    loop {
        loop {
            let slot = match starting.last() {
                Some(&slot) => slot,
                None => {
                    let Some(&slot) = free.last() else { break };
                    let Some(segment) = planner.next(handover.oldest(), in_flight == 0) else { break };
                    free.pop();
                    flights[slot] = Some(Flight { segment, got: 0, retries: 0 });
                    starting.push(slot);
                    slot
                }
            };
            let Some(flight) = &flights[slot] else { break };
            if !queue.push(flight.request(slot, files.alignment(flight.segment.extent.file)))? {
                break;
            }
            starting.pop();
            in_flight += 1;
        }
        if in_flight == 0 {
            return Ok(());
        }
        // At the end by halves: one call for each of the last reads would cost more than it hides.
        let enough = if planner.is_done() { in_flight.div_ceil(2) } else { in_flight.min(WAKE) };
        if let Err(error) = queue.wait(enough, &mut done) {
            let file = flights.iter().flatten().next().map_or(0, |flight| flight.segment.extent.file);
            return Err(ReadError::io(files.path(file), error));
        }
        for Completion { slot, result } in done.drain(..) {
            in_flight -= 1;
            let Some(flight) = &mut flights[slot] else { continue };
            let file = flight.segment.extent.file;
            let came = match result {
                Ok(bytes) => bytes,
                Err(e) if again(&e) && flight.retries < RETRIES => {
                    flight.retries += 1;
                    starting.push(slot);
                    continue;
                }
                Err(e) => return Err(ReadError::io(files.path(file), e)),
            };
            tally.reads += 1;
            tally.bytes_read += came as u64;
            let reached = flight.request(slot, files.alignment(file)).at + came;
            if reached >= flight.segment.needed {
                handover.take(&flight.segment, queue.buffer(slot));
                flights[slot] = None;
                free.push(slot);
            } else if reached > flight.got {
                flight.got = reached;
                starting.push(slot);
            } else {
                return Err(ended(files, file, flight.segment.start + flight.segment.needed as u64));
            }
        }
    }
}

fn again(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

/// The error for a file that ends before byte `end`.
fn ended(files: &DirectFiles, file: usize, end: u64) -> ReadError {
    // Usually the file was shortened, which the file itself tells better.
    files.check(file).err().unwrap_or_else(|| {
        let what = format!("the file ends before byte {end}, where a row ends");
        ReadError::io(files.path(file), Error::new(ErrorKind::UnexpectedEof, what))
    })
}
