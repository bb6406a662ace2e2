//! Why a source was refused. One variant per refusal; every message names the file.

use crate::spec::SpecError;
use std::path::{Path, PathBuf};

/// Why a source was refused.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The system refused to open, stat or read a file.
    #[error("cannot read '{}': {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A file where a directory is expected.
    #[error("'{}' is a file; name the checkpoint or store directory that holds it", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// A directory that is neither checkpoint nor store.
    #[error("'{}' is neither a checkpoint (no config.json) nor a store (no shard_000.bin)", path.display())]
    Unrecognised {
        /// The path.
        path: PathBuf,
    },
    /// A checkpoint whose model is not known.
    #[error("'{}' is of model_type '{model_type}', which has no n-gram table this version can read; supported: qwen4_exp, deepseek_v41", path.display())]
    UnknownModel {
        /// The config file.
        path: PathBuf,
        /// Its `model_type`.
        model_type: String,
    },
    /// A model family whose hashing is known but whose checkpoint layout is not read.
    #[error("'{}' holds a {family} table; its checkpoint layout is not supported, copy the rows to a store and register that with spec => '{family}'", path.display())]
    NoReader {
        /// The path.
        path: PathBuf,
        /// The family.
        family: &'static str,
    },
    /// JSON that does not parse or has the wrong shape.
    #[error("'{}' is not valid: {detail}", path.display())]
    BadJson {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its place.
        detail: String,
    },
    /// An empty file.
    #[error("'{}' is empty (0 bytes); download it again", path.display())]
    EmptyFile {
        /// The file.
        path: PathBuf,
    },
    /// A Git LFS pointer in place of the data.
    #[error("'{}' is a Git LFS pointer, not the data; fetch it with 'git lfs pull'", path.display())]
    LfsPointer {
        /// The file.
        path: PathBuf,
    },
    /// A web page in place of the data.
    #[error("'{}' is an HTML page (a failed download), not the data; download it again", path.display())]
    HtmlPage {
        /// The file.
        path: PathBuf,
    },
    /// A safetensors header length that cannot be.
    #[error("'{}' is no safetensors file: header length {length} in a file of {file_bytes} bytes (at most 100000000 and the file itself)", path.display())]
    BadHeaderLength {
        /// The file.
        path: PathBuf,
        /// Announced header bytes.
        length: u64,
        /// Size of the file.
        file_bytes: u64,
    },
    /// A tensor listed twice.
    #[error("'{}': duplicate tensor name '{tensor}'", path.display())]
    DuplicateTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// A header entry of the wrong form.
    #[error("'{}': tensor '{tensor}': {detail}", path.display())]
    BadTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// What is wrong.
        detail: String,
    },
    /// Shape and extent of a tensor disagree.
    #[error("'{}': tensor '{tensor}' of shape {shape:?} {dtype} needs {expected} bytes, its extent has {found}", path.display())]
    WrongExtent {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<u64>,
        /// Its dtype.
        dtype: String,
        /// Bytes by shape and dtype ("more than 2^64" on overflow).
        expected: String,
        /// Bytes of the extent.
        found: u64,
    },
    /// Two tensors that share bytes.
    #[error("'{}': tensors '{first}' and '{second}' overlap", path.display())]
    Overlap {
        /// The file.
        path: PathBuf,
        /// The tensor that comes first.
        first: String,
        /// The tensor that begins inside it.
        second: String,
    },
    /// Bytes that belong to no tensor.
    #[error("'{}': {bytes} bytes before tensor '{before}' belong to no tensor; the file is damaged, download it again", path.display())]
    Hole {
        /// The file.
        path: PathBuf,
        /// Bytes of the hole.
        bytes: u64,
        /// The tensor after the hole.
        before: String,
    },
    /// A file shorter than its header says.
    #[error("'{}' is truncated: {missing} bytes missing (it has {found}, its header describes {expected})", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes missing.
        missing: u64,
        /// Bytes the header describes, the header included.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// A file longer than its header says.
    #[error("'{}' has {extra} bytes that its header does not describe (it has {found}, its header describes {expected}); download it again", path.display())]
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// Bytes too many.
        extra: u64,
        /// Bytes the header describes, the header included.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// Files that the index names and that are not there.
    #[error("'{}' names files that are not there: {}; download them", index.display(), files.join(", "))]
    MissingFiles {
        /// The index.
        index: PathBuf,
        /// Every missing file that holds a part of the table.
        files: Vec<String>,
    },
    /// An index that names a tensor in a file that does not hold it.
    #[error("'{}' is stale: it places tensor '{tensor}' in '{file}', whose header does not list it", index.display())]
    StaleIndex {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: String,
        /// The file.
        file: String,
    },
    /// A directory with no safetensors file, or several without an index.
    #[error("'{}' has {found} and no model.safetensors.index.json that says which to use", path.display())]
    NoIndex {
        /// The directory.
        path: PathBuf,
        /// "no .safetensors file" or "3 .safetensors files".
        found: String,
    },
    /// A table tensor that is nowhere.
    #[error("'{}' has no tensor '{tensor}'{remedy}", path.display())]
    MissingTensor {
        /// The directory.
        path: PathBuf,
        /// Name, or its suffix.
        tensor: String,
        /// What to do, starting with "; ", or nothing.
        remedy: String,
    },
    /// More than one tensor where one is expected.
    #[error("'{}' has both '{first}' and '{second}' for the same part of the table; remove one of them", path.display())]
    AmbiguousTensor {
        /// The directory.
        path: PathBuf,
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// A dtype that the table cannot have, or that is unknown.
    #[error("'{}': tensor '{tensor}' has dtype {dtype}; {supported}", path.display())]
    UnsupportedDtype {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The dtype.
        dtype: String,
        /// What can be read here.
        supported: &'static str,
    },
    /// A tensor whose shape does not fit the configuration.
    #[error("'{}': tensor '{tensor}' has shape {found:?}, expected {expected}", path.display())]
    WrongShape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its shape.
        found: Vec<u64>,
        /// The shape that fits, with the reason.
        expected: String,
    },
    /// A stored hash constant that is not the one the configuration derives.
    #[error("'{}': tensor '{tensor}': {error}", path.display())]
    WrongConstant {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Which constant, stored and derived.
        error: SpecError,
    },
    /// A declaration that the files contradict.
    #[error("{what} was declared as {declared}, but '{}' says {found}", path.display())]
    Contradiction {
        /// The source.
        path: PathBuf,
        /// Option name.
        what: &'static str,
        /// Value declared.
        declared: String,
        /// Value found.
        found: String,
    },
    /// A layer that the source does not have.
    #[error("'{}' has no table for layer {layer}; its layers are {layers:?}", path.display())]
    NoSuchLayer {
        /// The source.
        path: PathBuf,
        /// Layer asked for.
        layer: u32,
        /// Layers there are.
        layers: Vec<u32>,
    },
    /// A spec over compressed tokens without the tokenizer they come from.
    #[error("'{}' hashes compressed tokens and has no tokenizer at '{}'; give the path of a tokenizer.json", path.display(), tokenizer.display())]
    MissingTokenizer {
        /// The source.
        path: PathBuf,
        /// Where it was looked for.
        tokenizer: PathBuf,
    },
    /// A store whose row width nobody said.
    #[error("store '{}' has no manifest.json, so its row width in bytes must be given", path.display())]
    UnknownWidth {
        /// The store.
        path: PathBuf,
    },
    /// A row width that cannot be.
    #[error("'{}': rows of {width} bytes are impossible; width is 1 to 16777216 bytes", path.display())]
    BadWidth {
        /// The store.
        path: PathBuf,
        /// Width declared or found in the manifest.
        width: u64,
    },
    /// An option without the option that would use it.
    #[error("'{}': {option} was given without {needs}, which would use it; give {needs} too, or leave {option} out", path.display())]
    IdleOption {
        /// The source.
        path: PathBuf,
        /// Option given.
        option: &'static str,
        /// Option missing.
        needs: &'static str,
    },
    /// A padded row file whose padding nobody can tell from rows.
    #[error("'{}' may be padded at its end; a manifest.json with rows_per_shard and total_rows must say where the rows end", path.display())]
    UnknownPadding {
        /// The file.
        path: PathBuf,
    },
    /// A store file that is missing from the sequence.
    #[error("store '{}' has no '{file}', although {reason}", path.display())]
    MissingShard {
        /// The store.
        path: PathBuf,
        /// The missing file.
        file: String,
        /// Why it should be there.
        reason: String,
    },
    /// A store file whose size does not fit the geometry.
    #[error("'{}' has {found} bytes, expected {expected} (rows_per_shard {rows} x width {width}): {}", path.display(), if found < expected { format!("{} bytes missing", expected - found) } else { format!("{} bytes too many", found - expected) })]
    WrongShardSize {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The size that fits.
        expected: u64,
        /// Rows it should hold.
        rows: u64,
        /// Bytes per row.
        width: u64,
    },
    /// A store file that holds no whole number of rows.
    #[error("'{}' has {found} bytes, no whole number of {width}-byte rows ({extra} bytes over); it is cut off, or width is not {width}", path.display())]
    PartialRow {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// Bytes per row.
        width: u64,
        /// Bytes beyond the last whole row.
        extra: u64,
    },
    /// Rows that a format cannot have.
    #[error("'{}' has rows of {row_bytes} bytes, which value format '{format}' cannot have{detail}", path.display())]
    FormatMismatch {
        /// The source.
        path: PathBuf,
        /// Bytes per row.
        row_bytes: usize,
        /// Format declared.
        format: String,
        /// More, starting with "; ", or nothing.
        detail: String,
    },
    /// A table too small for its spec.
    #[error("'{}' has {rows} rows, but spec '{spec}' hashes into {reachable}; it is the table of another spec, or incomplete", path.display())]
    TooFewRows {
        /// The source.
        path: PathBuf,
        /// Rows there are.
        rows: u64,
        /// Spec.
        spec: String,
        /// Rows the spec reaches.
        reachable: u64,
    },
    /// A table without rows.
    #[error("'{}' holds no rows; it is no table", path.display())]
    NoRows {
        /// The source.
        path: PathBuf,
    },
}

impl SourceError {
    /// Wraps what the system said about `path`.
    pub(crate) fn io(path: &Path, error: std::io::Error) -> SourceError {
        SourceError::Io { path: path.to_owned(), error }
    }
}
