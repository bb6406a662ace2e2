//! Slab memory and prefetching. All unsafe code of the cache lives here.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a slab, and its alignment: one huge page of x86_64 and aarch64 (4 KiB base pages).
pub(super) const SLAB_BYTES: usize = 2 << 20;

/// Types that a slab of zero bytes holds validly.
///
/// # Safety
/// All-zero bytes are a valid value, there is no destructor, and size and alignment are powers of two of at most 4096.
pub(super) unsafe trait Plain: Send + Sync {}

// SAFETY: every bit pattern is a u8.
unsafe impl Plain for u8 {}
// SAFETY: integers, zero of which are empty entries; no destructor; size and alignment are 64.
unsafe impl Plain for super::bucket::Bucket {}

/// `SLAB_BYTES` of private, zeroed memory as a slice of `T`, given back to the system when dropped.
pub(super) struct SlabMemory<T: Plain> {
    start: NonNull<T>,
    owned: PhantomData<T>,
}

// SAFETY: the memory is owned like a Box<[T]>, and T is Send.
unsafe impl<T: Plain> Send for SlabMemory<T> {}
// SAFETY: as for Box<[T]>; T is Sync.
unsafe impl<T: Plain> Sync for SlabMemory<T> {}

impl<T: Plain> SlabMemory<T> {
    /// Maps a slab and faults it in, so that nobody waits for zeroed pages under a lock.
    pub(super) fn map() -> std::io::Result<SlabMemory<T>> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
        // Twice the size holds an aligned slab wherever the system puts it; the rest is given back.
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the system's choice touches nothing that exists.
        let raw = unsafe { mmap_anonymous(std::ptr::null_mut(), 2 * SLAB_BYTES, protection, MapFlags::PRIVATE)? };
        let lead = raw.addr().wrapping_neg() % SLAB_BYTES;
        let start = raw.wrapping_byte_add(lead);
        // SAFETY: both ranges lie in the mapping just made, outside of the slab, and nobody has their addresses. They are
        // whole pages: the mapping begins on a page and SLAB_BYTES is a multiple of any page size that Linux uses.
        unsafe {
            if lead > 0 {
                munmap(raw, lead)?;
            }
            munmap(start.wrapping_byte_add(SLAB_BYTES), SLAB_BYTES - lead)?;
        }
        #[cfg(target_os = "linux")]
        // SAFETY: the slab is ours; neither call changes what it holds. Both are hints: where they are refused the
        // pages are small (0.6 ms a slab instead of 0.23, November 2026), or come at the first touch.
        unsafe {
            let _ = madvise(start, SLAB_BYTES, Advice::LinuxHugepage);
            let _ = madvise(start, SLAB_BYTES, Advice::LinuxPopulateWrite);
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| std::io::Error::other("a slab at address 0"))?;
        Ok(SlabMemory { start, owned: PhantomData })
    }
}

impl<T: Plain> Deref for SlabMemory<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `start` begins SLAB_BYTES of initialised (zeroed) memory aligned beyond T, mapped until drop; T is
        // valid for zero bytes; writes go through `deref_mut` only, which borrows exclusively.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), SLAB_BYTES / size_of::<T>()) }
    }
}

impl<T: Plain> DerefMut for SlabMemory<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), SLAB_BYTES / size_of::<T>()) }
    }
}

impl<T: Plain> Drop for SlabMemory<T> {
    fn drop(&mut self) {
        // SAFETY: the slab was mapped by `map` and no reference into it outlives `self`. A refusal would leak it.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), SLAB_BYTES) };
    }
}

/// Asks for the cache line of `value`; a hint without effect on results.
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching needs no valid address, and this one is valid; SSE is part of x86_64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Asks for every cache line of `row`.
#[inline(always)]
pub(super) fn prefetch_row(row: &[u8]) {
    for line in row.chunks(64) {
        prefetch(&line[0]);
    }
    // A row that begins inside a line ends one line later.
    if let Some(last) = row.last() {
        prefetch(last);
    }
}

/// Physical memory in bytes, if the system says.
pub(super) fn physical_memory() -> Option<u64> {
    // SAFETY: sysconf reads a number and takes no pointers.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(page).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_is_aligned_zeroed_and_writable() {
        let mut slabs: Vec<SlabMemory<u8>> = (0..4).map(|_| SlabMemory::map().unwrap()).collect();
        for (number, slab) in slabs.iter_mut().enumerate() {
            assert_eq!(slab.as_ptr().addr() % SLAB_BYTES, 0);
            assert_eq!(slab.len(), SLAB_BYTES);
            assert!(slab.iter().all(|&byte| byte == 0));
            slab.fill(number as u8 + 1);
        }
        assert!(slabs.iter().zip(1u8..).all(|(slab, byte)| slab.iter().all(|&b| b == byte)));
    }
}
