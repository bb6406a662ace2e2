//! Why a verification or comparison was refused before it began.

/// Why a verification or comparison was refused before it began.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A level that does not exist.
    #[error("no verification level '{name}'; known levels: headers, sample, full")]
    UnknownLevel {
        /// The name asked for.
        name: String,
    },
    /// Tables whose rows have different sizes.
    #[error("'{a}' and '{b}' cannot be compared: rows of '{a}' have {a_bytes} bytes, rows of '{b}' have {b_bytes}")]
    RowBytes {
        /// One table.
        a: String,
        /// The other.
        b: String,
        /// Bytes per row of the one.
        a_bytes: usize,
        /// Bytes per row of the other.
        b_bytes: usize,
    },
    /// Tables whose rows have different numbers of values.
    #[error("'{a}' and '{b}' cannot be compared: rows of '{a}' have {a_dim} values, rows of '{b}' have {b_dim}")]
    Dims {
        /// One table.
        a: String,
        /// The other.
        b: String,
        /// Values per row of the one.
        a_dim: usize,
        /// Values per row of the other.
        b_dim: usize,
    },
    /// Tables with different numbers of rows.
    #[error(
        "'{a}' and '{b}' cannot be compared: '{a}' has {a_rows} rows, '{b}' has {b_rows}; neither is a copy of the other"
    )]
    Rows {
        /// One table.
        a: String,
        /// The other.
        b: String,
        /// Rows of the one.
        a_rows: u64,
        /// Rows of the other.
        b_rows: u64,
    },
}
