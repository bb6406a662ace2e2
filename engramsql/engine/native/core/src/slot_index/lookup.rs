//! Looking keys up.

use super::entry::{BUCKET_BYTES, EMPTY, candidates, entries, home, slot};
use super::keys::{Keys, hash, open_watched, prove};
use super::manifest::IndexManifest;
use super::{SlotIndexError, build};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::read::{FileMap, FileWatch, ReadError, prefetch};
use crate::source::FileStamp;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keys whose buckets, and then whose stored keys, are asked for before any is used: enough to cover the cache misses.
const GROUP: usize = 32;
/// The same while they come from the disk: enough reads outstanding to fill it.
const COLD_GROUP: usize = 256;
/// A key that takes longer, on average over a group, came from the disk: from memory it takes 0.05 to 0.3 us.
const FROM_DISK: Duration = Duration::from_micros(5);
/// Batches at least this large are worth asking the system about the files once more at the end; the silence of its
/// events has to do for smaller ones.
const LOOK: usize = 64;

/// An index over the keys of a view, mapped read-only.
pub struct SlotIndex {
    keys: Arc<Keys>,
    manifest: IndexManifest,
    watch: FileWatch,
    map: FileMap,
    /// The file that is mapped, whatever its path means by now.
    file: File,
    stamp: FileStamp,
}

/// What is known of one key of a group.
#[derive(Clone, Copy, Default)]
struct Search {
    hash: u64,
    /// The bucket to look at, and the entry that may be the key's; `None` if no entry can be.
    bucket: u64,
    found: Option<(u32, u64)>,
}

/// Room for a group of keys.
struct Group {
    stored: Vec<u8>,
    searches: Vec<Search>,
}

impl SlotIndex {
    /// Builds the index of `keys` in `directory` (created if it is not there), with about `memory` bytes for sorting; what does not fit
    /// is sorted on the disk. The same keys give the same bytes, whatever the memory. `keys_blake3` is kept in the
    /// manifest and says what the index belongs to. An index that is there stays until the new one is complete.
    ///
    /// # Errors
    /// Keys that changed or cannot be read, a full disk, too little memory, cancellation.
    pub fn build(keys: &Keys, directory: &Path, keys_blake3: &str, memory: u64, progress: &Progress) -> Result<()> {
        build::build(keys, directory, keys_blake3, memory, progress)
    }

    /// Opens the index in `directory`, which was built over `keys`.
    ///
    /// # Errors
    /// Files that cannot be read or contradict each other, or an index over other keys.
    pub fn open(directory: &Path, keys: Arc<Keys>) -> Result<SlotIndex> {
        let manifest = IndexManifest::read(directory)?;
        let shape = keys.shape();
        let (found, expected) = (
            (manifest.slots, manifest.heads, manifest.key_bytes),
            (keys.slots(), shape.heads() as u64, shape.key_bytes() as u64),
        );
        if found != expected {
            let text = |(slots, heads, bytes)| format!("{slots} keys of {heads} row ids of {bytes} bytes");
            let path = directory.join(super::manifest::FILE);
            return Err(SlotIndexError::OtherKeys { path, found: text(found), expected: text(expected) }.into());
        }
        let path = directory.join(&manifest.data);
        let (watch, map) = open_watched(&path)?;
        let file = watch.open(0)?;
        let stamp = FileStamp::of_file(&file).map_err(|error| ReadError::io(&path, error))?;
        let (found, expected) = (map.bytes().len() as u64, manifest.buckets * BUCKET_BYTES as u64);
        if found != expected {
            let detail = format!("it has {found} bytes, its manifest says {expected}");
            return Err(SlotIndexError::damaged(&path, detail).into());
        }
        Ok(SlotIndex { keys, manifest, watch, map, file, stamp })
    }

    /// What the manifest says.
    pub fn manifest(&self) -> &IndexManifest {
        &self.manifest
    }

    /// The keys that it leads to.
    pub fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// Buckets of the file.
    pub fn buckets(&self) -> u64 {
        self.manifest.buckets
    }

    /// Size of the file of buckets in bytes.
    pub fn bytes(&self) -> u64 {
        self.map.bytes().len() as u64
    }

