//! Ids that follow each other, as the relation of a table gives them, read as a scan reads.

use super::blocks::BLOCK;
use crate::ffi::CHUNK;
use engram_engine::Table;

/// The rows that one thread reads one after another.
#[derive(Default)]
pub struct Stretch {
    /// Row after the last one read.
    end: u64,
    /// Row after the last one announced.
    announced: u64,
}

impl Stretch {
    /// The first row, if `ids` are rows of the table without a gap: a full chunk of them, or the continuation of one.
    ///
    /// Fewer are gathered, which looks into the row cache that a scan passes by.
    pub fn first(&mut self, table: &Table, ids: &[i64]) -> Option<u64> {
        let first = u64::try_from(*ids.first()?).ok()?;
        let end = first + ids.len() as u64;
        let wanted = ids.len() == CHUNK || (first == self.end && end > CHUNK as u64);
        if !wanted || end > table.rows() || ids.iter().zip(ids[0]..).any(|(&id, next)| id != next) {
            return None;
        }
        // Rows come in order here, while maps are set for scattered ones: without this, each page of a cold table would
        // be waited for alone. Where a block of ids begins, or a second chunk of it follows, the rest of it is likely.
        let likely = first.is_multiple_of(BLOCK) || first == self.end;
        let block = if likely { (first / BLOCK + 1) * BLOCK } else { end };
        let until = block.max(end).min(table.rows());
        let from = if first == self.end { self.announced.max(first) } else { first };
        if until > from {
            table.announce(from..until);
        }
        self.announced = until;
        self.end = end;
        Some(first)
    }
}
