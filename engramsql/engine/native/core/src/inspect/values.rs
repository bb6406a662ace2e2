//! What there is to say of a row, or of a block of rows, from its values.

use super::kernels::Kernels;
use super::moments::Moments;

/// Bytes that occurred: the codes of block scales.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ByteSet([u64; 4]);

impl ByteSet {
    #[inline]
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }

    pub(super) fn merge(&mut self, other: ByteSet) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    /// Smallest and largest of what `decode` makes of the bytes, NaN left out.
    pub(super) fn bounds(&self, decode: impl Fn(u8) -> Option<f32>) -> Option<(f32, f32)> {
        let there = (0..=255).filter(|&byte: &u8| self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1);
        there.filter_map(decode).filter(|scale| !scale.is_nan()).fold(None, |bounds, scale| {
            let (min, max) = bounds.unwrap_or((scale, scale));
            Some((if scale < min { scale } else { min }, if scale > max { scale } else { max }))
        })
    }
}

/// What the values of one or several rows are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    pub(super) nans: u64,
    pub(super) infs: u64,
    pub(super) zeros: u64,
    /// Of the finite values: infinity and minus infinity if there are none.
    pub(super) min: f32,
    pub(super) max: f32,
    pub(super) sum: f64,
    pub(super) moments: Moments,
}

/// What one row is.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowTally {
    pub(super) nans: u64,
    pub(super) infs: u64,
    /// Sum of the squares of the finite values.
    pub(super) squares: f64,
    pub(super) dead: bool,
    pub(super) constant: bool,
}

/// Looks at decoded rows, with memory that it reuses.
pub(super) struct Looker {
    kernels: Kernels,
    squares: Vec<f64>,
    finite: Vec<f32>,
}

impl Looker {
    pub(super) fn new() -> Looker {
        Looker { kernels: Kernels::new(), squares: Vec::new(), finite: Vec::new() }
    }

    /// Looks at whole rows of `dim` values, at least one of each: hands their values to `values`, in one piece or several,
    /// and each row to `row`, in order.
    pub(super) fn look(
        &mut self,
        rows: &[f32],
        dim: usize,
        values: &mut impl FnMut(Values),
        row: &mut impl FnMut(RowTally),
    ) {
        let count = rows.len() / dim;
        if self.squares.len() < count {
            self.squares.resize(count, 0.0);
        }
        let sums = self.kernels.sums(rows, dim, &mut self.squares[..count]);
        if self.squares[..count].iter().all(|squares| squares.is_finite()) {
            let mean = sums.sum / rows.len() as f64;
            values(Values {
                nans: 0,
                infs: 0,
                zeros: sums.zeros,
                min: sums.min,
                max: sums.max,
                sum: sums.sum,
                moments: Moments::of(rows.len() as u64, sums.sum, self.kernels.deviations(rows, mean)),
            });
            for (one, &squares) in rows.chunks_exact(dim).zip(&self.squares) {
                // No square of a float32 but that of zero is too small for a double.
                let dead = squares == 0.0;
                row(RowTally { nans: 0, infs: 0, squares, dead, constant: !dead && is_constant(one) });
            }
        } else if count > 1 {
            rows.chunks_exact(dim).for_each(|one| self.look(one, dim, values, row));
        } else {
            self.look_at_odd(rows, values, row);
        }
    }

    /// The same for one row that holds values that are not finite.
    fn look_at_odd(&mut self, one: &[f32], values: &mut impl FnMut(Values), row: &mut impl FnMut(RowTally)) {
        let nans = one.iter().filter(|value| value.is_nan()).count() as u64;
        let infs = one.iter().filter(|value| value.is_infinite()).count() as u64;
        self.finite.clear();
        self.finite.extend(one.iter().filter(|value| value.is_finite()));
        let (finite, count) = (&self.finite, self.finite.len());
        let mut squares = [0.0];
        let sums = self.kernels.sums(finite, count.max(1), &mut squares);
        let mean = sums.sum / count.max(1) as f64;
        values(Values {
            nans,
            infs,
            zeros: sums.zeros,
            min: sums.min,
            max: sums.max,
            sum: sums.sum,
            moments: Moments::of(count as u64, sums.sum, self.kernels.deviations(finite, mean)),
        });
        row(RowTally { nans, infs, squares: squares[0], dead: false, constant: is_constant(one) });
    }
}

/// Whether all values of a row equal the first; NaN equals nothing.
pub(super) fn is_constant(row: &[f32]) -> bool {
    row.iter().all(|value| *value == row[0])
}
