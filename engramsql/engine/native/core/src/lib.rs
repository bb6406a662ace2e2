//! The EngramSQL engine: row ids from token ids, rows from files, numbers from rows.
//!
//! Three independent choices make a [`Table`]: its [`spec::Spec`] (which hash turns tokens into row ids), its
//! [`format::ValueFormat`] (how a row's bytes become float32) and its [`source`] (where the rows lie). A
//! [`catalog::Session`] gives names to tables.
//!
//! The crate promises that a row is used only if every byte of it was read, that no id is guessed, clamped or wrapped,
//! and that a file whose layout cannot be proven is refused by name. It never writes to a source.

pub mod build;
pub mod cache;
pub mod catalog;
mod clock;
pub mod cpu;
pub mod error;
pub mod fault;
pub mod format;
mod gather;
pub mod inspect;
mod prefetch;
pub mod probe;
mod process;
mod progress;
mod publish;
pub mod read;
pub mod settings;
pub mod slot_index;
mod sort;
pub mod source;
pub mod spec;
pub mod storage;
mod table;
mod text;
pub mod verify;
pub mod view;
mod workers;

pub use error::{Error, ErrorKind, Result};
pub use prefetch::Prefetch;
pub use progress::Progress;
pub use table::{HeadInfo, ShardInfo, Table};
pub use workers::is_worker;
