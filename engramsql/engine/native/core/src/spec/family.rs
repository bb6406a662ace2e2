//! From names to families: which model is which, and which module derives what.

use super::config::Config;
use super::engram::Engram;
use super::longcat::Longcat;
use super::qwen_ple::QwenPle;
use super::{
    Constants, FAMILIES, NgramHash, SpecError, TokenMap, deepseek_v41, engram_demo, engram_peft, longcat, qwen_ple,
};
use crate::cpu::Level;
use serde_json::Value;
use std::sync::Arc;

/// Family of a model, by the `model_type` or `architectures` of its config.json; `None` if it names no known one.
pub fn family_of(config: &Value) -> Option<&'static str> {
    let text = config.get("text_config").filter(|inner| inner.is_object());
    let levels = [Some(config), text];
    let types = levels.iter().flatten().filter_map(|level| level.get("model_type"));
    let architectures = levels.iter().flatten().filter_map(|level| level.get("architectures"));
    let architectures = architectures.filter_map(Value::as_array).flatten();
    let names = types.chain(architectures).filter_map(Value::as_str);
    let longcat_fields = || levels.iter().flatten().any(|level| level.get("emb_neighbor_num").is_some());
    names.into_iter().find_map(|name| {
        let name = name.to_ascii_lowercase().replace('_', "");
        if name.starts_with("qwen4exp") {
            Some("qwen_ple_v1")
        } else if name.starts_with("deepseekv41") {
            Some("deepseek_v41")
        } else if name.starts_with("longcat") && longcat_fields() {
            // LongCat-Flash without the n-gram embedding has the same model type.
            Some("longcat")
        } else {
            None
        }
    })
}

/// 0-based decoder layers with a hash table, in table order; empty where the model has one table outside the layers.
///
/// # Errors
/// An unknown family, or a layer list that is missing or malformed.
pub fn layers(family: &str, config: &Value) -> Result<Vec<u32>, SpecError> {
    let config = Config::new(canonical(family)?, config)?;
    match config.family {
        "qwen_ple_v1" => qwen_ple::layers(config),
        "deepseek_v41" => deepseek_v41::layers(config),
        "engram_demo" => engram_demo::layers(config),
        "engram_peft" => engram_peft::layers(config),
        _ => Ok(Vec::new()),
    }
}

/// The name as [`FAMILIES`] spells it.
pub(super) fn canonical(family: &str) -> Result<&'static str, SpecError> {
    FAMILIES
        .iter()
        .copied()
        .find(|&known| known == family)
        .ok_or_else(|| SpecError::UnknownFamily { family: family.to_owned() })
}

/// Constants of one layer.
pub(super) fn derive(
    family: &str,
    config: &Value,
    layer: Option<u32>,
    token_map: Option<&TokenMap>,
) -> Result<Constants, SpecError> {
    let config = Config::new(canonical(family)?, config)?;
    let family = config.family;
    if token_map.is_some() && !takes_token_map(family) {
        return Err(SpecError::TokenMapNotUsed { family });
    }
    match family {
        "qwen_ple_v1" => qwen_ple::derive(config, layer),
        "deepseek_v41" => deepseek_v41::derive(config, layer, token_map),
        "engram_demo" => engram_demo::derive(config, layer, token_map),
        "engram_peft" => engram_peft::derive(config, layer, token_map),
        _ => longcat::derive(config, layer),
    }
}

/// The hash of derived constants at one kernel level; `None` where a token map is indispensable and absent.
pub(super) fn hash(
    level: Level,
    constants: &Constants,
    token_map: Option<Arc<TokenMap>>,
) -> Option<Box<dyn NgramHash>> {
    let boxed: Box<dyn NgramHash> = match constants.family {
        "qwen_ple_v1" => Box::new(QwenPle::new(level, constants, constants.eos?)),
        "longcat" => Box::new(Longcat::new(constants, constants.eos?)),
        "deepseek_v41" => Box::new(Engram::new(level, constants, constants.pad?, Some(token_map?), false)),
        "engram_demo" => Box::new(Engram::new(level, constants, constants.pad?, token_map, false)),
        _ => Box::new(Engram::new(level, constants, constants.pad?, token_map, true)),
    };
    Some(boxed)
}

/// Whether the family hashes compressed token ids.
pub(crate) fn takes_token_map(family: &str) -> bool {
    !matches!(family, "qwen_ple_v1" | "longcat")
}

/// The layer asked for and its place in table order; the only layer where none is asked for.
pub(super) fn pick_layer(layers: &[u32], layer: Option<u32>) -> Result<(u32, usize), SpecError> {
    match (layer, layers) {
        (None, &[only]) => Ok((only, 0)),
        (None, _) => Err(SpecError::LayerRequired { layers: layers.to_vec() }),
        (Some(layer), _) => match layers.iter().position(|&known| known == layer) {
            Some(index) => Ok((layer, index)),
            None => Err(SpecError::UnknownLayer { layer, layers: layers.to_vec() }),
        },
    }
}
