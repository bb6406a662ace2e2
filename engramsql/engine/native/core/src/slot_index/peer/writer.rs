//! Writing a slot index of engramdb.

use super::manifest::{self, Manifest};
use super::reader::{BUCKETS, DATA, OFFSETS, bucket_path};
use super::{DEFAULT_BUCKETS, PeerHash, record_bytes};
use crate::error::Result;
use crate::progress::Progress;
use crate::slot_index::sorter::{Record, Sorter};
use crate::slot_index::{KeyShape, Keys, SlotIndexError};
use crate::storage::{OrderedWriter, StorageError, require_space, sync_directory};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Buckets at most: their offsets have to be written.
const MOST_BUCKETS: u64 = 1 << 32;
/// Bytes that a record takes in memory besides its own: where it is, its bucket, and what the allocator keeps.
const OVERHEAD: usize = 40;
/// Bytes of records between two looks at whether to go on.
const STEP: u64 = 1 << 20;

/// What to write.
#[derive(Debug, Clone, Copy)]
pub struct PeerOptions {
    /// Version of the format, 1 to 3.
    pub version: u32,
    /// How keys choose buckets: BLAKE2b in version 1, FNV-1a in version 2, either in version 3.
    pub hash: PeerHash,
    /// Row ids per key. engramdb itself knows 16 only.
    pub heads: usize,
    /// Buckets.
    pub num_buckets: u64,
    /// Records to come, about.
    pub expected: u64,
    /// Bytes of memory for sorting.
    pub memory: u64,
}

impl PeerOptions {
    /// What engramdb's command line tool writes: version 2 with FNV-1a and 16384 buckets.
    pub fn new(heads: usize, expected: u64, memory: u64) -> PeerOptions {
        let hash = PeerHash::Fnv1a64;
        PeerOptions { version: 2, hash, heads, num_buckets: DEFAULT_BUCKETS, expected, memory }
    }

    fn check(&self) -> Result<(), SlotIndexError> {
        let cannot = |what: String, remedy| Err(SlotIndexError::PeerCannot { what, remedy });
        KeyShape::new(self.heads, 8)?;
        let usual = match self.version {
            1 => PeerHash::Blake2b,
            2 => PeerHash::Fnv1a64,
            3 => self.hash,
            _ => return cannot(format!("version {}", self.version), "versions are 1, 2 and 3"),
        };
        if self.hash != usual {
            let what = format!("hash {} in version {}", self.hash.name(), self.version);
            return cannot(what, "version 1 has blake2b, version 2 fnv1a-64, version 3 either");
        }
        if !(1..=MOST_BUCKETS).contains(&self.num_buckets) {
            return cannot(
                format!("{} buckets", self.num_buckets),
                "it has 1 to 4294967296, 16384 unless told otherwise",
            );
        }
        Ok(())
    }
}

/// A record and its bucket.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bucketed {
    bucket: u64,
    record: Box<[u8]>,
}

impl Record for Bucketed {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bucket.to_le_bytes());
        out.extend_from_slice(&self.record);
    }

    fn decode(bytes: &[u8]) -> Bucketed {
        let (bucket, record) = bytes.split_at(8);
        Bucketed { bucket: bucket.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)), record: record.into() }
    }
}

/// Takes records in any order and writes them as an index.
pub struct PeerWriter {
    directory: PathBuf,
    /// Removed when dropped.
    unfinished: tempfile::TempDir,
    options: PeerOptions,
    shape: KeyShape,
    sorter: Sorter<Bucketed>,
    count: u64,
}

