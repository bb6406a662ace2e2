//! The options of `COPY ... (FORMAT engram, ...)`: what the store says of itself.

use super::super::arguments::size;
use crate::error::{Error, Result};
use crate::ffi::CopyOptions;
use engram_engine::build::{StoreDescription, StoreWriter};
use engram_engine::format::ValueFormat;
use engram_engine::spec::{Spec, SpecFile, TokenMap};
use std::path::Path;
use std::sync::Arc;

const NAMES: [&str; 6] = ["value_format", "scale", "spec", "layer", "tokenizer", "shard_bytes"];
/// Bytes of a shard where nobody says.
const SHARD_BYTES: u64 = 1 << 30;

/// What the options say.
pub struct Description {
    format: Option<ValueFormat>,
    spec: Option<Spec>,
    shard_bytes: u64,
}

impl Description {
    /// Reads and checks the options.
    pub fn read(options: &CopyOptions) -> Result<Description> {
        if let Some(unknown) = options.names().find(|name| !NAMES.contains(name)) {
            return Err(Error::argument(format!("unknown option {unknown}; the options are {}", NAMES.join(", "))));
        }
        let text = |name: &str| options.get(name).map_or(Ok(None), |value| value.text(name));
        let idle = |name: &str, needs: &str| match options.get(name) {
            Some(_) => Err(Error::argument(format!("{name} says nothing without {needs}; give both or none"))),
            None => Ok(()),
        };
        let format = match text("value_format")? {
            Some(name) => {
                let scale = options.get("scale").map_or(Ok(None), |value| value.number("scale"))?;
                Some(
                    ValueFormat::from_name(&name, scale.map(|scale| scale as f32))
                        .map_err(engram_engine::Error::from)?,
                )
            }
            None => {
                idle("scale", "value_format")?;
                None
            }
        };
        let spec = match text("spec")? {
            Some(name) => Some(spec(&name, options)?),
            None => {
                idle("layer", "spec")?;
                idle("tokenizer", "spec")?;
                None
            }
        };
        let shard_bytes = options.get("shard_bytes").map_or(Ok(SHARD_BYTES), |value| size(value, "shard_bytes"))?;
        Ok(Description { format, spec, shard_bytes })
    }

    /// The value format.
    pub fn format(&self) -> Option<ValueFormat> {
        self.format
    }

    /// Refuses rows of `width` bytes that format and spec do not fit.
    pub fn check_width(&self, width: usize) -> Result<()> {
        let Some(format) = &self.format else {
            return Ok(());
        };
        let dim = format.dim_of_bytes(width).map_err(engram_engine::Error::from)?;
        match self.spec.as_ref().and_then(|spec| Some((spec, spec.head_dim()?))) {
            Some((spec, wanted)) if wanted != dim as u64 => Err(Error::argument(format!(
                "rows of {width} bytes have {dim} values as {}, and spec '{}' has {wanted} values per row",
                format.name(),
                spec.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses fewer rows than the spec reaches.
    pub fn check_rows(&self, rows: u64) -> Result<()> {
        match &self.spec {
            Some(spec) if rows < spec.reachable_rows() => Err(Error::argument(format!(
                "{rows} rows, and spec '{}' reaches {}: give every row, or leave the spec out",
                spec.name(),
                spec.reachable_rows()
            ))),
            _ => Ok(()),
        }
    }

    /// Starts a store of rows of `width` bytes at `path`.
    pub fn create(&self, path: &Path, width: usize) -> Result<StoreWriter> {
        let description = StoreDescription {
            format: self.format,
            layer: self.spec.as_ref().and_then(Spec::layer),
            spec: self.spec.clone(),
            source: "COPY".to_owned(),
        };
        Ok(StoreWriter::create(path, width, self.shard_bytes, description)?)
    }
}

fn spec(name: &str, options: &CopyOptions) -> Result<Spec> {
    let file =
        if name.contains('/') || name.ends_with(".toml") { SpecFile::read(name)? } else { SpecFile::released(name)? };
    let layer = match options.get("layer").map_or(Ok(None), |value| value.integer("layer"))? {
        Some(layer) => Some(u32::try_from(layer).map_err(|_| Error::argument(format!("layer cannot be {layer}")))?),
        None => None,
    };
    let token_map = match options.get("tokenizer").map_or(Ok(None), |value| value.text("tokenizer"))? {
        Some(path) => Some(Arc::new(TokenMap::from_tokenizer_json(path)?)),
        None => None,
    };
    Ok(file.spec(layer, token_map)?)
}
