//! How far the values of one table lie from those of another, row by row.

use super::kernels::{Kernels, Products};
use crate::error::Result;
use crate::format::Decoder;
use crate::gather::{Output, split_row};
use crate::read::{Row, RowSink};
use crate::table::{Table, check_output};
use crate::verify::VerifyError;

/// How far two vectors of one length lie apart. Sums are in float64. Values that are equal, NaN and infinite ones among
/// them, are no distance apart; where one is NaN or infinite and the other is not the same, distance and largest difference
/// are NaN or infinite.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Distance {
    /// Whether any value differs; a NaN equals a NaN.
    pub changed: bool,
    /// Euclidean norm of the first, NaN or infinite where a value is.
    pub norm_a: f64,
    /// And of the second.
    pub norm_b: f64,
    /// Euclidean distance.
    pub l2: f64,
    /// Cosine of the angle between them; `None` where one of them is zero or not finite.
    pub cosine: Option<f64>,
    /// Largest absolute difference of two values.
    pub max_abs: f32,
}

impl Distance {
    /// The distance of `b` from `a`, of one length.
    pub fn of(a: &[f32], b: &[f32]) -> Distance {
        Distance::by(Kernels::new(), a, b)
    }

    fn by(kernels: Kernels, a: &[f32], b: &[f32]) -> Distance {
        let found = kernels.products(a, b);
        if found.aa.is_finite() && found.bb.is_finite() {
            Distance::told(found)
        } else {
            Distance::told(odd_products(found, a, b))
        }
    }

    /// The distance of a row from itself.
    fn of_equal(kernels: Kernels, row: &[f32]) -> Distance {
        let squares = kernels.squares(row);
        Distance::told(Products { aa: squares, bb: squares, ab: squares, dd: 0.0, largest: 0.0, differ: false })
    }

    fn told(Products { aa, bb, ab, dd, largest, differ }: Products) -> Distance {
        let (norm_a, norm_b) = (aa.sqrt(), bb.sqrt());
        let norms = norm_a * norm_b;
        let cosine = (norms != 0.0 && norms.is_finite()).then(|| (ab / norms).clamp(-1.0, 1.0));
        Distance { changed: differ, norm_a, norm_b, l2: dd.sqrt(), cosine, max_abs: largest }
    }
}

/// Products of rows with values that are not finite, where equal values are no distance apart. Their own sums of squares
/// are right already.
fn odd_products(found: Products, a: &[f32], b: &[f32]) -> Products {
    let mut told = Products { dd: 0.0, largest: 0.0, differ: false, ..found };
    for (&x, &y) in a.iter().zip(b) {
        // Infinity less infinity would be NaN.
        if x == y || (x.is_nan() && y.is_nan()) {
            continue;
        }
        told.differ = true;
        told.dd += (f64::from(x) - f64::from(y)) * (f64::from(x) - f64::from(y));
        let difference = (x - y).abs();
        // Not `max`, which drops a NaN.
        if difference > told.largest || difference.is_nan() {
            told.largest = difference;
        }
    }
    told
}

/// How far the rows `ids` of `b` lie from those of `a`, in order, duplicates kept: `out.len() == ids.len()`. `scratch` is
/// memory that is used again.
///
/// # Errors
/// Tables that [cannot be compared](comparable_dim), a row id outside of them, and what reading meets.
pub fn distances(tables: [&Table; 2], ids: &[i64], scratch: &mut Vec<u8>, out: &mut [Distance]) -> Result<()> {
    let [a, b] = tables;
    check_output("rows", ids.len(), out.len())?;
    let dim = comparable_dim(a, b)?;
    let rows = grown(scratch, ids.len() * a.row_bytes());
    a.fetch_into(ids, rows)?;
    b.gather(ids, Distances::new(tables, dim, rows, out)?)
}

/// The same of the rows from row `first` on, as many as `out` holds, read as a scan: past the row cache.
///
/// # Errors
/// As for [`distances`]; rows beyond the last one.
pub fn scan_distances(tables: [&Table; 2], first: u64, scratch: &mut Vec<u8>, out: &mut [Distance]) -> Result<()> {
    let [a, b] = tables;
    let dim = comparable_dim(a, b)?;
    let rows = grown(scratch, out.len() * a.row_bytes());
    a.scan_into(first, rows)?;
    b.scan(first, out.len(), Distances::new(tables, dim, rows, out)?)
}

/// The first `len` bytes of memory that only grows, so that it is not cleared again.
fn grown(scratch: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if scratch.len() < len {
        scratch.resize(len, 0);
    }
    &mut scratch[..len]
}

/// Compares the rows of `b`, as they are read, with those of `a`, as they are stored: decoded, all rows of a batch would
/// drive each other out of the cache.
struct Distances<'a> {
    a: &'a Decoder,
    b: &'a Decoder,
    /// Whether equal bytes are equal values.
    alike: bool,
    dim: usize,
    /// Bytes of a row of `a`.
    width: usize,
    rows: &'a [u8],
    out: &'a mut [Distance],
}

