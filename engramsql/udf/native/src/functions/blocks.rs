//! Rows of a scan shared between threads, block by block.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows that a thread takes at once: enough that the counter costs nothing, few enough to share a small table.
pub const BLOCK: u64 = 8 * 2048;
/// More threads than any machine gives DuckDB.
const MAX_THREADS: u64 = 1024;

/// The rows that no thread has taken yet.
pub struct Blocks {
    next: AtomicU64,
    end: u64,
}

/// What is left of the block that a thread is at.
#[derive(Default)]
pub struct Block {
    at: u64,
    end: u64,
}

impl Blocks {
    /// All of `rows`.
    pub fn new(rows: Range<u64>) -> Blocks {
        Blocks { next: AtomicU64::new(rows.start), end: rows.end }
    }

    /// Threads that `rows` rows keep busy.
    pub fn threads(rows: u64) -> usize {
        rows.div_ceil(BLOCK).clamp(1, MAX_THREADS) as usize
    }

    /// The next rows of a thread, at most `most` and none at the end, and the whole block if they are its first.
    pub fn take(&self, block: &mut Block, most: usize) -> (Range<u64>, Option<Range<u64>>) {
        let fresh = block.at == block.end;
        if fresh {
            let next = self.next.fetch_add(BLOCK, Ordering::Relaxed);
            block.at = next.min(self.end);
            block.end = next.saturating_add(BLOCK).min(self.end);
        }
        let rows = block.at..block.end.min(block.at.saturating_add(most as u64));
        let whole = fresh.then_some(block.at..block.end);
        block.at = rows.end;
        (rows, whole)
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Block, Blocks};

    #[test]
    fn blocks_are_taken_once_and_in_parts() {
        let blocks = Blocks::new(5..BLOCK + 7);
        let (mut one, mut two) = (Block::default(), Block::default());
        assert_eq!(blocks.take(&mut one, 2048), (5..2053, Some(5..BLOCK + 5)));
        assert_eq!(blocks.take(&mut two, 2048), (BLOCK + 5..BLOCK + 7, Some(BLOCK + 5..BLOCK + 7)));
        assert_eq!(blocks.take(&mut one, usize::MAX), (2053..BLOCK + 5, None));
        assert!(blocks.take(&mut one, 2048).0.is_empty());
        assert!(blocks.take(&mut two, 2048).0.is_empty());
    }
}
