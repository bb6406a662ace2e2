//! Why a table was not built.

use crate::error::ErrorKind;
use std::path::PathBuf;

/// Why a table was not built.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// An option that cannot be meant.
    #[error("{option} cannot be {value}: {rule}")]
    BadOption {
        /// The option.
        option: &'static str,
        /// Value given.
        value: u64,
        /// What a value must satisfy.
        rule: String,
    },
    /// An interrupted build of that name.
    #[error("an unfinished build of '{name}' is in '{}', with {done} of {shards} {noun} done; resume it, or discard it (restart)", path.display(), noun = if *shards == 1 { "shard" } else { "shards" })]
    Unfinished {
        /// Table name.
        name: String,
        /// Its directory.
        path: PathBuf,
        /// Shards that are done.
        done: u64,
        /// Shards there will be.
        shards: u64,
    },
    /// A store that no table names: a build that ended just before that, or what a dropped table left.
    #[error("'{}' holds a finished build of '{name}' from the same source that no table names; take it with resume, or build anew beside it with restart", path.display())]
    NotRegistered {
        /// Table name.
        name: String,
        /// Its directory.
        path: PathBuf,
    },
    /// An interrupted build of something else.
    #[error("the unfinished build in '{}' cannot be resumed: its {what} is {begun}, now it is {now}; ask for the same again, or discard it (restart)", path.display())]
    OtherPlan {
        /// Its directory.
        path: PathBuf,
        /// What differs.
        what: String,
        /// What was begun.
        begun: String,
        /// What was asked for now.
        now: String,
    },
    /// A directory that is not empty.
    #[error("'{}' is there already and is not empty; name a new directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Bytes that are no whole number of rows.
    #[error("'{}': {bytes} bytes are no whole number of rows of {row_bytes} bytes", path.display())]
    PartialRow {
        /// The store being written.
        path: PathBuf,
        /// Bytes given.
        bytes: usize,
        /// Bytes of a row.
        row_bytes: usize,
    },
    /// A store of which a write has failed.
    #[error("'{}' lacks rows, because an earlier write failed; nothing was kept, write it anew", path.display())]
    WriteFailed {
        /// The store being written.
        path: PathBuf,
    },
    /// Rows of a width that their description contradicts.
    #[error("'{}': rows of {row_bytes} bytes do not fit {what}", path.display())]
    Mismatch {
        /// The store being written.
        path: PathBuf,
        /// Bytes of a row.
        row_bytes: usize,
        /// What they do not fit.
        what: String,
    },
    /// A store without rows.
    #[error("'{}' would hold no rows, and a table has at least one; nothing was written", path.display())]
    NoRows {
        /// The store being written.
        path: PathBuf,
    },
    /// A block of the source that is not what its checksum says.
    #[error("the source '{}' is damaged: {place}: its checksum is {found:016x}, {expected:016x} was recorded; nothing was registered, build from a good copy", path.display())]
    DamagedSource {
        /// The store's directory.
        path: PathBuf,
        /// File and block, in bytes and rows.
        place: String,
        /// Recorded checksum.
        expected: u64,
        /// Checksum of what was read.
        found: u64,
    },
    /// The second reader cannot make sense of the source.
    #[error("the rows of '{}' cannot be checked by the second reader: {what}; nothing was registered", path.display())]
    SecondReader {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        what: String,
    },
    /// A built row that is not the source's row.
    #[error("row {row} was built wrong: byte {byte} is {built:#04x} in '{}' and {source_byte:#04x} in the source; nothing was registered, discard the build and check the disk", path.display())]
    Differs {
        /// The built file.
        path: PathBuf,
        /// Row id.
        row: u64,
        /// Byte within the row.
        byte: usize,
        /// Its value in the source.
        source_byte: u8,
        /// Its value in the built file.
        built: u8,
    },
}

impl BuildError {
    /// The class of remedy.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            BuildError::BadOption { .. } | BuildError::PartialRow { .. } | BuildError::NoRows { .. } => {
                ErrorKind::Argument
            }
            BuildError::Mismatch { .. } => ErrorKind::Format,
            BuildError::Unfinished { .. } | BuildError::NotRegistered { .. } | BuildError::OtherPlan { .. } => {
                ErrorKind::Catalog
            }
            BuildError::SecondReader { .. } => ErrorKind::Source,
            BuildError::NotEmpty { .. }
            | BuildError::WriteFailed { .. }
            | BuildError::Differs { .. }
            | BuildError::DamagedSource { .. } => ErrorKind::Storage,
        }
    }
}
