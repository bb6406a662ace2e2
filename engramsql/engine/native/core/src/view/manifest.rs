//! The manifest of a view: what lies in its directory. Members: docs/format.md.

use super::options::{Form, Order};
use super::plan::{self, Plan, PlanKeys, PlanOptions, object};
use crate::source::{Extent, FileStamp, Layout, Part, StoreLayout};
use crate::storage::checksum::BLOCK_BYTES;
use crate::storage::{StorageError, seal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(super) const FILE: &str = "manifest.json";
pub(super) const KEYS: &str = "keys.bin";
pub(super) const CHECKSUMS: &str = "checksums.bin";
pub(super) const INDEX: &str = "index";
const FORMAT: &str = "engramsql-view";
const VERSION: u64 = 1;
/// Bytes that the notional groups of rows of a Store-I fit in.
const BADGE: u64 = 4096;

/// What `manifest.json` of a view says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    layout: Shards,
    #[serde(rename = "engramsql")]
    pub(super) view: Described,
}

/// Where the records lie, in the words of a Store-I.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Shards {
    shards: u64,
    rows_per_shard: u64,
    width: u64,
    elem_bytes: u64,
    badge_rows: u64,
    badge_bytes: u64,
    total_rows: u64,
}

/// What the records are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Described {
    format: String,
    version: u64,
    pub(super) table: String,
    pub(super) table_identity: String,
    pub(super) heads: u64,
    pub(super) key_bytes: u64,
    pub(super) record_bytes: u64,
    form: String,
    order: String,
    pub(super) slots: u64,
    pub(super) tokens: Option<u64>,
    pub(super) covered: Option<u64>,
    pub(super) records: Option<String>,
    #[serde(default)]
    records_modified: Option<i64>,
    options: PlanOptions,
    pub(super) checksums: ChecksumFile,
    pub(super) built_at: i64,
}

/// The checksums of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChecksumFile {
    file: String,
    block_bytes: u64,
    pub(super) blake3: String,
}

impl Manifest {
    /// The manifest of a build whose records are complete. `checksums`: digest of their checksum file.
    pub(super) fn of(plan: &Plan, keys: PlanKeys, checksums: String) -> Manifest {
        let rows_per_shard = plan.slots_per_shard(keys.slots);
        let badge_rows = (BADGE / plan.slot_bytes).max(1);
        Manifest {
            layout: Shards {
                shards: keys.slots.div_ceil(rows_per_shard),
                rows_per_shard,
                width: plan.slot_bytes,
                elem_bytes: 1,
                badge_rows,
                badge_bytes: badge_rows * plan.slot_bytes,
                total_rows: keys.slots,
            },
            view: Described {
                format: FORMAT.to_owned(),
                version: VERSION,
                table: plan.table.clone(),
                table_identity: plan.table_identity.clone(),
                heads: plan.heads,
                key_bytes: plan.key_bytes,
                record_bytes: plan.record_bytes,
                form: plan.form.clone(),
                order: plan.order.clone(),
                slots: keys.slots,
                tokens: keys.tokens,
                covered: keys.covered,
                records: plan.records.clone(),
                records_modified: plan.records_modified,
                options: plan.options.clone(),
                checksums: ChecksumFile {
                    file: CHECKSUMS.to_owned(),
                    block_bytes: BLOCK_BYTES as u64,
                    blake3: checksums,
                },
                built_at: plan.built_at,
            },
        }
    }

    /// Writes it to `directory`; returns its digest.
    pub(super) fn publish(&self, directory: &Path) -> Result<String, StorageError> {
        seal::publish(&directory.join(FILE), &object(self))
    }

