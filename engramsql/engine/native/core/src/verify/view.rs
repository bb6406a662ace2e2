//! Views: what describes them, their files, and their records against the rows of their table.

use super::blocks::{Choice, Items, Summed};
use super::files::{check_blocks, check_size, is_shard, others, read_checksums};
use super::finding::{Finding, Level, Report, counted};
use super::records;
use super::state::Resumable;
use super::store::{CHECKSUMS, MANIFEST};
use crate::catalog::{Session, ViewEntry};
use crate::error::Result;
use crate::progress::Progress;
use crate::slot_index::IndexManifest;
use crate::source::StoreLayout;
use crate::storage::checksum::Checksums;
use crate::storage::seal;
use crate::table::Table;
use crate::view::View;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEYS: &str = "keys.bin";
const INDEX: &str = "index";
const INDEX_MANIFEST: &str = "index.json";

/// What the manifest says of the files.
struct Described {
    shards: u64,
    slots_per_shard: u64,
    slot_bytes: u64,
    slots: u64,
    key_bytes: u64,
    /// A file of records elsewhere.
    records: Option<PathBuf>,
    /// BLAKE3 of the checksums, 64 hex digits.
    checksums: String,
}

impl Described {
    fn of(manifest: &Map<String, Value>) -> Result<Described, String> {
        let part = |name: &str| manifest.get(name).ok_or_else(|| format!("it has no member {name}"));
        let (layout, view) = (part("layout")?, part("engramsql")?);
        if view.get("format").and_then(Value::as_str) != Some("engramsql-view") {
            return Err("it is not the manifest of a view".to_owned());
        }
        let number = |of: &Value, name: &str| {
            of.get(name)
                .and_then(Value::as_u64)
                .filter(|&n| n > 0)
                .ok_or_else(|| format!("{name} is no positive number"))
        };
        let checksums = view.get("checksums").and_then(|checksums| checksums.get("blake3")).and_then(Value::as_str);
        let described = Described {
            shards: number(layout, "shards")?,
            slots_per_shard: number(layout, "rows_per_shard")?,
            slot_bytes: number(layout, "width")?,
            slots: number(view, "slots")?,
            key_bytes: number(view, "heads")?.checked_mul(number(view, "key_bytes")?).ok_or("keys are too long")?,
            records: view.get("records").and_then(Value::as_str).map(PathBuf::from),
            checksums: checksums.ok_or("engramsql.checksums.blake3 is missing")?.to_owned(),
        };
        let bytes = described.slots.checked_mul(described.slot_bytes.max(described.key_bytes));
        bytes.map(|_| described).ok_or_else(|| "its records are too many".to_owned())
    }

    /// Bytes of the records of shard `shard`.
    fn bytes_of(&self, shard: u64) -> u64 {
        let first = shard.saturating_mul(self.slots_per_shard);
        self.slots.saturating_sub(first).min(self.slots_per_shard) * self.slot_bytes
    }
}

/// Verifies the view that the catalog has as `entry`.
pub(super) fn check(
    session: &Session,
    entry: &ViewEntry,
    level: Level,
    resume: bool,
    progress: &Progress,
    report: &mut Report<'_>,
) -> Result<()> {
    let directory = &entry.directory;
    let described = manifest(entry, report);
    let expected = described.as_ref().map(|described| described.checksums.as_str());
    let checksums = read_checksums(directory, CHECKSUMS, ("manifest", MANIFEST), expected, report);
    let index = index_manifest(entry, expected, report);
    let index_sums = index.as_ref().and_then(|index| {
        let by = ("index", INDEX_MANIFEST);
        read_checksums(&directory.join(INDEX), &index.checksums.file, by, Some(&index.checksums.blake3), report)
    });
    let mut state = match resume {
        true => Resumable::open(session, &entry.name, &entry.digest, level)?,
        false => Resumable::nothing(),
    };
    if let Some(checksums) = &checksums {
        let mut files = own_files(directory, described.as_ref(), checksums, report);
        if let (Some(index), Some(sums)) = (&index, &index_sums) {
            files.extend(index_file(&directory.join(INDEX), index, sums, report));
        }
        stray(directory, described.as_ref(), index.as_ref(), report);
        check_blocks(&files, Choice::at(level), &mut state, progress, report)?;
    }
    if let Some((table, view)) = opened(session, entry, report) {
        records::check(&table, &view, level, &mut state, progress, report)?;
    }
    state.remove()
}

/// What the manifest says, if it proves itself.
fn manifest(entry: &ViewEntry, report: &mut Report<'_>) -> Option<Described> {
    let (manifest, digest) = match seal::read(&entry.directory.join(MANIFEST)) {
        Ok(sealed) => sealed,
        Err(error) => {
            report.add(Finding::bad("manifest", None, error.to_string()));
            return None;
        }
    };
    if entry.digest != digest {
        let detail = "manifest.json is whole, but not the one that the catalog remembers: the view was replaced";
        report.add(Finding::bad("manifest", None, detail).values(&entry.digest, &digest));
    }
    match Described::of(&manifest) {
        Ok(described) => {
            let Described { slots, slot_bytes, shards, .. } = &described;
            let (records, shards) = (counted(*slots, "record"), counted(*shards, "shard"));
            let detail = format!("manifest.json: {records} of {slot_bytes} bytes in {shards}");
            report.add(Finding::good("manifest", None, detail));
            Some(described)
        }
        Err(error) => {
            report.add(Finding::bad("manifest", None, format!("manifest.json: {error}")));
            None
        }
    }
}