    /// Entries of the file: as many as there are keys, unless somebody wrote others.
    ///
    /// # Errors
    /// A file that changed or cannot be read.
    pub fn entries(&self) -> Result<u64> {
        self.check()?;
        let used = |bucket: &[u8]| entries(bucket).iter().filter(|&&entry| entry != EMPTY).count() as u64;
        let count = self.map.bytes().chunks_exact(BUCKET_BYTES).map(used).sum();
        self.prove(LOOK)?;
        Ok(count)
    }

    /// Looks up `keys` (`slots.len()` keys of `heads` row ids): the lowest slot of each, or -1 if it has none. Row ids that
    /// no table has, such as negative ones, are row ids of no key.
    ///
    /// # Errors
    /// Files that changed, cannot be read or are damaged; `slots` says nothing then.
    pub fn lookup_many(&self, keys: &[i64], slots: &mut [i64]) -> Result<()> {
        let heads = self.keys.heads();
        if !keys.len().is_multiple_of(heads) {
            return Err(self.keys.length(keys.len()).into());
        }
        let count = keys.len() / heads;
        if count != slots.len() {
            return Err(Error::OutputSize { unit: "slots", expected: count, found: slots.len() });
        }
        self.check()?;
        let found = self.find_all(keys, slots);
        self.prove(count)?;
        Ok(found?)
    }

    /// Every slot of `key` in ascending order; none if it has none.
    pub fn lookup_all(&self, key: &[i64]) -> Result<Vec<u64>> {
        if key.len() != self.keys.heads() {
            return Err(self.keys.length(key.len()).into());
        }
        let mut stored = vec![0; self.keys.shape().bytes()];
        if !self.keys.shape().encode(key, &mut stored) {
            return Ok(Vec::new());
        }
        self.check()?;
        let hash = hash(&stored);
        let mut slots = Vec::new();
        let found = self.scan(home(hash, self.manifest.homes), 0, hash, &stored, &mut |slot| {
            slots.push(slot);
            true
        });
        self.prove(LOOK)?;
        found?;
        Ok(slots)
    }

    /// An error if a file is known to be another by now.
    fn check(&self) -> Result<(), ReadError> {
        self.watch.check(|| vec![true]).or_else(|error| self.unless_replaced(error))?;
        self.keys.check()
    }

    /// An error if what `count` lookups read may not be the files'.
    fn prove(&self, count: usize) -> Result<(), ReadError> {
        prove(&self.watch, &self.map, count >= LOOK).or_else(|error| self.unless_replaced(error))?;
        self.keys.prove(count >= LOOK)
    }

    /// No error if only the path has changed: an index that was built anew is another file, and the one that is mapped
    /// stays what it was, over the same keys. Whoever looks up while the index is built again does not notice.
    #[cold]
    fn unless_replaced(&self, error: ReadError) -> Result<(), ReadError> {
        let same = self.map.is_whole() && self.stamp.change(FileStamp::of_file(&self.file)).is_none();
        if same { Ok(()) } else { Err(error) }
    }

    /// Looks through the file of buckets: `look` gets all its bytes, and what it says counts only if they were the file's.
    pub(super) fn inspect<T>(&self, look: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        self.check()?;
        let seen = look(self.map.bytes());
        self.prove(LOOK)?;
        seen
    }

    /// Group by group: hash and ask for the buckets; look at them and ask for the keys; compare.
    fn find_all(&self, keys: &[i64], slots: &mut [i64]) -> Result<(), SlotIndexError> {
        let (heads, size) = (self.keys.heads(), self.keys.shape().bytes());
        let most = COLD_GROUP.min(slots.len());
        let mut group = Group { stored: vec![0; most * size], searches: vec![Search::default(); most] };
        let (mut done, mut cold) = (0, false);
        while done < slots.len() {
            let count = if cold { COLD_GROUP } else { GROUP }.min(slots.len() - done);
            let started = Instant::now();
            let keys = &keys[done * heads..(done + count) * heads];
            self.find_group(keys, &mut slots[done..done + count], &mut group, cold)?;
            cold = started.elapsed() > FROM_DISK * count as u32;
            done += count;
        }
        Ok(())
    }

