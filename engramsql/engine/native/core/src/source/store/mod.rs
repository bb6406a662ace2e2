//! Store directories: headerless row files `shard_000.bin`, ..., with an optional `manifest.json`.
//!
//! The layout is that of engramdb-python 0.3.0; its `badge_NNN.bin` files are accepted in place of the shards.
//! Geometry comes from the files: a width nobody can derive must be declared, everything declared is checked. Stores
//! that EngramSQL built describe themselves and need no options.

mod description;
mod files;
mod geometry;
mod identity;
mod manifest;

pub use description::StoreDescription;
pub(crate) use description::TOKEN_MAP;
pub(crate) use manifest::{MANIFEST, MOST_SHARDS, StoreLayout};

use super::error::SourceError;
use super::layout::Layout;
use super::{SourceKind, SourceTable, TokenMaps, spec_file};
use crate::catalog::{RegisterOptions, SpecConstants};
use crate::error::Result;
use crate::format::ValueFormat;
use crate::spec::{Spec, takes_token_map};
use description::Described;
use geometry::Geometry;
use manifest::Manifest;
use std::path::Path;

/// Whether the directory holds row files.
pub(super) fn is_store(path: &Path) -> Result<bool, SourceError> {
    Ok(!files::list(path)?.is_empty() || path.join(MANIFEST).exists())
}

/// The table of a store.
pub(super) fn open(path: &Path, options: &RegisterOptions, token_maps: TokenMaps<'_>) -> Result<SourceTable> {
    let manifest = Manifest::read(path)?;
    let described = manifest.as_ref().and_then(|manifest| manifest.described.as_ref());
    refuse_idle_options(path, options, described)?;
    let row_files = files::list(path)?;
    files::check_sequence(path, &row_files, manifest.as_ref())?;
    let geometry = Geometry::resolve(path, manifest.as_ref(), options)?;
    let layout = files::lay_out(path, &row_files, &geometry)?;
    if layout.rows == 0 {
        return Err(SourceError::NoRows { path: path.to_owned() }.into());
    }

    let format = value_format(path, options, described)?;
    if let Some(format) = &format
        && format.dim_of(layout.row_bytes()).is_none()
    {
        return Err(format_mismatch(path, &layout, format, ""));
    }
    let spec = spec(path, options, described, token_maps)?;
    if let Some(spec) = &spec {
        if layout.rows < spec.reachable_rows() {
            return Err(SourceError::TooFewRows {
                path: path.to_owned(),
                rows: layout.rows,
                spec: spec.name().to_owned(),
                reachable: spec.reachable_rows(),
            }
            .into());
        }
        if let (Some(format), Some(dim)) = (&format, spec.head_dim())
            && format.dim_of(layout.row_bytes()) != Some(dim as usize)
        {
            let detail = format!("; spec '{}' has {dim} values per row", spec.name());
            return Err(format_mismatch(path, &layout, format, &detail));
        }
    }
    let layer = spec.as_ref().and_then(|spec| spec.layer()).or(described.and_then(|described| described.layer));
    let identity = |described: &Described| {
        identity::identity(&described.checksums, &layout, format.as_ref(), spec.as_ref(), layer)
    };
    Ok(SourceTable {
        kind: SourceKind::Store,
        layer,
        identity: described.map(identity),
        layout,
        format,
        spec,
        tokenizer: None,
        digest: described.map(|described| described.digest.clone()),
        checksums: described.map(|described| described.checksums.clone()),
    })
}

/// An option that nothing would use is a mistake, not a detail.
fn refuse_idle_options(
    path: &Path,
    options: &RegisterOptions,
    described: Option<&Described>,
) -> Result<(), SourceError> {
    let idle = |option, needs| Err(SourceError::IdleOption { path: path.to_owned(), option, needs });
    let knows_format = described.is_some_and(|described| described.format.is_some());
    if options.format.is_none() && options.scale.is_some() && !knows_format {
        return idle("scale", "format");
    }
    let knows_spec = described.is_some_and(|described| described.spec.is_some());
    if options.spec.is_none() && !knows_spec {
        if options.tokenizer.is_some() {
            return idle("tokenizer", "spec");
        }
        if options.layer.is_some() && described.is_none_or(|described| described.layer.is_none()) {
            return idle("layer", "spec");
        }
    }
    Ok(())
}

/// The value format that the store or the options name; both must agree.
fn value_format(path: &Path, options: &RegisterOptions, described: Option<&Described>) -> Result<Option<ValueFormat>> {
    let Some(format) = described.and_then(|described| described.format) else {
        let named = |name: &String| ValueFormat::from_name(name, options.scale);
        return Ok(options.format.as_ref().map(named).transpose()?);
    };
    if let Some(declared) = &options.format
        && declared != format.name()
    {
        return Err(contradiction(path, "format", declared, format.name()));
    }
    if let Some(declared) = options.scale
        && format.scale() != Some(declared)
    {
        let found = format.scale().map_or("no scale".to_owned(), |scale| scale.to_string());
        return Err(contradiction(path, "scale", &declared.to_string(), &found));
    }
    Ok(Some(format))
}

/// The spec that the store or the options name; both must agree.
fn spec(
    path: &Path,
    options: &RegisterOptions,
    described: Option<&Described>,
    token_maps: TokenMaps<'_>,
) -> Result<Option<Spec>> {
    if let (Some(declared), Some(layer)) = (options.layer, described.and_then(|described| described.layer))
        && declared != layer
    {
        return Err(contradiction(path, "layer", &declared.to_string(), &layer.to_string()));
    }
    // Of a family that hashes token ids as they are, the tokenizer is there for text only.
    let declared_map =
        |family: &str| options.tokenizer.as_deref().filter(|_| takes_token_map(family)).map(token_maps).transpose();
    let Some(spec) = described.and_then(|described| described.spec.clone()) else {
        let Some(name) = &options.spec else { return Ok(None) };
        let file = spec_file(name)?;
        let map = declared_map(file.family())?;
        return Ok(Some(file.spec(options.layer, map)?));
    };
    if let Some(declared) = &options.spec {
        let wanted = spec_file(declared)?.spec(spec.layer(), spec.token_map().cloned())?;
        if SpecConstants::of(&wanted) != SpecConstants::of(&spec) {
            return Err(contradiction(path, "spec", declared, &format!("{} with other constants", spec.name())));
        }
    }
    if let Some(declared) = declared_map(spec.family())?
        && spec.token_map() != Some(&declared)
    {
        let tokenizer = options.tokenizer.as_deref().unwrap_or(path).display().to_string();
        return Err(contradiction(path, "tokenizer", &tokenizer, "another token map"));
    }
    Ok(Some(spec))
}

fn contradiction(path: &Path, what: &'static str, declared: &str, found: &str) -> crate::Error {
    let path = path.join(MANIFEST);
    SourceError::Contradiction { path, what, declared: declared.to_owned(), found: found.to_owned() }.into()
}

fn format_mismatch(path: &Path, layout: &Layout, format: &ValueFormat, detail: &str) -> crate::Error {
    SourceError::FormatMismatch {
        path: path.to_owned(),
        row_bytes: layout.row_bytes(),
        format: format.name().to_owned(),
        detail: detail.to_owned(),
    }
    .into()
}
