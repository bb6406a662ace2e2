//! One error for everything that leaves the engine; each topic keeps its own enum beside its code.

use crate::build::BuildError;
use crate::cache::CacheError;
use crate::catalog::CatalogError;
use crate::cpu::CpuError;
use crate::format::FormatError;
use crate::read::ReadError;
use crate::slot_index::SlotIndexError;
use crate::source::SourceError;
use crate::spec::SpecError;
use crate::storage::StorageError;
use crate::verify::VerifyError;
use crate::view::ViewError;

/// Result of an engine call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything the engine can refuse. The `Display` text is complete: it names the thing and the remedy.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A row id outside `0..rows`.
    #[error("row id {id} is out of range: table '{table}' has {rows} rows, valid ids are 0 to {last}", last = rows.saturating_sub(1))]
    RowIdOutOfRange {
        /// Table name or path, as the caller gave it.
        table: String,
        /// Rows of the table.
        rows: u64,
        /// The offending id; wide enough for any SQL integer.
        id: i128,
    },
    /// An output buffer whose length does not fit the request.
    #[error("output holds {found} {unit}, the request needs {expected}")]
    OutputSize {
        /// What is counted: "bytes" or "values".
        unit: &'static str,
        /// Length needed.
        expected: usize,
        /// Length given.
        found: usize,
    },
    /// A question that needs a hash spec, asked of a table without one.
    #[error(
        "table '{table}' has no hash spec, so token ids cannot be turned into row ids; drop it and register it again with a spec"
    )]
    NoSpec {
        /// Table name.
        table: String,
    },
    /// A question that needs a value format, asked of a table without one.
    #[error("table '{table}' has no value format, so rows cannot be decoded; drop it and register it again with a format ({known}), or ask for its rows instead of its vectors", known = crate::format::NAMES.join(", "))]
    NoFormat {
        /// Table name.
        table: String,
    },
    /// Text for a table without a tokenizer.
    #[error(
        "table '{table}' has no tokenizer, so text cannot be turned into token ids; drop it and register it again with tokenizer := 'PATH/tokenizer.json'"
    )]
    NoTokenizer {
        /// Table name.
        table: String,
    },
    /// Text for a table whose tokenizer cannot be read.
    #[error(
        "table '{table}': {error}; put the file back, or drop the table and register it again with tokenizer := 'PATH/tokenizer.json'"
    )]
    Tokenizer {
        /// Table name.
        table: String,
        /// Why.
        error: SpecError,
    },
    /// A prefetch that ended in a panic.
    #[error("internal error while prefetching rows of table '{table}'; this is a bug in engramsql, please report it")]
    Prefetch {
        /// Table name.
        table: String,
    },
    /// A registered table could not be opened.
    #[error("table '{name}': {error}")]
    Table {
        /// Its name.
        name: String,
        /// Why.
        error: Box<Error>,
    },
    /// Token ids or hash constants were refused.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A value format or its parameters were refused.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A checkpoint, store or file was refused.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A read failed or a file changed under an open table.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Keys or a slot index were refused.
    #[error(transparent)]
    SlotIndex(#[from] SlotIndexError),
    /// A RAM budget was refused.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The catalog refused a name or a change.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Something could not be written, or what was written cannot be trusted.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A table was not built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A verification or comparison was refused.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// A view could not be built or read.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The caller ended the operation.
    #[error("it was cancelled; what was complete by then is kept where the operation can be resumed")]
    Cancelled,
    /// `ENGRAMSQL_KERNEL` names no level that can run here.
    #[error(transparent)]
    Kernel(#[from] CpuError),
}

/// What a caller can do about an [`Error`]; language skins map one kind to one exception class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A row id is out of range.
    RowId,
    /// A token id is outside the vocabulary.
    TokenId,
    /// A name that the catalog does not know.
    UnknownTable,
    /// A hash spec is missing, unknown or contradicts the files.
    Spec,
    /// A value format is missing, unknown or contradicts the files.
    Format,
    /// Files that are missing, malformed or contradictory.
    Source,
    /// A read that failed, or a file that changed under an open table.
    Read,
    /// A catalog that cannot be read, written or changed.
    Catalog,
    /// Another process is changing the catalog.
    Locked,
    /// A disk that is full or fails, or files of ours that are damaged.
    Storage,
    /// An operation that was ended by its caller.
    Cancelled,
    /// An argument of the wrong shape or type.
    Argument,
}

impl Error {
    /// The class of remedy.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::RowIdOutOfRange { .. } => ErrorKind::RowId,
            Error::OutputSize { .. }
            | Error::Cache(_)
            | Error::Verify(_)
            | Error::Kernel(_)
            | Error::Format(FormatError::Kernel(_)) => ErrorKind::Argument,
            Error::Table { error, .. } => error.kind(),
            Error::NoSpec { .. } | Error::NoTokenizer { .. } | Error::Tokenizer { .. } => ErrorKind::Spec,
            Error::NoFormat { .. } | Error::Format(_) => ErrorKind::Format,
            Error::Spec(e) => e.kind(),
            Error::Source(SourceError::WrongConstant { .. }) => ErrorKind::Spec,
            Error::Source(_) => ErrorKind::Source,
            Error::Storage(StorageError::Busy { .. }) => ErrorKind::Locked,
            Error::Storage(_) => ErrorKind::Storage,
            Error::Build(e) => e.kind(),
            Error::View(e) => e.kind(),
            Error::Cancelled => ErrorKind::Cancelled,
            Error::Read(_) | Error::Prefetch { .. } => ErrorKind::Read,
            Error::Catalog(e) => e.kind(),
            Error::SlotIndex(e) => e.kind(),
        }
    }
}
