//! Numbers in records that are compared as byte strings.

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

/// How the row ids of a key are kept while keys are sorted, and how in the keys file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyShape {
    /// Row ids of a key.
    pub(super) heads: usize,
    /// Bytes of a row id, 4 or 8.
    pub(super) key_bytes: usize,
}

impl KeyShape {
    /// For row ids of a table of `rows` rows.
    pub(super) fn new(heads: usize, rows: u64) -> KeyShape {
        KeyShape { heads, key_bytes: if rows > 1 << 32 { 8 } else { 4 } }
    }

    /// Bytes of a key.
    pub(super) fn bytes(self) -> usize {
        self.heads * self.key_bytes
    }

    /// Writes `key`, whose row ids are in range, so that it compares as its row ids do.
    #[expect(clippy::big_endian_bytes, reason = "big endian numbers compare as their bytes")]
    pub(super) fn sortable(self, key: &[i64], out: &mut [u8]) {
        if self.key_bytes == 4 {
            for (out, &id) in out.as_chunks_mut::<4>().0.iter_mut().zip(key) {
                *out = (id as u32).to_be_bytes();
            }
        } else {
            for (out, &id) in out.as_chunks_mut::<8>().0.iter_mut().zip(key) {
                *out = id.to_be_bytes();
            }
        }
    }

    /// Turns a sortable key into one of the keys file, and back.
    pub(super) fn reverse(self, key: &mut [u8]) {
        key.chunks_exact_mut(self.key_bytes).for_each(<[u8]>::reverse);
    }

    /// Writes `key`, whose row ids are in range, as the keys file has it.
    pub(super) fn stored(self, key: &[i64], out: &mut [u8]) {
        if self.key_bytes == 4 {
            for (out, &id) in out.as_chunks_mut::<4>().0.iter_mut().zip(key) {
                *out = (id as u32).to_le_bytes();
            }
        } else {
            for (out, &id) in out.as_chunks_mut::<8>().0.iter_mut().zip(key) {
                *out = id.to_le_bytes();
            }
        }
    }

    /// Reads keys of the keys file.
    pub(super) fn read(self, stored: &[u8], ids: &mut [i64]) {
        if self.key_bytes == 4 {
            for (id, bytes) in ids.iter_mut().zip(stored.as_chunks::<4>().0) {
                *id = u32::from_le_bytes(*bytes).into();
            }
        } else {
            for (id, bytes) in ids.iter_mut().zip(stored.as_chunks::<8>().0) {
                *id = i64::from_le_bytes(*bytes);
            }
        }
    }
}
