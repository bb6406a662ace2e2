//! The RAM budget: whole slabs, taken and given back by compare and swap, so that no interleaving exceeds it.

use super::memory::{Plain, SLAB_BYTES, SlabMemory};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many slabs may be held, and how many are.
pub(super) struct Budget {
    bytes: AtomicU64,
    explicit: AtomicBool,
    /// Slabs allowed in the upper half, slabs held in the lower: one word, or a slab could slip in between a lowered
    /// budget and the count that proves it kept.
    slabs: AtomicU64,
}

const HELD: u64 = u32::MAX as u64;

fn allowed_slabs(bytes: u64) -> u64 {
    (bytes / SLAB_BYTES as u64).min(HELD)
}

impl Budget {
    pub(super) fn new(bytes: u64, explicit: bool) -> Budget {
        Budget {
            bytes: AtomicU64::new(bytes),
            explicit: AtomicBool::new(explicit),
            slabs: AtomicU64::new(allowed_slabs(bytes) << 32),
        }
    }

    /// Sets the budget; slabs beyond it are the caller's to free.
    pub(super) fn set(&self, bytes: u64, explicit: bool) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.explicit.store(explicit, Ordering::Relaxed);
        let _ = self
            .slabs
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |slabs| Some(allowed_slabs(bytes) << 32 | slabs & HELD));
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn is_explicit(&self) -> bool {
        self.explicit.load(Ordering::Relaxed)
    }

    /// Bytes of all slabs held.
    pub(super) fn held_bytes(&self) -> u64 {
        (self.slabs.load(Ordering::Acquire) & HELD) * SLAB_BYTES as u64
    }

    /// Whether one more slab would fit.
    pub(super) fn has_room(&self) -> bool {
        let slabs = self.slabs.load(Ordering::Acquire);
        slabs & HELD < slabs >> 32
    }

    /// Whether slabs must be freed.
    pub(super) fn is_exceeded(&self) -> bool {
        let slabs = self.slabs.load(Ordering::Acquire);
        slabs & HELD > slabs >> 32
    }

    fn reserve(self: &Arc<Budget>) -> Option<Lease> {
        let take = |slabs: u64| (slabs & HELD < slabs >> 32).then_some(slabs + 1);
        self.slabs.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok().map(|_| Lease(self.clone()))
    }
}

/// The right to hold one slab; dropping it returns the right.
struct Lease(Arc<Budget>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.slabs.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A slab that is counted against a budget.
pub(super) struct Slab<T: Plain> {
    // Before the lease: memory is counted until it is gone.
    memory: SlabMemory<T>,
    _lease: Lease,
}

impl<T: Plain> Slab<T> {
    /// A new slab, or `None` if the budget is spent or the system has no memory.
    pub(super) fn new(budget: &Arc<Budget>) -> Option<Slab<T>> {
        let lease = budget.reserve()?;
        Some(Slab { memory: SlabMemory::map().ok()?, _lease: lease })
    }
}

impl<T: Plain> Deref for Slab<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.memory
    }
}

impl<T: Plain> DerefMut for Slab<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory
    }
}
