//! Spec files: a model's hash settings and the constants they must derive, as TOML. What ships is embedded.

use super::family::{canonical, derive};
use super::{Constants, Spec, SpecError, TokenMap, layers};
use crate::text::distance;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Released name of the spec behind `rowids_for_seq(tokens)`.
pub(super) const QWEN: &str = "qwen3.8-flash-next";

/// (name, text) of every spec that ships. Embedded, so that the engine works without the Python package.
const RELEASED: &[(&str, &str)] = &[
    (QWEN, include_str!("../../../../../../catalog/specs/qwen3.8-flash-next.toml")),
    ("deepseek-v4.1-flash", include_str!("../../../../../../catalog/specs/deepseek-v4.1-flash.toml")),
    ("engram-demo", include_str!("../../../../../../catalog/specs/engram-demo.toml")),
];

/// A spec file: a named model of a known family.
#[derive(Debug, Clone)]
pub struct SpecFile {
    /// Path, or released name, for messages.
    origin: String,
    name: String,
    family: &'static str,
    description: String,
    config: Value,
    layers: Vec<u32>,
    expected: Vec<Expected>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    family: String,
    #[serde(default)]
    description: String,
    config: Value,
    #[serde(default)]
    layer: Vec<Expected>,
}

/// One `[[layer]]`: constants that the config must derive. Each may be left out.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// 0-based decoder layer; left out in families with one table per model.
    id: Option<u32>,
    multipliers: Option<Vec<i64>>,
    head_sizes: Option<Vec<u64>>,
    head_offsets: Option<Vec<u64>>,
    reachable_rows: Option<u64>,
    table_rows: Option<u64>,
}

