//! What the rows of each head are: dead and constant ones, what is no number, range, moments, norms, scales.

use super::moments::{Moments, Sum};
use super::pass::{OfHead, Question, ask};
use super::values::{ByteSet, Looker, RowTally, Values};
use crate::error::Result;
use crate::format::{Decoder, ValueFormat};
use crate::gather::split_row;
use crate::progress::Progress;
use crate::read::Row;
use crate::table::Table;

/// Values that are looked at together: they lie in a processor's first cache.
const BLOCK_VALUES: usize = 4096;
const BLOCK_ROWS: usize = 64;

/// What the rows of one head are, or those that no head reaches.
///
/// Values are float32 as decoded, with their scale. Sums are in float64 and lose no digit that matters: they are
/// compensated, and deviations are taken from the mean, not as the difference of two squares.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadProfile {
    /// Head, 0-based; `None`: rows that no head reaches, or of a table without a spec.
    pub head: Option<u32>,
    /// n-gram order of the head.
    pub ngram_order: Option<u32>,
    /// Its rows.
    pub rows: u64,
    /// Rows of which every value is zero, of either sign.
    pub dead: u64,
    /// Rows whose values are all equal, none of them NaN, and not dead.
    pub constant: u64,
    /// Values that are NaN.
    pub nans: u64,
    /// Values that are infinite.
    pub infs: u64,
    /// Values that are zero, of either sign.
    pub zeros: u64,
    /// Smallest finite value; this and the next three are `None` if no value is finite.
    pub min: Option<f32>,
    /// Largest finite value.
    pub max: Option<f32>,
    /// Mean of the finite values.
    pub mean: Option<f64>,
    /// Their population standard deviation.
    pub stddev: Option<f64>,
    /// Smallest Euclidean norm of the rows whose values are all finite; this and the next two are `None` if there is no
    /// such row.
    pub norm_min: Option<f64>,
    /// Largest.
    pub norm_max: Option<f64>,
    /// Their mean.
    pub norm_mean: Option<f64>,
    /// Smallest block scale that the rows store, decoded, NaN left out and the scale of the table left aside; `None` for
    /// formats that store none.
    pub scale_min: Option<f32>,
    /// Largest.
    pub scale_max: Option<f32>,
    /// Rows with a NaN.
    pub nan_rows: u64,
    /// Rows with an infinite value.
    pub inf_rows: u64,
}

/// Profiles the heads of a table in one pass over its rows: one answer for each head, in order, and one for the rows that no
/// head reaches, if there are any or the table has no spec.
///
/// # Errors
/// A table without a value format, [`Error::Cancelled`](crate::Error::Cancelled), and what reading meets: then there is no
/// answer at all.
pub fn profile(table: &Table, progress: &Progress) -> Result<Vec<HeadProfile>> {
    let (decoder, dim) = table.decoder()?;
    let found = ask(table, &Profile { decoder, dim }, 0..table.rows(), "profile", progress)?;
    let heads = table.heads();
    let answer = found.into_iter().filter(|of| of.head.is_some() || of.found.rows > 0 || heads.is_empty());
    let order = |head: Option<u32>| Some(heads.get(head? as usize)?.ngram_order);
    Ok(answer.map(|OfHead { head, found }| found.told(head, order(head), decoder.format())).collect())
}

struct Profile<'a> {
    decoder: &'a Decoder,
    dim: usize,
}

/// Rows that were decoded and not looked at yet.
struct Scratch {
    values: Vec<f32>,
    filled: usize,
    looker: Looker,
}

struct Found {
    rows: u64,
    dead: u64,
    constant: u64,
    nans: u64,
    infs: u64,
    zeros: u64,
    nan_rows: u64,
    inf_rows: u64,
    min: f32,
    max: f32,
    moments: Moments,
    /// Squares of the smallest and largest norm.
    square_min: f64,
    square_max: f64,
    /// Rows that have a norm, and the sum of the norms.
    normed: u64,
    norms: Sum,
    scales: ByteSet,
}

impl Default for Found {
    fn default() -> Found {
        Found {
            rows: 0,
            dead: 0,
            constant: 0,
            nans: 0,
            infs: 0,
            zeros: 0,
            nan_rows: 0,
            inf_rows: 0,
            min: f32::INFINITY,
            max: f32::NEG_INFINITY,
            moments: Moments::default(),
            square_min: f64::INFINITY,
            square_max: f64::NEG_INFINITY,
            normed: 0,
            norms: Sum::default(),
            scales: ByteSet::default(),
        }
    }
}

