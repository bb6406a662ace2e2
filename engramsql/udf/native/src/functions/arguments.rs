//! Named arguments that several functions take.

use crate::error::{Error, Result};
use crate::ffi::{Arguments, Parameter, Type, Value};
use engram_engine::cache::parse_bytes;
use engram_engine::catalog::RegisterOptions;
use std::path::PathBuf;

/// What a source does not say itself, as `engram_register` and `engram_build` take it.
pub const SOURCE: [(&str, Parameter); 7] = [
    ("spec", Parameter::Text),
    ("format", Parameter::Text),
    ("scale", Parameter::Double),
    ("width", Parameter::Any),
    ("rows_per_shard", Parameter::Any),
    ("layer", Parameter::Any),
    ("tokenizer", Parameter::Text),
];

/// The arguments called as in [`SOURCE`].
pub fn source_options(arguments: &Arguments<'_>) -> Result<RegisterOptions> {
    let text =
        |name: &str| -> Result<Option<String>> { arguments.named(name).map_or(Ok(None), |value| value.text(name)) };
    let scale = match arguments.named("scale") {
        Some(value) => value.double("scale")?.map(|scale| scale as f32),
        None => None,
    };
    Ok(RegisterOptions {
        spec: text("spec")?,
        format: text("format")?,
        scale,
        width: count(arguments, "width")?,
        rows_per_shard: count(arguments, "rows_per_shard")?,
        tokenizer: text("tokenizer")?.map(PathBuf::from),
        layer: count(arguments, "layer")?,
    })
}

/// A named argument that counts something.
pub fn count<T: TryFrom<i64>>(arguments: &Arguments<'_>, name: &str) -> Result<Option<T>> {
    let Some(value) = arguments.named(name) else {
        return Ok(None);
    };
    let Some(number) = value.integer(name)? else {
        return Ok(None);
    };
    match T::try_from(number) {
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(Error::argument(format!("{name} cannot be {number}"))),
    }
}

/// A named argument that is true or false, if it is given.
pub fn flag(arguments: &Arguments<'_>, name: &str) -> Result<Option<bool>> {
    arguments.named(name).map(|value| value.boolean(name)).transpose()
}

/// A positive size: text like '1GB', or a number of bytes.
pub fn size(value: &Value, what: &str) -> Result<u64> {
    let bytes = match value.ty() {
        Type::Text => parse_bytes(&value.text(what)?.unwrap_or_default())?,
        _ => value.integer(what)?.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
    };
    if bytes == 0 {
        return Err(Error::argument(format!("{what} cannot be {value}; give a size like '1GB'")));
    }
    Ok(bytes)
}
