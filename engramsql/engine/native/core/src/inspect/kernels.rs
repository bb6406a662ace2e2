//! The loops over decoded values, compiled once for each level of instructions.
//!
//! Every level adds in the same order ([`LANES`] running sums, folded by halves) and nothing is contracted, so all give the
//! same bits. Plain Rust: the compiler turns the lanes into registers as wide as the level has.

use crate::cpu::{self, Level};

/// Running sums of each kind: a register of the widest level holds as many float32.
const LANES: usize = 16;

/// What a block of finite values adds up to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sums {
    /// Of the values.
    pub(super) sum: f64,
    /// Smallest value; infinity for none.
    pub(super) min: f32,
    /// Largest value; minus infinity for none.
    pub(super) max: f32,
    /// Values that are zero, of either sign.
    pub(super) zeros: u64,
}

/// What a row shows at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glance {
    /// Largest value as bits without their sign: 0 for a row of zeros, those of infinity or more if any is not finite.
    pub(super) largest: u32,
    /// Whether every value has the bits of the first and is no NaN.
    pub(super) equal: bool,
}

/// What two rows of finite values add up to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Products {
    /// Sum of the squares of the first row: the bits that [`Kernels::sums`] gives.
    pub(super) aa: f64,
    /// Of the second.
    pub(super) bb: f64,
    /// Sum of the products.
    pub(super) ab: f64,
    /// Sum of the squares of the differences.
    pub(super) dd: f64,
    /// Largest absolute difference.
    pub(super) largest: f32,
    /// Whether any value differs.
    pub(super) differ: bool,
}

/// The loops of one level. They may run only on a processor that has it.
struct Table {
    sums: unsafe fn(&[f32], usize, &mut [f64]) -> Sums,
    deviations: unsafe fn(&[f32], f64) -> f64,
    squares: unsafe fn(&[f32]) -> f64,
    glance: unsafe fn(&[f32]) -> Glance,
    products: unsafe fn(&[f32], &[f32]) -> Products,
}

/// The loops of one level.
#[derive(Clone, Copy)]
pub(super) struct Kernels(&'static Table);

impl Kernels {
    /// Those of [`cpu::level`].
    pub(super) fn new() -> Kernels {
        // A table refuses to open while the setting names no level that can run.
        Kernels::at(cpu::level().unwrap_or(Level::Portable))
    }

    fn at(level: Level) -> Kernels {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 if level.is_available() => Kernels(&avx512::TABLE),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 if level.is_available() => Kernels(&avx2::TABLE),
            // NEON is part of its base architecture: portable code uses it.
            _ => Kernels(&portable::TABLE),
        }
    }

    /// Sums of whole rows of `dim` values, and the sum of squares of each row. A value that is not finite makes the sum of
    /// squares of its row so, and then the rest says nothing; squares of finite float32 never overflow a double.
    pub(super) fn sums(self, values: &[f32], dim: usize, squares: &mut [f64]) -> Sums {
        // SAFETY: the level was found available when `self` was made.
        unsafe { (self.0.sums)(values, dim, squares) }
    }

    /// Sum of the squares of the differences from `mean`, of finite values.
    pub(super) fn deviations(self, values: &[f32], mean: f64) -> f64 {
        // SAFETY: the level was found available when `self` was made.
        unsafe { (self.0.deviations)(values, mean) }
    }

    /// Sum of the squares of one row, as [`sums`](Self::sums) gives it.
    pub(super) fn squares(self, row: &[f32]) -> f64 {
        // SAFETY: the level was found available when `self` was made.
        unsafe { (self.0.squares)(row) }
    }

    /// Looks at one row.
    pub(super) fn glance(self, row: &[f32]) -> Glance {
        // SAFETY: the level was found available when `self` was made.
        unsafe { (self.0.glance)(row) }
    }

    /// Compares two rows of one length. A value that is not finite makes the sum of squares of its row so, and then the rest
    /// says nothing.
    pub(super) fn products(self, a: &[f32], b: &[f32]) -> Products {
        // SAFETY: the level was found available when `self` was made.
        unsafe { (self.0.products)(a, b) }
    }
}

