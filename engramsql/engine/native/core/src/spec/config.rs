//! Checked access to the fields of a config.json: a value is used exactly as written or refused by name.

use super::error::SpecError;
use serde_json::{Map, Value};

/// Largest n-gram order; keeps the window of one token on the stack. Published models use 2 to 5.
pub(super) const MAX_ORDER: u64 = 32;
/// Most heads per table and most hash layers per model: far above published models (24 heads, 2 layers), low enough
/// that a corrupt config cannot make the prime search run for hours.
pub(super) const MAX_HEADS: u64 = 4096;
/// See [`MAX_HEADS`].
pub(super) const MAX_LAYERS: usize = 512;

/// Token ids that multi-modal configs keep beside `text_config`, not inside.
const ALSO_AT_TOP: &[&str] = &["image_token_id", "eos_token_id"];

/// One configuration: `text_config` if the file has one, else the top level.
#[derive(Clone, Copy)]
pub(super) struct Config<'a> {
    pub(super) family: &'static str,
    text: &'a Map<String, Value>,
    top: &'a Map<String, Value>,
}

impl<'a> Config<'a> {
    pub(super) fn new(family: &'static str, config: &'a Value) -> Result<Self, SpecError> {
        let top = object(family, "config", config)?;
        let text = match top.get("text_config") {
            None | Some(Value::Null) => top,
            Some(inner) => object(family, "text_config", inner)?,
        };
        Ok(Self { family, text, top })
    }

    /// The value of a field; JSON null counts as absent, as in the libraries that write these files.
    pub(super) fn get(&self, field: &str) -> Option<&'a Value> {
        let present = |map: &'a Map<String, Value>| map.get(field).filter(|value| !value.is_null());
        present(self.text).or_else(|| if ALSO_AT_TOP.contains(&field) { present(self.top) } else { None })
    }

    pub(super) fn missing(&self, field: &str) -> SpecError {
        SpecError::MissingField { family: self.family, field: field.to_owned() }
    }

    pub(super) fn bad(&self, field: &str, found: impl ToString, expected: impl Into<String>) -> SpecError {
        SpecError::BadField {
            family: self.family,
            field: field.to_owned(),
            found: shorten(found.to_string()),
            expected: expected.into(),
        }
    }

    /// First of several spellings of one field that is present; two spellings that disagree are refused.
    pub(super) fn spelled(&self, names: &[&'static str]) -> Result<&'static str, SpecError> {
        let mut found: Option<&'static str> = None;
        for &name in names {
            let Some(value) = self.get(name) else {
                continue;
            };
            match found {
                None => found = Some(name),
                Some(first) if self.get(first) != Some(value) => {
                    return Err(self.bad(name, value, format!("the value of '{first}', or only one of the two")));
                }
                Some(_) => {}
            }
        }
        found.ok_or_else(|| self.missing(&names.join("' or '")))
    }

    /// An integer in `low..=high`, or the default where the field is absent.
    pub(super) fn int(&self, field: &str, default: Option<u64>, low: u64, high: u64) -> Result<u64, SpecError> {
        match self.get(field) {
            Some(value) => self.int_value(field, value, low, high),
            None => default.ok_or_else(|| self.missing(field)),
        }
    }

    /// An integer in `low..=high`, or `None` where the field is absent.
    pub(super) fn int_if_any(&self, field: &str, low: u64, high: u64) -> Result<Option<u64>, SpecError> {
        self.get(field).map(|value| self.int_value(field, value, low, high)).transpose()
    }

    /// A non-empty list of integers in `low..=high`.
    pub(super) fn ints(&self, field: &str, low: u64, high: u64) -> Result<Vec<u64>, SpecError> {
        let value = self.get(field).ok_or_else(|| self.missing(field))?;
        let items = value
            .as_array()
            .filter(|items| !items.is_empty())
            .ok_or_else(|| self.bad(field, value, "a list of whole numbers with at least one entry"))?;
        items.iter().enumerate().map(|(i, item)| self.int_value(&format!("{field}[{i}]"), item, low, high)).collect()
    }

    /// 0-based decoder layers: distinct, in the order of the file.
    pub(super) fn layer_ids(&self, field: &str) -> Result<Vec<u32>, SpecError> {
        let ids = self.ints(field, 0, u64::from(u32::MAX))?;
        self.check_layer_count(field, ids.len())?;
        let mut layers = Vec::with_capacity(ids.len());
        for (i, id) in ids.into_iter().enumerate() {
            let layer =
                u32::try_from(id).map_err(|_| self.bad(&format!("{field}[{i}]"), id, "a decoder layer number"))?;
            if layers.contains(&layer) {
                return Err(self.bad(&format!("{field}[{i}]"), layer, "every layer at most once"));
            }
            layers.push(layer);
        }
        Ok(layers)
    }

    pub(super) fn check_layer_count(&self, field: &str, count: usize) -> Result<(), SpecError> {
        if count > MAX_LAYERS {
            return Err(self.bad(field, format!("a list of {count} layers"), format!("at most {MAX_LAYERS}")));
        }
        Ok(())
    }

    /// Heads of a table: `orders x heads_per_order`, bounded by [`MAX_HEADS`].
    pub(super) fn head_count(&self, field: &str, orders: u64, per_order: u64) -> Result<u64, SpecError> {
        orders
            .checked_mul(per_order)
            .filter(|&heads| heads <= MAX_HEADS)
            .ok_or_else(|| self.bad(field, per_order, format!("at most {MAX_HEADS} heads over all n-gram orders")))
    }

    fn int_value(&self, field: &str, value: &Value, low: u64, high: u64) -> Result<u64, SpecError> {
        value.as_u64().filter(|v| (low..=high).contains(v)).ok_or_else(|| {
            let range = if high >= u64::MAX >> 1 {
                format!("a whole number of at least {low} that fits 63 bits")
            } else {
                format!("a whole number from {low} to {high}")
            };
            self.bad(field, value, range)
        })
    }
}

fn object<'a>(family: &'static str, field: &str, value: &'a Value) -> Result<&'a Map<String, Value>, SpecError> {
    value.as_object().ok_or_else(|| SpecError::BadField {
        family,
        field: field.to_owned(),
        found: shorten(value.to_string()),
        expected: "a JSON object".to_owned(),
    })
}

fn shorten(text: String) -> String {
    if text.chars().count() <= 60 {
        return text;
    }
    let head: String = text.chars().take(57).collect();
    format!("{head}...")
}
