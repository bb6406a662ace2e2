//! How far the values of one table lie from those of another, row by row.

use super::error::VerifyError;
use crate::error::Result;
use crate::table::Table;

/// How far two vectors of one length lie apart. Sums are in float64. Where a value is NaN, so are norm, distance and
/// largest difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    /// Whether any value differs; a NaN equals a NaN.
    pub differs: bool,
    /// Euclidean norm of the first.
    pub norm_a: f64,
    /// And of the second.
    pub norm_b: f64,
    /// Euclidean distance.
    pub l2: f64,
    /// Cosine of the angle between them; `None` where one of them is zero.
    pub cosine: Option<f64>,
    /// Largest absolute difference of two values.
    pub max_abs: f32,
}

impl Distance {
    /// The distance of `b` from `a`.
    pub fn of(a: &[f32], b: &[f32]) -> Distance {
        let (mut differs, mut max_abs) = (false, 0f32);
        let (mut aa, mut bb, mut ab, mut dd) = (0f64, 0f64, 0f64, 0f64);
        for (&x, &y) in a.iter().zip(b) {
            differs |= x != y && !(x.is_nan() && y.is_nan());
            let difference = (x - y).abs();
            // Not `max`, which drops a NaN.
            if difference > max_abs || difference.is_nan() {
                max_abs = difference;
            }
            let (x, y) = (f64::from(x), f64::from(y));
            aa += x * x;
            bb += y * y;
            ab += x * y;
            dd += (x - y) * (x - y);
        }
        let (norm_a, norm_b) = (aa.sqrt(), bb.sqrt());
        let norms = norm_a * norm_b;
        let cosine = (norms != 0.0).then(|| (ab / norms).clamp(-1.0, 1.0));
        Distance { differs, norm_a, norm_b, l2: dd.sqrt(), cosine, max_abs }
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
        assert!(distance.differs);
        assert_eq!((distance.norm_a, distance.norm_b), (5.0, 41f64.sqrt()));
        assert_eq!((distance.l2, distance.max_abs), (4.0, 4.0));
        assert!((distance.cosine.unwrap() - 25.0 / (5.0 * 41f64.sqrt())).abs() < 1e-15);
        let same = Distance::of(&[1.5, -2.0], &[1.5, -2.0]);
        assert_eq!((same.differs, same.l2, same.max_abs), (false, 0.0, 0.0));
        assert_eq!(Distance::of(&[0.0, -0.0], &[1.0, 0.0]).cosine, None);
    }

    #[test]
    fn a_nan_shows_and_equals_itself() {
        let distance = Distance::of(&[f32::NAN, 1.0], &[f32::NAN, 1.0]);
        assert!(!distance.differs && distance.l2.is_nan() && distance.max_abs.is_nan());
        // Also when larger differences follow.
        let distance = Distance::of(&[f32::NAN, 1.0], &[0.0, 9.0]);
        assert!(distance.differs && distance.max_abs.is_nan());
    }
}
