//! Memory whose address suits reads around the page cache.

/// Strictest alignment that a block device asks for.
pub(super) const ALIGNMENT: usize = 4096;

/// Bytes that start at a multiple of [`ALIGNMENT`].
pub(super) struct AlignedBytes {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// `len` bytes, every page of them present: the first touch of a page is no part of a measurement.
    pub(super) fn new(len: usize) -> AlignedBytes {
        let mut bytes = vec![0u8; len + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        for page in bytes.chunks_mut(ALIGNMENT) {
            // Not optimised away: zeroed pages are shared until they are written to.
            std::hint::black_box(&mut *page)[0] = 1;
        }
        AlignedBytes { bytes, start, len }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}