impl Question for Profile<'_> {
    type Found = Found;
    type Scratch = Scratch;

    fn scratch(&self) -> Scratch {
        let rows = (BLOCK_VALUES / self.dim).clamp(1, BLOCK_ROWS);
        Scratch { values: vec![0.0; rows * self.dim], filled: 0, looker: Looker::new() }
    }

    #[inline]
    fn take(&self, scratch: &mut Scratch, found: &mut Found, row: Row<'_>) {
        let (values, scales) = split_row(row, self.decoder.format().value_bytes(self.dim));
        self.decoder.decode(values, scales, &mut scratch.values[scratch.filled..][..self.dim]);
        found.scales.add(scales);
        scratch.filled += self.dim;
        if scratch.filled == scratch.values.len() {
            self.finish(scratch, found);
        }
    }

    fn finish(&self, scratch: &mut Scratch, found: &mut Found) {
        let Scratch { values, filled, looker } = scratch;
        if *filled > 0 {
            let (mut of_values, mut of_rows) = (Found::default(), Found::default());
            looker.look(&values[..*filled], self.dim, &mut |values| of_values.add_values(&values), &mut |row| {
                of_rows.add_row(&row)
            });
            Profile::merge(found, of_values);
            Profile::merge(found, of_rows);
            *filled = 0;
        }
    }

    fn merge(found: &mut Found, later: Found) {
        found.rows += later.rows;
        found.dead += later.dead;
        found.constant += later.constant;
        found.nans += later.nans;
        found.infs += later.infs;
        found.zeros += later.zeros;
        found.nan_rows += later.nan_rows;
        found.inf_rows += later.inf_rows;
        found.min = smaller(found.min, later.min);
        found.max = larger(found.max, later.max);
        found.moments.merge(later.moments);
        found.square_min = smaller(found.square_min, later.square_min);
        found.square_max = larger(found.square_max, later.square_max);
        found.normed += later.normed;
        found.norms.merge(later.norms);
        found.scales.merge(later.scales);
    }
}

/// Neither is NaN.
fn smaller<T: PartialOrd>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

fn larger<T: PartialOrd>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

impl Found {
    fn add_values(&mut self, values: &Values) {
        self.nans += values.nans;
        self.infs += values.infs;
        self.zeros += values.zeros;
        self.min = smaller(self.min, values.min);
        self.max = larger(self.max, values.max);
        self.moments.merge(values.moments);
    }

    fn add_row(&mut self, row: &RowTally) {
        self.rows += 1;
        self.dead += u64::from(row.dead);
        self.constant += u64::from(row.constant);
        self.nan_rows += u64::from(row.nans > 0);
        self.inf_rows += u64::from(row.infs > 0);
        if row.nans + row.infs == 0 {
            self.square_min = smaller(self.square_min, row.squares);
            self.square_max = larger(self.square_max, row.squares);
            self.normed += 1;
            self.norms.add(row.squares.sqrt());
        }
    }

    fn told(self, head: Option<u32>, ngram_order: Option<u32>, format: &ValueFormat) -> HeadProfile {
        let summary = self.moments.summary();
        let scales = self.scales.bounds(|byte| format.block_scale(byte));
        let normed = (self.normed > 0).then_some(());
        // Zero is told without a sign.
        let value = |value: f32| summary.map(|_| value + 0.0);
        HeadProfile {
            head,
            ngram_order,
            rows: self.rows,
            dead: self.dead,
            constant: self.constant,
            nans: self.nans,
            infs: self.infs,
            zeros: self.zeros,
            min: value(self.min),
            max: value(self.max),
            mean: summary.map(|(mean, _)| mean),
            stddev: summary.map(|(_, deviation)| deviation),
            norm_min: normed.map(|()| self.square_min.sqrt()),
            norm_max: normed.map(|()| self.square_max.sqrt()),
            norm_mean: normed.map(|()| self.norms.value() / self.normed as f64),
            scale_min: scales.map(|(min, _)| min),
            scale_max: scales.map(|(_, max)| max),
            nan_rows: self.nan_rows,
            inf_rows: self.inf_rows,
        }
    }
}
