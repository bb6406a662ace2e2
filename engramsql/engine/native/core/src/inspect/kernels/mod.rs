//! The loops over decoded values, compiled once for each level of instructions. What they compute is in [`lanes`].

mod lanes;

use crate::cpu::{self, Level};
pub(super) use lanes::{Glance, Products, Sums};

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
            use super::lanes::{self, Apart, Glance, LANES, Products, Running, Sums};
            use super::Table;

            pub(super) static TABLE: Table = Table { sums, deviations, squares, glance, products };

            $(#[target_feature(enable = $features)])?
            fn sums(values: &[f32], dim: usize, squares: &mut [f64]) -> Sums {
                let mut all = Running::new();
                for (row, out) in values.chunks_exact(dim).zip(squares) {
                    let mut squares = [0.0; LANES];
                    let (whole, rest) = row.as_chunks();
                    add(whole, &mut all, &mut squares);
                    lanes::add_rest(rest, &mut all, &mut squares);
                    *out = lanes::folded(squares, |a, b| a + b);
                }
                all.sums()
            }

            $(#[target_feature(enable = $features)])?
            #[inline(never)]
            fn add(values: &[[f32; LANES]], all: &mut Running, squares: &mut [f64; LANES]) {
                lanes::add(values, all, squares);
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
                lanes::folded(squares, |a, b| a + b)
            }

            $(#[target_feature(enable = $features)])?
            #[inline(never)]
            fn deviate(values: &[[f32; LANES]], mean: f64, squares: &mut [f64; LANES]) {
                lanes::deviate(values, mean, squares);
            }

            $(#[target_feature(enable = $features)])?
            fn squares(row: &[f32]) -> f64 {
                let mut squares = [0.0; LANES];
                let (whole, rest) = row.as_chunks();
                square(whole, &mut squares);
                for (square, &value) in squares.iter_mut().zip(rest) {
                    *square += f64::from(value) * f64::from(value);
                }
                lanes::folded(squares, |a, b| a + b)
            }

            $(#[target_feature(enable = $features)])?
            #[inline(never)]
            fn square(values: &[[f32; LANES]], squares: &mut [f64; LANES]) {
                lanes::square(values, squares);
            }

            $(#[target_feature(enable = $features)])?
            fn glance(row: &[f32]) -> Glance {
                lanes::glance(row)
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
                lanes::compare(a, b, all);
            }
        }
    };
}

compiled_for!(portable);
#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, "avx2");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, "avx512f,avx512bw,avx512dq,avx512vl");

#[cfg(test)]
mod tests;
