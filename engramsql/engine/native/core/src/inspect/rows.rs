//! The same questions of single rows, by id: what their values are, and a hash that tells rows apart.

use super::kernels::Kernels;
use super::values::{Looker, is_constant};
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

/// What kind of row it is: of [`RowStats`] what can be seen without adding anything up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowKind {
    /// Whether all values are equal, none of them NaN, and the row is not dead.
    pub constant: bool,
    /// Whether every value is zero, of either sign.
    pub dead: bool,
    /// Whether no value is NaN or infinite.
    pub finite: bool,
}

/// The block scales that a row stores: of [`RowStats`] the last two. Values are not decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RowScales {
    /// Smallest, decoded, NaN left out and the scale of the table left aside; `None` for formats that store none.
    pub min: Option<f32>,
    /// Largest.
    pub max: Option<f32>,
}

/// XXH3-128 of the stored bytes of a row, as [`Table::fetch_into`] gives them: rows with equal bytes have equal hashes, and
/// others do not but by a chance of 2^-128 a pair, unless somebody made them to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RowHash(pub u128);

/// What can be asked of single rows: [`RowStats`], [`RowKind`], [`RowScales`], [`RowHash`].
pub trait OfRow: sealed::Answer {}

impl<A: sealed::Answer> OfRow for A {}

mod sealed {
    use super::{Result, Row, Table};

    /// An answer and how it is found.
    pub trait Answer: Copy + Default + Send + 'static {
        /// What all rows of a table share.
        type Question<'a>: Copy + Send;
        /// Memory of one thread, used again for each row.
        type Scratch;

        /// # Errors
        /// A table that has no answer.
        fn question(table: &Table) -> Result<Self::Question<'_>>;
        fn scratch(question: Self::Question<'_>) -> Self::Scratch;
        fn of(question: Self::Question<'_>, scratch: &mut Self::Scratch, row: Row<'_>) -> Self;
    }
}

use sealed::Answer;

/// The answers for the rows of `ids`, in order, duplicates kept: `out.len() == ids.len()`.
///
/// # Errors
/// A row id outside of the table, a table without a value format (but for [`RowHash`]), and what reading meets.
pub fn of_rows<A: OfRow>(table: &Table, ids: &[i64], out: &mut [A]) -> Result<()> {
    check_output("rows", ids.len(), out.len())?;
    table.gather(ids, Answering { question: A::question(table)?, out })
}

/// The same of the rows from row `first` on, as many as `out` holds, read as a scan: past the row cache.
///
/// # Errors
/// As for [`of_rows`]; rows beyond the last one.
pub fn scan_of_rows<A: OfRow>(table: &Table, first: u64, out: &mut [A]) -> Result<()> {
    table.scan(first, out.len(), Answering { question: A::question(table)?, out })
}

/// Answers a question of every row, each where its answer goes.
struct Answering<'a, A: Answer> {
    question: A::Question<'a>,
    out: &'a mut [A],
}

impl<A: Answer> Output for Answering<'_, A> {
    fn split(self, row: usize) -> (Self, Self) {
        let Answering { question, out } = self;
        let (head, tail) = out.split_at_mut(row);
        (Answering { question, out: head }, Answering { question, out: tail })
    }

    fn sink(&mut self) -> impl RowSink {
        let mut scratch = A::scratch(self.question);
        move |row: Row<'_>| self.out[row.position] = A::of(self.question, &mut scratch, row)
    }
}

/// Decodes rows of `dim` values.
#[derive(Clone, Copy)]
pub struct Decoding<'a> {
    decoder: &'a Decoder,
    dim: usize,
}

impl<'a> Decoding<'a> {
    fn of(table: &'a Table) -> Result<Decoding<'a>> {
        let (decoder, dim) = table.decoder()?;
        Ok(Decoding { decoder, dim })
    }

    /// Stored values and block scales of a row.
    fn parts<'r>(self, row: Row<'r>) -> (&'r [u8], &'r [u8]) {
        split_row(row, self.decoder.format().value_bytes(self.dim))
    }

    fn scales(self, stored: &[u8]) -> RowScales {
        let format = self.decoder.format();
        let scales = stored.iter().filter_map(|&byte| format.block_scale(byte)).filter(|scale| !scale.is_nan());
        scales.fold(RowScales::default(), |RowScales { min, max }, scale| RowScales {
            min: Some(min.map_or(scale, |min| if scale < min { scale } else { min })),
            max: Some(max.map_or(scale, |max| if scale > max { scale } else { max })),
        })
    }
}

/// Memory for one decoded row, and who looks at it.
pub struct Decoded {
    kernels: Kernels,
    values: Vec<f32>,
    looker: Looker,
}

