//! Two tables, bit for bit: the second proof of a copy, beside its checksums.
//!
//! Each table is streamed by a thread of its own, so that neither waits for the other longer than the disk makes it. What
//! is held is the reads in flight and a few blocks of the one that is ahead.

use super::error::VerifyError;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::read::ReadError;
use crate::table::Table;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

/// Blocks (half a megabyte each) that one table may be ahead of the other.
const AHEAD: usize = 4;

/// A row that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Its row id.
    pub rowid: u64,
    /// Its first byte that differs, counted from 0.
    pub byte: u64,
    /// That byte in the first table.
    pub a: u8,
    /// And in the second.
    pub b: u8,
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Rows compared: all rows.
    pub rows: u64,
    /// Rows whose bytes are all equal.
    pub equal: u64,
    /// The others.
    pub different: u64,
    /// The first of those, in row order.
    pub first: Vec<Difference>,
}

/// Takes the rows that differ, in row order; an error ends the comparison.
pub type TakeDifference<'a> = dyn FnMut(Difference) -> Result<()> + 'a;

/// Compares two tables byte for byte, whatever sources they are of: rows as [`Table::fetch_into`] gives them. The first
/// `keep` differences are in the answer; all of them go to `different`, if given.
///
/// # Errors
/// [`VerifyError::RowBytes`] and [`VerifyError::Rows`] for tables of different shape, [`Error::Cancelled`], and what reading
/// either of them meets.
pub fn compare(
    a: &Table,
    b: &Table,
    keep: usize,
    progress: &Progress,
    different: Option<&mut TakeDifference<'_>>,
) -> Result<Comparison> {
    let names = || (a.name().to_owned(), b.name().to_owned());
    if a.row_bytes() != b.row_bytes() {
        let ((a_name, b_name), a_bytes, b_bytes) = (names(), a.row_bytes(), b.row_bytes());
        return Err(VerifyError::RowBytes { a: a_name, b: b_name, a_bytes, b_bytes }.into());
    }
    if a.rows() != b.rows() {
        let ((a_name, b_name), a_rows, b_rows) = (names(), a.rows(), b.rows());
        return Err(VerifyError::Rows { a: a_name, b: b_name, a_rows, b_rows }.into());
    }
    progress.begin("compare", a.bytes() + b.bytes());
    let mut tally = Tally { width: a.row_bytes(), keep, found: Comparison::default(), different };
    let (full, blocks) = sync_channel(AHEAD);
    let (empty, spare) = channel();
    std::thread::scope(|scope| {
        let read = move || {
            b.stream(0..b.rows(), &mut |_, bytes| {
                let mut block: Vec<u8> = spare.try_recv().unwrap_or_default();
                block.clear();
                block.extend_from_slice(bytes);
                // Nobody listens once the other table has met an error, which is the one to tell.
                full.send(block).map_err(|_| Error::Cancelled)
            })
        };
        let thread = std::thread::Builder::new().name("engramsql-compare".to_owned());
        let thread = thread.spawn_scoped(scope, read).map_err(|error| ReadError::io(b.source(), error))?;
        let mut other = Other { blocks, empty, block: Vec::new(), at: 0 };
        let mine = a.stream(0..a.rows(), &mut |first, bytes| {
            // Two bytes were read for each that is compared.
            progress.advance(2 * bytes.len() as u64)?;
            let (mut row, mut bytes) = (first, bytes);
            while !bytes.is_empty() {
                let others = other.rest()?;
                let both = bytes.len().min(others.len());
                tally.compare(row, &bytes[..both], &others[..both])?;
                other.at += both;
                row += (both / tally.width) as u64;
                bytes = &bytes[both..];
            }
            Ok(())
        });
        drop(other);
        let theirs = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (mine, theirs) {
            // One side ends when the other does.
            (Err(Error::Cancelled), Err(error)) | (Err(error), _) | (Ok(()), Err(error)) => Err(error),
            (Ok(()), Ok(())) => Ok(tally.found),
        }
    })
}

/// The bytes of the table that another thread reads.
struct Other {
    blocks: Receiver<Vec<u8>>,
    /// Blocks go back, so that none is allocated anew.
    empty: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

impl Other {
    /// What was read and not compared yet: at least one row.
    fn rest(&mut self) -> Result<&[u8]> {
        while self.at == self.block.len() {
            // A closed channel: its thread has met an error, which is told when it is joined.
            let block = self.blocks.recv().map_err(|_| Error::Cancelled)?;
            let _ = self.empty.send(std::mem::replace(&mut self.block, block));
            self.at = 0;
        }
        Ok(&self.block[self.at..])
    }
}

struct Tally<'a, 'b> {
    width: usize,
    keep: usize,
    found: Comparison,
    different: Option<&'a mut TakeDifference<'b>>,
}

impl Tally<'_, '_> {
    /// Compares whole rows from row `first` on.
    fn compare(&mut self, first: u64, a: &[u8], b: &[u8]) -> Result<()> {
        let rows = (a.len() / self.width) as u64;
        self.found.rows += rows;
        if a == b {
            self.found.equal += rows;
            return Ok(());
        }
        for (rowid, (a, b)) in (first..).zip(a.chunks_exact(self.width).zip(b.chunks_exact(self.width))) {
            let Some(byte) = a.iter().zip(b).position(|(a, b)| a != b) else {
                self.found.equal += 1;
                continue;
            };
            let difference = Difference { rowid, byte: byte as u64, a: a[byte], b: b[byte] };
            self.found.different += 1;
            if self.found.first.len() < self.keep {
                self.found.first.push(difference);
            }
            if let Some(different) = &mut self.different {
                different(difference)?;
            }
        }
        Ok(())
    }
}
