//! Stores that describe themselves: manifest, checksums, token map, files, blocks.

use super::blocks::{Choice, Items, Summed};
use super::files::{check_blocks, check_size, is_shard, others, read_checksums};
use super::finding::{Finding, Level, Report, counted};
use super::state::Resumable;
use crate::catalog::Session;
use crate::error::Result;
use crate::progress::Progress;
use crate::source::StoreLayout;
use crate::spec::TokenMap;
use crate::storage::checksum::Checksums;
use crate::storage::seal;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const CHECKSUMS: &str = "checksums.bin";
const TOKEN_MAP: &str = "token_map.map";
/// Manifests are read whole to look for what marks ours; no larger file is one.
const MOST_BYTES: u64 = 64 << 20;

/// Whether the directory holds, or by all signs held, a store that describes itself. Damage to one of its files does not
/// turn it into a source that promises nothing.
pub(super) fn describes_itself(directory: &Path) -> bool {
    if directory.join(CHECKSUMS).exists() {
        return true;
    }
    let manifest = directory.join(MANIFEST);
    let small = std::fs::metadata(&manifest).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MOST_BYTES);
    small && std::fs::read(&manifest).is_ok_and(|bytes| bytes.windows(11).any(|window| window == b"\"engramsql\""))
}

/// What the manifest says of the files.
struct Described {
    shards: u64,
    rows_per_shard: u64,
    row_bytes: u64,
    rows: u64,
    token_map: Option<String>,
    /// BLAKE3 of the checksums, 64 hex digits.
    checksums: String,
}

impl Described {
    fn of(manifest: &Map<String, Value>) -> Result<Described, String> {
        let layout = manifest.get("layout").ok_or("it has no layout")?;
        let ours = manifest.get("engramsql").ok_or("it has no member engramsql")?;
        let number = |name: &str| {
            layout.get(name).and_then(Value::as_u64).ok_or_else(|| format!("layout.{name} is no whole number"))
        };
        let row_bytes = number("width")?.checked_mul(layout.get("elem_bytes").and_then(Value::as_u64).unwrap_or(1));
        let checksums = ours.get("checksums").and_then(|checksums| checksums.get("blake3")).and_then(Value::as_str);
        Ok(Described {
            shards: number("shards")?,
            rows_per_shard: number("rows_per_shard")?,
            row_bytes: row_bytes.filter(|&bytes| bytes > 0).ok_or("layout.width is impossible")?,
            rows: number("total_rows")?,
            token_map: ours.get("token_map").and_then(Value::as_str).map(str::to_owned),
            checksums: checksums.ok_or("engramsql.checksums.blake3 is missing")?.to_owned(),
        })
    }

    /// Bytes of shard `shard` by rows and width.
    fn bytes_of(&self, shard: u64) -> u64 {
        let first = shard.saturating_mul(self.rows_per_shard);
        self.rows.saturating_sub(first).min(self.rows_per_shard).saturating_mul(self.row_bytes)
    }
}

/// A store to be verified.
pub(super) struct Store<'a> {
    pub(super) directory: &'a Path,
    /// The digest that the catalog remembers.
    pub(super) digest: Option<&'a str>,
    /// Its name in the catalog, if an interruption is to be gone on from.
    pub(super) resume: Option<&'a str>,
}

