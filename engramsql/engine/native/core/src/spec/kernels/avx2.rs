//! AVX2 with FMA.
//!
//! value mod size, exactly. The double of the value and the inverse of the size are rounded to nearest, so the rounded
//! product differs from value / size by at most 1/2 + (value / size) x 2^-52, below 3/4 if value / size < 2^50.
//! value - quotient x size then lies between -3/4 and 3/4 of the size; 32 bits with a sign hold it if the size has 31,
//! and the low 32 bits of the factors suffice.
//!
//! Safety of both functions: the processor has the features of `Level::Avx2`, and the rest is as [`Wide::new`] and
//! [`Wide::rows`] check it.
#![allow(clippy::missing_safety_doc, reason = "one Safety rule for the file, above")]

use super::tile::{Mixed, TILE, Tile};
use super::{Group, LANES, Wide};
use std::arch::x86_64::*;
use std::ops::RangeInclusive;

/// Head sizes that the reduction is exact for, whatever the 64-bit value.
pub(super) const SIZES: RangeInclusive<u64> = 1 << 14..=(1 << 31) - 1;

/// Half a group: what a register holds.
const HALF: usize = LANES / 2;
/// 2^52: a double from here to 2^53 holds a whole number in its low 52 bits.
const WHOLE: f64 = (1_u64 << 52) as f64;
/// 2^84: one holds a multiple of 2^32 there.
const WHOLE_HIGH: f64 = (1_u128 << 84) as f64;

/// Low 64 bits of the products.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply(a: __m256i, b: __m256i) -> __m256i {
    let crossed = _mm256_add_epi64(
        _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), b),
        _mm256_mul_epu32(a, _mm256_srli_epi64::<32>(b)),
    );
    _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64::<32>(crossed))
}

/// Unsigned numbers as doubles, rounded once.
#[inline]
#[target_feature(enable = "avx2")]
fn to_double(values: __m256i) -> __m256d {
    let whole = _mm256_castpd_si256(_mm256_set1_pd(WHOLE));
    let whole_high = _mm256_castpd_si256(_mm256_set1_pd(WHOLE_HIGH));
    // 2^52 + low half, and 2^84 + high half x 2^32.
    let low = _mm256_castsi256_pd(_mm256_blend_epi32::<0b1010_1010>(values, whole));
    let high = _mm256_castsi256_pd(_mm256_or_si256(_mm256_srli_epi64::<32>(values), whole_high));
    // The difference is exact: a multiple of 2^32 below 2^64. Only the sum rounds.
    _mm256_add_pd(_mm256_sub_pd(high, _mm256_set1_pd(WHOLE_HIGH + WHOLE)), low)
}

/// XORs token x multiplier, order by order.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn mix(wide: &Wide, tile: &Tile, mixed: &mut Mixed) {
    for first in (0..tile.len().min(TILE)).step_by(HALF) {
        let mut terms = wide.terms();
        let (mut sum, mut mixed_in) = (_mm256_setzero_si256(), 0);
        for (index, &order) in wide.orders.iter().enumerate() {
            for (back, multiplier) in terms.by_ref().take(order - mixed_in) {
                // SAFETY: TILE is a multiple of HALF, so four values follow.
                let tokens = unsafe { _mm256_loadu_si256(tile.seen(back)[first..].as_ptr().cast()) };
                sum = _mm256_xor_si256(sum, multiply(tokens, _mm256_set1_epi64x(multiplier as i64)));
            }
            mixed_in = order;
            // SAFETY: as above.
            unsafe {
                _mm256_storeu_si256(mixed.values[index][first..].as_mut_ptr().cast(), sum);
                _mm256_storeu_pd(mixed.doubles[index][first..].as_mut_ptr(), to_double(sum));
            }
        }
    }
}

/// Lanes `0..n` of four.
#[inline]
#[target_feature(enable = "avx2")]
fn first_lanes(n: usize) -> __m256i {
    _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), _mm256_setr_epi64x(0, 1, 2, 3))
}

/// Lanes whose bit is set.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes_of(bits: u8) -> __m256i {
    let bit = _mm256_setr_epi64x(1, 2, 4, 8);
    _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits.into()), bit), bit)
}

/// Reduces to buckets and adds the head offsets.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn rows(wide: &Wide, mixed: &Mixed, groups: &[Group], len: usize, out: &mut [i64]) {
    let whole = _mm256_set1_pd(WHOLE);
    let zero = _mm256_setzero_si256();
    for (half, first) in (0..2 * groups.len()).zip((0..).step_by(HALF)) {
        let (group, lane) = (&groups[half / 2], half % 2 * HALF);
        let lanes = group.lanes.saturating_sub(lane);
        let [(_, order), others @ ..] = group.values.as_slice() else { continue };
        if lanes == 0 {
            continue;
        }
        // SAFETY: arrays of eight, of which four follow.
        let (size, inverse, offset) = unsafe {
            (
                _mm256_loadu_si256(group.sizes[lane..].as_ptr().cast()),
                _mm256_loadu_pd(group.inverses[lane..].as_ptr()),
                _mm256_loadu_si256(group.offsets[lane..].as_ptr().cast()),
            )
        };
        let stored = first_lanes(lanes);
        let (values, doubles) = (&mixed.values[*order], &mixed.doubles[*order]);
        for (t, out) in out.chunks_exact_mut(wide.heads).take(len.min(TILE)).enumerate() {
            let mut value = _mm256_set1_epi64x(values[t] as i64);
            let mut double = _mm256_set1_pd(doubles[t]);
            for &(bits, order) in others {
                let lanes = lanes_of(bits >> lane);
                value = _mm256_blendv_epi8(value, _mm256_set1_epi64x(mixed.values[order][t] as i64), lanes);
                let other = _mm256_set1_pd(mixed.doubles[order][t]);
                double = _mm256_blendv_pd(double, other, _mm256_castsi256_pd(lanes));
            }
            let quotient = _mm256_castpd_si256(_mm256_fmadd_pd(double, inverse, whole));
            let rest = _mm256_sub_epi64(value, _mm256_mul_epu32(quotient, size));
            let below = _mm256_and_si256(_mm256_cmpgt_epi32(zero, rest), size);
            let rest = _mm256_blend_epi32::<0b0101_0101>(zero, _mm256_add_epi32(rest, below));
            let rows = _mm256_add_epi64(rest, offset);
            let out = &mut out[first..];
            debug_assert!(out.len() >= lanes);
            if lanes >= HALF {
                // SAFETY: the heads of a token hold this half's four lanes.
                unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), rows) }
            } else {
                // SAFETY: the mask covers the lanes that the heads of a token hold, and no others.
                unsafe { _mm256_maskstore_epi64(out.as_mut_ptr(), stored, rows) }
            }
        }
    }
}