impl SpecFile {
    /// Names of the specs that ship.
    pub fn released_names() -> Vec<&'static str> {
        RELEASED.iter().map(|(name, _)| *name).collect()
    }

    /// A spec that ships, by name.
    ///
    /// # Errors
    /// An unknown name; the message lists the known ones.
    pub fn released(name: &str) -> Result<SpecFile, SpecError> {
        if let Some((_, text)) = RELEASED.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        if let Ok(family) = canonical(name) {
            let of_family = |&(known, text): &(&'static str, &str)| {
                Self::parse(known, text).is_ok_and(|file| file.family == family).then_some(known)
            };
            let known = RELEASED.iter().filter_map(of_family).collect();
            return Err(SpecError::FamilyIsNoSpec { family: name.to_owned(), known });
        }
        let known = Self::released_names();
        Err(SpecError::UnknownSpec { name: name.to_owned(), nearest: nearest(name), known })
    }

    /// A spec file of the user's.
    ///
    /// # Errors
    /// A file that is missing or malformed, or whose constants are not what its config derives.
    pub fn read(path: impl AsRef<Path>) -> Result<SpecFile, SpecError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| SpecError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&path.display().to_string(), &text)
    }

    fn parse(origin: &str, text: &str) -> Result<SpecFile, SpecError> {
        let refuse = |reason: String| SpecError::SpecFile { file: origin.to_owned(), reason };
        let raw: Raw = toml::from_str(text).map_err(|e| refuse(one_line(&e.to_string())))?;
        let file = SpecFile {
            origin: origin.to_owned(),
            family: canonical(&raw.family).map_err(|e| refuse(e.to_string()))?,
            layers: layers(&raw.family, &raw.config).map_err(|e| refuse(e.to_string()))?,
            name: raw.name,
            description: raw.description,
            config: raw.config,
            expected: raw.layer,
        };
        if file.name.is_empty() {
            return Err(refuse("name is empty".to_owned()));
        }
        for (i, expected) in file.expected.iter().enumerate() {
            if file.expected[..i].iter().any(|other| other.id == expected.id) {
                let layer = expected.id.map_or_else(String::new, |id| format!(" {id}"));
                return Err(refuse(format!("[[layer]]{layer} appears twice")));
            }
            if expected.id.is_none() && !file.layers.is_empty() {
                return Err(refuse("a [[layer]] has no id; give its 0-based decoder layer".to_owned()));
            }
            match derive(file.family, &file.config, expected.id, None) {
                Ok(constants) => file.compare(&constants, expected)?,
                // Settings that leave the compressed size to the tokenizer: compared once the token map is there.
                Err(SpecError::MissingField { field, .. }) if field.starts_with("compressed") => {}
                Err(error) => return Err(refuse(error.to_string())),
            }
        }
        Ok(file)
    }

    /// Name of the model.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hash family.
    pub fn family(&self) -> &'static str {
        self.family
    }

    /// One sentence about the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The settings, with the field names of a config.json.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// 0-based decoder layers with a table, in table order; empty for families with one table per model.
    pub fn layers(&self) -> &[u32] {
        &self.layers
    }

    /// The spec of one layer, as [`Spec::from_config`], checked against the constants in the file.
    pub fn spec(&self, layer: Option<u32>, token_map: Option<Arc<TokenMap>>) -> Result<Spec, SpecError> {
        let spec = Spec::named(Some(&self.name), self.family, &self.config, layer, token_map)?;
        let constants = spec.constants();
        if let Some(expected) = self.expected.iter().find(|e| e.id == constants.layer) {
            self.compare(constants, expected)?;
        }
        // Another model under a released name would be served as what it is not.
        if released_constants().iter().any(|(name, _)| *name == self.name) && name_of(constants) != Some(&self.name) {
            return Err(SpecError::SpecFile {
                file: self.origin.clone(),
                reason: format!(
                    "the name '{}' belongs to a released spec with other constants; choose another",
                    self.name
                ),
            });
        }
        Ok(spec)
    }

    fn compare(&self, derived: &Constants, expected: &Expected) -> Result<(), SpecError> {
        let heads = &derived.heads;
        self.compare_list("multipliers", expected.multipliers.as_deref(), &derived.multipliers, expected.id)?;
        self.compare_list("head_sizes", expected.head_sizes.as_deref(), &heads.sizes, expected.id)?;
        self.compare_list("head_offsets", expected.head_offsets.as_deref(), &heads.offsets, expected.id)?;
        for (constant, expected_rows, rows) in [
            ("reachable_rows", expected.reachable_rows, heads.rows),
            ("table_rows", expected.table_rows, derived.table_rows),
        ] {
            if let Some(value) = expected_rows.filter(|&value| value != rows) {
                return Err(self.differs(expected.id, constant.to_owned(), value, rows));
            }
        }
        Ok(())
    }

    fn compare_list<T: PartialEq + ToString>(
        &self,
        constant: &str,
        expected: Option<&[T]>,
        derived: &[T],
        layer: Option<u32>,
    ) -> Result<(), SpecError> {
        let Some(expected) = expected else {
            return Ok(());
        };
        if expected.len() != derived.len() {
            let entries = |count: usize| format!("{count} entries");
            return Err(self.differs(layer, constant.to_owned(), entries(expected.len()), entries(derived.len())));
        }
        match expected.iter().zip(derived).enumerate().find(|(_, (e, d))| e != d) {
            None => Ok(()),
            Some((i, (e, d))) => Err(self.differs(layer, format!("{constant}[{i}]"), e.to_string(), d.to_string())),
        }
    }

    fn differs(
        &self,
        layer: Option<u32>,
        constant: String,
        expected: impl ToString,
        derived: impl ToString,
    ) -> SpecError {
        SpecError::ExpectedDiffers {
            file: self.origin.as_str().into(),
            layer,
            constant,
            expected: expected.to_string(),
            derived: derived.to_string(),
        }
    }
}

/// Released name of the model whose constants these are.
pub(super) fn name_of(constants: &Constants) -> Option<&'static str> {
    let known = released_constants().iter();
    known.into_iter().find(|(_, released)| released.same_hash(constants)).map(|(name, _)| *name)
}

/// Constants of every released layer, derived once (about a hundred primes).
fn released_constants() -> &'static [(&'static str, Constants)] {
    static CACHED: OnceLock<Vec<(&'static str, Constants)>> = OnceLock::new();
    CACHED.get_or_init(|| {
        let mut all = Vec::new();
        for &(name, text) in RELEASED {
            // Files that ship load: a test proves it.
            let Ok(file) = SpecFile::parse(name, text) else {
                continue;
            };
            for &layer in &file.layers {
                if let Ok(constants) = derive(file.family, &file.config, Some(layer), None) {
                    all.push((name, constants));
                }
            }
        }
        all
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The released name that differs least, if it is similar at all.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let names = SpecFile::released_names().into_iter();
    names
        .map(|known| (distance(&name, known), known))
        .filter(|&(distance, known)| distance <= known.len() / 2)
        .min()
        .map(|(_, known)| known)
}
