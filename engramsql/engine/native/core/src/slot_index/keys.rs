//! The keys of a view: the row ids of every slot, in slot order.

use super::{MOST_HEADS, MOST_SLOTS, SlotIndexError};
use crate::error::Result;
use crate::read::{FileMap, FileWatch, ReadError};
use crate::source::{FileStamp, SourceError};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes that a pass over all keys reads at once.
const PIECE: usize = 1 << 20;

/// How a key is stored: its row ids in head order, unsigned and little endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyShape {
    heads: usize,
    key_bytes: usize,
}

impl KeyShape {
    /// Keys of `heads` row ids of `key_bytes` bytes (4 or 8).
    ///
    /// # Errors
    /// [`SlotIndexError::KeyShape`] for other numbers.
    pub fn new(heads: usize, key_bytes: usize) -> Result<KeyShape, SlotIndexError> {
        if (1..=MOST_HEADS).contains(&heads) && matches!(key_bytes, 4 | 8) {
            Ok(KeyShape { heads, key_bytes })
        } else {
            Err(SlotIndexError::KeyShape { heads: heads as u64, key_bytes: key_bytes as u64 })
        }
    }

    /// The narrowest shape for row ids of a table of `rows` rows.
    pub fn for_rows(heads: usize, rows: u64) -> Result<KeyShape, SlotIndexError> {
        KeyShape::new(heads, if rows > 1 << 32 { 8 } else { 4 })
    }

    /// Row ids per key.
    pub fn heads(self) -> usize {
        self.heads
    }

    /// Bytes per row id, 4 or 8.
    pub fn key_bytes(self) -> usize {
        self.key_bytes
    }

    /// Bytes per key.
    pub fn bytes(self) -> usize {
        self.heads * self.key_bytes
    }

    /// Stores `key` (`heads` row ids) in `out` ([`bytes`](KeyShape::bytes) long); `false` if a row id does not fit: no
    /// key of this shape has it.
    #[inline]
    pub fn encode(self, key: &[i64], out: &mut [u8]) -> bool {
        // No early exit: these loops vectorise, and row ids nearly always fit.
        let mut beyond = 0;
        if self.key_bytes == 4 {
            for (bytes, &id) in out.chunks_exact_mut(4).zip(key) {
                bytes.copy_from_slice(&(id as u32).to_le_bytes());
                beyond |= id as u64 >> 32;
            }
        } else {
            for (bytes, &id) in out.chunks_exact_mut(8).zip(key) {
                bytes.copy_from_slice(&id.to_le_bytes());
                beyond |= id as u64 >> 63;
            }
        }
        beyond == 0
    }

    /// The row ids of a stored key; `false` if one is beyond the int64 range.
    #[inline]
    pub fn decode(self, bytes: &[u8], key: &mut [i64]) -> bool {
        let mut beyond = 0;
        if self.key_bytes == 4 {
            for (id, word) in key.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *id = i64::from(u32::from_le_bytes(*word));
            }
        } else {
            for (id, word) in key.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *id = i64::from_le_bytes(*word);
                beyond |= *id;
            }
        }
        beyond >= 0
    }
}

/// Hash of a stored key: XXH3-64 of its bytes.
#[inline(always)]
pub(super) fn hash(stored: &[u8]) -> u64 {
    xxh3_64(stored)
}

/// The keys file of a view, mapped read-only. Every answer is proven to come from the file that was opened.
pub struct Keys {
    watch: FileWatch,
    map: FileMap,
    shape: KeyShape,
    slots: u64,
}

impl Keys {
    /// Opens the keys of `slots` slots: `heads` row ids of `key_bytes` bytes (4 or 8) per slot, nothing else.
    ///
    /// # Errors
    /// A file that cannot be read or whose size is not exactly that of the keys.
    pub fn open(path: &Path, heads: usize, key_bytes: usize, slots: u64) -> Result<Keys> {
        let shape = KeyShape::new(heads, key_bytes)?;
        if slots > MOST_SLOTS {
            return Err(SlotIndexError::TooManySlots { slots }.into());
        }
        let (watch, map) = open_watched(path)?;
        let (found, expected) = (map.bytes().len() as u64, u128::from(slots) * shape.bytes() as u128);
        if u128::from(found) != expected {
            let path = path.to_owned();
            return Err(SlotIndexError::KeysSize { path, found, expected, slots, heads, key_bytes }.into());
        }
        Ok(Keys { watch, map, shape, slots })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.watch.path(0)
    }

