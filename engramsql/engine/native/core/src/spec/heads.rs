//! Heads of a table, and the arithmetic from one mixed n-gram to its row ids.

use super::error::SpecError;
use super::kernels::Wide;
use crate::cpu::Level;

/// Remainder by a fixed divisor without a division, for any 64-bit dividend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Divisor {
    size: u64,
    /// floor(2^64 / size); divisors are at least 2, so it fits.
    inverse: u64,
}

impl Divisor {
    /// `size` must be at least 2 and at most 2^63.
    pub(super) fn new(size: u64) -> Self {
        debug_assert!((2..=1 << 63).contains(&size));
        // Fits: size >= 2 makes the quotient at most 2^63.
        let inverse = ((1_u128 << 64) / u128::from(size)) as u64;
        Self { size, inverse }
    }

    /// `value mod size`. With inverse = (2^64 - e) / size and e < size, the estimated quotient is at most one short.
    #[inline(always)]
    pub(super) fn remainder(self, value: u64) -> u64 {
        let quotient = ((u128::from(value) * u128::from(self.inverse)) >> 64) as u64;
        let rest = value - quotient * self.size;
        if rest >= self.size { rest - self.size } else { rest }
    }
}

/// Constants of one table that do not depend on how a family mixes tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heads {
    /// n-gram order of each head.
    pub(super) orders: Vec<u32>,
    /// Buckets of each head.
    pub(super) sizes: Vec<u64>,
    /// First row id of each head.
    pub(super) offsets: Vec<u64>,
    /// Sum of the sizes.
    pub(super) rows: u64,
}

impl Heads {
    /// Heads in order with their sizes; `remedy` is the config field that makes them smaller.
    pub(super) fn new(
        family: &'static str,
        orders: Vec<u32>,
        sizes: Vec<u64>,
        remedy: &'static str,
    ) -> Result<Self, SpecError> {
        let mut offsets = Vec::with_capacity(sizes.len());
        let mut rows = 0_u64;
        for &size in &sizes {
            offsets.push(rows);
            rows = rows.checked_add(size).filter(|&sum| i64::try_from(sum).is_ok()).ok_or(SpecError::Overflow {
                family,
                what: "the sum of the head sizes",
                remedy,
            })?;
        }
        Ok(Self { orders, sizes, offsets, rows })
    }
}

/// One head as the inner loop needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    pub(super) divisor: Divisor,
    pub(super) offset: u64,
}

impl Bucket {
    pub(super) fn of(heads: &Heads) -> Vec<Bucket> {
        let pairs = heads.sizes.iter().zip(&heads.offsets);
        pairs.map(|(&size, &offset)| Bucket { divisor: Divisor::new(size), offset }).collect()
    }

    /// Row id of a hash value. Head offset + bucket is below the sum of the head sizes, which fits an i64.
    #[inline(always)]
    pub(super) fn row(&self, value: u64) -> i64 {
        (self.divisor.remainder(value) + self.offset) as i64
    }
}

/// XOR of token x multiplier, order by order: the hash of the Qwen and Engram families.
#[derive(Debug)]
pub(super) struct Mixer {
    multipliers: Vec<u64>,
    /// (window positions mixed in before these heads, the heads).
    orders: Vec<(usize, Vec<Bucket>)>,
    heads: usize,
    wide: Option<Wide>,
}

/// Tokens from which the kernels for many pay.
const MANY: usize = 4;

impl Mixer {
    /// Products must stay below 2^63 for every token the caller lets in; then signed and unsigned readings agree.
    ///
    /// `oldest_first` says in which order the caller's windows lie; [`wide`](Self::wide) takes them newest first.
    pub(super) fn new(level: Level, multipliers: &[i64], heads: &Heads, oldest_first: bool) -> Self {
        let mut orders: Vec<(usize, Vec<Bucket>)> = Vec::new();
        for (&order, bucket) in heads.orders.iter().zip(Bucket::of(heads)) {
            let order = order as usize;
            match orders.last_mut() {
                Some((last, buckets)) if *last == order => buckets.push(bucket),
                _ => orders.push((order, vec![bucket])),
            }
        }
        let multipliers: Vec<u64> = multipliers.iter().map(|m| m.unsigned_abs()).collect();
        let wide = Wide::new(level, &multipliers, heads, oldest_first);
        Self { multipliers, orders, heads: heads.sizes.len(), wide }
    }

    /// What hashes this many tokens faster than [`rows`](Self::rows) one by one, if anything does.
    pub(super) fn wide(&self, tokens: usize) -> Option<&Wide> {
        self.wide.as_ref().filter(|_| tokens >= MANY)
    }

    /// Window positions: one per multiplier.
    pub(super) fn window(&self) -> usize {
        self.multipliers.len()
    }

    pub(super) fn heads(&self) -> usize {
        self.heads
    }

    /// Row ids of one window (`window()` values) into `heads()` slots.
    #[inline(always)]
    pub(super) fn rows(&self, window: &[u64], out: &mut [i64]) {
        let mut terms = window.iter().zip(&self.multipliers);
        let mut slots = out.iter_mut();
        let (mut mixed, mut mixed_in) = (0, 0);
        for (order, buckets) in &self.orders {
            for (token, multiplier) in terms.by_ref().take(order - mixed_in) {
                mixed ^= token.wrapping_mul(*multiplier);
            }
            mixed_in = *order;
            for (bucket, slot) in buckets.iter().zip(slots.by_ref()) {
                *slot = bucket.row(mixed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::splitmix::splitmix64;

    #[test]
    fn remainders_equal_the_operator() {
        let divisors = [2, 3, 7, 97, 16_000_057, 20_000_171, (1 << 32) - 5, (1 << 32) + 15, (1 << 63) - 25, 1 << 63];
        for size in divisors {
            let divisor = Divisor::new(size);
            let edges = [0, 1, size - 1, size, size + 1, 2 * (size - 1), (1 << 63) - 1, u64::MAX - 1, u64::MAX];
            let random = (0..20_000).map(splitmix64);
            for value in edges.into_iter().chain(random) {
                assert_eq!(divisor.remainder(value), value % size, "{value} mod {size}");
            }
        }
    }

    #[test]
    fn a_sum_beyond_63_bits_is_refused() {
        let error = Heads::new("x", vec![2, 2], vec![1 << 62, 1 << 62], "base").unwrap_err();
        assert!(matches!(error, SpecError::Overflow { .. }));
    }
}
