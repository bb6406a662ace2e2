//! Primality and the search for head sizes.

use std::collections::{HashMap, HashSet};

/// Deterministic for every u64 (Sorenson and Webster 2015: the first twelve primes decide below 3.3e24).
const WITNESSES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

/// Whether `n` is prime.
pub fn is_prime(n: u64) -> bool {
    if n < 2 {
        return false;
    }
    for p in WITNESSES {
        if n.is_multiple_of(p) {
            return n == p;
        }
    }
    let shift = (n - 1).trailing_zeros();
    let odd = (n - 1) >> shift;
    WITNESSES.iter().all(|&base| {
        let mut x = pow_mod(base, odd, n);
        if x == 1 || x == n - 1 {
            return true;
        }
        for _ in 1..shift {
            x = mul_mod(x, x, n);
            if x == n - 1 {
                return true;
            }
        }
        false
    })
}

/// The smallest prime above `n`, or `None` beyond the largest 64-bit prime.
pub fn next_prime(n: u64) -> Option<u64> {
    let mut candidate = n.checked_add(1)?;
    if candidate <= 2 {
        return Some(2);
    }
    candidate |= 1;
    while !is_prime(candidate) {
        candidate = candidate.checked_add(2)?;
    }
    Some(candidate)
}

/// `a * b mod n` without overflow.
pub(super) fn mul_mod(a: u64, b: u64, n: u64) -> u64 {
    // The remainder of a division by a u64 fits a u64.
    (u128::from(a) * u128::from(b) % u128::from(n)) as u64
}

fn pow_mod(base: u64, mut exponent: u64, n: u64) -> u64 {
    let (mut result, mut square) = (1, base % n);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = mul_mod(result, square, n);
        }
        square = mul_mod(square, square, n);
        exponent >>= 1;
    }
    result
}

/// Primes not handed out before, across the layers and orders of one model (hashing rule of the Engram families).
#[derive(Default)]
pub(super) struct UnusedPrimes {
    used: HashSet<u64>,
    /// Start -> last prime drawn from it: every prime between the two is used, so a later search may begin there.
    resume: HashMap<u64, u64>,
}

impl UnusedPrimes {
    /// The next `count` unused primes >= `base`, ascending; `None` if 64 bits do not hold them.
    pub(super) fn draw(&mut self, base: u64, count: u64) -> Option<Vec<u64>> {
        let mut current = self.resume.get(&base).copied().unwrap_or(base.saturating_sub(1));
        let mut drawn = Vec::new();
        for _ in 0..count {
            loop {
                current = next_prime(current)?;
                if self.used.insert(current) {
                    break;
                }
            }
            drawn.push(current);
        }
        self.resume.insert(base, current);
        Some(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sieve_agrees_up_to_a_million() {
        const LIMIT: usize = 1_000_000;
        let mut composite = vec![false; LIMIT];
        let mut last = 0;
        for n in 2..LIMIT {
            if composite[n] {
                assert!(!is_prime(n as u64), "{n}");
                continue;
            }
            assert!(is_prime(n as u64), "{n}");
            assert_eq!(next_prime(last), Some(n as u64));
            last = n as u64;
            for multiple in (n * n..LIMIT).step_by(n) {
                composite[multiple] = true;
            }
        }
        assert!(!is_prime(0) && !is_prime(1));
    }

    #[test]
    fn a_segment_sieve_agrees_above_32_bits() {
        // Odd numbers from 2^40 on, sieved with all primes up to 2^20 + 1.
        let (start, span) = (1_u64 << 40, 200_000_u64);
        let mut composite = vec![false; span as usize];
        let mut p = 2;
        while p * p <= start + span {
            let mut multiple = start.div_ceil(p) * p;
            while multiple < start + span {
                composite[(multiple - start) as usize] = true;
                multiple += p;
            }
            p = next_prime(p).unwrap();
        }
        for (i, &is_composite) in composite.iter().enumerate() {
            assert_eq!(is_prime(start + i as u64), !is_composite, "{}", start + i as u64);
        }
    }

    #[test]
    fn strong_pseudoprimes_and_the_end_of_the_range() {
        // Composite, yet a strong pseudoprime to bases 2, 3, 5 and 7; to 2, 7 and 61; to the first nine primes.
        for n in [3_215_031_751, 4_759_123_141, 3_825_123_056_546_413_051] {
            assert!(!is_prime(n), "{n}");
        }
        assert!(is_prime(18_446_744_073_709_551_557));
        assert_eq!(next_prime(18_446_744_073_709_551_556), Some(18_446_744_073_709_551_557));
        assert_eq!(next_prime(18_446_744_073_709_551_557), None);
        assert_eq!(next_prime(u64::MAX), None);
    }

    #[test]
    fn unused_primes_skip_what_any_start_has_taken() {
        let mut pool = UnusedPrimes::default();
        assert_eq!(pool.draw(10, 3).unwrap(), [11, 13, 17]);
        assert_eq!(pool.draw(13, 2).unwrap(), [19, 23]);
        assert_eq!(pool.draw(10, 2).unwrap(), [29, 31]);
        assert_eq!(pool.draw(0, 2).unwrap(), [2, 3]);
    }
}
