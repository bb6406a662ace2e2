//! Choosing blocks and rows to look at: others at each run, so that repeated samples come to see everything.

use std::hash::{BuildHasher, RandomState};

/// splitmix64 (Steele, Lea and Flood 2014) from a seed of the process.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Random {
        Random(RandomState::new().hash_one(0_u64))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0. No more uneven than one part in 2^64.
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Up to `count` numbers below `n`, in order, the first and the last among them; all of them if there are no more.
    pub(super) fn sample(&mut self, n: u64, count: u64) -> Vec<u64> {
        if n <= count {
            return (0..n).collect();
        }
        let mut chosen = vec![0, n - 1];
        // A number drawn twice is looked at once.
        chosen.extend((2..count).map(|_| self.below(n)));
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_hold_both_ends_and_nothing_outside() {
        let mut random = Random::new();
        assert_eq!(random.sample(0, 5), [0; 0]);
        assert_eq!(random.sample(3, 5), [0, 1, 2]);
        for n in [6, 100, 1 << 40] {
            let chosen = random.sample(n, 5);
            assert!(chosen.len() >= 2 && chosen.len() <= 5 && chosen.is_sorted());
            assert_eq!((chosen[0], chosen[chosen.len() - 1]), (0, n - 1));
        }
    }
}