impl Decoded {
    fn new(question: Decoding<'_>) -> Decoded {
        Decoded { kernels: Kernels::new(), values: vec![0.0; question.dim], looker: Looker::new() }
    }
}

impl Answer for RowStats {
    type Question<'a> = Decoding<'a>;
    type Scratch = Decoded;

    fn question(table: &Table) -> Result<Decoding<'_>> {
        Decoding::of(table)
    }

    fn scratch(question: Decoding<'_>) -> Decoded {
        Decoded::new(question)
    }

    fn of(question: Decoding<'_>, Decoded { kernels, values, looker }: &mut Decoded, row: Row<'_>) -> RowStats {
        let (stored, scales) = question.parts(row);
        question.decoder.decode(stored, scales, values);
        let RowScales { min: scale_min, max: scale_max } = question.scales(scales);
        let mut squares = [0.0];
        let sums = kernels.sums(values, values.len(), &mut squares);
        let stats = if squares[0].is_finite() {
            let count = values.len() as f64;
            let mean = sums.sum / count;
            // No square of a float32 but that of zero is too small for a double.
            let dead = squares[0] == 0.0;
            RowStats {
                zeros: sums.zeros,
                // Zero is told without a sign.
                min: Some(sums.min + 0.0),
                max: Some(sums.max + 0.0),
                sum: Some(sums.sum),
                sum_squares: Some(squares[0]),
                mean: Some(mean),
                stddev: Some((kernels.deviations(values, mean) / count).sqrt()),
                constant: !dead && is_constant(values),
                dead,
                ..RowStats::default()
            }
        } else {
            odd_stats(looker, values)
        };
        RowStats { scale_min, scale_max, ..stats }
    }
}

/// What a row is that holds values that are not finite; its scales are left aside.
fn odd_stats(looker: &mut Looker, row: &[f32]) -> RowStats {
    let mut stats = RowStats::default();
    let (mut of_values, mut of_row) = (None, None);
    looker.look(row, row.len(), &mut |values| of_values = Some(values), &mut |row| of_row = Some(row));
    // One row is one piece.
    if let (Some(found), Some(kind)) = (of_values, of_row) {
        let any = found.nans + found.infs < row.len() as u64;
        (stats.nans, stats.infs, stats.zeros) = (found.nans, found.infs, found.zeros);
        (stats.min, stats.max) = (any.then_some(found.min + 0.0), any.then_some(found.max + 0.0));
        (stats.sum, stats.sum_squares) = (any.then_some(found.sum), any.then_some(kind.squares));
        let moments = found.moments.summary();
        (stats.mean, stats.stddev) = (moments.map(|(mean, _)| mean), moments.map(|(_, deviation)| deviation));
        (stats.dead, stats.constant) = (kind.dead, kind.constant);
    }
    stats
}

impl Answer for RowKind {
    type Question<'a> = Decoding<'a>;
    type Scratch = Decoded;

    fn question(table: &Table) -> Result<Decoding<'_>> {
        Decoding::of(table)
    }

    fn scratch(question: Decoding<'_>) -> Decoded {
        Decoded::new(question)
    }

    fn of(question: Decoding<'_>, Decoded { kernels, values, .. }: &mut Decoded, row: Row<'_>) -> RowKind {
        let (stored, scales) = question.parts(row);
        question.decoder.decode(stored, scales, values);
        let seen = kernels.glance(values);
        let dead = seen.largest == 0;
        RowKind { constant: seen.equal && !dead, dead, finite: seen.largest < f32::INFINITY.to_bits() }
    }
}

impl Answer for RowScales {
    type Question<'a> = Decoding<'a>;
    type Scratch = ();

    fn question(table: &Table) -> Result<Decoding<'_>> {
        Decoding::of(table)
    }

    fn scratch(_question: Decoding<'_>) {}

    fn of(question: Decoding<'_>, _scratch: &mut (), row: Row<'_>) -> RowScales {
        question.scales(question.parts(row).1)
    }
}

impl Answer for RowHash {
    type Question<'a> = ();
    type Scratch = ();

    fn question(_table: &Table) -> Result<()> {
        Ok(())
    }

    fn scratch(_question: ()) {}

    fn of(_question: (), _scratch: &mut (), row: Row<'_>) -> RowHash {
        if row.scales.is_empty() {
            return RowHash(xxh3_128(row.values));
        }
        // Parts are hashed as one row: what a built store holds packed has the same hash.
        let mut hasher = Xxh3::new();
        hasher.update(row.values);
        hasher.update(row.scales);
        RowHash(hasher.digest128())
    }
}
