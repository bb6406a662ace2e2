//! The records of a view: rows gathered by key, shard after shard, each with its checksums once it is on the disk.

use super::error::ViewError;
use super::manifest::KEYS;
use super::options::Form;
use super::plan::Plan;
use crate::error::Result;
use crate::fault;
use crate::progress::Progress;
use crate::slot_index::KeyShape;
use crate::source::StoreLayout;
use crate::storage::checksum::{Checksums, FileSums, Summer};
use crate::storage::{OrderedWriter, StorageError, require_space};
use crate::table::Table;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of records that are gathered at once: with more rows in a batch more of them share a page of the disk, and a disk
/// that serves hundreds of reads at once never waits.
const BATCH: u64 = 48 << 20;
/// Bytes of one read of an external file's end.
const PIECE: u64 = 1 << 20;

/// What records are made of.
pub(super) struct Records<'a> {
    pub(super) table: &'a Table,
    pub(super) plan: &'a Plan,
    pub(super) shape: KeyShape,
    pub(super) slots: u64,
    pub(super) directory: &'a Path,
    pub(super) memory: u64,
    pub(super) progress: &'a Progress,
}

impl Records<'_> {
    /// Writes the shards that are not finished yet, or compares the external file; the checksums of all.
    pub(super) fn complete(&self) -> Result<Vec<FileSums>> {
        let keys_path = self.directory.join(KEYS);
        let keys = File::open(&keys_path).map_err(|error| StorageError::io("open", &keys_path, error))?;
        self.progress.begin("records", self.slots * self.plan.record_bytes);
        if let Some(path) = &self.plan.records {
            return Ok(vec![self.compare(&keys, Path::new(path))?]);
        }
        let per_shard = self.plan.slots_per_shard(self.slots);
        let shards = self.slots.div_ceil(per_shard);
        let range = |shard: u64| shard * per_shard..self.slots.min((shard + 1) * per_shard);
        let bytes = |shard: u64| (range(shard).end - range(shard).start) * self.plan.record_bytes;
        let finished: Vec<Option<FileSums>> = (0..shards).map(|shard| self.finished(shard, bytes(shard))).collect();
        let missing = (0..shards).filter(|&shard| finished[shard as usize].is_none());
        require_space(self.directory, missing.map(bytes).sum())?;
        let mut sums = Vec::with_capacity(finished.len());
        for (shard, finished) in (0..).zip(finished) {
            sums.push(match finished {
                Some(finished) => {
                    self.progress.advance(bytes(shard))?;
                    finished
                }
                None => self.write(&keys, shard, range(shard), bytes(shard))?,
            });
        }
        Ok(sums)
    }

    /// The checksums of a shard that an interrupted build has finished.
    fn finished(&self, shard: u64, bytes: u64) -> Option<FileSums> {
        let (mut sums, _) = Checksums::read(&self.directory.join(StoreLayout::sums_name(shard))).ok()?;
        let sums = sums.files.pop().filter(|sums| sums.bytes == bytes)?;
        let size = std::fs::metadata(self.directory.join(StoreLayout::file_name(shard))).ok()?.len();
        (size == bytes).then_some(sums)
    }

    fn write(&self, keys: &File, shard: u64, slots: Range<u64>, bytes: u64) -> Result<FileSums> {
        let path = self.directory.join(StoreLayout::file_name(shard));
        let mut out = OrderedWriter::create(&path, bytes)?;
        self.gather(keys, slots, &mut |_, records| Ok(out.write(records)?))?;
        let sums = out.finish()?;
        fault::io("view.shard").map_err(|error| StorageError::io("write", &path, error))?;
        // The bytes are on the disk, so they may be trusted from here on.
        Checksums { files: vec![sums.clone()] }.publish(&self.directory.join(StoreLayout::sums_name(shard)))?;
        Ok(sums)
    }

    /// Hands the records of `slots` to `take`, in order, as (first slot, whole records).
    fn gather(&self, keys: &File, slots: Range<u64>, take: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let (heads, record_bytes) = (self.shape.heads(), self.plan.record_bytes as usize);
        let bytes = BATCH.min(self.memory.max(1 << 20));
        let batch = (bytes / self.plan.record_bytes).clamp(1, slots.end - slots.start);
        let mut stored = vec![0; batch as usize * self.shape.bytes()];
        let mut ids = vec![0; batch as usize * heads];
        let mut records = vec![0; batch as usize * record_bytes];
        let mut values = match self.plan.form() {
            Form::Rows => Vec::new(),
            Form::Float32 => vec![0.0f32; records.len() / 4],
        };
        let mut first = slots.start;
        while first < slots.end {
            let count = batch.min(slots.end - first) as usize;
            let stored = &mut stored[..count * self.shape.bytes()];
            let (ids, records) = (&mut ids[..count * heads], &mut records[..count * record_bytes]);
            keys.read_exact_at(stored, first * self.shape.bytes() as u64)
                .map_err(|error| StorageError::io("read", &self.directory.join(KEYS), error))?;
            self.shape.decode(stored, ids);
            match self.plan.form() {
                // Rows side by side are the record.
                Form::Rows => self.table.fetch_into(ids, records)?,
                Form::Float32 => {
                    let values = &mut values[..records.len() / 4];
                    self.table.vectors_into(ids, values)?;
                    for (bytes, value) in records.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                        *bytes = value.to_le_bytes();
                    }
                }
            }
            take(first, records)?;
            self.progress.advance(records.len() as u64)?;
            first += count as u64;
        }
        Ok(())
    }

    /// Proves that the external file holds these records; its checksums.
    fn compare(&self, keys: &File, path: &Path) -> Result<FileSums> {
        let io = |error| StorageError::io("read", path, error);
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let (slots, slot_bytes) = (self.slots, self.plan.slot_bytes);
        if u128::from(size) < u128::from(slots) * u128::from(slot_bytes) {
            return Err(ViewError::FewRecords { path: path.to_owned(), found: size, slots, slot_bytes }.into());
        }
        let mut summer = Summer::new();
        let mut found = Vec::new();
        let (record, slot) = (self.plan.record_bytes as usize, slot_bytes as usize);
        self.gather(keys, 0..slots, &mut |first, records| {
            found.resize(records.len() / record * slot, 0);
            file.read_exact_at(&mut found, first * slot_bytes).map_err(io)?;
            summer.update(&found);
            let equal = |(expected, found): (&[u8], &[u8])| expected == &found[..record];
            match records.chunks_exact(record).zip(found.chunks_exact(slot)).position(|pair| !equal(pair)) {
                None => Ok(()),
                Some(at) => {
                    let (path, table) = (path.to_owned(), self.plan.table.clone());
                    Err(ViewError::OtherRecords { path, table, slot: first + at as u64 }.into())
                }
            }
        })?;
        let mut offset = slots * slot_bytes;
        while offset < size {
            found.resize(PIECE.min(size - offset) as usize, 0);
            file.read_exact_at(&mut found, offset).map_err(io)?;
            summer.update(&found);
            offset += found.len() as u64;
        }
        Ok(summer.finish())
    }
}
