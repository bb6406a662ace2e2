//! Scratch memory that is kept from chunk to chunk.

/// The first `len` elements, more of them if there are too few; they hold what was last written.
pub fn grown<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
    &mut buffer[..len]
}
