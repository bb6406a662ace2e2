//! Views: materialised records of the distinct keys of a corpus, one read each.
//!
//! A key is the row ids of one token; a record is its rows side by side ([`Form::Rows`]) or their values
//! ([`Form::Float32`]). [`ViewBuilder`] collects the keys of token sequences, gathers their rows and indexes them; [`View`]
//! reads the records, by slot or by key. A view belongs to one state of its table: [`View::is_usable`] says whether that is
//! still the table's, and only then a table answers from it.

mod attach;
mod build;
mod collect;
mod decode;
mod error;
mod fields;
mod manifest;
mod options;
mod place;
mod plan;
mod reader;
mod records;
mod reindex;
mod tally;

pub use build::ViewBuilder;
pub use error::ViewError;
pub use options::{Form, Order, RecordFile, ViewOptions};
pub use reader::{View, ViewUsage};
pub use reindex::build_index;