impl PeerWriter {
    /// Prepares an index that will be at `directory`, where nothing or an empty directory is.
    ///
    /// # Errors
    /// A directory that is not empty, options that contradict the format, too little memory or room.
    pub fn create(directory: &Path, options: &PeerOptions) -> Result<PeerWriter> {
        options.check()?;
        if occupied(directory) {
            return Err(SlotIndexError::Exists { path: directory.to_owned() }.into());
        }
        let parent = match directory.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let failed = |error| StorageError::io("create", directory, error);
        std::fs::create_dir_all(parent).map_err(failed)?;
        let size = record_bytes(options.heads);
        let bytes = options.expected.saturating_mul(size as u64);
        let spilled = if bytes > options.memory { bytes } else { 0 };
        require_space(parent, bytes.saturating_add(spilled))?;
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let mut builder = tempfile::Builder::new();
        {
            use std::os::unix::fs::PermissionsExt;
            // Not the private mode of temporary directories: the umask decides, as for any directory.
            builder.permissions(std::fs::Permissions::from_mode(0o777));
        }
        let unfinished = builder.prefix(&format!(".{name}.")).tempdir_in(parent).map_err(failed)?;
        let sorter = Sorter::new(unfinished.path(), 8 + size, OVERHEAD, options.expected, options.memory)?;
        let shape = KeyShape::new(options.heads, 8)?;
        Ok(PeerWriter { directory: directory.to_owned(), unfinished, options: *options, shape, sorter, count: 0 })
    }

    /// One record more: `key` is `heads` row ids.
    ///
    /// # Errors
    /// A key of another length or with a negative row id; a disk that is full.
    pub fn push(&mut self, key: &[i64], slot: u64) -> Result<()> {
        if key.len() != self.shape.heads() {
            let (path, heads) = (self.directory.clone(), self.shape.heads());
            return Err(SlotIndexError::KeyLength { path, found: key.len(), heads }.into());
        }
        let mut record = vec![0; self.shape.bytes() + 8].into_boxed_slice();
        let (stored, stored_slot) = record.split_at_mut(self.shape.bytes());
        if !self.shape.encode(key, stored) {
            let what = format!("the key of slot {slot}, which has a negative row id");
            return Err(SlotIndexError::PeerCannot { what, remedy: "row ids are 0 or more" }.into());
        }
        stored_slot.copy_from_slice(&slot.to_le_bytes());
        let bucket = self.options.hash.of(stored) % self.options.num_buckets;
        self.count += 1;
        self.sorter.push(Bucketed { bucket, record })
    }

    /// Writes the index; it is complete under its name then, or not there at all.
    pub fn finish(self, progress: &Progress) -> Result<()> {
        let PeerWriter { directory, unfinished, options, sorter, count, .. } = self;
        let folder = unfinished.path();
        let size = record_bytes(options.heads) as u64;
        progress.begin("slot index: write", count * size);
        let mut sorted = sorter.finish()?;
        let mut output = if options.version == 3 {
            Output::Single(Box::new(Single::create(folder, count * size, options.num_buckets)?))
        } else {
            Output::Files(Files::create(folder)?)
        };
        let mut since = 0;
        while let Some(Bucketed { bucket, record }) = sorted.next()? {
            match &mut output {
                Output::Single(single) => single.write(bucket, &record)?,
                Output::Files(files) => files.write(bucket, &record)?,
            }
            since += size;
            if since >= STEP {
                progress.advance(std::mem::take(&mut since))?;
            }
        }
        progress.advance(since)?;
        drop(sorted);
        match output {
            Output::Single(single) => single.finish(options.num_buckets)?,
            Output::Files(files) => files.finish()?,
        }
        let PeerOptions { version, hash, heads, num_buckets, .. } = options;
        let manifest = Manifest { version, hash, heads, num_buckets, count };
        crate::publish::publish(&folder.join(manifest::FILE), &manifest.to_bytes())
            .map_err(|error| StorageError::io("write", &directory, error))?;
        match std::fs::rename(folder, &directory) {
            Ok(()) => (),
            // Somebody else was faster.
            Err(_) if occupied(&directory) => return Err(SlotIndexError::Exists { path: directory }.into()),
            Err(error) => return Err(StorageError::io("write", &directory, error).into()),
        }
        // It has another name now; there is nothing left to remove.
        let _ = unfinished.keep();
        if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_directory(parent)?;
        }
        Ok(())
    }
}

/// Writes `entries`, keys and slots in any order, as an index at `directory`.
pub fn write<K: AsRef<[i64]>>(
    directory: &Path,
    options: &PeerOptions,
    entries: impl IntoIterator<Item = (K, u64)>,
    progress: &Progress,
) -> Result<()> {
    let mut writer = PeerWriter::create(directory, options)?;
    for (key, slot) in entries {
        writer.push(key.as_ref(), slot)?;
    }
    writer.finish(progress)
}