impl<'a> Distances<'a> {
    fn new([a, b]: [&'a Table; 2], dim: usize, rows: &'a [u8], out: &'a mut [Distance]) -> Result<Distances<'a>> {
        let width = a.row_bytes();
        let ((a, _), (b, _)) = (a.decoder()?, b.decoder()?);
        Ok(Distances { a, b, alike: a.format() == b.format(), dim, width, rows, out })
    }
}

impl Output for Distances<'_> {
    fn split(self, row: usize) -> (Self, Self) {
        let (head, tail) = self.out.split_at_mut(row);
        let (before, after) = self.rows.split_at(row * self.width);
        let Distances { a, b, alike, dim, width, .. } = self;
        let piece = |rows, out| Distances { a, b, alike, dim, width, rows, out };
        (piece(before, head), piece(after, tail))
    }

    fn sink(&mut self) -> impl RowSink {
        let kernels = Kernels::new();
        let (a_bytes, b_bytes) = (self.a.format().value_bytes(self.dim), self.b.format().value_bytes(self.dim));
        let (mut of_a, mut of_b) = (vec![0.0; self.dim], vec![0.0; self.dim]);
        move |row: Row<'_>| {
            let (a_stored, a_scales) = self.rows[row.position * self.width..][..self.width].split_at(a_bytes);
            let (b_stored, b_scales) = split_row(row, b_bytes);
            self.a.decode(a_stored, a_scales, &mut of_a);
            self.out[row.position] = if self.alike && a_stored == b_stored && a_scales == b_scales {
                Distance::of_equal(kernels, &of_a)
            } else {
                self.b.decode(b_stored, b_scales, &mut of_b);
                Distance::by(kernels, &of_a, &of_b)
            };
        }
    }
}

/// Values per row of two tables whose rows can be compared by value, whatever formats they have.
///
/// # Errors
/// A table without a value format; rows of different lengths; different numbers of rows.
pub fn comparable_dim(a: &Table, b: &Table) -> Result<usize> {
    let (a_dim, b_dim) = (a.require_dim()?, b.require_dim()?);
    let names = || (a.name().to_owned(), b.name().to_owned());
    if a_dim != b_dim {
        let (a, b) = names();
        return Err(VerifyError::Dims { a, b, a_dim, b_dim }.into());
    }
    if a.rows() != b.rows() {
        let ((a_name, b_name), a_rows, b_rows) = (names(), a.rows(), b.rows());
        return Err(VerifyError::Rows { a: a_name, b: b_name, a_rows, b_rows }.into());
    }
    Ok(a_dim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_plain_geometry() {
        let distance = Distance::of(&[3.0, 0.0, 4.0], &[3.0, 4.0, 4.0]);
        assert!(distance.changed);
        assert_eq!((distance.norm_a, distance.norm_b), (5.0, 41f64.sqrt()));
        assert_eq!((distance.l2, distance.max_abs), (4.0, 4.0));
        assert!((distance.cosine.unwrap() - 25.0 / (5.0 * 41f64.sqrt())).abs() < 1e-15);
        let same = Distance::of(&[1.5, -2.0], &[1.5, -2.0]);
        assert_eq!((same.changed, same.l2, same.max_abs), (false, 0.0, 0.0));
        assert_eq!(Distance::of(&[0.0, -0.0], &[1.0, 0.0]).cosine, None);
    }

    #[test]
    fn a_value_that_is_not_finite_shows_and_equals_itself() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let same = Distance::of(&[value, 1.0], &[value, 1.0]);
            assert_eq!((same.changed, same.l2, same.max_abs, same.cosine), (false, 0.0, 0.0, None));
            let other = Distance::of(&[value, 1.0], &[value, 3.0]);
            assert_eq!((other.changed, other.l2, other.max_abs, other.cosine), (true, 2.0, 2.0, None));
            for distance in [Distance::of(&[value, 1.0], &[2.0, 1.0]), Distance::of(&[2.0, 1.0], &[value, 1.0])] {
                assert!(distance.changed && !distance.l2.is_finite() && !distance.max_abs.is_finite());
                assert_eq!(distance.cosine, None);
            }
        }
        assert_eq!(Distance::of(&[f32::INFINITY], &[f32::NEG_INFINITY]).l2, f64::INFINITY);
        // Also when larger differences follow.
        let distance = Distance::of(&[f32::NAN, 1.0], &[0.0, 9.0]);
        assert!(distance.changed && distance.max_abs.is_nan());
    }

    #[test]
    fn a_row_is_no_distance_from_itself_whichever_way_it_is_compared() {
        let finite: Vec<f32> = (0..163).map(|place| (place as f32 - 80.5) * 1e-3).collect();
        for odd in [0.25, f32::NAN, f32::INFINITY] {
            let mut row = finite.clone();
            row[17] = odd;
            let (compared, known) = (Distance::of(&row, &row), Distance::of_equal(Kernels::new(), &row));
            assert_eq!(format!("{compared:?}"), format!("{known:?}"));
            assert_eq!((known.changed, known.l2, known.max_abs), (false, 0.0, 0.0));
            assert_eq!(known.cosine.is_some(), odd.is_finite());
        }
    }
}
