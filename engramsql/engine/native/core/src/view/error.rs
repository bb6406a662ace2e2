//! Why a view could not be built or read.

use crate::error::{Error, ErrorKind};
use crate::spec::SpecError;
use std::path::PathBuf;

/// Why a view could not be built or read.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// An earlier build that did not come to its end.
    #[error("view '{name}' has an unfinished build in '{}'; resume it, or discard it (restart)", path.display())]
    Unfinished {
        /// The view.
        name: String,
        /// Its directory.
        path: PathBuf,
    },
    /// A build that is to go on as another one.
    #[error(
        "the unfinished build of view '{name}' has {what} {found}, asked for is {asked}; resume it with the same options, or discard it (restart)"
    )]
    OtherBuild {
        /// The view.
        name: String,
        /// The option or property.
        what: &'static str,
        /// Value in the unfinished build.
        found: String,
        /// Value now.
        asked: String,
    },
    /// A token that the spec refused.
    #[error("sequence {sequence} (counted from 0): {error}")]
    Token {
        /// Sequence of the corpus, 0-based.
        sequence: u64,
        /// Why; positions count within the sequence.
        error: SpecError,
    },
    /// A view without a record.
    #[error("view '{name}' would hold nothing: {reason}")]
    Empty {
        /// The view.
        name: String,
        /// Why.
        reason: String,
    },
    /// Options that contradict each other or the table.
    #[error("view '{name}': {reason}")]
    Options {
        /// The view.
        name: String,
        /// What does not fit, and the remedy.
        reason: String,
    },
    /// Sequence starts that do not cut the tokens.
    #[error("sequence starts do not cut the {tokens} tokens: {reason}")]
    Starts {
        /// Tokens given.
        tokens: usize,
        /// What is wrong.
        reason: String,
    },
    /// Keys of the wrong length.
    #[error("{found} row ids are no whole number of keys: a key of view '{name}' has {heads}")]
    KeyLength {
        /// The view.
        name: String,
        /// Row ids given.
        found: usize,
        /// Row ids of a key.
        heads: usize,
    },
    /// A record of an external file that is not what the table says.
    #[error("'{}' is no record file of table '{table}' with these keys: the record of slot {slot} differs from the rows of its key", path.display())]
    OtherRecords {
        /// The record file.
        path: PathBuf,
        /// The table.
        table: String,
        /// The first slot that differs.
        slot: u64,
    },
    /// An external file with fewer records than keys.
    #[error("'{}' has {found} bytes, {slots} records of {slot_bytes} bytes need {needed}", path.display(), needed = u128::from(*slots) * u128::from(*slot_bytes))]
    FewRecords {
        /// The record file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// Records needed.
        slots: u64,
        /// Bytes of one.
        slot_bytes: u64,
    },
    /// A slot that does not exist.
    #[error("slot {slot} is out of range: view '{name}' has {slots} slots, valid ones are 0 to {last}", last = slots.saturating_sub(1))]
    SlotOutOfRange {
        /// The view.
        name: String,
        /// Its slots.
        slots: u64,
        /// The slot asked for.
        slot: i128,
    },
    /// A view that its table has left behind.
    #[error("view '{name}' {reason}")]
    Unusable {
        /// The view.
        name: String,
        /// Why, and what to do.
        reason: String,
    },
}

impl ViewError {
    /// The class of remedy.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ViewError::Token { error, .. } => error.kind(),
            ViewError::SlotOutOfRange { .. } => ErrorKind::RowId,
            ViewError::Unfinished { .. } | ViewError::OtherBuild { .. } => ErrorKind::Storage,
            ViewError::OtherRecords { .. } | ViewError::FewRecords { .. } | ViewError::Unusable { .. } => {
                ErrorKind::Source
            }
            ViewError::Empty { .. }
            | ViewError::Options { .. }
            | ViewError::Starts { .. }
            | ViewError::KeyLength { .. } => ErrorKind::Argument,
        }
    }
}

impl ViewError {
    /// The error of a token in sequence `sequence`, of which `before` tokens came earlier.
    pub(super) fn token(sequence: u64, before: usize, error: SpecError) -> Error {
        let error = match error {
            SpecError::TokenOutOfVocabulary { token, position, vocab_size } => {
                SpecError::TokenOutOfVocabulary { token, position: before + position, vocab_size }
            }
            // Nothing of the others depends on the place in the sequence.
            other => other,
        };
        ViewError::Token { sequence, error }.into()
    }
}
