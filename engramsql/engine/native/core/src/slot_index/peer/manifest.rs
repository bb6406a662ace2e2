//! `index.json` of engramdb's slot index.

use super::{PeerHash, record_bytes};
use crate::error::Result;
use crate::slot_index::{MOST_HEADS, SlotIndexError};
use crate::source::SourceError;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::Path;

/// Name of the manifest.
pub(super) const FILE: &str = "index.json";
const FORMATS: [(u32, &str); 3] =
    [(1, "engramdb-disk-slot-index-v1"), (2, "engramdb-disk-slot-index-v2"), (3, "engramdb-disk-slot-index-v3")];
/// Buckets that engramdb keeps in memory unless told otherwise; it writes the number, and reads it nowhere.
const CACHE_BUCKETS: u64 = 64;
/// No manifest comes near.
const MOST_BYTES: u64 = 1 << 20;

/// What a slot index of engramdb says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) version: u32,
    pub(super) hash: PeerHash,
    pub(super) heads: usize,
    pub(super) num_buckets: u64,
    pub(super) count: u64,
}

impl Manifest {
    /// Reads the manifest at `path`.
    pub(super) fn read(path: &Path) -> Result<Manifest> {
        let io = |error| SourceError::Io { path: path.to_owned(), error };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(io)?;
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(SlotIndexError::peer(path, format!("it has more than {MOST_BYTES} bytes")).into());
        }
        let document: Map<String, Value> = serde_json::from_slice(&bytes)
            .map_err(|error| SlotIndexError::peer(path, format!("it is no JSON object ({error})")))?;
        Ok(Manifest::parse(&document).map_err(|detail| SlotIndexError::peer(path, detail))?)
    }

    fn parse(document: &Map<String, Value>) -> Result<Manifest, String> {
        let text = |name: &str| match document.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(other) => Err(format!("'{name}' is {other}, not a text")),
        };
        let number = |name: &str| match document.get(name) {
            None => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| format!("'{name}' is {value}, not a count")),
        };
        let needed = |name: &str| number(name)?.ok_or_else(|| format!("'{name}' is missing"));

        let format = text("format")?.ok_or("'format' is missing")?;
        let version = FORMATS.iter().find(|(_, name)| *name == format).map(|(version, _)| *version);
        let version = version.ok_or_else(|| format!("its format is '{format}', not {}", known()))?;
        // Older files do not name it.
        let name = text("hash")?.unwrap_or(PeerHash::Blake2b.name());
        let hash = PeerHash::from_name(name).ok_or_else(|| format!("its hash '{name}' is not known"))?;
        let heads = needed("heads")?;
        let heads = usize::try_from(heads)
            .ok()
            .filter(|heads| (1..=MOST_HEADS).contains(heads))
            .ok_or_else(|| format!("'heads' is {heads}, a key has 1 to {MOST_HEADS} row ids"))?;
        let num_buckets = needed("num_buckets")?;
        if num_buckets == 0 {
            return Err("'num_buckets' is 0".to_owned());
        }
        let manifest = Manifest { version, hash, heads, num_buckets, count: needed("count")? };
        if let Some(found) = number("record_bytes")?
            && found != record_bytes(heads) as u64
        {
            return Err(format!("'record_bytes' is {found}, {heads} row ids and a slot are {}", record_bytes(heads)));
        }
        match document.get("single_file") {
            // The builder in Rust does not write it.
            None => (),
            Some(Value::Bool(single)) if *single == (version == 3) => (),
            Some(other) => return Err(format!("'single_file' is {other} in version {version}")),
        }
        Ok(manifest)
    }

    /// The file's bytes, as engramdb-python writes them.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let format = FORMATS.iter().find(|(version, _)| *version == self.version).map(|(_, name)| *name);
        let document = json!({
            "format": format,
            "hash": self.hash.name(),
            "heads": self.heads,
            "num_buckets": self.num_buckets,
            "count": self.count,
            "record_bytes": record_bytes(self.heads),
            "cache_buckets": CACHE_BUCKETS,
            "single_file": self.version == 3,
        });
        format!("{document:#}\n").into_bytes()
    }
}

fn known() -> String {
    FORMATS.map(|(_, name)| name).join(", ")
}
