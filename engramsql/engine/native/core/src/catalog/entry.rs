//! What the catalog remembers of a table or view.

use crate::clock::now;
use crate::source::SourceTable;
use crate::spec::Spec;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What files do not say and the caller does. Everything given is checked against the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterOptions {
    /// Released spec name, or path of a spec file (TOML).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// Value format name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Scale of the value format (`fp8_e4m3`: the scalar scale; `nvfp4`: `weight_scale_2`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f32>,
    /// Bytes of one row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u64>,
    /// Rows per shard (stores without a manifest).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_per_shard: Option<u64>,
    /// Path of a `tokenizer.json`, for sources that hold none: for text, and for specs that hash compressed tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<PathBuf>,
    /// Decoder layer (0-based), to register one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<u32>,
}

/// Hash constants as resolved at registration; whoever opens the table later derives them again and compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecConstants {
    /// Hash family.
    pub family: String,
    /// Size of the vocabulary.
    pub vocab_size: u64,
    /// Multipliers, one per window position.
    pub multipliers: Vec<i64>,
    /// Head sizes, in head order.
    pub head_sizes: Vec<u64>,
    /// Head offsets, in head order.
    pub head_offsets: Vec<u64>,
}

impl SpecConstants {
    /// The constants of `spec`.
    pub fn of(spec: &Spec) -> SpecConstants {
        SpecConstants {
            family: spec.family().to_owned(),
            vocab_size: spec.vocab_size(),
            multipliers: spec.multipliers().to_vec(),
            head_sizes: spec.head_sizes().to_vec(),
            head_offsets: spec.head_offsets().to_vec(),
        }
    }
}

/// One registered table, as the catalog remembers it (sources are opened on first use).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// Name, as registered.
    pub name: String,
    /// Path of the source, absolute once read.
    pub source: PathBuf,
    /// Options given at registration.
    #[serde(default)]
    pub options: RegisterOptions,
    /// Name of the spec, if any.
    pub spec: Option<String>,
    /// Its constants.
    pub constants: Option<SpecConstants>,
    /// File of the compressed token map, relative to the database directory, if the spec needs one.
    pub token_map: Option<PathBuf>,
    /// The `tokenizer.json` of the table that this one was built from: text goes through it where the store holds none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<PathBuf>,
    /// Decoder layer (0-based), if any.
    pub layer: Option<u32>,
    /// Rows.
    pub rows: u64,
    /// Values per row, if the format is known.
    pub dim: Option<u64>,
    /// Value format name, if known.
    pub format: Option<String>,
    /// Scale of the value format, if it has one.
    pub scale: Option<f32>,
    /// Bytes per row.
    pub row_bytes: u64,
    /// Row ids per token; 0 without a spec.
    pub heads: u64,
    /// Shards.
    pub shards: u64,
    /// Bytes of all rows.
    pub bytes: u64,
    /// Whether rows are read where the source lies (true) or from a store inside the database.
    pub in_place: bool,
    /// BLAKE3 of the manifest of a store that describes itself (64 hex digits); `None` for every other source.
    #[serde(default)]
    pub digest: Option<String>,
    /// When it was registered (microseconds since the Unix epoch): the same source registered anew is opened anew.
    #[serde(default)]
    pub registered_at: i64,
    /// When `verify` last found the table good (microseconds since the Unix epoch).
    pub verified_at: Option<i64>,
}

impl TableEntry {
    /// The entry of a table found in `source`.
    pub fn of(name: String, source: &Path, options: &RegisterOptions, found: &SourceTable) -> TableEntry {
        let row_bytes = found.layout.row_bytes();
        let dim = found.format.as_ref().and_then(|format| format.dim_of(row_bytes));
        TableEntry {
            name,
            source: source.to_owned(),
            options: RegisterOptions { layer: found.layer, ..options.clone() },
            spec: found.spec.as_ref().map(|spec| spec.name().to_owned()),
            constants: found.spec.as_ref().map(SpecConstants::of),
            token_map: None,
            tokenizer: None,
            layer: found.layer,
            rows: found.layout.rows,
            dim: dim.map(|dim| dim as u64),
            format: found.format.as_ref().map(|format| format.name().to_owned()),
            scale: found.format.as_ref().and_then(|format| format.scale()),
            row_bytes: row_bytes as u64,
            heads: found.spec.as_ref().map_or(0, |spec| spec.heads() as u64),
            shards: found.layout.shard_count().into(),
            bytes: found.layout.bytes(),
            in_place: true,
            digest: found.digest.clone(),
            registered_at: now(),
            verified_at: None,
        }
    }

    /// Whether a table opened from `other` is the one that this entry means: all but the time of its verification agrees.
    pub(super) fn opens_as(&self, other: &TableEntry) -> bool {
        *self == TableEntry { verified_at: self.verified_at, ..other.clone() }
    }

    /// The first property in which the source has become another table since it was registered: what, then, now.
    pub(super) fn difference(&self, found: &SourceTable) -> Option<(&'static str, String, String)> {
        let now = TableEntry::of(self.name.clone(), &self.source, &self.options, found);
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        if self.rows != now.rows {
            return Some(("rows", self.rows.to_string(), now.rows.to_string()));
        }
        if self.row_bytes != now.row_bytes {
            return Some(("row_bytes", self.row_bytes.to_string(), now.row_bytes.to_string()));
        }
        if self.format != now.format {
            return Some(("format", show(&self.format), show(&now.format)));
        }
        if self.scale != now.scale {
            return Some(("scale", format!("{:?}", self.scale), format!("{:?}", now.scale)));
        }
        if self.constants != now.constants {
            let show = |c: &Option<SpecConstants>| {
                c.as_ref().map_or("none".to_owned(), |c| format!("{} {:?}", c.family, c.multipliers))
            };
            return Some(("hash constants", show(&self.constants), show(&now.constants)));
        }
        // Without a digest nothing was promised beyond the properties above.
        if self.digest.is_some() && self.digest != now.digest {
            return Some(("digest", show(&self.digest), show(&now.digest)));
        }
        None
    }
}

/// A materialised view: the records of the distinct keys of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewEntry {
    /// Name.
    pub name: String,
    /// Its directory, absolute once read.
    pub directory: PathBuf,
    /// Name of the table whose rows it holds.
    pub table: String,
    /// Identity of that table when the view was built.
    pub table_identity: String,
    /// Records.
    pub slots: u64,
    /// Row ids per key.
    pub heads: u64,
    /// Bytes per record.
    pub record_bytes: u64,
    /// Bytes of all records.
    pub bytes: u64,
    /// What a record holds: "rows" (their stored bytes) or "float32".
    pub form: String,
    /// Order of the slots: "key" or "access".
    pub order: String,
    /// Tokens of the corpus, if known.
    pub tokens: Option<u64>,
    /// Tokens whose key is in the view, if known.
    pub covered: Option<u64>,
    /// BLAKE3 of its manifest (64 hex digits).
    pub digest: String,
    /// When it was built (microseconds since the Unix epoch).
    pub built_at: i64,
    /// When `verify` last found the view good (microseconds since the Unix epoch).
    pub verified_at: Option<i64>,
}

/// A SQL view kept in the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlViewEntry {
    /// Name.
    pub name: String,
    /// The SELECT behind it.
    pub sql: String,
}
