//! Sources: where the rows of a table lie.
//!
//! A source is looked at once, headers only, and answers with one [`SourceTable`] per hash layer: the layout (files and
//! extents, checked against the files' real sizes), the value format and the spec. Nothing is guessed: what the files
//! do not say comes from [`RegisterOptions`], and what both say must agree.

mod checkpoint;
mod deepseek_v41;
mod error;
mod layout;
mod qwen4_exp;
mod safetensors;
mod stamp;
mod store;

pub use checkpoint::Checkpoint;
pub use error::SourceError;
pub use layout::{Extent, Layout, Part};
pub use safetensors::{Header, Tensor};
pub use stamp::FileStamp;
pub use store::StoreDescription;
pub(crate) use store::{MANIFEST, MOST_SHARDS, StoreLayout, TOKEN_MAP};

use crate::catalog::{RegisterOptions, SpecConstants};
use crate::error::Result;
use crate::format::ValueFormat;
use crate::spec::{self, Spec, SpecFile, TokenMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of a tokenizer that lies beside the files of a table.
const TOKENIZER: &str = "tokenizer.json";

/// What kind of source a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// Hugging Face directory with a `config.json`, read in place.
    Checkpoint,
    /// Directory of row files (`shard_000.bin`, ...).
    Store,
}

/// One table found in a source.
#[derive(Debug, Clone)]
pub struct SourceTable {
    /// What it was found in.
    pub kind: SourceKind,
    /// Decoder layer (0-based), if the source has layers.
    pub layer: Option<u32>,
    /// Where the rows lie.
    pub layout: Layout,
    /// How they decode, if known.
    pub format: Option<ValueFormat>,
    /// How tokens address them, if known.
    pub spec: Option<Spec>,
    /// The `tokenizer.json` that text goes through: the one declared, or one beside the files.
    pub tokenizer: Option<PathBuf>,
    /// BLAKE3 of the manifest of a store that describes itself (64 hex digits); `None` for every other source.
    pub digest: Option<String>,
    /// BLAKE3 of the block checksums that this manifest names (64 hex digits).
    pub checksums: Option<String>,
    /// What tells the content of such a store from any other, whenever and from what it was built (64 hex digits).
    pub identity: Option<String>,
}

/// Supplies the compressed token map of a tokenizer file: from a cache, a catalog, or by building it.
pub type TokenMaps<'a> = &'a dyn Fn(&Path) -> Result<Arc<TokenMap>>;

/// The tables of the source at `path`: one, or one per hash layer (only `options.layer` if given).
pub fn open(path: &Path, options: &RegisterOptions, token_maps: TokenMaps<'_>) -> Result<Vec<SourceTable>> {
    let metadata = std::fs::metadata(path).map_err(|e| SourceError::io(path, e))?;
    if !metadata.is_dir() {
        return Err(SourceError::NotADirectory { path: path.to_owned() }.into());
    }
    let mut tables = match kind_of(path)? {
        SourceKind::Store => vec![store::open(path, options, token_maps)?],
        SourceKind::Checkpoint => {
            let checkpoint = Checkpoint::open(path)?;
            let tables = match checkpoint.family()? {
                "qwen_ple_v1" => qwen4_exp::open(&checkpoint, options)?,
                "deepseek_v41" => deepseek_v41::open(&checkpoint, options, token_maps)?,
                family => return Err(SourceError::NoReader { path: path.to_owned(), family }.into()),
            };
            for table in &tables {
                check_declared(path, table, options)?;
            }
            tables
        }
    };
    let beside = || Some(path.join(TOKENIZER)).filter(|tokenizer| tokenizer.is_file());
    let tokenizer = options.tokenizer.clone().or_else(beside);
    tables.iter_mut().for_each(|table| table.tokenizer.clone_from(&tokenizer));
    Ok(tables)
}

/// Refuses options that declare a tokenizer which is not there: nothing else may ask for it before a text does.
pub(crate) fn require_declared(options: &RegisterOptions) -> Result<(), SourceError> {
    match &options.tokenizer {
        Some(path) => FileStamp::of(path).map(drop).map_err(|error| SourceError::io(path, error)),
        None => Ok(()),
    }
}

/// The name under which a source's tables go when nobody gave one: `ple`, `engram` or `rows`.
pub fn default_name(path: &Path) -> Result<&'static str, SourceError> {
    Ok(match kind_of(path)? {
        SourceKind::Store => "rows",
        SourceKind::Checkpoint => match Checkpoint::open(path)?.family()? {
            "qwen_ple_v1" => "ple",
            _ => "engram",
        },
    })
}

/// What the directory at `path` is, by the files in it.
pub fn kind_of(path: &Path) -> Result<SourceKind, SourceError> {
    if path.join("config.json").exists() {
        return Ok(SourceKind::Checkpoint);
    }
    if store::is_store(path)? {
        return Ok(SourceKind::Store);
    }
    Err(SourceError::Unrecognised { path: path.to_owned() })
}

/// Declared options must agree with what a checkpoint says.
fn check_declared(path: &Path, table: &SourceTable, options: &RegisterOptions) -> Result<()> {
    let contradiction = |what: &'static str, declared: String, found: String| {
        Err(SourceError::Contradiction { path: path.to_owned(), what, declared, found }.into())
    };
    if let (Some(declared), Some(format)) = (&options.format, &table.format)
        && declared != format.name()
    {
        return contradiction("format", declared.clone(), format.name().to_owned());
    }
    if let (Some(declared), Some(format)) = (options.scale, &table.format)
        && format.scale() != Some(declared)
    {
        let found = format.scale().map_or("no scale".to_owned(), |scale| scale.to_string());
        return contradiction("scale", declared.to_string(), found);
    }
    if let Some(declared) = options.width
        && declared != table.layout.row_bytes() as u64
    {
        return contradiction("width", declared.to_string(), table.layout.row_bytes().to_string());
    }
    if let Some(declared) = options.rows_per_shard
        && table.layout.rows_per_shard() != Some(declared)
    {
        let found =
            table.layout.rows_per_shard().map_or("shards of different sizes".to_owned(), |rows| rows.to_string());
        return contradiction("rows_per_shard", declared.to_string(), found);
    }
    if let (Some(declared), Some(spec)) = (&options.spec, &table.spec) {
        let wanted = spec_file(declared)?.spec(table.layer, spec.token_map().cloned())?;
        if SpecConstants::of(&wanted) != SpecConstants::of(spec) {
            return contradiction("spec", declared.clone(), format!("{} with other constants", spec.family()));
        }
    }
    Ok(())
}

/// Whether `spec` is a path of a spec file rather than the name of a released spec.
pub(crate) fn is_spec_path(spec: &str) -> bool {
    spec.contains('/') || spec.ends_with(".toml")
}

/// The spec file a user named: a path of a TOML file, or the name of a released spec.
fn spec_file(name: &str) -> Result<SpecFile> {
    Ok(if is_spec_path(name) { SpecFile::read(name)? } else { SpecFile::released(name)? })
}

/// The layers to open: all of the config's, or the one asked for.
fn wanted_layers(
    path: &Path,
    family: &'static str,
    config: &serde_json::Value,
    options: &RegisterOptions,
) -> Result<Vec<u32>> {
    let layers = spec::layers(family, config)?;
    match options.layer {
        None => Ok(layers),
        Some(layer) if layers.contains(&layer) => Ok(vec![layer]),
        Some(layer) => Err(SourceError::NoSuchLayer { path: path.to_owned(), layer, layers }.into()),
    }
}
