//! What a store says about itself, so that it opens without options: the `engramsql` member of its manifest.

use crate::error::Result;
use crate::format::ValueFormat;
use crate::source::error::SourceError;
use crate::spec::{Spec, TokenMap};
use crate::storage::StorageError;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// The member of the manifest.
pub(super) const MEMBER: &str = "engramsql";
/// Name of the copy of the compressed token map, for specs that hash compressed tokens.
pub(crate) const TOKEN_MAP: &str = "token_map.map";

const FORMAT: &str = "engramsql-store";
const VERSION: u64 = 1;

/// What a store says about itself besides its geometry.
#[derive(Debug, Clone)]
pub struct StoreDescription {
    /// How the rows decode, if known.
    pub format: Option<ValueFormat>,
    /// How tokens address the rows, if known.
    pub spec: Option<Spec>,
    /// Decoder layer (0-based), if the source has layers.
    pub layer: Option<u32>,
    /// Where the rows come from, for people.
    pub source: String,
}

/// A description that was read, and what proves it.
pub(super) struct Described {
    pub(super) format: Option<ValueFormat>,
    pub(super) spec: Option<Spec>,
    pub(super) layer: Option<u32>,
    /// BLAKE3 of the manifest, 64 hex digits.
    pub(super) digest: String,
    /// BLAKE3 of the block checksums, 64 hex digits.
    pub(super) checksums: String,
}

impl StoreDescription {
    /// What the description fixes, as members of the manifest's `engramsql` object.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let spec = |spec: &Spec| json!({"family": spec.family(), "name": spec.name(), "config": spec.config()});
        let token_map = self.spec.as_ref().and_then(Spec::token_map).map(|_| TOKEN_MAP);
        let members = [
            ("format", FORMAT.into()),
            ("version", VERSION.into()),
            ("value_format", self.format.as_ref().map(ValueFormat::name).into()),
            ("scale", self.format.as_ref().and_then(ValueFormat::scale).into()),
            ("layer", self.layer.into()),
            ("spec", self.spec.as_ref().map_or(Value::Null, spec)),
            ("token_map", token_map.into()),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Described {
    /// What the sealed `document` at `path` says of the store in `directory`.
    pub(super) fn read(
        directory: &Path,
        path: &Path,
        document: &Map<String, Value>,
        digest: String,
    ) -> Result<Described> {
        let bad = |detail: &str| SourceError::BadJson { path: path.to_owned(), detail: detail.to_owned() };
        let own = document.get(MEMBER).and_then(Value::as_object).ok_or_else(|| bad("it has no engramsql object"))?;
        let text = |name: &str| own.get(name).and_then(Value::as_str);
        match text("format") {
            Some(FORMAT) => (),
            Some("engramsql-view") => {
                return Err(bad("it is the manifest of a materialised view, which is no table").into());
            }
            _ => return Err(bad("engramsql.format is not \"engramsql-store\"").into()),
        }
        match own.get("version").and_then(Value::as_u64) {
            Some(VERSION) => (),
            Some(found) if found > VERSION => {
                return Err(StorageError::NewerVersion { path: path.to_owned(), found, supported: VERSION }.into());
            }
            _ => return Err(bad("engramsql.version is no version of a store").into()),
        }
        let given = |name: &str| own.get(name).filter(|value| !value.is_null());
        let scale = match given("scale") {
            Some(value) => Some(value.as_f64().ok_or_else(|| bad("engramsql.scale is no number"))? as f32),
            None => None,
        };
        let format = match given("value_format") {
            Some(name) => {
                let name = name.as_str().ok_or_else(|| bad("engramsql.value_format is no name"))?;
                Some(ValueFormat::from_name(name, scale)?)
            }
            None => None,
        };
        let layer = match given("layer") {
            Some(layer) => {
                let layer = layer.as_u64().and_then(|layer| u32::try_from(layer).ok());
                Some(layer.ok_or_else(|| bad("engramsql.layer is no layer number"))?)
            }
            None => None,
        };
        let token_map = match given("token_map") {
            Some(Value::String(name)) if name == TOKEN_MAP => {
                Some(Arc::new(TokenMap::read(directory.join(TOKEN_MAP))?))
            }
            Some(_) => return Err(bad("engramsql.token_map is not \"token_map.map\"").into()),
            None => None,
        };
        let spec = match given("spec") {
            Some(spec) => {
                let text = |name: &str| {
                    spec.get(name).and_then(Value::as_str).ok_or_else(|| bad("engramsql.spec has no family or name"))
                };
                let config = spec.get("config").ok_or_else(|| bad("engramsql.spec has no config"))?;
                Some(Spec::named(Some(text("name")?), text("family")?, config, layer, token_map)?)
            }
            None => None,
        };
        let checksums = own.get("checksums").and_then(|checksums| checksums.get("blake3")).and_then(Value::as_str);
        let checksums = checksums.ok_or_else(|| bad("engramsql.checksums.blake3 is missing"))?.to_owned();
        Ok(Described { format, spec, layer, digest, checksums })
    }
}
