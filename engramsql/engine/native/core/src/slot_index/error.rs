//! Why keys or a slot index were refused.

use crate::error::ErrorKind;
use std::path::{Path, PathBuf};

/// Why keys or a slot index were refused.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SlotIndexError {
    /// A keys file whose size contradicts what it should hold.
    #[error("'{}' has {found} bytes, {slots} keys of {heads} row ids of {key_bytes} bytes need {expected}; build the view again", path.display())]
    KeysSize {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The size that its keys need.
        expected: u128,
        /// Number of keys.
        slots: u64,
        /// Row ids per key.
        heads: usize,
        /// Bytes per row id.
        key_bytes: usize,
    },
    /// Keys of a shape that no file has.
    #[error("keys of {heads} row ids of {key_bytes} bytes cannot be indexed; a key has 1 to {most} row ids of 4 or 8 bytes", most = super::MOST_HEADS)]
    KeyShape {
        /// Row ids per key.
        heads: u64,
        /// Bytes per row id.
        key_bytes: u64,
    },
    /// More slots than an entry can name.
    #[error("{slots} slots are more than a slot index can name ({most}); build several views", most = super::MOST_SLOTS)]
    TooManySlots {
        /// Slots asked for.
        slots: u64,
    },
    /// Too little memory to sort that much.
    #[error("{found} bytes of memory are too few to sort {bytes} bytes of an index; give it at least {needed}")]
    Memory {
        /// Bytes allowed.
        found: u64,
        /// Bytes to sort.
        bytes: u64,
        /// Bytes that suffice.
        needed: u64,
    },
    /// A slot that does not exist.
    #[error("slot {slot} is out of range: '{}' has {slots} slots", path.display())]
    SlotOutOfRange {
        /// The keys file.
        path: PathBuf,
        /// The slot.
        slot: i64,
        /// Slots that exist.
        slots: u64,
    },
    /// Keys of another number of row ids.
    #[error("{found} row ids are no number of keys for '{}': a key has {heads} row ids", path.display())]
    KeyLength {
        /// The keys file or index.
        path: PathBuf,
        /// Row ids given.
        found: usize,
        /// Row ids per key.
        heads: usize,
    },
    /// Bytes that the builder never writes.
    #[error("'{}' is damaged: {detail}; build the index again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// An index of a newer version.
    #[error("'{}' is a slot index of version {found}, this version of EngramSQL reads up to {supported}; upgrade engramsql or build the index again", path.display())]
    NewerVersion {
        /// The manifest.
        path: PathBuf,
        /// Version found.
        found: u64,
        /// Newest version known.
        supported: u64,
    },
    /// An index over other keys.
    #[error("'{}' was built over {found}, the view has {expected}; build the index again", path.display())]
    OtherKeys {
        /// The manifest.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What the keys file says.
        expected: String,
    },
    /// A file of engramdb's slot index that contradicts its format.
    #[error("'{}' is no usable slot index of engramdb: {detail}; build it again with the tool that wrote it", path.display())]
    Peer {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// Something that engramdb's slot index cannot hold.
    #[error("a slot index of engramdb cannot hold {what}; {remedy}")]
    PeerCannot {
        /// What was asked for.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A directory that exists already.
    #[error("'{}' exists already; remove it or choose another name", path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
}

impl SlotIndexError {
    pub(super) fn damaged(path: &Path, detail: impl Into<String>) -> SlotIndexError {
        SlotIndexError::Damaged { path: path.to_owned(), detail: detail.into() }
    }

    pub(super) fn peer(path: &Path, detail: impl Into<String>) -> SlotIndexError {
        SlotIndexError::Peer { path: path.to_owned(), detail: detail.into() }
    }

    /// The class of remedy.
    pub fn kind(&self) -> ErrorKind {
        match self {
            SlotIndexError::KeyShape { .. }
            | SlotIndexError::TooManySlots { .. }
            | SlotIndexError::Memory { .. }
            | SlotIndexError::SlotOutOfRange { .. }
            | SlotIndexError::KeyLength { .. }
            | SlotIndexError::PeerCannot { .. }
            | SlotIndexError::Exists { .. } => ErrorKind::Argument,
            SlotIndexError::KeysSize { .. }
            | SlotIndexError::Damaged { .. }
            | SlotIndexError::NewerVersion { .. }
            | SlotIndexError::OtherKeys { .. } => ErrorKind::Storage,
            SlotIndexError::Peer { .. } => ErrorKind::Source,
        }
    }
}
