//! Records that the engine hands out, as immutable Python objects.

use engram_engine::catalog;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Defines a frozen class with one attribute per field and a repr that names them all.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident from $of:path { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        record! { $(#[$doc])* $name { $($(#[$field_doc])* $field: $type,)* } }

        impl From<$of> for $name {
            fn from(of: $of) -> $name {
                $name { $($field: of.$field,)* }
            }
        }
    };
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, eq, get_all, module = "engramsql.engine")]
        #[derive(Clone, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        #[pymethods]
        impl $name {
            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let mut fields = Vec::new();
                $(fields.push(format!(
                    "{}={}",
                    stringify!($field),
                    slf.getattr(stringify!($field))?.repr()?
                ));)*
                Ok(format!("{}({})", stringify!($name), fields.join(", ")))
            }
        }
    };
}

record! {
    /// One registered table, as the catalog remembers it.
    TableEntry from catalog::TableEntry {
        /// Name, as registered.
        name: String,
        /// Name of the spec, if any.
        spec: Option<String>,
        /// Decoder layer (0-based), if any.
        layer: Option<u32>,
        /// Rows.
        rows: u64,
        /// Values per row, if the format is known.
        dim: Option<u64>,
        /// Value format name, if known.
        format: Option<String>,
        /// Scale of the value format, if it has one.
        scale: Option<f32>,
        /// Bytes per row.
        row_bytes: u64,
        /// Row ids per token; 0 without a spec.
        heads: u64,
        /// Shards.
        shards: u64,
        /// Bytes of all rows.
        bytes: u64,
        /// Path of the source.
        source: PathBuf,
        /// Whether rows are read where the source lies, or from a store inside the database.
        in_place: bool,
        /// When verification last found the table good (microseconds since the Unix epoch).
        verified_at: Option<i64>,
    }
}

record! {
    /// A materialised view: the records of the distinct keys of a corpus.
    ViewEntry from catalog::ViewEntry {
        /// Name.
        name: String,
        /// Its directory.
        directory: PathBuf,
        /// Name of the table whose rows it holds.
        table: String,
        /// Identity of that table when the view was built.
        table_identity: String,
        /// Records.
        slots: u64,
        /// Row ids per key.
        heads: u64,
        /// Bytes per record.
        record_bytes: u64,
        /// Bytes of all records.
        bytes: u64,
        /// What a record holds: "rows" (their stored bytes) or "float32".
        form: String,
        /// Order of the slots: "key" or "access".
        order: String,
        /// Tokens of the corpus, if known.
        tokens: Option<u64>,
        /// Tokens whose key is in the view, if known.
        covered: Option<u64>,
        /// When it was built (microseconds since the Unix epoch).
        built_at: i64,
        /// When verification last found the view good (microseconds since the Unix epoch).
        verified_at: Option<i64>,
    }
}

record! {
    /// A SQL view kept in the catalog.
    SqlViewEntry from catalog::SqlViewEntry {
        /// Name.
        name: String,
        /// The SELECT behind it.
        sql: String,
    }
}

record! {
    /// A file or directory of a database that no entry of its catalog names.
    Orphan {
        /// Where it is.
        path: PathBuf,
        /// "store", "view", "unfinished build", "trash", "temporary", "token map", or "foreign": not ours, never removed.
        kind: String,
        /// Bytes of all files in it.
        bytes: u64,
        /// Whether a process is writing to it now.
        in_use: bool,
    }
}

impl From<catalog::Orphan> for Orphan {
    fn from(orphan: catalog::Orphan) -> Orphan {
        Orphan { path: orphan.path, kind: orphan.kind.name().to_owned(), bytes: orphan.bytes, in_use: orphan.in_use }
    }
}

record! {
    /// One extent of one shard of a table.
    ShardInfo from engram_engine::ShardInfo {
        /// Shard, 0-based; a shard whose rows lie in two extents (values, scales) appears twice.
        shard: u32,
        /// File that holds the extent.
        file: String,
        /// First row id of the shard.
        first_row: u64,
        /// Rows of the shard.
        rows: u64,
        /// Byte offset of the extent in the file.
        offset: u64,
        /// Bytes of the extent.
        bytes: u64,
        /// Whether the file is there now and long enough.
        present: bool,
        /// Bytes of the extent in the page cache, or None where the system does not say.
        resident_bytes: Option<u64>,
    }
}

record! {
    /// One head of a table.
    HeadInfo from engram_engine::HeadInfo {
        /// Head, 0-based.
        head: u32,
        /// n-gram order: 2 for bigrams, ...
        ngram_order: u32,
        /// Head size: buckets of this head.
        size: u64,
        /// First row id of this head (its offset).
        first_row: u64,
        /// Rows of this head.
        rows: u64,
    }
}
