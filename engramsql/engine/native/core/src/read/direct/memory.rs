//! Aligned memory that the disk writes to. Unsafe code lives here.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::NonNull;

/// Zeroed memory, aligned for direct reads.
///
/// It is shared with forked children instead of copied on write. While a direct read is under way, a fork makes private
/// pages ones that the next write replaces, and the disk then writes to a page that nobody looks at (open(2) on
/// `O_DIRECT`). A child never looks at it.
pub(crate) struct Memory {
    /// The mapping and its length.
    mapping: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to its `Memory` alone, as a `Vec<u8>`'s belongs to the vector.
unsafe impl Send for Memory {}

impl Memory {
    /// `bytes` zeros at a multiple of `alignment`, a power of two, and of a page.
    pub(crate) fn new(bytes: usize, alignment: usize) -> std::io::Result<Memory> {
        let refused = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        // A mapping begins on a page; a disk that asks for more gets it from the slack.
        let slack = if alignment <= rustix::param::page_size() { 0 } else { alignment };
        let mapped = bytes.max(1).checked_add(slack).ok_or_else(refused)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
        let raw = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, protection, MapFlags::SHARED)? };
        let mapping = NonNull::new(raw.cast::<u8>()).ok_or_else(refused)?;
        let lead = if slack == 0 { 0 } else { mapping.as_ptr().addr().wrapping_neg() % alignment };
        // SAFETY: `lead` is below `alignment`, by which the mapping is longer than `bytes`, or 0.
        let start = unsafe { mapping.add(lead) };
        Ok(Memory { mapping, mapped, start, bytes: bytes.max(1) })
    }

    /// Where it begins, for a kernel that writes while nobody holds a slice.
    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is that long from `start` on, was zeroed, and is written to only through `bytes_mut` or by
        // whoever uses `as_ptr` and then answers for it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, unmapped once. It cannot fail for a whole mapping.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}
