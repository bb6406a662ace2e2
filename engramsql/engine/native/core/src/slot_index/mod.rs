//! From a key to its slot: which record of a view belongs to a tuple of row ids.
//!
//! [`Keys`] is the way from slot to key: the view's keys file, mapped. [`SlotIndex`] is the way back: a table of 64-byte
//! buckets, one cache line each, of eight entries. An entry is 24 bits of the key's hash and a slot, so that a lookup
//! usually costs two cache misses: the bucket, and the key that proves the answer. Answers are exact: a slot is given only
//! after its whole key was compared. [`peer`] reads and writes the slot indexes of engramdb.
//!
//! The home of a key is `hash * homes >> 64`. Entries lie in order of hash and slot, each in the first bucket from its home
//! on that has room, so a lookup ends at the first bucket with an empty entry, equal keys lie in order of their slots, and
//! the file is written from its beginning to its end. It ends with a bucket that has room: nothing wraps around.

mod build;
mod damage;
mod entry;
mod error;
mod keys;
mod lookup;
mod manifest;
pub mod peer;
mod sorter;

pub use error::SlotIndexError;
pub use keys::{KeyShape, Keys};
pub use lookup::SlotIndex;
pub use manifest::IndexManifest;

/// Row ids of one key at most; released models have 16 to 128.
pub const MOST_HEADS: usize = 4096;
/// Slots at most: an entry has 40 bits for a slot, and all ones stand for "empty".
pub const MOST_SLOTS: u64 = (1 << entry::SLOT_BITS) - 1;

#[cfg(test)]
mod tests;
