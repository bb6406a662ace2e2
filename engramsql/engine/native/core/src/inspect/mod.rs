//! Inspection: what is in a table. Which rows are dead or constant, what is no number, how values and norms lie.
//!
//! [`profile`] and [`histogram`] read every row once, by several threads, in memory that does not grow with the table;
//! [`of_rows`] answers for rows by id and [`scan_of_rows`] for consecutive rows, [`distances`] and [`scan_distances`] for the
//! rows of two tables.

mod distance;
mod histogram;
mod kernels;
mod moments;
mod pass;
mod profile;
mod rows;
mod sections;
mod values;

pub use distance::{Distance, comparable_dim, distances, scan_distances};
pub use histogram::{Bin, histogram};
pub use profile::{HeadProfile, profile};
pub use rows::{OfRow, RowHash, RowKind, RowScales, RowStats, of_rows, scan_of_rows};
