//! Reading a slot index of engramdb, with positional reads and little memory.

use super::manifest::{self, Manifest};
use super::{PeerHash, record_bytes};
use crate::error::Result;
use crate::progress::Progress;
use crate::slot_index::{KeyShape, SlotIndexError};
use crate::source::SourceError;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Bytes that are read and handed over at once, about.
const PIECE: usize = 256 << 10;

/// Takes records: their keys one after the other, and their slots.
pub type TakeEntries<'a> = dyn FnMut(&[i64], &[u64]) -> Result<()> + 'a;

/// A slot index of engramdb. It holds no more than the numbers of its bucket files in memory.
#[derive(Debug)]
pub struct PeerIndex {
    directory: PathBuf,
    manifest: Manifest,
    data: Data,
    /// Buckets that were proven to be in order.
    proven: Mutex<HashSet<u64>>,
}

/// Where the buckets are.
#[derive(Debug)]
enum Data {
    /// The buckets that have files, in order, with their records.
    Files(Vec<(u64, u64)>),
    /// All in one.
    Single { data: File, offsets: File },
}

/// The records of one bucket.
struct Bucket<'a> {
    number: u64,
    path: PathBuf,
    file: Opened<'a>,
    /// Byte where they begin.
    begin: u64,
    records: u64,
}

enum Opened<'a> {
    Own(File),
    Shared(&'a File),
}

impl PeerIndex {
    /// Opens the index in `directory`: its manifest, and the sizes of its files against it.
    ///
    /// # Errors
    /// Files that are missing, cannot be read, or contradict each other.
    pub fn open(directory: &Path) -> Result<PeerIndex> {
        let manifest = Manifest::read(&directory.join(manifest::FILE))?;
        let data = if manifest.version == 3 { single(directory, &manifest)? } else { files(directory, &manifest)? };
        Ok(PeerIndex { directory: directory.to_owned(), manifest, data, proven: Mutex::default() })
    }

    /// Version of the format, 1 to 3.
    pub fn version(&self) -> u32 {
        self.manifest.version
    }

    /// How keys choose buckets.
    pub fn hash(&self) -> PeerHash {
        self.manifest.hash
    }

    /// Row ids per key.
    pub fn heads(&self) -> usize {
        self.manifest.heads
    }

    /// Buckets, with and without records.
    pub fn num_buckets(&self) -> u64 {
        self.manifest.num_buckets
    }

    /// Records.
    pub fn count(&self) -> u64 {
        self.manifest.count
    }

    /// The slot that engramdb gives for `key`: of several the first in file order, which need not be the lowest.
    pub fn lookup(&self, key: &[i64]) -> Result<Option<u64>> {
        Ok(self.find(key, 1)?.first().copied())
    }

    /// Every slot of `key`, in file order.
    pub fn lookup_all(&self, key: &[i64]) -> Result<Vec<u64>> {
        self.find(key, usize::MAX)
    }

    /// Hands over all records in file order, some at a time: keys (`slots.len()` of `heads` row ids) and slots.
    ///
    /// # Errors
    /// Those of `take`, and buckets that are out of order, hold keys of other buckets or numbers beyond the int64 range.
    pub fn entries(&self, progress: &Progress, take: &mut TakeEntries<'_>) -> Result<()> {
        progress.begin("slot index: records", self.manifest.count * self.record_bytes() as u64);
        match &self.data {
            Data::Files(buckets) => {
                for &(bucket, _) in buckets {
                    self.bucket(bucket)?.map_or(Ok(()), |bucket| self.hand_over(&bucket, progress, take))?;
                }
            }
            Data::Single { .. } => {
                for bucket in 0..self.manifest.num_buckets {
                    self.bucket(bucket)?.map_or(Ok(()), |bucket| self.hand_over(&bucket, progress, take))?;
                }
            }
        }
        Ok(())
    }

    fn hand_over(&self, bucket: &Bucket<'_>, progress: &Progress, take: &mut TakeEntries<'_>) -> Result<()> {
        let shape = KeyShape::new(self.heads(), 8)?;
        let (mut keys, mut slots) = (Vec::new(), Vec::new());
        self.scan(bucket, &mut |records| {
            let count = records.len() / self.record_bytes();
            keys.resize(count * self.heads(), 0);
            slots.clear();
            for (record, key) in records.chunks_exact(self.record_bytes()).zip(keys.chunks_exact_mut(self.heads())) {
                if !shape.decode(&record[..shape.bytes()], key) {
                    return Err(SlotIndexError::peer(&bucket.path, "it holds a row id of 2^63 or more").into());
                }
                slots.push(self.slot(bucket, record)?);
            }
            take(&keys, &slots)?;
            progress.advance(records.len() as u64)
        })
    }