    /// Number of keys.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Row ids per key.
    pub fn heads(&self) -> usize {
        self.shape.heads
    }

    /// How keys are stored.
    pub fn shape(&self) -> KeyShape {
        self.shape
    }

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.map.bytes().len() as u64
    }

    /// The key of `slot`: `heads` row ids in head order.
    ///
    /// # Errors
    /// A slot that does not exist, a file that changed, or a row id beyond the int64 range.
    pub fn key_into(&self, slot: u64, key: &mut [i64]) -> Result<()> {
        self.keys_into(&[slot as i64], key)
    }

    /// The keys of `slots`, one after the other; `keys` holds `slots.len() * heads` row ids.
    pub fn keys_into(&self, slots: &[i64], keys: &mut [i64]) -> Result<()> {
        if keys.len() != slots.len() * self.heads() {
            return Err(self.length(keys.len()).into());
        }
        if let Some(&slot) = slots.iter().find(|&&slot| slot as u64 >= self.slots) {
            return Err(SlotIndexError::SlotOutOfRange { path: self.path().to_owned(), slot, slots: self.slots }.into());
        }
        self.check()?;
        let mut whole = true;
        for (&slot, key) in slots.iter().zip(keys.chunks_exact_mut(self.heads())) {
            whole &= self.shape.decode(self.stored(slot as u64), key);
        }
        self.prove(true)?;
        if whole { Ok(()) } else { Err(self.beyond().into()) }
    }

    /// Hands over all keys as they are stored, in slot order: the first slot of each piece and its bytes, whole keys.
    pub fn stream(&self, take: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let file = self.watch.open(0)?;
        let size = self.shape.bytes();
        let keys = (PIECE / size).max(1) as u64;
        let mut piece = vec![0; keys.min(self.slots) as usize * size];
        let mut first = 0;
        while first < self.slots {
            let bytes = &mut piece[..keys.min(self.slots - first) as usize * size];
            file.read_exact_at(bytes, first * size as u64).or_else(|error| {
                // Usually the file was shortened, which the file itself tells better.
                self.watch.check_file(0)?;
                Err(ReadError::io(self.path(), error))
            })?;
            take(first, bytes)?;
            first += keys;
        }
        Ok(self.watch.check_file(0)?)
    }

    /// The stored key of `slot`, which exists. What it says counts only if [`prove`](Keys::prove) succeeds afterwards.
    #[inline(always)]
    pub(super) fn stored(&self, slot: u64) -> &[u8] {
        let size = self.shape.bytes();
        &self.map.bytes()[slot as usize * size..][..size]
    }

    /// Asks the disk for the key of `slot`.
    pub(super) fn announce(&self, slot: u64) {
        let size = self.shape.bytes() as u64;
        self.map.announce(slot * size, size);
    }

    /// An error if the file is known to be another by now.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        self.watch.check(|| vec![true])
    }

    /// An error if what was read since [`check`](Keys::check) may not be the file's.
    pub(super) fn prove(&self, look: bool) -> Result<(), ReadError> {
        prove(&self.watch, &self.map, look)
    }

    pub(super) fn length(&self, found: usize) -> SlotIndexError {
        SlotIndexError::KeyLength { path: self.path().to_owned(), found, heads: self.heads() }
    }

    pub(super) fn beyond(&self) -> SlotIndexError {
        SlotIndexError::damaged(self.path(), "it holds a row id of 2^63 or more")
    }
}

/// Maps the file at `path` and watches it; the map is that of the watched file.
pub(super) fn open_watched(path: &Path) -> Result<(FileWatch, FileMap)> {
    let stamp = FileStamp::of(path).map_err(|error| SourceError::Io { path: path.to_owned(), error })?;
    let files: [(PathBuf, FileStamp); 1] = [(path.to_owned(), stamp)];
    let watch = FileWatch::new(&files)?;
    let map = FileMap::open(&watch.open(0)?).map_err(|error| ReadError::io(path, error))?;
    Ok((watch, map))
}

/// An error if bytes that were just read from `map` may not be those of the watched file: known by the system's events, or
/// by a look at the file itself, which knows earlier.
pub(super) fn prove(watch: &FileWatch, map: &FileMap, look: bool) -> Result<(), ReadError> {
    if map.is_whole() {
        return if look { watch.check_file(0) } else { watch.check(|| vec![true]) };
    }
    // Usually the file was shortened, which the file itself tells better.
    watch.check_file(0)?;
    Err(ReadError::io(watch.path(0), std::io::Error::other("a page of the file could not be read")))
}
