//! How far the values of one table lie from those of another, row by row.

use super::error::VerifyError;
use crate::error::Result;
use crate::table::Table;

/// How far two vectors of one length lie apart. Sums are in float64. Values that are equal, NaN and infinite ones among
/// them, are no distance apart; where one is NaN or infinite and the other is not the same, distance and largest difference
/// are NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// The distance of `b` from `a`.
    pub fn of(a: &[f32], b: &[f32]) -> Distance {
        let (mut changed, mut max_abs) = (false, 0f32);
        let (mut aa, mut bb, mut ab, mut dd) = (0f64, 0f64, 0f64, 0f64);
        for (&x, &y) in a.iter().zip(b) {
            let (x_wide, y_wide) = (f64::from(x), f64::from(y));
            aa += x_wide * x_wide;
            bb += y_wide * y_wide;
            ab += x_wide * y_wide;
            // Infinity less infinity would be NaN.
            if x == y || (x.is_nan() && y.is_nan()) {
                continue;
            }
            changed = true;
            dd += (x_wide - y_wide) * (x_wide - y_wide);
            let difference = (x - y).abs();
            // Not `max`, which drops a NaN.
            if difference > max_abs || difference.is_nan() {
                max_abs = difference;
            }
        }
        let (norm_a, norm_b) = (aa.sqrt(), bb.sqrt());
        let norms = norm_a * norm_b;
        let cosine = (norms != 0.0 && norms.is_finite()).then(|| (ab / norms).clamp(-1.0, 1.0));
        Distance { changed, norm_a, norm_b, l2: dd.sqrt(), cosine, max_abs }
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
}
