//! Numbers in records that are compared as byte strings.

use crate::slot_index::KeyShape;

/// Reads the number at the beginning of `bytes`.
#[expect(clippy::big_endian_bytes, reason = "big endian numbers compare as their bytes")]
pub(super) fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_be_bytes(word)
}

/// Writes a number to the beginning of `bytes`.
#[expect(clippy::big_endian_bytes, reason = "big endian numbers compare as their bytes")]
pub(super) fn put(bytes: &mut [u8], number: u64) {
    bytes[..8].copy_from_slice(&number.to_be_bytes());
}

/// Adds to the number at the beginning of `bytes`.
pub(super) fn add_to(bytes: &mut [u8], more: u64) {
    let sum = number(bytes) + more;
    put(bytes, sum);
}

/// Writes `key`, whose row ids are in range, so that it compares as its row ids do.
#[expect(clippy::big_endian_bytes, reason = "big endian numbers compare as their bytes")]
pub(super) fn sortable(shape: KeyShape, key: &[i64], out: &mut [u8]) {
    if shape.key_bytes() == 4 {
        for (out, &id) in out.as_chunks_mut::<4>().0.iter_mut().zip(key) {
            *out = (id as u32).to_be_bytes();
        }
    } else {
        for (out, &id) in out.as_chunks_mut::<8>().0.iter_mut().zip(key) {
            *out = id.to_be_bytes();
        }
    }
}

/// Turns a sortable key into one of the keys file.
pub(super) fn store(shape: KeyShape, key: &mut [u8]) {
    key.chunks_exact_mut(shape.key_bytes()).for_each(<[u8]>::reverse);
}