    /// Up to `most` slots of `key`.
    fn find(&self, key: &[i64], most: usize) -> Result<Vec<u64>> {
        let shape = KeyShape::new(self.heads(), 8)?;
        if key.len() != shape.heads() {
            let (path, heads) = (self.directory.clone(), shape.heads());
            return Err(SlotIndexError::KeyLength { path, found: key.len(), heads }.into());
        }
        let mut stored = vec![0; shape.bytes()];
        let mut slots = Vec::new();
        if !shape.encode(key, &mut stored) {
            return Ok(slots);
        }
        let Some(bucket) = self.bucket(self.manifest.hash.of(&stored) % self.manifest.num_buckets)? else {
            return Ok(slots);
        };
        self.prove(&bucket)?;
        let mut record = vec![0; self.record_bytes()];
        // The first record whose key is not smaller.
        let (mut low, mut high) = (0, bucket.records);
        while low < high {
            let middle = low + (high - low) / 2;
            bucket.read(&mut record, middle * self.record_bytes() as u64)?;
            if record[..stored.len()] < stored[..] { low = middle + 1 } else { high = middle }
        }
        while low < bucket.records && slots.len() < most {
            bucket.read(&mut record, low * self.record_bytes() as u64)?;
            if record[..stored.len()] != stored[..] {
                break;
            }
            slots.push(self.slot(&bucket, &record)?);
            low += 1;
        }
        Ok(slots)
    }

    /// Proves once that a bucket is in order: a search in one that is not would miss keys.
    fn prove(&self, bucket: &Bucket<'_>) -> Result<()> {
        let proven = || self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        if proven().contains(&bucket.number) {
            return Ok(());
        }
        self.scan(bucket, &mut |_| Ok(()))?;
        proven().insert(bucket.number);
        Ok(())
    }

    /// Hands over the records of `bucket` in pieces, each record proven to belong there.
    fn scan(&self, bucket: &Bucket<'_>, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let size = self.record_bytes();
        let most = (PIECE / size).max(1) as u64;
        let mut piece = Vec::new();
        let mut last = vec![0; size];
        let mut done = 0;
        while done < bucket.records {
            let records = most.min(bucket.records - done);
            piece.resize(records as usize * size, 0);
            bucket.read(&mut piece, done * size as u64)?;
            let mut previous = &last[..];
            for record in piece.chunks_exact(size) {
                let refuse =
                    |what: &str| SlotIndexError::peer(&bucket.path, format!("bucket {} {what}", bucket.number));
                if record < previous {
                    return Err(refuse("is not sorted").into());
                }
                let key = &record[..size - 8];
                if self.manifest.hash.of(key) % self.manifest.num_buckets != bucket.number {
                    return Err(refuse("holds a key of another bucket").into());
                }
                previous = record;
            }
            take(&piece)?;
            last.copy_from_slice(&piece[piece.len() - size..]);
            done += records;
        }
        Ok(())
    }

    /// Where the records of `bucket` are, if it has any.
    fn bucket(&self, number: u64) -> Result<Option<Bucket<'_>>> {
        match &self.data {
            Data::Files(buckets) => {
                let Ok(index) = buckets.binary_search_by_key(&number, |&(bucket, _)| bucket) else { return Ok(None) };
                let path = bucket_path(&self.directory, number);
                let file = File::open(&path).map_err(|error| SourceError::Io { path: path.clone(), error })?;
                Ok(Some(Bucket { number, path, file: Opened::Own(file), begin: 0, records: buckets[index].1 }))
            }
            Data::Single { data, offsets } => {
                let mut ends = [0; 16];
                let path = self.directory.join(OFFSETS);
                read_at(offsets, &path, &mut ends, number * 8)?;
                // Proven when it was opened; a file that changed since ends in a read beyond an end at worst.
                let (begin, end) = (word(&ends), word(&ends[8..]));
                let records = end.saturating_sub(begin) / self.record_bytes() as u64;
                let path = self.directory.join(DATA);
                let bucket = Bucket { number, path, file: Opened::Shared(data), begin, records };
                Ok((records > 0).then_some(bucket))
            }
        }
    }

    fn slot(&self, bucket: &Bucket<'_>, record: &[u8]) -> Result<u64, SlotIndexError> {
        let slot = word(&record[record.len() - 8..]);
        if slot > i64::MAX as u64 {
            return Err(SlotIndexError::peer(&bucket.path, format!("slot {slot} is beyond the int64 range")));
        }
        Ok(slot)
    }

    fn record_bytes(&self) -> usize {
        record_bytes(self.manifest.heads)
    }
}