/// What the index says of itself, if it proves itself.
fn index_manifest(entry: &ViewEntry, checksums: Option<&str>, report: &mut Report<'_>) -> Option<IndexManifest> {
    let directory = entry.directory.join(INDEX);
    if !directory.join(INDEX_MANIFEST).exists() {
        let name = &entry.name;
        let detail =
            format!("index.json is missing, so no key can be looked up; build it with: engramsql index build {name}");
        report.add(Finding::bad("index", None, detail));
        return None;
    }
    match IndexManifest::read(&directory) {
        Ok(index) => {
            if let Some(expected) = checksums.filter(|expected| *expected != index.keys_blake3) {
                let detail = "the slot index was built over other keys; build it again";
                report.add(Finding::bad("index", None, detail).values(expected, &index.keys_blake3));
            }
            Some(index)
        }
        Err(error) => {
            report.add(Finding::bad("index", None, error.to_string()));
            None
        }
    }
}

/// The shards and the keys, as far as they are there.
fn own_files<'a>(
    directory: &Path,
    described: Option<&Described>,
    checksums: &'a Checksums,
    report: &mut Report<'_>,
) -> Vec<Summed<'a>> {
    let Some((keys, shards)) = checksums.files.split_last() else {
        report.add(Finding::bad("manifest", None, "checksums.bin covers no file"));
        return Vec::new();
    };
    if let Some(described) = described.filter(|described| described.shards != shards.len() as u64) {
        let detail = "checksums.bin covers another number of shards than manifest.json announces";
        report.add(Finding::bad("manifest", None, detail).values(described.shards, shards.len()));
    }
    let bad = report.bad();
    let mut files = Vec::with_capacity(checksums.files.len());
    for (shard, sums) in (0u32..).zip(shards) {
        let own = directory.join(StoreLayout::file_name(shard.into()));
        let path = described.and_then(|described| described.records.clone()).unwrap_or(own);
        // A file of others may go on after its last record.
        if let Some(described) = described.filter(|d| d.records.is_none() && d.bytes_of(shard.into()) != sums.bytes) {
            let detail = "checksums.bin records another size than manifest.json announces";
            report.add(
                Finding::bad("manifest", Some(shard), detail).values(described.bytes_of(shard.into()), sums.bytes),
            );
        }
        if check_size(&path, Some(shard), sums.bytes, report) {
            let items = described.map(|described| Items {
                what: "slots",
                first: u64::from(shard) * described.slots_per_shard,
                width: described.slot_bytes,
            });
            files.push(Summed { check: "block", shard: Some(shard), path, sums, items });
        }
    }
    let path = directory.join(KEYS);
    if check_size(&path, None, keys.bytes, report) {
        let items = described.map(|described| Items { what: "slots", first: 0, width: described.key_bytes });
        files.push(Summed { check: "keys", shard: None, path, sums: keys, items });
    }
    if report.bad() == bad {
        report.add(Finding::good(
            "files",
            None,
            format!("{} and the keys, of the recorded sizes", counted(shards.len() as u64, "shard")),
        ));
    }
    files
}

/// The file of buckets, if it is there.
fn index_file<'a>(
    directory: &Path,
    index: &IndexManifest,
    sums: &'a Checksums,
    report: &mut Report<'_>,
) -> Option<Summed<'a>> {
    let [sums] = &sums.files[..] else {
        let detail = format!("{} covers {} files, not one", index.checksums.file, sums.files.len());
        report.add(Finding::bad("index", None, detail));
        return None;
    };
    let path = directory.join(&index.data);
    check_size(&path, None, sums.bytes, report).then_some(Summed {
        check: "index",
        shard: None,
        path,
        sums,
        items: None,
    })
}

/// Files that are no part of the view.
fn stray(directory: &Path, described: Option<&Described>, index: Option<&IndexManifest>, report: &mut Report<'_>) {
    let shards = described.map_or(u64::MAX, |described| match described.records {
        Some(_) => 0,
        None => described.shards,
    });
    let own = |name: &str| [MANIFEST, CHECKSUMS, KEYS, INDEX].contains(&name) || is_shard(name, shards);
    for name in others(directory, &own, report) {
        report.add(Finding::good("stray", None, format!("{name} is no part of the view and is ignored")));
    }
    if let Some(index) = index {
        let own = |name: &str| name == INDEX_MANIFEST || name == index.data || name == index.checksums.file;
        for name in others(&directory.join(INDEX), &own, report) {
            report.add(Finding::good("stray", None, format!("{INDEX}/{name} is no part of the index and is ignored")));
        }
    }
}

/// The view and its table as they lie on the disk now; if one of them does not open, that is a finding, unless an earlier
/// one says why.
fn opened(session: &Session, entry: &ViewEntry, report: &mut Report<'_>) -> Option<(Arc<Table>, View)> {
    let anew = match session.directory() {
        Some(directory) => Session::open(&directory, true, false),
        None => Ok(Session::in_memory()),
    };
    let table = anew.and_then(|anew| match session.directory() {
        Some(_) => anew.table(&entry.table),
        None => session.table(&entry.table),
    });
    let answer = match table {
        Ok(table) => View::open(entry, &table).map(|view| (table, view)),
        Err(error) => {
            report.add(Finding::bad("rows", None, format!("its table does not open: {error}")));
            return None;
        }
    };
    match answer {
        Ok(opened) => Some(opened),
        Err(error) => {
            if report.bad() == 0 {
                report.add(Finding::bad("manifest", None, error.to_string()));
            }
            None
        }
    }
}
