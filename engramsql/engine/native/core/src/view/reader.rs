//! Reading a view: records by slot, slots by key.

use super::decode::RecordDecoder;
use super::error::ViewError;
use super::manifest::{INDEX, KEYS, Manifest};
use super::options::{Form, Order};
use crate::catalog::ViewEntry;
use crate::error::{Error, Result};
use crate::fault;
use crate::gather::{Bytes, Output, Scattered, gather};
use crate::read::{PathStats, Readers, Row};
use crate::slot_index::{Keys, SlotIndex};
use crate::source::Layout;
use crate::storage::StorageError;
use crate::table::{ShardInfo, Table, check_output, shards_of};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// How often a view answered in its table's place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ViewUsage {
    /// Tokens whose key it held.
    pub hits: u64,
    /// Tokens whose key it did not hold.
    pub misses: u64,
}

/// An open view. Cheap to share (`Arc`), safe to use from many threads.
pub struct View {
    name: String,
    directory: PathBuf,
    manifest: Manifest,
    digest: String,
    layout: Layout,
    readers: Readers,
    keys: Arc<Keys>,
    index: Option<SlotIndex>,
    /// Rows to values, if the table has a value format.
    decoder: Option<RecordDecoder>,
    /// Whether the table has become another one since the view was built.
    stale: bool,
    /// Why its table must not answer from it; the first reason stays.
    unusable: OnceLock<String>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl View {
    /// Opens the view that the catalog has as `entry`; `table` is its table.
    ///
    /// # Errors
    /// Files that are missing, damaged, or not those that the catalog means.
    pub fn open(entry: &ViewEntry, table: &Table) -> Result<View> {
        let view = View::open_directory(&entry.name, &entry.directory, table)?;
        if view.digest != entry.digest {
            let path = entry.directory.join(super::manifest::FILE);
            return Err(StorageError::damaged(&path, "it is not the manifest that the catalog means").into());
        }
        Ok(view)
    }

    /// Opens the view in `directory`, to be called `name`.
    ///
    /// # Errors
    /// Files that are missing or damaged, records that no row of `table` fits.
    pub fn open_directory(name: &str, directory: &Path, table: &Table) -> Result<View> {
        let (manifest, digest) = Manifest::read(directory)?;
        let view = &manifest.view;
        let layout = manifest.records(directory)?;
        let readers = Readers::open(&layout)?;
        let (heads, key_bytes) = (view.heads as usize, view.key_bytes as usize);
        let keys = Arc::new(Keys::open(&directory.join(KEYS), heads, key_bytes, view.slots)?);
        let index_path = directory.join(INDEX);
        let index = match index_path.join("index.json").symlink_metadata() {
            Ok(_) => Some(SlotIndex::open(&index_path, keys.clone())?),
            Err(_) => None,
        };
        let unusable = OnceLock::new();
        let set = |reason: String| drop(unusable.set(reason));
        let stale = view.table_identity != table.identity();
        match &index {
            _ if stale => {
                set(format!("was built from another state of table '{}'; build it again", view.table));
            }
            None => set("has no slot index; build one".to_owned()),
            Some(index) if index.manifest().keys_blake3 != view.checksums.blake3 => {
                set("has a slot index of other keys; build its index again".to_owned());
            }
            Some(_) => (),
        }
        let decoder = table
            .decoder()
            .ok()
            .map(|(decoder, dim)| RecordDecoder::new(manifest.form(), decoder.clone(), heads, dim, table.row_bytes()));
        // With another table behind it, its records are of another size, or mean nothing.
        let fits = match manifest.form() {
            Form::Rows => view.record_bytes == view.heads * table.row_bytes() as u64,
            Form::Float32 => table.dim().is_some_and(|dim| view.record_bytes == view.heads * dim as u64 * 4),
        };
        if !fits {
            set(format!(
                "has records of {} bytes, which are none of table '{}'; build it again",
                view.record_bytes, view.table
            ));
        }
        Ok(View {
            name: name.to_owned(),
            directory: directory.to_owned(),
            decoder: decoder.filter(|_| fits),
            digest,
            layout,
            readers,
            keys,
            index,
            stale,
            unusable,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            manifest,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Name of its table.
    pub fn table(&self) -> &str {
        &self.manifest.view.table
    }

    /// Identity of its table when it was built.
    pub fn table_identity(&self) -> &str {
        &self.manifest.view.table_identity
    }

    /// Digest of its manifest, 64 hex digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Number of records; valid slots are `0..slots`.
    pub fn slots(&self) -> u64 {
        self.manifest.view.slots
    }

    /// Row ids of a key.
    pub fn heads(&self) -> usize {
        self.manifest.view.heads as usize
    }

    /// Bytes of a record.
    pub fn record_bytes(&self) -> usize {
        self.manifest.view.record_bytes as usize
    }

    /// Bytes from one record to the next in the file.
    pub fn slot_bytes(&self) -> usize {
        self.manifest.slot_bytes() as usize
    }

    /// What a record holds.
    pub fn form(&self) -> Form {
        self.manifest.form()
    }

    /// The order of the slots.
    pub fn order(&self) -> Order {
        self.manifest.order()
    }

    /// Values of a record, if its table has a value format.
    pub fn values(&self) -> Option<usize> {
        self.decoder.as_ref().map(RecordDecoder::values)
    }

    /// Where the records lie; a slot is a row of it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its keys.
    pub fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// Its slot index, if it has one.
    pub fn index(&self) -> Option<&SlotIndex> {
        self.index.as_ref()
    }

    /// One line per file of records; a slot is a row of it.
    pub fn shards(&self) -> Vec<ShardInfo> {
        shards_of(&self.layout, &self.readers)
    }

    /// What reading it cost so far, by code path.
    pub fn stats(&self) -> Vec<PathStats> {
        self.readers.stats().paths()
    }

    /// Whether its table may answer from it.
    pub fn is_usable(&self) -> bool {
        self.why().is_none()
    }

    /// Why its table may not answer from it, as what the view is or did ("was built from ...").
    pub fn why(&self) -> Option<&str> {
        self.unusable.get().map(String::as_str)
    }

    /// How often it answered in its table's place since it was opened.
    pub fn usage(&self) -> ViewUsage {
        ViewUsage { hits: self.hits.load(Ordering::Relaxed), misses: self.misses.load(Ordering::Relaxed) }
    }

    /// The records of `slots` in order, duplicates kept: `out.len() == slots.len() * record_bytes()`.
    ///
    /// # Errors
    /// A slot that does not exist; a view of a table that has changed since.
    pub fn records_into(&self, slots: &[i64], out: &mut [u8]) -> Result<()> {
        self.require_current()?;
        self.stored_records_into(slots, out)
    }

    /// The same whatever became of the table.
    pub(crate) fn stored_records_into(&self, slots: &[i64], out: &mut [u8]) -> Result<()> {
        let width = self.record_bytes();
        check_output("bytes", slots.len() * width, out.len())?;
        if width == self.slot_bytes() {
            return self.gather(slots, Bytes { width, out });
        }
        let cut = |_: &mut Vec<f32>, row: Row<'_>, out: &mut [u8]| out.copy_from_slice(&row.values[..width]);
        let positions: Vec<usize> = (0..slots.len()).collect();
        self.gather(slots, Scattered { positions: &positions, per: 1, width, decode: cut, out, first: 0, before: 0 })
    }

    /// The values of the records of `slots`: `out.len() == slots.len() * heads * dim`, as the rows of their keys decode.
    ///
    /// # Errors
    /// A slot that does not exist; a table without a value format, or one that has changed since.
    pub fn e_t_into(&self, slots: &[i64], out: &mut [f32]) -> Result<()> {
        let decoder = self.require_decoder()?;
        let positions: Vec<usize> = (0..slots.len()).collect();
        check_output("values", slots.len() * decoder.values(), out.len())?;
        self.e_t_scattered(slots, &positions, out)
    }

    /// The values of `records`, as [`records_into`](Self::records_into) gives them: `out` as [`e_t_into`](Self::e_t_into)
    /// fills it.
    ///
    /// # Errors
    /// As [`e_t_into`](Self::e_t_into).
    pub fn decode_into(&self, records: &[u8], out: &mut [f32]) -> Result<()> {
        let decoder = self.require_decoder()?;
        let (width, values) = (self.record_bytes(), decoder.values());
        check_output("values", records.len() / width * values, out.len())?;
        check_output("bytes", out.len() / values.max(1) * width, records.len())?;
        for (record, out) in records.chunks_exact(width).zip(out.chunks_exact_mut(values)) {
            decoder.decode(record, out);
        }
        Ok(())
    }

    /// The same rounded once to bfloat16, as bit patterns.
    pub fn e_t_bf16_into(&self, slots: &[i64], out: &mut [u16]) -> Result<()> {
        let decoder = self.require_decoder()?;
        let positions: Vec<usize> = (0..slots.len()).collect();
        check_output("values", slots.len() * decoder.values(), out.len())?;
        self.e_t_bf16_scattered(slots, &positions, out)
    }

    /// The values of the record of `slots[i]` at record `positions[i]` of `out`; positions ascend.
    pub(super) fn e_t_scattered(&self, slots: &[i64], positions: &[usize], out: &mut [f32]) -> Result<()> {
        let decoder = self.require_decoder()?;
        let decode = |_: &mut Vec<f32>, row: Row<'_>, out: &mut [f32]| decoder.decode(row.values, out);
        let width = decoder.values();
        self.gather(slots, Scattered { positions, per: 1, width, decode, out, first: 0, before: 0 })
    }

    /// The same as bfloat16.
    pub(super) fn e_t_bf16_scattered(&self, slots: &[i64], positions: &[usize], out: &mut [u16]) -> Result<()> {
        let decoder = self.require_decoder()?;
        let decode =
            |scratch: &mut Vec<f32>, row: Row<'_>, out: &mut [u16]| decoder.decode_bf16(row.values, scratch, out);
        let width = decoder.values();
        self.gather(slots, Scattered { positions, per: 1, width, decode, out, first: 0, before: 0 })
    }

    /// The key of `slot`: `heads` row ids in head order.
    pub fn key_into(&self, slot: u64, key: &mut [i64]) -> Result<()> {
        self.check_slots(&[i64::try_from(slot).unwrap_or(-1)])?;
        self.keys.key_into(slot, key)
    }

    /// The slots of `keys` (`slots.len()` keys of `heads` row ids): the lowest slot of each, or -1 if it has none.
    ///
    /// # Errors
    /// A view without a slot index.
    pub fn lookup_many(&self, keys: &[i64], slots: &mut [i64]) -> Result<()> {
        self.require_index()?.lookup_many(keys, slots)
    }

    /// Every slot of `key`, ascending.
    pub fn lookup_all(&self, key: &[i64]) -> Result<Vec<u64>> {
        self.require_index()?.lookup_all(key)
    }

    fn require_index(&self) -> Result<&SlotIndex> {
        let reason = || format!("has no slot index; build it with: engramsql index build {}", self.name);
        Ok(self.index.as_ref().ok_or_else(|| ViewError::Unusable { name: self.name.clone(), reason: reason() })?)
    }

    /// Refuses a view of another state of its table: its records are not what the table holds.
    fn require_current(&self) -> Result<(), ViewError> {
        if self.stale {
            let reason = self.why().unwrap_or_default().to_owned();
            return Err(ViewError::Unusable { name: self.name.clone(), reason });
        }
        Ok(())
    }

    fn require_decoder(&self) -> Result<&RecordDecoder> {
        self.require_current()?;
        let Some(decoder) = &self.decoder else { return Err(Error::NoFormat { table: self.table().to_owned() }) };
        Ok(decoder)
    }

    fn check_slots(&self, slots: &[i64]) -> Result<(), ViewError> {
        match slots.iter().find(|&&slot| slot as u64 >= self.slots()) {
            None => Ok(()),
            Some(&slot) => Err(self.out_of_range(slot.into())),
        }
    }

    /// The error for a slot that this view does not have.
    pub fn out_of_range(&self, slot: i128) -> ViewError {
        ViewError::SlotOutOfRange { name: self.name.clone(), slots: self.slots(), slot }
    }

    fn gather(&self, slots: &[i64], output: impl Output) -> Result<()> {
        fault::point("gather");
        self.check_slots(slots)?;
        Ok(gather(&self.readers, &self.layout, slots, self.heads(), output)?)
    }

    /// Counts tokens that were looked up in the table's place.
    pub(super) fn count(&self, hits: usize, misses: usize) {
        self.hits.fetch_add(hits as u64, Ordering::Relaxed);
        self.misses.fetch_add(misses as u64, Ordering::Relaxed);
    }

    /// Answers no more in its table's place: it failed with `error`.
    pub(super) fn give_up(&self, error: &Error) {
        let _ = self.unusable.set(format!("failed: {error}"));
    }
}
