//! Building an index: hashes in order, written once from beginning to end.

use super::entry::{BUCKET_BYTES, EMPTY, ENTRIES, entry, home, homes};
use super::keys::{Keys, hash};
use super::manifest::{self, IndexManifest};
use super::sorter::{Record, Sorter};
use crate::error::Result;
use crate::fault;
use crate::progress::Progress;
use crate::storage::checksum::{BLOCK_BYTES, Checksums};
use crate::storage::{OrderedWriter, StorageError, remove_leftovers, require_space, sync_directory};
use std::path::Path;

/// Bytes of buckets that are handed on at once.
const PIECE: usize = 256 << 10;
/// Name of the file of buckets until it is complete; never that of a finished one, whose digest has eight digits.
const UNFINISHED: &str = "index.unfinished.bin";
/// The same for the file of its checksums.
const UNFINISHED_SUMS: &str = "index.unfinished.sums";

/// Bytes of a record that is sorted.
const RECORD_BYTES: usize = 2 * size_of::<u64>();

/// A key's hash and slot; what follows the hash keeps equal keys in order of their slots.
type Hashed = (u64, u64);

impl Record for Hashed {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
        out.extend_from_slice(&self.1.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Hashed {
        let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        (word(0), word(8))
    }
}

/// Builds the index of `keys` in `directory`, as `SlotIndex::build` says.
pub(super) fn build(keys: &Keys, directory: &Path, keys_blake3: &str, memory: u64, progress: &Progress) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|error| StorageError::io("create", directory, error))?;
    remove_leftovers(directory)?;
    let homes = homes(keys.slots());
    let bytes = homes * BUCKET_BYTES as u64;
    require_space(directory, bytes + spilled(keys, memory))?;
    let write = || {
        let mut writer = OrderedWriter::create(&directory.join(UNFINISHED), bytes)?;
        let buckets = buckets(keys, homes, directory, memory, progress, &mut |piece| Ok(writer.write(piece)?))?;
        let sums = Checksums { files: vec![writer.finish()?] };
        let mut manifest = IndexManifest::new(keys.heads(), keys.shape().key_bytes(), keys.slots(), homes, keys_blake3);
        manifest.buckets = buckets;
        publish(directory, manifest, sums)
    };
    write().inspect_err(|_| {
        // Of no use to the next build; if this fails, that one cleans up.
        let _ = [UNFINISHED, UNFINISHED_SUMS].map(|name| std::fs::remove_file(directory.join(name)).ok());
    })
}

/// Bytes that are sorted on the disk.
fn spilled(keys: &Keys, memory: u64) -> u64 {
    let bytes = keys.slots() * RECORD_BYTES as u64;
    if bytes > memory { bytes } else { 0 }
}

/// Hands over the buckets of the index of `keys` in order, some at a time; their number. What does not fit in `memory` is
/// sorted in `directory`.
pub(super) fn buckets(
    keys: &Keys,
    homes: u64,
    directory: &Path,
    memory: u64,
    progress: &Progress,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let mut sorter: Sorter<Hashed> = Sorter::new(directory, RECORD_BYTES, 0, keys.slots(), memory)?;
    progress.begin("index: keys", keys.bytes());
    keys.stream(&mut |first, bytes| {
        for (slot, key) in (first..).zip(bytes.chunks_exact(keys.shape().bytes())) {
            sorter.push((hash(key), slot))?;
        }
        progress.advance(bytes.len() as u64)
    })?;

    progress.begin("index: buckets", keys.slots() * RECORD_BYTES as u64);
    let mut sorted = sorter.finish()?;
    let mut buckets = Buckets::new(homes, take);
    let mut since = 0;
    while let Some((hash, slot)) = sorted.next()? {
        buckets.place(hash, slot)?;
        since += RECORD_BYTES as u64;
        if since == 1 << 20 {
            progress.advance(std::mem::take(&mut since))?;
        }
    }
    progress.advance(since)?;
    buckets.finish()
}

/// Names the finished file by its content, then makes it the index, then removes what was the index before. Whoever looks
/// in between, or after a crash, finds the old index or the new one.
fn publish(directory: &Path, mut manifest: IndexManifest, sums: Checksums) -> Result<()> {
    let unnamed = directory.join(UNFINISHED_SUMS);
    manifest.checksums.blake3 = sums.publish(&unnamed)?;
    manifest.checksums.block_bytes = BLOCK_BYTES as u64;
    let name: String = manifest.checksums.blake3.chars().take(8).collect();
    manifest.data = format!("index.{name}.bin");
    manifest.checksums.file = format!("index.{name}.sums");
    for (from, to) in [(directory.join(UNFINISHED), &manifest.data), (unnamed, &manifest.checksums.file)] {
        let to = directory.join(to);
        std::fs::rename(from, &to).map_err(|error| StorageError::io("write", &to, error))?;
    }
    sync_directory(directory)?;
    fault::point("index.named");
    manifest.publish(directory)?;
    fault::point("index.published");
    remove_others(directory, &manifest)
}

/// Removes the files of earlier indexes and of builds that did not finish.
fn remove_others(directory: &Path, manifest: &IndexManifest) -> Result<()> {
    let failed = |error| StorageError::io("clean up", directory, error);
    for file in std::fs::read_dir(directory).map_err(failed)? {
        let file = file.map_err(failed)?;
        let name = file.file_name();
        let Some(name) = name.to_str() else { continue };
        if manifest::is_ours(name) && name != manifest.data && name != manifest.checksums.file {
            std::fs::remove_file(file.path()).map_err(failed)?;
        }
    }
    Ok(())
}

/// Buckets that are being filled, in order.
struct Buckets<'a> {
    take: &'a mut dyn FnMut(&[u8]) -> Result<()>,
    homes: u64,
    /// The bucket that is being filled, and its entries.
    bucket: u64,
    used: usize,
    entries: [u64; ENTRIES],
    piece: Vec<u8>,
}

impl<'a> Buckets<'a> {
    fn new(homes: u64, take: &'a mut dyn FnMut(&[u8]) -> Result<()>) -> Buckets<'a> {
        let piece = Vec::with_capacity(PIECE + BUCKET_BYTES);
        Buckets { take, homes, bucket: 0, used: 0, entries: [EMPTY; ENTRIES], piece }
    }

    /// Puts an entry in the first bucket from its home on that has room; hashes come in ascending order.
    fn place(&mut self, hash: u64, slot: u64) -> Result<()> {
        let home = home(hash, self.homes);
        while self.bucket < home || self.used == ENTRIES {
            self.next_bucket()?;
        }
        self.entries[self.used] = entry(hash, slot);
        self.used += 1;
        Ok(())
    }

    fn next_bucket(&mut self) -> Result<()> {
        self.entries.iter().for_each(|entry| self.piece.extend_from_slice(&entry.to_le_bytes()));
        (self.entries, self.used) = ([EMPTY; ENTRIES], 0);
        self.bucket += 1;
        if self.piece.len() >= PIECE {
            (self.take)(&self.piece)?;
            self.piece.clear();
        }
        Ok(())
    }

    /// Fills up the homes, and ends with a bucket that has room; the number of buckets.
    fn finish(mut self) -> Result<u64> {
        while self.bucket < self.homes || self.used == ENTRIES {
            self.next_bucket()?;
        }
        // Behind the homes, or behind the entries that found no room there: this one has room.
        self.next_bucket()?;
        (self.take)(&self.piece)?;
        Ok(self.bucket)
    }
}
