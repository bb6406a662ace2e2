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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sortable_keys_compare_as_their_row_ids_and_are_stored_as_the_keys_file_has_them() {
        for (rows, ids) in [
            (1 << 32, [0, 1, 255, 256, 65_535, 1 << 24, u32::MAX.into()]),
            (1 << 40, [0, 1, 255, 256, u32::MAX.into(), 1 << 32, (1 << 40) - 1]),
        ] {
            let shape = KeyShape::for_rows(2, rows).unwrap();
            let keys: Vec<[i64; 2]> = ids.iter().flat_map(|&a| ids.map(|b| [a, b])).collect();
            let bytes = |key: &[i64; 2]| {
                let mut bytes = vec![0; shape.bytes()];
                sortable(shape, key, &mut bytes);
                bytes
            };
            assert!(keys.is_sorted() && keys.windows(2).all(|pair| bytes(&pair[0]) < bytes(&pair[1])));
            for key in &keys {
                let (mut stored, mut expected) = (bytes(key), vec![0; shape.bytes()]);
                store(shape, &mut stored);
                assert!(shape.encode(key, &mut expected));
                assert_eq!(stored, expected);
            }
        }
    }
}
