//! The slot indexes of engramdb ("DiskSlotIndex", versions 1 to 3), read and written byte for byte.
//!
//! A record is the row ids of a key (u64, head order) and its slot (u64). Records lie in bucket `hash(row ids) mod
//! num_buckets`, sorted as byte strings; equal keys are neighbours, in the order of their slots' little-endian bytes.
//!
//! | version | data | hash |
//! | --- | --- | --- |
//! | 1 | `buckets/NNNN.bin`, one file per bucket that has records | BLAKE2b |
//! | 2 | the same | FNV-1a |
//! | 3 | `data.bin`, all buckets in order, and `offsets.bin`, where each begins and the last one ends (u64) | either |
//!
//! `index.json` describes them. Layouts: engramdb-python 0.3.0, `disk_slot_index.py`, and files that it wrote.

mod hash;
mod manifest;
mod reader;
mod writer;

pub use hash::PeerHash;
pub use reader::{PeerIndex, TakeEntries};
pub use writer::{PeerOptions, PeerWriter, write, write_keys};

/// Buckets that engramdb's builders make unless told otherwise.
pub const DEFAULT_BUCKETS: u64 = 16384;

/// Bytes of a record of a key of `heads` row ids.
fn record_bytes(heads: usize) -> usize {
    8 * heads + 8
}

#[cfg(test)]
mod tests;