    fn find_group(&self, keys: &[i64], slots: &mut [i64], group: &mut Group, cold: bool) -> Result<(), SlotIndexError> {
        let (shape, homes) = (self.keys.shape(), self.manifest.homes);
        let stored = || keys.chunks_exact(shape.heads()).zip(slots.iter());
        let mut fits = [true; COLD_GROUP];
        for (index, (key, _)) in stored().enumerate() {
            let bytes = &mut group.stored[index * shape.bytes()..][..shape.bytes()];
            fits[index] = shape.encode(key, bytes);
            let hash = hash(bytes);
            let bucket = home(hash, homes);
            if cold {
                self.map.announce(bucket * BUCKET_BYTES as u64, BUCKET_BYTES as u64);
            } else {
                prefetch(self.bucket(bucket).unwrap_or_default());
            }
            group.searches[index] = Search { hash, bucket, found: None };
        }
        for (search, fits) in group.searches[..slots.len()].iter_mut().zip(fits) {
            if !fits {
                continue;
            }
            search.found = self.first_candidate(search)?;
            if let Some((_, slot)) = search.found {
                if cold {
                    self.keys.announce(slot);
                } else {
                    prefetch(self.keys.stored(slot));
                }
            }
        }
        let stored = group.stored.chunks_exact(shape.bytes());
        for ((search, stored), answer) in group.searches.iter().zip(stored).zip(slots) {
            *answer = -1;
            let Some((index, slot)) = search.found else { continue };
            if self.keys.stored(slot) == stored {
                *answer = slot as i64;
                continue;
            }
            // Another key with the same 24 bits: one in a million. The search goes on behind it.
            self.scan(search.bucket, index + 1, search.hash, stored, &mut |slot| {
                *answer = slot as i64;
                false
            })?;
        }
        Ok(())
    }

    /// The first entry from the home on that may be the key's: its place in its bucket (which becomes the search's), and
    /// its slot, which exists.
    #[inline(always)]
    fn first_candidate(&self, search: &mut Search) -> Result<Option<(u32, u64)>, SlotIndexError> {
        loop {
            let entries = entries(self.bucket(search.bucket)?);
            let (matches, room) = candidates(&entries, search.hash);
            if matches != 0 {
                let index = matches.trailing_zeros();
                return Ok(Some((index, self.slot(entries[index as usize])?)));
            }
            if room {
                return Ok(None);
            }
            search.bucket += 1;
        }
    }

    /// Hands over the slots of the stored key with `hash`, from entry `first` of `bucket` on, until `take` has enough.
    fn scan(
        &self,
        mut bucket: u64,
        first: u32,
        hash: u64,
        stored: &[u8],
        take: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), SlotIndexError> {
        let mut skipped = first;
        loop {
            let entries = entries(self.bucket(bucket)?);
            let (mut matches, room) = candidates(&entries, hash);
            matches &= u32::MAX.checked_shl(skipped).unwrap_or(0);
            while matches != 0 {
                let slot = self.slot(entries[matches.trailing_zeros() as usize])?;
                if self.keys.stored(slot) == stored && !take(slot) {
                    return Ok(());
                }
                matches &= matches - 1;
            }
            if room {
                return Ok(());
            }
            skipped = 0;
            bucket += 1;
        }
    }

    #[inline(always)]
    fn bucket(&self, bucket: u64) -> Result<&[u8], SlotIndexError> {
        let begin = bucket as usize * BUCKET_BYTES;
        // The builder leaves room in the last bucket, so that no search gets here.
        let beyond = || self.damaged("its last bucket has no room");
        self.map.bytes().get(begin..begin + BUCKET_BYTES).ok_or_else(beyond)
    }

    #[inline(always)]
    fn slot(&self, entry: u64) -> Result<u64, SlotIndexError> {
        let slot = slot(entry);
        if slot < self.keys.slots() {
            return Ok(slot);
        }
        Err(self.damaged(&format!("it names slot {slot}, the view has {} slots", self.keys.slots())))
    }

    #[cold]
    fn damaged(&self, detail: &str) -> SlotIndexError {
        SlotIndexError::damaged(self.watch.path(0), detail)
    }
}
