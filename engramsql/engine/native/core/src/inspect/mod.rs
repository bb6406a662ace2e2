//! Inspection: what is in a table. Which rows are dead or constant, what is no number, how values and norms lie.
//!
//! [`profile`] and [`histogram`] read every row once, by several threads, in memory that does not grow with the table;
//! [`row_stats`] and [`row_hashes`] answer for rows by id, and their twins for consecutive rows.

mod histogram;
mod kernels;
mod moments;
mod pass;
mod profile;
mod rows;
mod sections;
mod values;

pub use histogram::{Bin, histogram};
pub use profile::{HeadProfile, profile};
pub use rows::{RowStats, row_hashes, row_stats, scan_row_hashes, scan_row_stats};

use crate::format::{E4M3, ValueFormat, e8m0_engine};

/// The block scale that a byte of a row stands for; the scale of the table is not in it.
fn scale_of(format: &ValueFormat, byte: u8) -> f32 {
    match format {
        ValueFormat::Fp8E4m3E8m0 => e8m0_engine(byte),
        // The only other format with block scales is NVFP4, whose scales are E4M3.
        _ => E4M3[usize::from(byte)],
    }
}