impl Bucket<'_> {
    /// Reads at byte `at` of the bucket.
    fn read(&self, bytes: &mut [u8], at: u64) -> Result<(), SourceError> {
        let file = match &self.file {
            Opened::Own(file) => file,
            Opened::Shared(file) => file,
        };
        read_at(file, &self.path, bytes, self.begin + at)
    }
}

pub(super) const DATA: &str = "data.bin";
pub(super) const OFFSETS: &str = "offsets.bin";
pub(super) const BUCKETS: &str = "buckets";

/// The file of a bucket.
pub(super) fn bucket_path(directory: &Path, bucket: u64) -> PathBuf {
    directory.join(BUCKETS).join(bucket_name(bucket))
}

fn bucket_name(bucket: u64) -> String {
    format!("{bucket:04}.bin")
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

fn read_at(file: &File, path: &Path, bytes: &mut [u8], at: u64) -> Result<(), SourceError> {
    file.read_exact_at(bytes, at).map_err(|error| SourceError::Io { path: path.to_owned(), error })
}

/// Looks through the bucket files.
fn files(directory: &Path, manifest: &Manifest) -> Result<Data> {
    let folder = directory.join(BUCKETS);
    let io = |error| SourceError::Io { path: folder.clone(), error };
    let size = record_bytes(manifest.heads) as u64;
    let (mut buckets, mut count) = (Vec::new(), 0u64);
    for entry in std::fs::read_dir(&folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        // Other files are none of ours, and engramdb does not look at them either.
        let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(".bin")) else { continue };
        let path = entry.path();
        let bucket = stem.parse().ok().filter(|&bucket| bucket_name(bucket) == name.to_string_lossy());
        let Some(bucket) = bucket.filter(|&bucket| bucket < manifest.num_buckets) else {
            let detail = format!("none of its {} buckets has a file of this name", manifest.num_buckets);
            return Err(SlotIndexError::peer(&path, detail).into());
        };
        let about = std::fs::metadata(&path).map_err(|error| SourceError::Io { path: path.clone(), error })?;
        if !about.is_file() || !about.len().is_multiple_of(size) {
            let detail = format!("{} bytes are no number of records of {size} bytes", about.len());
            return Err(SlotIndexError::peer(&path, detail).into());
        }
        count = count.saturating_add(about.len() / size);
        buckets.push((bucket, about.len() / size));
    }
    if count != manifest.count {
        let detail = format!("its buckets hold {count} records, its index.json says {}", manifest.count);
        return Err(SlotIndexError::peer(&folder, detail).into());
    }
    buckets.sort_unstable();
    Ok(Data::Files(buckets))
}

/// Looks through the offsets.
fn single(directory: &Path, manifest: &Manifest) -> Result<Data> {
    let open = |name: &str| {
        let path = directory.join(name);
        // Asked first: opening a pipe would wait.
        let file = std::fs::metadata(&path).and_then(|about| {
            if about.is_file() { File::open(&path) } else { Err(std::io::Error::other("it is not a regular file")) }
        });
        let file = file.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = file.map_err(|error| SourceError::Io { path: path.clone(), error })?;
        Ok::<_, SourceError>((path, bytes, file))
    };
    let (data_path, data_bytes, data) = open(DATA)?;
    let (path, bytes, offsets) = open(OFFSETS)?;
    let refuse = |path: &Path, detail: String| Err(SlotIndexError::peer(path, detail).into());
    if u128::from(bytes) != (u128::from(manifest.num_buckets) + 1) * 8 {
        let buckets = manifest.num_buckets;
        return refuse(&path, format!("its {bytes} bytes are not the {buckets} + 1 offsets of {buckets} buckets"));
    }
    let size = record_bytes(manifest.heads) as u64;
    if u128::from(data_bytes) != u128::from(manifest.count) * u128::from(size) {
        let count = manifest.count;
        return refuse(&data_path, format!("its {data_bytes} bytes are not the {count} records of {size} bytes"));
    }
    let (mut piece, mut at, mut last) = (vec![0; PIECE.min(bytes as usize)], 0, 0);
    while at < bytes {
        let piece = &mut piece[..(PIECE as u64).min(bytes - at) as usize];
        read_at(&offsets, &path, piece, at)?;
        for (index, offset) in piece.chunks_exact(8).map(word).enumerate() {
            let place = at / 8 + index as u64;
            if offset < last || !offset.is_multiple_of(size) || (place == 0 && offset != 0) {
                return refuse(&path, format!("offset {place} is {offset}, where no record begins"));
            }
            last = offset;
        }
        at += piece.len() as u64;
    }
    if last != data_bytes {
        return refuse(&path, format!("the last offset is {last}, data.bin has {data_bytes} bytes"));
    }
    Ok(Data::Single { data, offsets })
}
