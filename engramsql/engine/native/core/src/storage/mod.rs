//! What is written to disk and must be trusted later: sealed documents, block checksums, files written in order.
//!
//! A build writes into a directory that nothing names, under a [`DirectoryLock`], with checksums of every block
//! ([`checksum`]) and a manifest that proves itself ([`seal`]). It becomes visible by one rename of the catalog.

pub mod checksum;
mod error;
mod lock;
pub mod seal;
mod space;
mod unfinished;
mod writer;

pub use error::StorageError;
pub use lock::DirectoryLock;
pub use space::{clear_directory, remove_directory, remove_file, remove_leftovers, require_space, sync_directory};
pub use unfinished::Unfinished;
pub(crate) use unfinished::{building_path, is_building_name};
pub use writer::OrderedWriter;
