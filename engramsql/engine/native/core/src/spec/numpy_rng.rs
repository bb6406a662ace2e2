//! The part of numpy's `default_rng(seed).integers` that the Engram families draw their multipliers with.
//!
//! SeedSequence (O'Neill's seed_seq_fe) feeds PCG64 (XSL-RR 128/64); bounded draws use Lemire's method. Restated from
//! numpy 2.4 and checked against its output.

/// PCG64 seeded as numpy seeds it.
pub(super) struct Pcg64 {
    state: u128,
    increment: u128,
}

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

/// The running multiplicative hash of SeedSequence.
struct SeedHash {
    constant: u32,
    step: u32,
}

impl SeedHash {
    fn mix(&mut self, value: u32) -> u32 {
        let mixed = value ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.step);
        let mixed = mixed.wrapping_mul(self.constant);
        mixed ^ (mixed >> 16)
    }
}

fn combine(x: u32, y: u32) -> u32 {
    let r = x.wrapping_mul(0xCA01_F9DD).wrapping_sub(y.wrapping_mul(0x4973_F715));
    r ^ (r >> 16)
}

fn pool(words: &[u32]) -> [u32; 4] {
    let mut hash = SeedHash { constant: 0x43B0_D7E5, step: 0x931E_8875 };
    let mut pool = [0; 4];
    for (i, slot) in pool.iter_mut().enumerate() {
        *slot = hash.mix(words.get(i).copied().unwrap_or(0));
    }
    for a in 0..4 {
        for b in 0..4 {
            if a != b {
                pool[b] = combine(pool[b], hash.mix(pool[a]));
            }
        }
    }
    for &word in words.iter().skip(4) {
        for slot in &mut pool {
            *slot = combine(*slot, hash.mix(word));
        }
    }
    pool
}

impl Pcg64 {
    /// `numpy.random.default_rng(seed)`.
    pub(super) fn new(seed: u128) -> Self {
        let mut words = Vec::with_capacity(4);
        let mut rest = seed;
        while rest > 0 {
            // Truncation intended: little-endian 32-bit words.
            words.push(rest as u32);
            rest >>= 32;
        }
        Self::from_words(&words)
    }

    /// The same for a seed of any length, as 32-bit words, least significant first, without leading zero words.
    pub(super) fn from_words(words: &[u32]) -> Self {
        let pool = pool(words);
        let mut hash = SeedHash { constant: 0x8B51_F9DD, step: 0x58F3_8DED };
        let mut halves = [0_u64; 4];
        for (i, half) in halves.iter_mut().enumerate() {
            let low = hash.mix(pool[2 * i % 4]);
            let high = hash.mix(pool[(2 * i + 1) % 4]);
            *half = u64::from(low) | u64::from(high) << 32;
        }
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let increment = wide(halves[2], halves[3]) << 1 | 1;
        let state = increment.wrapping_add(wide(halves[0], halves[1]));
        let mut rng = Self { state, increment };
        rng.step();
        rng
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// The next raw 64-bit output.
    pub(super) fn next_u64(&mut self) -> u64 {
        self.step();
        // Truncations intended: the halves of the state, and its top six bits.
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// `integers(0, high, dtype=int64)`, one value. Only for `high > 2^32`: below, numpy takes another path.
    pub(super) fn below(&mut self, high: u64) -> u64 {
        debug_assert!(high > 1 << 32);
        let threshold = high.wrapping_neg() % high;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(high);
            // Lemire: accept unless the low half falls into the part that would be counted once too often.
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn words(decimal: &str) -> Vec<u32> {
        let mut words: Vec<u32> = Vec::new();
        for digit in decimal.bytes() {
            let mut carry = u64::from(digit - b'0');
            for word in &mut words {
                let value = u64::from(*word) * 10 + carry;
                *word = value as u32;
                carry = value >> 32;
            }
            if carry > 0 {
                words.push(carry as u32);
            }
        }
        words
    }

    fn texts(value: &Value) -> Vec<u64> {
        let items = value.as_array().unwrap();
        let parse = |item: &Value| item.as_u64().unwrap_or_else(|| item.as_str().unwrap().parse().unwrap());
        items.iter().map(parse).collect()
    }

    #[test]
    fn streams_and_bounded_draws_equal_numpys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../tests/golden/numpy_rng.json");
        let doc: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut cases = doc["cases"].as_array().unwrap().clone();
        assert!(cases.len() >= 24);
        cases.push(doc["rejection_case"].clone());
        for case in &cases {
            let seed = case["seed"].as_str().unwrap();
            let fresh = || Pcg64::from_words(&words(seed));
            if let Ok(small) = seed.parse::<u128>() {
                assert_eq!(Pcg64::new(small).next_u64(), fresh().next_u64());
            }
            if case["raw"].is_array() {
                let mut rng = fresh();
                let raw = texts(&case["raw"]);
                assert_eq!(raw, raw.iter().map(|_| rng.next_u64()).collect::<Vec<_>>(), "seed {seed}");
            }
            let high: u64 = case["high"].as_str().unwrap().parse().unwrap();
            let values = texts(&case["values"]);
            let mut rng = fresh();
            let drawn: Vec<u64> = values.iter().map(|_| rng.below(high)).collect();
            assert_eq!(values, drawn, "seed {seed}");
            if case["multipliers"].is_array() {
                let odd: Vec<u64> = drawn.iter().map(|r| 2 * r + 1).collect();
                assert_eq!(texts(&case["multipliers"]), odd);
            }
        }
    }
}
