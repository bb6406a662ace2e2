//! Sums, comparisons and the like over values, lane by lane. Plain Rust: the compiler turns the lanes into registers as wide
//! as the level has that it compiles them for.
//!
//! Every level adds in the same order ([`LANES`] running sums, folded by halves) and nothing is contracted, so all give the
//! same bits.

/// Running sums of each kind: a register of the widest level holds as many float32.
pub(super) const LANES: usize = 16;

/// What a block of finite values adds up to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::inspect) struct Sums {
    /// Of the values.
    pub(in crate::inspect) sum: f64,
    /// Smallest value; infinity for none.
    pub(in crate::inspect) min: f32,
    /// Largest value; minus infinity for none.
    pub(in crate::inspect) max: f32,
    /// Values that are zero, of either sign.
    pub(in crate::inspect) zeros: u64,
}

/// What a row shows at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::inspect) struct Glance {
    /// Largest value as bits without their sign: 0 for a row of zeros, those of infinity or more if any is not finite.
    pub(in crate::inspect) largest: u32,
    /// Whether every value has the bits of the first and is no NaN.
    pub(in crate::inspect) equal: bool,
}

/// What two rows of finite values add up to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::inspect) struct Products {
    /// Sum of the squares of the first row: the bits that [`Kernels::sums`](super::Kernels::sums) gives.
    pub(in crate::inspect) aa: f64,
    /// Of the second.
    pub(in crate::inspect) bb: f64,
    /// Sum of the products.
    pub(in crate::inspect) ab: f64,
    /// Sum of the squares of the differences.
    pub(in crate::inspect) dd: f64,
    /// Largest absolute difference.
    pub(in crate::inspect) largest: f32,
    /// Whether any value differs.
    pub(in crate::inspect) differ: bool,
}

/// Adds the lanes by halves, each of them at once.
#[inline(always)]
pub(super) fn folded<T: Copy>(lanes: [T; LANES], add: impl Fn(T, T) -> T) -> T {
    let lanes: [T; 8] = std::array::from_fn(|lane| add(lanes[lane], lanes[lane + 8]));
    let lanes: [T; 4] = std::array::from_fn(|lane| add(lanes[lane], lanes[lane + 4]));
    let lanes: [T; 2] = std::array::from_fn(|lane| add(lanes[lane], lanes[lane + 2]));
    add(lanes[0], lanes[1])
}

#[derive(Clone, Copy)]
pub(super) struct Running {
    sum: [f64; LANES],
    min: [f32; LANES],
    max: [f32; LANES],
    zeros: [u32; LANES],
}

impl Running {
    pub(super) fn new() -> Running {
        Running { sum: [0.0; LANES], min: [f32::INFINITY; LANES], max: [f32::NEG_INFINITY; LANES], zeros: [0; LANES] }
    }

    #[inline(always)]
    pub(super) fn sums(&self) -> Sums {
        Sums {
            sum: folded(self.sum, |a, b| a + b),
            min: folded(self.min, |a, b| if b < a { b } else { a }),
            max: folded(self.max, |a, b| if b > a { b } else { a }),
            zeros: self.zeros.iter().map(|&zeros| u64::from(zeros)).sum(),
        }
    }
}

#[inline(always)]
pub(super) fn add(values: &[[f32; LANES]], all: &mut Running, squares: &mut [f64; LANES]) {
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
pub(super) fn add_rest(values: &[f32], all: &mut Running, squares: &mut [f64; LANES]) {
    for (lane, &value) in values.iter().enumerate() {
        all.sum[lane] += f64::from(value);
        squares[lane] += f64::from(value) * f64::from(value);
        all.min[lane] = if value < all.min[lane] { value } else { all.min[lane] };
        all.max[lane] = if value > all.max[lane] { value } else { all.max[lane] };
        all.zeros[lane] += u32::from(value == 0.0);
    }
}

#[inline(always)]
pub(super) fn deviate(values: &[[f32; LANES]], mean: f64, squares: &mut [f64; LANES]) {
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
pub(super) fn square(values: &[[f32; LANES]], squares: &mut [f64; LANES]) {
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
pub(super) fn glance(row: &[f32]) -> Glance {
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
pub(super) struct Apart {
    aa: [f64; LANES],
    bb: [f64; LANES],
    ab: [f64; LANES],
    dd: [f64; LANES],
    largest: [f32; LANES],
    differ: [u32; LANES],
}

impl Apart {
    #[inline(always)]
    pub(super) fn products(&self) -> Products {
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
pub(super) fn compare(a: &[[f32; LANES]], b: &[[f32; LANES]], all: &mut Apart) {
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
