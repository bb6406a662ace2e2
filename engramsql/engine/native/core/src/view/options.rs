//! What a view is to hold.

use crate::storage::Unfinished;
use std::path::PathBuf;

/// What a record holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// The rows of the key as they are stored, in head order.
    #[default]
    Rows,
    /// Their values as float32, little endian.
    Float32,
}

impl Form {
    /// "rows" or "float32".
    pub fn name(self) -> &'static str {
        match self {
            Form::Rows => "rows",
            Form::Float32 => "float32",
        }
    }

    /// The form of that name.
    pub fn from_name(name: &str) -> Option<Form> {
        [Form::Rows, Form::Float32].into_iter().find(|form| form.name() == name)
    }
}

/// The order of the slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// By key: by the row id of head 0, then of head 1, ...
    #[default]
    Key,
    /// By the first appearance of the key in the corpus.
    Access,
}

impl Order {
    /// "key" or "access".
    pub fn name(self) -> &'static str {
        match self {
            Order::Key => "key",
            Order::Access => "access",
        }
    }

    /// The order of that name.
    pub fn from_name(name: &str) -> Option<Order> {
        [Order::Key, Order::Access].into_iter().find(|order| order.name() == name)
    }
}

/// A file of records that somebody else wrote, to be read where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFile {
    /// The file: one record per slot, from its beginning.
    pub path: PathBuf,
    /// Bytes from one record to the next; at least those of a record.
    pub slot_bytes: u64,
}

/// How a view is built.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewOptions {
    /// What a record holds.
    pub form: Form,
    /// The order of the slots. Keys that the caller brings keep their own, whatever this says.
    pub order: Order,
    /// Only as many keys, those that appear most often; of equally frequent ones those with the lower key.
    pub top: Option<u64>,
    /// Only as many keys as have records of that many bytes, chosen in the same way.
    pub budget: Option<u64>,
    /// Bytes of one shard file at most, but at least one record.
    pub shard_bytes: u64,
    /// Bytes of memory for sorting.
    pub memory: u64,
    /// What becomes of an unfinished build of that name.
    pub unfinished: Unfinished,
    /// Whether a view of that name is replaced.
    pub replace: bool,
    /// Row ids of a key, for tables without a spec.
    pub heads: Option<usize>,
    /// What tells the corpus, or the keys, from others: an interrupted build goes on only with the same. `None` where the
    /// caller cannot say.
    pub corpus: Option<String>,
    /// Records that are there already: every one is compared with the table, none is copied.
    pub records: Option<RecordFile>,
}

impl Default for ViewOptions {
    /// All keys of the corpus in key order, rows as stored, 1 GiB shards, 64 MiB of memory for sorting.
    fn default() -> ViewOptions {
        ViewOptions {
            form: Form::default(),
            order: Order::default(),
            top: None,
            budget: None,
            shard_bytes: 1 << 30,
            memory: 64 << 20,
            unfinished: Unfinished::default(),
            replace: false,
            heads: None,
            corpus: None,
            records: None,
        }
    }
}
