//! Buckets and their entries.

/// Bits of an entry that hold the slot; the others hold the hash's lowest bits.
pub(super) const SLOT_BITS: u32 = 40;
/// Bytes of a bucket: a cache line.
pub(super) const BUCKET_BYTES: usize = 64;
/// Entries of a bucket.
pub(super) const ENTRIES: usize = BUCKET_BYTES / 8;
/// An entry that holds nothing.
pub(super) const EMPTY: u64 = u64::MAX;

/// Homes for `slots` entries: four fifths of the entries of all home buckets are used. Fuller tables need longer scans,
/// emptier ones more memory.
pub(super) fn homes(slots: u64) -> u64 {
    (slots * 5).div_ceil(4 * ENTRIES as u64).max(1)
}

/// The bucket where the search for a hash begins, below `homes`.
#[inline(always)]
pub(super) fn home(hash: u64, homes: u64) -> u64 {
    ((u128::from(hash) * u128::from(homes)) >> 64) as u64
}

/// The entry of a key with `hash` at `slot`.
#[inline(always)]
pub(super) fn entry(hash: u64, slot: u64) -> u64 {
    hash << SLOT_BITS | slot
}

/// The slot of an entry.
#[inline(always)]
pub(super) fn slot(entry: u64) -> u64 {
    entry & (u64::MAX >> (64 - SLOT_BITS))
}

/// The entries of a stored bucket.
#[inline(always)]
pub(super) fn entries(bucket: &[u8]) -> [u64; ENTRIES] {
    let mut entries = [EMPTY; ENTRIES];
    for (entry, word) in entries.iter_mut().zip(bucket.as_chunks::<8>().0) {
        *entry = u64::from_le_bytes(*word);
    }
    entries
}

/// Which entries of a bucket may be of a key with `hash` (one bit each), and whether the bucket has room, so that no further
/// one can hold the key.
#[inline(always)]
pub(super) fn candidates(entries: &[u64; ENTRIES], hash: u64) -> (u32, bool) {
    let (mut matches, mut empty) = (0u32, 0u32);
    for (index, &entry) in entries.iter().enumerate() {
        matches |= u32::from((entry ^ entry_of(hash)) >> SLOT_BITS == 0) << index;
        empty |= u32::from(entry == EMPTY) << index;
    }
    (matches & !empty, empty != 0)
}

#[inline(always)]
fn entry_of(hash: u64) -> u64 {
    entry(hash, 0)
}
