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
