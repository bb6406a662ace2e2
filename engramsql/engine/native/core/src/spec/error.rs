//! Why token ids, configurations, hash constants or token maps are refused.

use crate::cpu::CpuError;
use crate::error::ErrorKind;
use std::path::PathBuf;

/// Why token ids or hash constants were refused. The `Display` text names the thing and the remedy.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// A token id outside `0..vocab_size`.
    #[error("token id {token} at position {position} is outside the vocabulary (0 to {last})", last = vocab_size.saturating_sub(1))]
    TokenOutOfVocabulary {
        /// The offending id.
        token: i128,
        /// 0-based position in the list it came in.
        position: usize,
        /// Size of the vocabulary.
        vocab_size: u64,
    },
    /// A token id of the history outside `0..vocab_size`.
    #[error("token id {token} at history position {position} is outside the vocabulary (0 to {last}); where a sequence has no earlier token, give a shorter history", last = vocab_size.saturating_sub(1))]
    HistoryOutOfVocabulary {
        /// The offending id.
        token: i128,
        /// 0-based position in the history it came in.
        position: usize,
        /// Size of the vocabulary.
        vocab_size: u64,
    },
    /// An output buffer whose length is not tokens x heads.
    #[error("output holds {found} row ids, {tokens} tokens x {heads} heads need {expected}")]
    OutputLength {
        /// Tokens to hash.
        tokens: usize,
        /// Heads per token.
        heads: usize,
        /// Length needed.
        expected: usize,
        /// Length given.
        found: usize,
    },
    /// A dead mask whose length differs from the list it belongs to.
    #[error("{mask} has {found} entries for {expected} token ids; give one per token id, or none")]
    MaskLength {
        /// `dead` or `history_dead`.
        mask: &'static str,
        /// Token ids in the list.
        expected: usize,
        /// Entries of the mask.
        found: usize,
    },
    /// A dead mask for a family that has no dead tokens.
    #[error("family {family} has no dead tokens; leave the dead mask empty")]
    NoDeadTokens {
        /// Hash family.
        family: &'static str,
    },
    /// Sequence boundaries of a packed batch that do not cut the list they belong to.
    #[error("{what} do not describe the batch: {reason}")]
    PackedBoundaries {
        /// `starts` or `history_starts`.
        what: &'static str,
        /// What is wrong and what is expected.
        reason: String,
    },
    /// A family name that is not one of [`FAMILIES`](super::FAMILIES).
    #[error("unknown hash family '{family}'; known are {}", super::FAMILIES.join(", "))]
    UnknownFamily {
        /// The name given.
        family: String,
    },
    /// A configuration without a field that has no default.
    #[error("config field '{field}' of family {family} is missing; add it (inside text_config, if the file has one)")]
    MissingField {
        /// Hash family.
        family: &'static str,
        /// Field name.
        field: String,
    },
    /// A configuration field with a value that cannot be used.
    #[error("config field '{field}' of family {family} is {found}; expected {expected}")]
    BadField {
        /// Hash family.
        family: &'static str,
        /// Field name, with the index for list elements.
        field: String,
        /// The value, shortened.
        found: String,
        /// What would be accepted.
        expected: String,
    },
    /// Constants whose sum or product leaves 63 bits.
    #[error("family {family}: {what} exceeds the range of a row id (63 bits); lower {remedy}")]
    Overflow {
        /// Hash family.
        family: &'static str,
        /// The quantity.
        what: &'static str,
        /// Field to lower.
        remedy: &'static str,
    },
    /// A table announced with fewer rows than its heads address.
    #[error("layer {layer}: the heads address {needed} rows, but '{field}' announces {announced}; correct the config")]
    TooFewRows {
        /// Decoder layer.
        layer: u32,
        /// Config field.
        field: &'static str,
        /// Sum of the head sizes.
        needed: u64,
        /// Rows the config announces.
        announced: u64,
    },
    /// A model with several hash layers, and none named.
    #[error("the config has hash layers {}; name one", list(layers))]
    LayerRequired {
        /// 0-based decoder layers.
        layers: Vec<u32>,
    },
    /// A layer that has no hash table.
    #[error("layer {layer} has no hash table; layers with one (0-based) are: {}", list(layers))]
    UnknownLayer {
        /// The layer asked for.
        layer: u32,
        /// 0-based decoder layers with a table; empty for families with one table per model.
        layers: Vec<u32>,
    },
    /// Row ids asked of a spec that hashes compressed ids, without the map to them.
    #[error(
        "family {family} hashes compressed token ids and this spec has no token map; give the model's tokenizer.json"
    )]
    NoTokenMap {
        /// Hash family.
        family: &'static str,
    },
    /// A token map for a family that hashes raw token ids.
    #[error("family {family} hashes token ids as they are; do not give it a token map")]
    TokenMapNotUsed {
        /// Hash family.
        family: &'static str,
    },
    /// A token map whose compressed size is not the one the multipliers were derived from.
    #[error(
        "the token map has {found} compressed ids, '{field}' says {expected}: it comes from another tokenizer; give the tokenizer.json of this model"
    )]
    CompressedSize {
        /// Config field.
        field: &'static str,
        /// Size the config announces.
        expected: u64,
        /// Size of the map.
        found: u64,
    },
    /// A token map with more ids than the vocabulary.
    #[error(
        "the token map covers {tokens} token ids, the vocabulary has {vocab_size}; give the tokenizer.json of this model"
    )]
    TokenMapTooLong {
        /// Ids in the map.
        tokens: u64,
        /// Vocabulary of the config.
        vocab_size: u64,
    },
    /// A map that is no token map, whatever it came from.
    #[error("not a token map: {reason}")]
    BadTokenMap {
        /// What is wrong.
        reason: String,
    },
    /// A token map file that cannot be used.
    #[error("token map '{}': {reason}", path.display())]
    TokenMapFile {
        /// The file.
        path: PathBuf,
        /// What is wrong and the remedy.
        reason: String,
    },
    /// A tokenizer.json that cannot be used.
    #[error("tokenizer '{}': {reason}", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file that could not be read or written.
    #[error("cannot {action} '{}': {source}", path.display())]
    Io {
        /// `read`, `write`, ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Stored hash constants of another length than the derived ones.
    #[error(
        "stored {constant} have {stored} entries, the config derives {derived}; the checkpoint and its config.json do not belong together"
    )]
    StoredShape {
        /// `multipliers`, `head sizes` or `head offsets`.
        constant: &'static str,
        /// Entries stored.
        stored: usize,
        /// Entries derived.
        derived: usize,
    },
    /// A stored hash constant that differs from the derived one.
    #[error(
        "stored {constant}[{index}] is {stored}, the config derives {derived}; the checkpoint and its config.json do not belong together"
    )]
    StoredDiffers {
        /// `multipliers`, `head sizes` or `head offsets`.
        constant: &'static str,
        /// Position in the list.
        index: usize,
        /// Value stored.
        stored: i64,
        /// Value derived.
        derived: i64,
    },
    /// A spec file that cannot be used.
    #[error("spec file '{file}': {reason}")]
    SpecFile {
        /// Path, or the released name.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A spec file whose expected constants are not what its config derives.
    #[error(
        "spec file '{file}'{}: expected {constant} are {expected}, its [config] derives {derived}", at(*layer)
    )]
    ExpectedDiffers {
        /// Path, or the released name.
        file: Box<str>,
        /// 0-based decoder layer; `None` for families with one table per model.
        layer: Option<u32>,
        /// The constant, with the index for list elements.
        constant: String,
        /// Value in the file.
        expected: String,
        /// Value derived.
        derived: String,
    },
    /// A spec name nobody released.
    #[error("unknown spec '{name}'{}; released specs are {}, or give the path of a .toml spec file", near(nearest), known.join(", "))]
    UnknownSpec {
        /// The name asked for.
        name: String,
        /// The most similar released name, if one is similar.
        nearest: Option<&'static str>,
        /// All released names.
        known: Vec<&'static str>,
    },
    /// A hash family where a spec is wanted: tools print families, and a family alone derives no constants.
    #[error("'{family}' is a hash family, not a spec; {}give the path of a .toml spec file", of_family(known))]
    FamilyIsNoSpec {
        /// The name asked for.
        family: String,
        /// Released names of that family.
        known: Vec<&'static str>,
    },
    /// `ENGRAMSQL_KERNEL` names no level that can run here.
    #[error(transparent)]
    Kernel(#[from] CpuError),
}

fn list(layers: &[u32]) -> String {
    if layers.is_empty() {
        return "none, the model has one table".to_owned();
    }
    let ids: Vec<String> = layers.iter().map(u32::to_string).collect();
    ids.join(", ")
}

fn at(layer: Option<u32>) -> String {
    layer.map_or_else(String::new, |id| format!(", layer {id}"))
}

fn near(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"))
}

fn of_family(known: &[&'static str]) -> String {
    if known.is_empty() { String::new() } else { format!("released specs of it are {}, or ", known.join(", ")) }
}

impl SpecError {
    /// The class of remedy.
    pub fn kind(&self) -> ErrorKind {
        match self {
            SpecError::TokenOutOfVocabulary { .. } | SpecError::HistoryOutOfVocabulary { .. } => ErrorKind::TokenId,
            SpecError::OutputLength { .. }
            | SpecError::MaskLength { .. }
            | SpecError::NoDeadTokens { .. }
            | SpecError::PackedBoundaries { .. }
            | SpecError::Kernel(_) => ErrorKind::Argument,
            _ => ErrorKind::Spec,
        }
    }
}
