//! Names for tables and views: a database directory's `engram.json`, or the same in memory.
//!
//! A [`Session`] is what one DuckDB database or one Python `Database` holds. Sessions of one directory, in any number
//! of processes, see each other's changes: before a name is resolved the catalog file is looked at, and read again if
//! it is another one.

mod backup;
mod document;
mod entry;
mod error;
mod lock;
mod names;
mod session;

pub use entry::{RegisterOptions, SpecConstants, SqlViewEntry, TableEntry, ViewEntry};
pub use error::CatalogError;
pub use session::{Dropped, Held, Orphan, OrphanKind, Session};

#[cfg(test)]
mod tests;
