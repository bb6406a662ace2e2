//! A cache line of the index: seven entries and their use counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// Entries of a bucket.
pub(super) const LANES: usize = 7;

/// Row ids from here on are not kept: a key is 37 bits.
pub(super) const ID_LIMIT: u64 = 1 << 37;

/// Highest counter of a row in use.
pub(super) const MOST_USED: u8 = 3;
/// Counter of a row that waits for its first use; counted down it stays above `MOST_USED` for four rounds.
pub(super) const AWAITED: u8 = 7;

/// A free entry.
pub(super) const EMPTY: u32 = 0;
/// The entry of a row that was evicted.
pub(super) const GHOST: u32 = 1;
/// Slots are stored above the two marks.
pub(super) const FIRST_SLOT: u32 = 2;
/// Slots that can be numbered.
pub(super) const SLOT_LIMIT: u64 = (u32::MAX - FIRST_SLOT) as u64;

/// One cache line: seven entries, all zero when empty.
#[repr(C, align(64))]
pub(super) struct Bucket {
    /// Low 32 bits of the row ids.
    keys: [u32; LANES],
    pub(super) slots: [u32; LANES],
    /// Byte `lane`: bits 0-4 the high bits of the row id, bits 5-7 its counter. Byte 7: how many entries whose probe
    /// began here or earlier went on to the next bucket (255: that many or more, for good).
    meta: AtomicU64,
}

impl Bucket {
    pub(super) fn empty() -> Bucket {
        Bucket { keys: [0; LANES], slots: [0; LANES], meta: AtomicU64::new(0) }
    }

    #[inline(always)]
    fn meta(&self) -> u64 {
        self.meta.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn overflow(&self) -> u64 {
        self.meta() >> 56
    }

    pub(super) fn add_overflow(&mut self, step: i64) {
        let meta = self.meta.get_mut();
        let count = *meta >> 56;
        if count != 255 {
            *meta = *meta & (u64::MAX >> 8) | ((count as i64 + step) as u64) << 56;
        }
    }

    /// The lane that holds `id`, live or ghost.
    #[inline(always)]
    pub(super) fn lane_of(&self, id: u64) -> Option<usize> {
        let mut equal = 0u32;
        for lane in 0..LANES {
            equal |= u32::from(self.keys[lane] == id as u32 && self.slots[lane] != EMPTY) << lane;
        }
        while equal != 0 {
            let lane = equal.trailing_zeros() as usize;
            if self.meta() >> (8 * lane) & 31 == id >> 32 {
                return Some(lane);
            }
            equal &= equal - 1;
        }
        None
    }

    #[inline(always)]
    pub(super) fn counter(&self, lane: usize) -> u8 {
        (self.meta() >> (8 * lane + 5) & 7) as u8
    }

    /// Sets a counter, with others reading or setting theirs: a setting that gets lost costs a little precision.
    #[inline(always)]
    pub(super) fn set_counter(&self, lane: usize, counter: u8) {
        let shift = 8 * lane + 5;
        let meta = self.meta() & !(7 << shift) | u64::from(counter) << shift;
        self.meta.store(meta, Ordering::Relaxed);
    }

    pub(super) fn put(&mut self, lane: usize, id: u64, slot: u32, counter: u8) {
        self.keys[lane] = id as u32;
        self.slots[lane] = slot;
        let meta = self.meta.get_mut();
        *meta = *meta & !(255 << (8 * lane)) | (id >> 32 | u64::from(counter) << 5) << (8 * lane);
    }

    pub(super) fn id(&self, lane: usize) -> u64 {
        u64::from(self.keys[lane]) | (self.meta() >> (8 * lane) & 31) << 32
    }
}
