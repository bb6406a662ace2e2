//! Aligned memory that the disk writes to. Unsafe code lives here.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// The least alignment: it suits every disk that does not ask for more, and a row's read rarely touches two pages.
const PAGE: usize = 4096;

/// A zeroed allocation, aligned for direct reads.
pub(super) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to its `Memory` alone, as a `Vec<u8>`'s belongs to the vector.
unsafe impl Send for Memory {}

impl Memory {
    /// `bytes` zeros at a multiple of `alignment`, a power of two, and of a page.
    pub(super) fn new(bytes: usize, alignment: usize) -> std::io::Result<Memory> {
        let refused = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let layout = Layout::from_size_align(bytes.max(1), alignment.max(PAGE)).map_err(|_| refused())?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refused)?;
        Ok(Memory { start, layout })
    }

    /// Where it begins, for a kernel that writes while nobody holds a slice.
    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation is that long, was zeroed, and is written to only through `bytes_mut` or by whoever
        // uses `as_ptr` and then answers for it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