impl Store<'_> {
    /// Everything about it but what opening it shows.
    ///
    /// # Errors
    /// As [`verify`](super::verify).
    pub(super) fn check(
        &self,
        session: &Session,
        level: Level,
        progress: &Progress,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let (described, digest) = match self.manifest(report) {
            Some((described, digest)) => (Some(described), Some(digest)),
            None => (None, None),
        };
        let checksums = self.checksums(described.as_ref(), report);
        let shards = match (&described, &checksums) {
            (Some(described), _) => described.shards,
            (None, Some(checksums)) => checksums.files.len() as u64,
            // Nothing says what should be there.
            (None, None) => return Ok(()),
        };
        if let Some(token_map) = described.as_ref().and_then(|described| described.token_map.as_deref()) {
            self.token_map(token_map, report);
        }
        let mut usable = Vec::new();
        let bad = report.bad();
        // No directory holds more; a manifest whose seal is whole announces no more than there are.
        for shard in 0..u32::try_from(shards).unwrap_or(u32::MAX) {
            let sums = checksums.as_ref().and_then(|checksums| checksums.files.get(shard as usize));
            let expected = sums.map(|sums| sums.bytes).or(described.as_ref().map(|d| d.bytes_of(shard.into())));
            let path = self.shard(shard);
            if check_size(&path, Some(shard), expected.unwrap_or(0), report)
                && let Some(sums) = sums
            {
                let items = described.as_ref().map(|described| Items {
                    what: "rows",
                    first: u64::from(shard) * described.rows_per_shard,
                    width: described.row_bytes,
                });
                usable.push(Summed { check: "block", shard: Some(shard), path, sums, items });
            }
        }
        if report.bad() == bad {
            report.add(Finding::good("files", None, format!("{} of the recorded sizes", counted(shards, "shard"))));
        }
        self.stray(shards, report);
        let mut state = match (self.resume, digest) {
            (Some(name), Some(digest)) => Resumable::open(session, name, &digest, level)?,
            _ => Resumable::nothing(),
        };
        check_blocks(&usable, Choice::at(level), &mut state, progress, report)?;
        state.remove()
    }

    fn shard(&self, shard: u32) -> PathBuf {
        self.directory.join(StoreLayout::file_name(shard.into()))
    }

    /// What the manifest says, if it proves itself, and its digest.
    fn manifest(&self, report: &mut Report<'_>) -> Option<(Described, String)> {
        let path = self.directory.join(MANIFEST);
        let (manifest, digest) = match seal::read(&path) {
            Ok(sealed) => sealed,
            Err(error) => {
                report.add(Finding::bad("manifest", None, error.to_string()));
                return None;
            }
        };
        if let Some(known) = self.digest.filter(|known| *known != digest) {
            let detail = "manifest.json is whole, but not the one that the catalog remembers: the store was replaced";
            report.add(Finding::bad("manifest", None, detail).values(known, &digest));
        }
        match Described::of(&manifest) {
            Ok(described) => {
                let Described { shards, rows, row_bytes, .. } = &described;
                let (rows, shards) = (counted(*rows, "row"), counted(*shards, "shard"));
                let detail = format!("manifest.json: {rows} of {row_bytes} bytes in {shards}");
                report.add(Finding::good("manifest", None, detail));
                Some((described, digest))
            }
            Err(error) => {
                report.add(Finding::bad("manifest", None, format!("manifest.json: {error}")));
                None
            }
        }
    }

    /// The checksums, if they prove themselves.
    fn checksums(&self, described: Option<&Described>, report: &mut Report<'_>) -> Option<Checksums> {
        let expected = described.map(|described| described.checksums.as_str());
        let checksums = read_checksums(self.directory, CHECKSUMS, ("manifest", MANIFEST), expected, report)?;
        let Some(described) = described else { return Some(checksums) };
        if checksums.files.len() as u64 != described.shards {
            let (expected, found) = (described.shards, checksums.files.len());
            let detail = "checksums.bin covers another number of shards than manifest.json announces";
            report.add(Finding::bad("manifest", None, detail).values(expected, found));
        }
        for (shard, sums) in (0u32..).zip(&checksums.files) {
            let expected = described.bytes_of(shard.into());
            if sums.bytes != expected {
                let detail = "checksums.bin records another size than manifest.json announces";
                report.add(Finding::bad("manifest", Some(shard), detail).values(expected, sums.bytes));
            }
        }
        Some(checksums)
    }

    fn token_map(&self, name: &str, report: &mut Report<'_>) {
        report.add(match TokenMap::read(self.directory.join(name)) {
            Ok(map) => Finding::good("token_map", None, format!("{name}: {} token ids", map.tokens())),
            Err(error) => Finding::bad("token_map", None, error.to_string()),
        });
    }

    /// Files that are no part of the store. Those that look like shards would be, for a program that lists files.
    fn stray(&self, shards: u64, report: &mut Report<'_>) {
        for name in others(self.directory, &|name| is_part(name, shards), report) {
            let row_file = (name.starts_with("shard_") || name.starts_with("badge_")) && name.ends_with(".bin");
            report.add(if row_file {
                Finding::bad(
                    "stray",
                    None,
                    format!("{name} looks like a shard and is none of the {shards}; move it away"),
                )
            } else {
                Finding::good("stray", None, format!("{name} is no part of the store and is ignored"))
            });
        }
    }
}

/// Whether a file of that name belongs to a store of `shards` shards.
fn is_part(name: &str, shards: u64) -> bool {
    if [MANIFEST, CHECKSUMS, TOKEN_MAP].contains(&name) {
        return true;
    }
    is_shard(name, shards)
}