/// A level: its module has the loops over whole registers, apart from what comes before and after them. Merged with that,
/// the compiler no longer sees that the lanes lie side by side.
macro_rules! compiled_for {
    ($level:ident $(, $features:literal)?) => {
        mod $level {
            use super::{Apart, Glance, LANES, Products, Running, Sums, Table};

            pub(super) static TABLE: Table = Table { sums, deviations, squares, glance, products };

            $(#[target_feature(enable = $features)])?
            fn sums(values: &[f32], dim: usize, squares: &mut [f64]) -> Sums {
                let mut all = Running::new();
                for (row, out) in values.chunks_exact(dim).zip(squares) {
                    let mut squares = [0.0; LANES];
                    let (whole, rest) = row.as_chunks();
                    add(whole, &mut all, &mut squares);
                    super::add_rest(rest, &mut all, &mut squares);
                    *out = super::folded(squares, |a, b| a + b);
                }
                all.sums()
            }

            $(#[target_feature(enable = $features)])?
            #[inline(never)]
            fn add(values: &[[f32; LANES]], all: &mut Running, squares: &mut [f64; LANES]) {
                super::add(values, all, squares);
            }

            $(#[target_feature(enable = $features)])?
            fn deviations(values: &[f32], mean: f64) -> f64 {
                let mut squares = [0.0; LANES];
                let (whole, rest) = values.as_chunks();
                deviate(whole, mean, &mut squares);
                for (square, &value) in squares.iter_mut().zip(rest) {
                    let difference = f64::from(value) - mean;
                    *square += difference * difference;
                }
                super::folded(squares, |a, b| a + b)
            }

            $(#[target_feature(enable = $features)])?
            #[inline(never)]
            fn deviate(values: &[[f32; LANES]], mean: f64, squares: &mut [f64; LANES]) {
                super::deviate(values, mean, squares);
            }

            $(#[target_feature(enable = $features)])?
            fn squares(row: &[f32]) -> f64 {
                let mut squares = [0.0; LANES];
                let (whole, rest) = row.as_chunks();
                square(whole, &mut squares);
                for (square, &value) in squares.iter_mut().zip(rest) {
                    *square += f64::from(value) * f64::from(value);
                }
                super::folded(squares, |a, b| a + b)
            }

            $(#[target_feature(enable = $features)])?
            #[inline(never)]
            fn square(values: &[[f32; LANES]], squares: &mut [f64; LANES]) {
                super::square(values, squares);
            }

            $(#[target_feature(enable = $features)])?
            fn glance(row: &[f32]) -> Glance {
                super::glance(row)
            }

            $(#[target_feature(enable = $features)])?
            fn products(a: &[f32], b: &[f32]) -> Products {
                let mut all = Apart::default();
                let ((a_whole, a_rest), (b_whole, b_rest)) = (a.as_chunks(), b.as_chunks());
                compare(a_whole, b_whole, &mut all);
                if !a_rest.is_empty() {
                    // Zeros add nothing, and are no distance apart.
                    let (mut a_last, mut b_last) = ([0.0; LANES], [0.0; LANES]);
                    a_last[..a_rest.len()].copy_from_slice(a_rest);
                    b_last[..b_rest.len()].copy_from_slice(b_rest);
                    compare(&[a_last], &[b_last], &mut all);
                }
                all.products()
            }

            $(#[target_feature(enable = $features)])?
            #[inline(never)]
            fn compare(a: &[[f32; LANES]], b: &[[f32; LANES]], all: &mut Apart) {
                super::compare(a, b, all);
            }
        }
    };
}

compiled_for!(portable);
#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, "avx2");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, "avx512f,avx512bw,avx512dq,avx512vl");

/// Adds the lanes by halves, each of them at once.
#[inline(always)]
fn folded<T: Copy>(lanes: [T; LANES], add: impl Fn(T, T) -> T) -> T {
    let lanes: [T; 8] = std::array::from_fn(|lane| add(lanes[lane], lanes[lane + 8]));
    let lanes: [T; 4] = std::array::from_fn(|lane| add(lanes[lane], lanes[lane + 4]));
    let lanes: [T; 2] = std::array::from_fn(|lane| add(lanes[lane], lanes[lane + 2]));
    add(lanes[0], lanes[1])
}

#[derive(Clone, Copy)]
struct Running {
    sum: [f64; LANES],
    min: [f32; LANES],
    max: [f32; LANES],
    zeros: [u32; LANES],
}

impl Running {
    fn new() -> Running {
        Running { sum: [0.0; LANES], min: [f32::INFINITY; LANES], max: [f32::NEG_INFINITY; LANES], zeros: [0; LANES] }
    }

    #[inline(always)]
    fn sums(&self) -> Sums {
        Sums {
            sum: folded(self.sum, |a, b| a + b),
            min: folded(self.min, |a, b| if b < a { b } else { a }),
            max: folded(self.max, |a, b| if b > a { b } else { a }),
            zeros: self.zeros.iter().map(|&zeros| u64::from(zeros)).sum(),
        }
    }
}

#[inline(always)]
fn add(values: &[[f32; LANES]], all: &mut Running, squares: &mut [f64; LANES]) {
    let (mut sum, mut min, mut max, mut zeros, mut square) = (all.sum, all.min, all.max, all.zeros, *squares);
    for values in values {
        let wide = values.map(f64::from);
        for lane in 0..LANES {
            sum[lane] += wide[lane];
        }
        for lane in 0..LANES {
            square[lane] += wide[lane] * wide[lane];
        }
        // Comparisons, not `min`, which looks for NaN too.
        for lane in 0..LANES {
            min[lane] = if values[lane] < min[lane] { values[lane] } else { min[lane] };
        }
        for lane in 0..LANES {
            max[lane] = if values[lane] > max[lane] { values[lane] } else { max[lane] };
        }
        for lane in 0..LANES {
            zeros[lane] += u32::from(values[lane] == 0.0);
        }
    }
    *all = Running { sum, min, max, zeros };
    *squares = square;
}

/// The last values of a row, fewer than there are lanes.
fn add_rest(values: &[f32], all: &mut Running, squares: &mut [f64; LANES]) {
    for (lane, &value) in values.iter().enumerate() {
        all.sum[lane] += f64::from(value);
        squares[lane] += f64::from(value) * f64::from(value);
        all.min[lane] = if value < all.min[lane] { value } else { all.min[lane] };
        all.max[lane] = if value > all.max[lane] { value } else { all.max[lane] };
        all.zeros[lane] += u32::from(value == 0.0);
    }
}

#[inline(always)]
fn deviate(values: &[[f32; LANES]], mean: f64, squares: &mut [f64; LANES]) {
    let mut square = *squares;
    for values in values {
        for lane in 0..LANES {
            let difference = f64::from(values[lane]) - mean;
            square[lane] += difference * difference;
        }
    }
    *squares = square;
}

#[inline(always)]
fn square(values: &[[f32; LANES]], squares: &mut [f64; LANES]) {
    let mut square = *squares;
    for values in values {
        for lane in 0..LANES {
            square[lane] += f64::from(values[lane]) * f64::from(values[lane]);
        }
    }
    *squares = square;
}

/// Without lanes: integers are the same in any order, so that the compiler may choose one.
#[inline(always)]
fn glance(row: &[f32]) -> Glance {
    let first = row.first().copied().unwrap_or_default().to_bits();
    let (mut largest, mut differ) = (0, 0);
    for value in row {
        let bits = value.to_bits();
        largest = (bits & (u32::MAX >> 1)).max(largest);
        differ |= bits ^ first;
    }
    Glance { largest, equal: differ == 0 && largest <= f32::INFINITY.to_bits() }
}

/// What the lanes of two rows add up to.
#[derive(Default)]
struct Apart {
    aa: [f64; LANES],
    bb: [f64; LANES],
    ab: [f64; LANES],
    dd: [f64; LANES],
    largest: [f32; LANES],
    differ: [u32; LANES],
}

impl Apart {
    #[inline(always)]
    fn products(&self) -> Products {
        let sum = |lanes| folded(lanes, |a: f64, b| a + b);
        Products {
            aa: sum(self.aa),
            bb: sum(self.bb),
            ab: sum(self.ab),
            dd: sum(self.dd),
            largest: folded(self.largest, |a, b| if b > a { b } else { a }),
            differ: folded(self.differ, |a, b| a | b) != 0,
        }
    }
}

#[inline(always)]
fn compare(a: &[[f32; LANES]], b: &[[f32; LANES]], all: &mut Apart) {
    let Apart { mut aa, mut bb, mut ab, mut dd, mut largest, mut differ } = *all;
    for (a, b) in a.iter().zip(b) {
        let (a_wide, b_wide) = (a.map(f64::from), b.map(f64::from));
        for lane in 0..LANES {
            aa[lane] += a_wide[lane] * a_wide[lane];
        }
        for lane in 0..LANES {
            bb[lane] += b_wide[lane] * b_wide[lane];
        }
        for lane in 0..LANES {
            ab[lane] += a_wide[lane] * b_wide[lane];
        }
        for lane in 0..LANES {
            let difference = a_wide[lane] - b_wide[lane];
            dd[lane] += difference * difference;
        }
        for lane in 0..LANES {
            let difference = (a[lane] - b[lane]).abs();
            largest[lane] = if difference > largest[lane] { difference } else { largest[lane] };
        }
        // Apart from the difference, which a host that flushes subnormal results to zero would lose.
        for lane in 0..LANES {
            differ[lane] |= u32::from(a[lane] != b[lane]);
        }
    }
    *all = Apart { aa, bb, ab, dd, largest, differ };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of very different size, some of them zero, from a small generator.
    fn values(count: usize) -> Vec<f32> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        (0..count)
            .map(|_| match next() % 7 {
                0 => [0.0, -0.0][next() as usize % 2],
                power => (next() as f32 - 8e6) * 10_f32.powi(power as i32 * 4 - 16),
            })
            .collect()
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        for dim in [1, 15, 16, 17, 160, 163] {
            let values = values(7 * dim);
            let (mut expected, mut found) = ([0.0; 7], [0.0; 7]);
            let portable = Kernels::at(Level::Portable);
            let sums = portable.sums(&values, dim, &mut expected);
            let mean = sums.sum / values.len() as f64;
            let zeros = values.iter().filter(|&&value| value == 0.0).count() as u64;
            assert_eq!((sums.zeros, sums.min), (zeros, values.iter().copied().fold(f32::INFINITY, f32::min)), "{dim}");
            for level in cpu::available() {
                let kernels = Kernels::at(level);
                assert_eq!(kernels.sums(&values, dim, &mut found), sums, "{level}, {dim}");
                assert_eq!(found, expected, "{level}, {dim}");
                let deviations = kernels.deviations(&values, mean);
                assert_eq!(deviations.to_bits(), portable.deviations(&values, mean).to_bits(), "{level}, {dim}");
                for (row, square) in values.chunks_exact(dim).zip(&expected) {
                    assert_eq!(kernels.squares(row).to_bits(), square.to_bits(), "{level}, {dim}");
                    assert_eq!(kernels.glance(row), portable.glance(row), "{level}, {dim}");
                    let other = &values[..dim];
                    let products = kernels.products(row, other);
                    assert_eq!(products, portable.products(row, other), "{level}, {dim}");
                    assert_eq!((products.aa, products.bb), (*square, expected[0]), "{level}, {dim}");
                    assert_eq!(products.differ, row != other, "{level}, {dim}");
                    let largest = row.iter().zip(other).fold(0f32, |largest, (a, b)| largest.max((a - b).abs()));
                    assert_eq!(products.largest, largest, "{level}, {dim}");
                }
            }
        }
    }

    #[test]
    fn a_glance_tells_zeros_equal_values_and_what_is_not_finite() {
        for level in cpu::available() {
            let glance = |row: &[f32]| Kernels::at(level).glance(row);
            let infinity = f32::INFINITY.to_bits();
            for dim in [1, 3, 16, 17, 160, 163] {
                let zeros = vec![-0.0f32; dim];
                assert_eq!(glance(&zeros), Glance { largest: 0, equal: true });
                let same = vec![-1.5f32; dim];
                assert_eq!(glance(&same), Glance { largest: 1.5f32.to_bits(), equal: true });
                assert_eq!(glance(&vec![f32::NEG_INFINITY; dim]), Glance { largest: infinity, equal: true });
                let nans = glance(&vec![f32::NAN; dim]);
                assert!(nans.largest > infinity && !nans.equal);
                for place in [0, dim / 2, dim - 1] {
                    let mut row = same.clone();
                    row[place] = f32::NEG_INFINITY;
                    assert_eq!(glance(&row), Glance { largest: infinity, equal: dim == 1 });
                    row[place] = f32::NAN;
                    assert!(glance(&row).largest > infinity && !glance(&row).equal);
                    row[place] = 1e-45;
                    assert_eq!(glance(&row).equal, dim == 1);
                    let mut row = zeros.clone();
                    row[place] = 1e-45;
                    assert_eq!(glance(&row), Glance { largest: 1, equal: dim == 1 });
                }
            }
        }
    }

    #[test]
    fn a_value_that_is_not_finite_shows_in_the_squares_of_its_row() {
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for place in [0, 16, 32] {
                let mut values = vec![f32::MAX; 66];
                values[33 + place] = odd;
                let mut squares = [0.0; 2];
                Kernels::new().sums(&values, 33, &mut squares);
                assert!(squares[0].is_finite() && !squares[1].is_finite(), "{odd} at {place}: {squares:?}");
            }
        }
    }
}
