//! `index.json`: what makes the files of a directory a slot index.

use super::SlotIndexError;
use super::entry::BUCKET_BYTES;
use crate::error::Result;
use crate::storage::seal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// Name of the manifest in an index directory.
pub(super) const FILE: &str = "index.json";
const FORMAT: &str = "engramsql-slot-index";
const VERSION: u64 = 1;
const HASH: &str = "xxh3-64";

/// The sealed manifest of a slot index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexManifest {
    format: String,
    version: u64,
    hash: String,
    /// Row ids per key.
    pub heads: u64,
    /// Bytes per row id, 4 or 8.
    pub key_bytes: u64,
    /// Keys.
    pub slots: u64,
    /// Buckets where a search can begin.
    pub homes: u64,
    /// Buckets of the file.
    pub buckets: u64,
    /// Digest of what the index was built over, as its builder was told.
    pub keys_blake3: String,
    /// Name of the file of buckets.
    pub data: String,
    /// The file of its block checksums.
    pub checksums: IndexChecksums,
}

/// Where the block checksums of the file of buckets are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexChecksums {
    /// File name.
    pub file: String,
    /// Bytes of one block.
    pub block_bytes: u64,
    /// Digest of the file of checksums, 64 hex digits.
    pub blake3: String,
}

impl IndexManifest {
    /// A manifest of this version; the numbers of buckets and the checksums are filled in when they are known.
    pub(super) fn new(heads: usize, key_bytes: usize, slots: u64, homes: u64, keys_blake3: &str) -> IndexManifest {
        IndexManifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            hash: HASH.to_owned(),
            heads: heads as u64,
            key_bytes: key_bytes as u64,
            slots,
            homes,
            buckets: 0,
            keys_blake3: keys_blake3.to_owned(),
            data: String::new(),
            checksums: IndexChecksums { file: String::new(), block_bytes: 0, blake3: String::new() },
        }
    }

    /// Reads the manifest of the index in `directory`.
    ///
    /// # Errors
    /// A manifest that cannot be read, is of a newer version, or whose seal or content is broken.
    pub fn read(directory: &Path) -> Result<IndexManifest> {
        let path = directory.join(FILE);
        let (document, _) = seal::read(&path)?;
        if document.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(SlotIndexError::damaged(&path, format!("its format is not '{FORMAT}'")).into());
        }
        match document.get("version").and_then(Value::as_u64) {
            Some(VERSION) => (),
            Some(found) if found > VERSION => {
                return Err(SlotIndexError::NewerVersion { path, found, supported: VERSION }.into());
            }
            _ => return Err(SlotIndexError::damaged(&path, "its version is no number from 1 on").into()),
        }
        let manifest: IndexManifest = serde_json::from_value(Value::Object(document))
            .map_err(|error| SlotIndexError::damaged(&path, error.to_string()))?;
        manifest.check().map_err(|detail| SlotIndexError::damaged(&path, detail))?;
        Ok(manifest)
    }

    /// What is wrong with the content, if anything: a seal proves that nobody changed it, not who wrote it.
    fn check(&self) -> Result<(), String> {
        if self.hash != HASH {
            return Err(format!("its hash is '{}', not '{HASH}'", self.hash));
        }
        if self.homes == 0 || self.homes > self.buckets || self.buckets > u64::MAX / BUCKET_BYTES as u64 {
            return Err(format!("{} homes and {} buckets are impossible", self.homes, self.buckets));
        }
        for name in [&self.data, &self.checksums.file] {
            if !is_ours(name) {
                return Err(format!("'{name}' is no name of an index file"));
            }
        }
        Ok(())
    }

    /// Makes this the index of `directory`, whose files are complete: from here on they are found.
    pub(super) fn publish(&self, directory: &Path) -> Result<()> {
        let path = directory.join(FILE);
        let Ok(Value::Object(document)) = serde_json::to_value(self) else {
            // A structure of strings and numbers always serialises to an object.
            return Err(SlotIndexError::damaged(&path, "it cannot be written as JSON").into());
        };
        let document: Map<String, Value> = document;
        seal::publish(&path, &document)?;
        Ok(())
    }
}

/// Whether `name` is one that the builder gives to files beside the manifest, finished or not.
pub(super) fn is_ours(name: &str) -> bool {
    name.strip_prefix("index.").is_some_and(|rest| {
        rest.split_once('.').is_some_and(|(digest, ending)| {
            digest.bytes().all(|byte| byte.is_ascii_alphanumeric()) && matches!(ending, "bin" | "sums")
        })
    })
}