    /// Reads that of `directory`, and its digest.
    ///
    /// # Errors
    /// A file that cannot be read, has a broken seal, is no view's, or contradicts itself.
    pub(super) fn read(directory: &Path) -> Result<(Manifest, String), StorageError> {
        let path = directory.join(FILE);
        let (document, digest) = seal::read(&path)?;
        let damaged = |what: String| StorageError::damaged(&path, what);
        let head = document.get("engramsql").cloned().unwrap_or_default();
        if head.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(damaged("it is not the manifest of a view".to_owned()));
        }
        let version = head.get("version").and_then(Value::as_u64).unwrap_or(0);
        if version > VERSION {
            return Err(StorageError::NewerVersion { path, found: version, supported: VERSION });
        }
        let manifest: Manifest =
            serde_json::from_value(Value::Object(document)).map_err(|error| damaged(error.to_string()))?;
        let (layout, view) = (&manifest.layout, &manifest.view);
        let sound = view.heads > 0
            && matches!(view.key_bytes, 4 | 8)
            && view.record_bytes > 0
            && layout.elem_bytes == 1
            && layout.width >= view.record_bytes
            && view.slots > 0
            && layout.total_rows == view.slots
            && layout.rows_per_shard > 0
            && layout.shards == view.slots.div_ceil(layout.rows_per_shard)
            && (view.records.is_none() || layout.shards == 1)
            && view.slots.checked_mul(layout.width).is_some()
            && layout.shards <= u64::from(u32::MAX)
            && Form::from_name(&view.form).is_some()
            && Order::from_name(&view.order).is_some();
        if sound { Ok((manifest, digest)) } else { Err(damaged("its numbers contradict each other".to_owned())) }
    }

    /// What a record holds.
    pub(super) fn form(&self) -> Form {
        Form::from_name(&self.view.form).unwrap_or_default()
    }

    /// The order of the slots.
    pub(super) fn order(&self) -> Order {
        Order::from_name(&self.view.order).unwrap_or_default()
    }

    /// The plan of the build that ended with it.
    pub(super) fn plan(&self) -> Plan {
        let view = self.view.clone();
        Plan {
            format: plan::FORMAT.to_owned(),
            version: plan::VERSION,
            table: view.table,
            table_identity: view.table_identity,
            heads: view.heads,
            key_bytes: view.key_bytes,
            record_bytes: view.record_bytes,
            slot_bytes: self.layout.width,
            form: view.form,
            order: view.order,
            records: view.records,
            records_modified: view.records_modified,
            options: view.options,
            built_at: view.built_at,
            keys: Some(PlanKeys { slots: view.slots, tokens: view.tokens, covered: view.covered }),
        }
    }

    /// Number of shards.
    pub(super) fn shards(&self) -> u64 {
        self.layout.shards
    }

    /// Bytes from one record to the next.
    pub(super) fn slot_bytes(&self) -> u64 {
        self.layout.width
    }

    /// Where the records are: files of exactly the right size in `directory`, or the external file.
    pub(super) fn records(&self, directory: &Path) -> Result<Layout, StorageError> {
        let Shards { shards, rows_per_shard, width, total_rows, .. } = self.layout;
        let (mut files, mut extents) = (Vec::new(), Vec::new());
        for shard in 0..shards {
            let path = match &self.view.records {
                Some(path) => PathBuf::from(path),
                None => directory.join(StoreLayout::file_name(shard)),
            };
            let stamp = FileStamp::of(&path).map_err(|error| StorageError::io("open", &path, error))?;
            // What others wrote there since was never compared with the rows.
            if self.view.records.is_some() && self.view.records_modified != Some(modified_at(&stamp)) {
                let what = "it was written to since the view was built; build the view again";
                return Err(StorageError::damaged(&path, what));
            }
            let first_row = shard * rows_per_shard;
            let rows = rows_per_shard.min(total_rows - first_row);
            let (found, expected) = (stamp.bytes(), rows * width);
            // Another program's file may go on after the last record.
            if found != expected && (self.view.records.is_none() || found < expected) {
                let what = format!("it has {found} bytes, {rows} records of {width} bytes need {expected}");
                return Err(StorageError::damaged(&path, what));
            }
            extents.push(Extent { shard: shard as u32, file: files.len(), first_row, rows, offset: 0 });
            files.push((path, stamp));
        }
        Ok(Layout { files, rows: total_rows, parts: vec![Part::new(width as usize, extents)] })
    }
}

/// When a file was last written, in nanoseconds since the Unix epoch.
pub(super) fn modified_at(stamp: &FileStamp) -> i64 {
    let (seconds, nanoseconds) = stamp.modified();
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}