/// Writes the keys of a view and their slots as an index at `directory`; `heads` and `expected` of `options` are theirs.
pub fn write_keys(directory: &Path, options: &PeerOptions, keys: &Keys, progress: &Progress) -> Result<()> {
    let options = PeerOptions { heads: keys.heads(), expected: keys.slots(), ..*options };
    let mut writer = PeerWriter::create(directory, &options)?;
    let mut key = vec![0; keys.heads()];
    progress.begin("slot index: keys", keys.bytes());
    keys.stream(&mut |first, bytes| {
        for (slot, stored) in (first..).zip(bytes.chunks_exact(keys.shape().bytes())) {
            if !keys.shape().decode(stored, &mut key) {
                return Err(keys.beyond().into());
            }
            writer.push(&key, slot)?;
        }
        progress.advance(bytes.len() as u64)
    })?;
    writer.finish(progress)
}

/// Whether something is at `directory` that a rename would not replace.
fn occupied(directory: &Path) -> bool {
    match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => std::fs::symlink_metadata(directory).is_ok(),
    }
}

enum Output {
    Files(Files),
    Single(Box<Single>),
}

/// A file per bucket that has records.
struct Files {
    folder: PathBuf,
    current: Option<(u64, PathBuf, BufWriter<File>)>,
}

impl Files {
    fn create(folder: &Path) -> Result<Files, StorageError> {
        let buckets = folder.join(BUCKETS);
        std::fs::create_dir(&buckets).map_err(|error| StorageError::io("create", &buckets, error))?;
        Ok(Files { folder: folder.to_owned(), current: None })
    }

    fn write(&mut self, bucket: u64, record: &[u8]) -> Result<(), StorageError> {
        if self.current.as_ref().is_none_or(|(current, ..)| *current != bucket) {
            self.close()?;
            let path = bucket_path(&self.folder, bucket);
            let file = File::create(&path).map_err(|error| StorageError::io("create", &path, error))?;
            self.current = Some((bucket, path, BufWriter::with_capacity(64 << 10, file)));
        }
        if let Some((_, path, file)) = &mut self.current {
            file.write_all(record).map_err(|error| StorageError::io("write", path, error))?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), StorageError> {
        let Some((_, path, mut file)) = self.current.take() else { return Ok(()) };
        let closed = file.flush();
        // Where the system cannot do it for all files at once.
        #[cfg(not(target_os = "linux"))]
        let closed = closed.and_then(|()| file.get_ref().sync_all());
        closed.map_err(|error| StorageError::io("write", &path, error))
    }

    fn finish(mut self) -> Result<(), StorageError> {
        self.close()?;
        // Thousands of small files: one by one they would take minutes.
        #[cfg(target_os = "linux")]
        {
            let sync = || rustix::fs::syncfs(File::open(&self.folder)?).map_err(std::io::Error::from);
            sync().map_err(|error| StorageError::io("sync", &self.folder, error))?;
        }
        sync_directory(&self.folder.join(BUCKETS))
    }
}

/// All buckets in one file, and where each begins.
struct Single {
    data: OrderedWriter,
    offsets: OrderedWriter,
    /// Buckets whose beginning was written, and bytes of records so far.
    begun: u64,
    bytes: u64,
}

impl Single {
    fn create(folder: &Path, bytes: u64, buckets: u64) -> Result<Single, StorageError> {
        let data = OrderedWriter::create(&folder.join(DATA), bytes)?;
        let offsets = OrderedWriter::create(&folder.join(OFFSETS), (buckets + 1) * 8)?;
        Ok(Single { data, offsets, begun: 0, bytes: 0 })
    }

    fn write(&mut self, bucket: u64, record: &[u8]) -> Result<(), StorageError> {
        self.begin(bucket)?;
        self.bytes += record.len() as u64;
        self.data.write(record)
    }

    /// Notes where all buckets up to `bucket` begin.
    fn begin(&mut self, bucket: u64) -> Result<(), StorageError> {
        while self.begun <= bucket {
            self.offsets.write(&self.bytes.to_le_bytes())?;
            self.begun += 1;
        }
        Ok(())
    }

    fn finish(mut self, buckets: u64) -> Result<(), StorageError> {
        // The end of the last one.
        self.begin(buckets)?;
        self.data.finish()?;
        self.offsets.finish()?;
        Ok(())
    }
}
