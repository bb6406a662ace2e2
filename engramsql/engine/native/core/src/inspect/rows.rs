//! The same questions of single rows, by id: what their values are, and a hash that tells rows apart.

use super::scale_of;
use super::values::{ByteSet, Looker};
use crate::error::Result;
use crate::format::Decoder;
use crate::gather::{Output, split_row};
use crate::read::{Row, RowSink};
use crate::table::{Table, check_output};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// What the values of a row are: float32 as decoded, sums in float64.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RowStats {
    /// Values that are NaN.
    pub nans: u64,
    /// Values that are infinite.
    pub infs: u64,
    /// Values that are zero, of either sign.
    pub zeros: u64,
    /// Smallest finite value; this and the next five are `None` if no value is finite.
    pub min: Option<f32>,
    /// Largest finite value.
    pub max: Option<f32>,
    /// Sum of the finite values.
    pub sum: Option<f64>,
    /// Sum of their squares.
    pub sum_squares: Option<f64>,
    /// Their mean.
    pub mean: Option<f64>,
    /// Their population standard deviation, from the differences from the mean: a difference of squares loses the digits.
    pub stddev: Option<f64>,
    /// Whether all values are equal, none of them NaN, and the row is not dead.
    pub constant: bool,
    /// Whether every value is zero, of either sign.
    pub dead: bool,
    /// Smallest block scale that the row stores, decoded, NaN left out and the scale of the table left aside; `None` for
    /// formats that store none.
    pub scale_min: Option<f32>,
    /// Largest.
    pub scale_max: Option<f32>,
}

/// What the rows of `ids` are, in order, duplicates kept: `out.len() == ids.len()`.
///
/// # Errors
/// A row id outside of the table, a table without a value format, and what reading meets.
pub fn row_stats(table: &Table, ids: &[i64], out: &mut [RowStats]) -> Result<()> {
    check_output("rows", ids.len(), out.len())?;
    let (decoder, dim) = table.decoder()?;
    table.gather(ids, Stats { decoder, dim, out })
}

/// The same of the rows from row `first` on, as many as `out` holds, read as a scan: past the row cache.
pub fn scan_row_stats(table: &Table, first: u64, out: &mut [RowStats]) -> Result<()> {
    let (decoder, dim) = table.decoder()?;
    table.scan(first, out.len(), Stats { decoder, dim, out })
}

/// XXH3-128 of the stored bytes of the rows of `ids`, as [`Table::fetch_into`] gives them: rows with equal bytes have equal
/// hashes, and others do not but by a chance of 2^-128 a pair, unless somebody made them to.
///
/// # Errors
/// A row id outside of the table, and what reading meets.
pub fn row_hashes(table: &Table, ids: &[i64], out: &mut [u128]) -> Result<()> {
    check_output("rows", ids.len(), out.len())?;
    table.gather(ids, Hashes { out })
}

/// The same of the rows from row `first` on, as many as `out` holds, read as a scan: past the row cache.
pub fn scan_row_hashes(table: &Table, first: u64, out: &mut [u128]) -> Result<()> {
    table.scan(first, out.len(), Hashes { out })
}

struct Stats<'a> {
    decoder: &'a Decoder,
    dim: usize,
    out: &'a mut [RowStats],
}

impl Output for Stats<'_> {
    fn split(self, row: usize) -> (Self, Self) {
        let Stats { decoder, dim, out } = self;
        let (head, tail) = out.split_at_mut(row);
        (Stats { decoder, dim, out: head }, Stats { decoder, dim, out: tail })
    }

    fn sink(&mut self) -> impl RowSink {
        let (mut values, mut looker) = (vec![0.0; self.dim], Looker::new());
        move |row: Row<'_>| {
            self.out[row.position] = stats(self.decoder, row, &mut values, &mut looker);
        }
    }
}

fn stats(decoder: &Decoder, row: Row<'_>, values: &mut [f32], looker: &mut Looker) -> RowStats {
    let format = decoder.format();
    let (stored, scales) = split_row(row, format.value_bytes(values.len()));
    decoder.decode(stored, scales, values);
    let mut codes = ByteSet::default();
    codes.add(scales);
    let scales = codes.bounds(|byte| scale_of(format, byte));
    let mut stats = RowStats {
        scale_min: scales.map(|(min, _)| min),
        scale_max: scales.map(|(_, max)| max),
        ..RowStats::default()
    };
    let (mut of_values, mut of_row) = (None, None);
    looker.look(values, values.len(), &mut |values| of_values = Some(values), &mut |row| of_row = Some(row));
    // One row is one piece.
    if let (Some(found), Some(row)) = (of_values, of_row) {
        let any = found.nans + found.infs < values.len() as u64;
        (stats.nans, stats.infs, stats.zeros) = (found.nans, found.infs, found.zeros);
        // Zero is told without a sign.
        (stats.min, stats.max) = (any.then_some(found.min + 0.0), any.then_some(found.max + 0.0));
        (stats.sum, stats.sum_squares) = (any.then_some(found.sum), any.then_some(row.squares));
        let moments = found.moments.summary();
        (stats.mean, stats.stddev) = (moments.map(|(mean, _)| mean), moments.map(|(_, deviation)| deviation));
        (stats.dead, stats.constant) = (row.dead, row.constant);
    }
    stats
}

struct Hashes<'a> {
    out: &'a mut [u128],
}

impl Output for Hashes<'_> {
    fn split(self, row: usize) -> (Self, Self) {
        let (head, tail) = self.out.split_at_mut(row);
        (Hashes { out: head }, Hashes { out: tail })
    }

    fn sink(&mut self) -> impl RowSink {
        |row: Row<'_>| self.out[row.position] = hash(row)
    }
}

fn hash(row: Row<'_>) -> u128 {
    if row.scales.is_empty() {
        return xxh3_128(row.values);
    }
    // Parts are hashed as one row: what a built store holds packed has the same hash.
    let mut hasher = Xxh3::new();
    hasher.update(row.values);
    hasher.update(row.scales);
    hasher.digest128()
}
