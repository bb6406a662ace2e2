//! Names for tables and views: a database directory's `engram.json`, or the same in memory.

use crate::error::{ErrorKind, Result};
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the catalog refused a name or a change.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// No table of that name.
    #[error("no table named '{name}'{hint}")]
    UnknownTable {
        /// The name asked for.
        name: String,
        /// "; did you mean 'x'?" or what to do instead.
        hint: String,
    },
}

impl CatalogError {
    /// The class of remedy.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::UnknownTable
    }
}

/// What files do not say and the caller does. Everything given is checked against the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// Path of a `tokenizer.json`, for specs that hash compressed tokens and sources that hold no tokenizer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<PathBuf>,
    /// Decoder layer (0-based), to register one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<u32>,
}

/// One registered table, as the catalog remembers it (sources are opened on first use).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableEntry {
    /// Name, as registered.
    pub name: String,
    /// Path of the source, absolute once read.
    pub source: PathBuf,
    /// Options given at registration.
    pub options: RegisterOptions,
    /// Name of the spec, if any.
    pub spec: Option<String>,
    /// Decoder layer (0-based), if any.
    pub layer: Option<u32>,
    /// Rows.
    pub rows: u64,
    /// Values per row, if the format is known.
    pub dim: Option<u64>,
    /// Value format name, if known.
    pub format: Option<String>,
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
    /// When `verify` last found the table good (microseconds since the Unix epoch).
    pub verified_at: Option<i64>,
}

/// A SQL view kept in the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewEntry {
    /// Name.
    pub name: String,
    /// The SELECT behind it.
    pub sql: String,
}

/// A set of named tables: a database directory, or memory only. Shared by every connection of one DuckDB database.
/// Table names compare like SQL identifiers: ASCII case does not matter.
pub struct Session {
    _p: (),
}

impl Session {
    /// A session without a directory.
    pub fn in_memory() -> Session {
        todo!()
    }
    /// A session on a database directory. With `create`, a missing or empty directory becomes a database at the first change.
    pub fn open(_dir: &Path, _read_only: bool, _create: bool) -> Result<Session> {
        todo!()
    }
    /// Points this session at a database directory (`CALL engram_attach`); tables held in memory are dropped.
    pub fn attach(&self, _dir: &Path, _read_only: bool) -> Result<()> {
        todo!()
    }
    /// The attached directory.
    pub fn directory(&self) -> Option<PathBuf> {
        todo!()
    }
    /// Reads the source's headers and remembers it under `name` (several hash layers: `name_l1`, `name_l14`).
    pub fn register(&self, _name: &str, _source: &Path, _options: &RegisterOptions) -> Result<Vec<TableEntry>> {
        todo!()
    }
    /// Forgets a table; its source stays as it is.
    pub fn drop_table(&self, _name: &str) -> Result<TableEntry> {
        todo!()
    }
    /// All tables, by name.
    pub fn tables(&self) -> Result<Vec<TableEntry>> {
        todo!()
    }
    /// All SQL views, in creation order.
    pub fn views(&self) -> Result<Vec<ViewEntry>> {
        todo!()
    }
    /// Keeps a SQL view; an existing one of that name is replaced if `replace`.
    pub fn create_view(&self, _name: &str, _sql: &str, _replace: bool) -> Result<()> {
        todo!()
    }
    /// Forgets a SQL view.
    pub fn drop_view(&self, _name: &str) -> Result<()> {
        todo!()
    }
    /// The open table of that name, or of that path (anything with a path separator). Opened once, then shared; opened
    /// again when its catalog entry changed.
    pub fn table(&self, _name_or_path: &str) -> Result<Arc<Table>> {
        todo!()
    }
    /// Whether `name` is a registered table (no file is opened).
    pub fn contains(&self, _name: &str) -> Result<bool> {
        todo!()
    }
}
