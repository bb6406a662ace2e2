//! AVX-512 with IFMA.
//!
//! value mod size, exactly. The double of the value and the inverse of the size are rounded down, so their product, cut
//! to a whole number, is at most the quotient; it falls short by less than (value / size) x 2.5 x 2^-52 before it is
//! cut, thus by at most 1 after, if value / size < 2^50. value - quotient x size is then below 2 x size; 52 bits hold it,
//! and the 52-bit products of IFMA suffice.
//!
//! Safety of both functions: the processor has the features of `Level::Avx512`, and the rest is as [`Wide::new`] and
//! [`Wide::rows`] check it.
#![allow(clippy::missing_safety_doc, reason = "one Safety rule for the file, above")]

use super::tile::{Mixed, TILE, Tile};
use super::{Group, LANES, Wide};
use std::arch::x86_64::*;
use std::ops::RangeInclusive;

/// Head sizes that the reduction is exact for, whatever the 64-bit value.
pub(super) const SIZES: RangeInclusive<u64> = 1 << 14..=1 << 51;

const DOWN: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
/// 2^52: a double from here to 2^53 holds a whole number in its low 52 bits.
const WHOLE: f64 = (1_u64 << 52) as f64;

/// XORs token x multiplier, order by order.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn mix(wide: &Wide, tile: &Tile, mixed: &mut Mixed) {
    for first in (0..tile.len().min(TILE)).step_by(LANES) {
        let mut terms = wide.terms();
        let (mut sum, mut mixed_in) = (_mm512_setzero_si512(), 0);
        for (index, &order) in wide.orders.iter().enumerate() {
            for (back, multiplier) in terms.by_ref().take(order - mixed_in) {
                // SAFETY: TILE is a multiple of LANES, so eight values follow.
                let tokens = unsafe { _mm512_loadu_si512(tile.seen(back)[first..].as_ptr().cast()) };
                sum = _mm512_xor_si512(sum, _mm512_mullo_epi64(tokens, _mm512_set1_epi64(multiplier as i64)));
            }
            mixed_in = order;
            // SAFETY: as above.
            unsafe {
                _mm512_storeu_si512(mixed.values[index][first..].as_mut_ptr().cast(), sum);
                _mm512_storeu_pd(mixed.doubles[index][first..].as_mut_ptr(), _mm512_cvt_roundepu64_pd::<DOWN>(sum));
            }
        }
    }
}

/// Reduces to buckets and adds the head offsets.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn rows(wide: &Wide, mixed: &Mixed, groups: &[Group], len: usize, out: &mut [i64]) {
    let low_52 = _mm512_set1_epi64((1 << 52) - 1);
    let whole = _mm512_set1_pd(WHOLE);
    for (group, first) in groups.iter().zip((0..).step_by(LANES)) {
        // SAFETY: arrays of eight.
        let (size, inverse, offset) = unsafe {
            (
                _mm512_loadu_si512(group.sizes.as_ptr().cast()),
                _mm512_loadu_pd(group.inverses.as_ptr()),
                _mm512_loadu_si512(group.offsets.as_ptr().cast()),
            )
        };
        // 2^52 - size: adding a multiple of it subtracts one of the size, as far as 52 bits go.
        let minus_size = _mm512_sub_epi64(_mm512_set1_epi64(1 << 52), size);
        let stored = u8::MAX >> (LANES - group.lanes);
        let [(_, order), others @ ..] = group.values.as_slice() else { continue };
        let (values, doubles) = (&mixed.values[*order], &mixed.doubles[*order]);
        for (t, out) in out.chunks_exact_mut(wide.heads).take(len.min(TILE)).enumerate() {
            let mut value = _mm512_set1_epi64(values[t] as i64);
            let mut double = _mm512_set1_pd(doubles[t]);
            for &(lanes, order) in others {
                value = _mm512_mask_set1_epi64(value, lanes, mixed.values[order][t] as i64);
                double = _mm512_mask_broadcastsd_pd(double, lanes, _mm_set_sd(mixed.doubles[order][t]));
            }
            let quotient = _mm512_castpd_si512(_mm512_fmadd_round_pd::<DOWN>(double, inverse, whole));
            let rest = _mm512_and_si512(_mm512_madd52lo_epu64(value, quotient, minus_size), low_52);
            // Below the size this wraps and is no minimum.
            let rest = _mm512_min_epu64(rest, _mm512_sub_epi64(rest, size));
            let rows = _mm512_add_epi64(rest, offset);
            let out = &mut out[first..];
            debug_assert!(out.len() >= group.lanes);
            // SAFETY: the heads of a token hold this group's lanes, and the mask covers no others.
            unsafe { _mm512_mask_storeu_epi64(out.as_mut_ptr(), stored, rows) }
        }
    }
}
