//! SplitMix64, the mixer behind Qwen's multipliers (Steele, Lea, Flood 2014; constants as in vLLM 0.33.0).

/// The golden-ratio increment.
pub(super) const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// One SplitMix64 output for state `v`; the increment is added inside.
pub(super) fn splitmix64(v: u64) -> u64 {
    let mut z = v.wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_from_zero_is_the_published_one() {
        // First outputs of SplitMix64 seeded with 0, as quoted in many generators' test vectors.
        assert_eq!(splitmix64(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(splitmix64(GAMMA), 0x6E78_9E6A_A1B9_65F4);
    }
}
