//! Rows decoded into one large output, past the caches.

use super::Decoder;

/// Decodes rows into an output so large that the caches would not keep it, without reading its memory first.
///
/// Made by [`Decoder::stream`]. It pays from about the size of the last cache on; below, [`Decoder::decode`] is faster.
/// The output can be looked at again when this value is dropped, which waits for its stores.
pub struct Stream<'a> {
    decoder: &'a Decoder,
    dim: usize,
    out: &'a mut [f32],
}

impl Decoder {
    /// Rows of `dim` values into `out`: row `i` belongs at `i * dim`. Fastest if `out` begins at a multiple of 64 bytes
    /// and `dim` is a multiple of 16; right in any case.
    pub fn stream<'a>(&'a self, dim: usize, out: &'a mut [f32]) -> Stream<'a> {
        Stream { decoder: self, dim, out }
    }
}

impl Stream<'_> {
    /// Decodes the row at `position`, as [`Decoder::decode`].
    ///
    /// # Panics
    /// If the output has no row `position`.
    #[inline]
    pub fn decode(&mut self, position: usize, values: &[u8], scales: &[u8]) {
        self.decoder.decode_streamed(values, scales, &mut self.out[position * self.dim..][..self.dim]);
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.decoder.fence();
    }
}
