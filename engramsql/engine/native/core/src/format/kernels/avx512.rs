//! AVX-512 with VBMI: E4M3 bytes are looked up in registers, 64 at a time.
//!
//! Safety of every function here: the processor has the features of [`Level::Avx512`], and the lengths agree as the
//! fields of [`Table`] say. Loads and stores then stay inside the slices: whole vectors while they fit, a masked one at
//! the end.
#![allow(clippy::missing_safety_doc, reason = "one Safety rule for the file, above")]

use super::super::{E2M1, E4M3, NVFP4_BLOCK, e8m0_engine};
use super::{E4M3_HALVES, Fp8, NVFP4_PACKED, Table, portable};
use crate::cpu::Level;
use std::arch::x86_64::*;

pub(super) static TABLE: Table = table::<false>(Some(&STREAMED));
static STREAMED: Table = table::<true>(None);

const fn table<const S: bool>(streamed: Option<&'static Table>) -> Table {
    Table {
        level: Level::Avx512,
        fp8: fp8::<S>,
        fp8_bf16,
        fp8_e8m0: fp8_e8m0::<S>,
        nvfp4: nvfp4::<S>,
        // The compiler makes as much of a shift.
        bf16: portable::widen_bf16,
        f16: f16::<S>,
        e8m0: e8m0::<S>,
        round_bf16,
        streamed,
        fence,
    }
}

fn fence() {
    // SAFETY: SSE is part of every x86-64 processor.
    unsafe { _mm_sfence() }
}

/// E4M3 in four registers: low and high bytes of the bfloat16 values, 128 each.
#[derive(Clone, Copy)]
struct Lookup {
    low: [__m512i; 2],
    high: [__m512i; 2],
    /// Transposes the 4 x 4 groups of four bytes, so that the unpacking below ends in the order of the bytes.
    order: __m512i,
}

impl Lookup {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn new() -> Lookup {
        let [low, high] = &E4M3_HALVES;
        Lookup {
            low: [load(&low[..64]), load(&low[64..])],
            high: [load(&high[..64]), load(&high[64..])],
            order: _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
        }
    }

    /// The values of 64 bytes, 16 in each register.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn values(self, bytes: __m512i) -> [__m512; 4] {
        let bytes = _mm512_permutexvar_epi32(self.order, bytes);
        // The lookup ignores the sign bit of its index; it joins the high byte afterwards.
        let low = _mm512_permutex2var_epi8(self.low[0], bytes, self.low[1]);
        let high = _mm512_permutex2var_epi8(self.high[0], bytes, self.high[1]);
        // 0xF8: a | (b & c).
        let high = _mm512_ternarylogic_epi32::<0xF8>(high, bytes, _mm512_set1_epi8(i8::MIN));
        let (first, second) = (_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high));
        let zero = _mm512_setzero_si512();
        [
            _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, first)),
            _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, first)),
            _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, second)),
            _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, second)),
        ]
    }
}

/// The first 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(bytes: &[u8]) -> __m512i {
    debug_assert!(bytes.len() >= 64);
    // SAFETY: every caller passes at least 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Up to 64 bytes, zeros behind them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_rest(bytes: &[u8]) -> __m512i {
    // SAFETY: the mask covers the bytes of the slice and no others.
    unsafe { _mm512_maskz_loadu_epi8(first_64(bytes.len()), bytes.as_ptr().cast()) }
}

/// Mask of the first `n` of 64 (all of them from there).
#[inline(always)]
fn first_64(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// Mask of the first `n` of 16.
#[inline(always)]
fn first_16(n: usize) -> u16 {
    if n >= 16 { u16::MAX } else { (1 << n) - 1 }
}

/// Writes 16 values, or as many as `out` holds; past the caches if `S` and the address allows it.
#[inline]
#[target_feature(enable = "avx512f")]
fn store<const S: bool>(out: &mut [f32], values: __m512) {
    let to = out.as_mut_ptr();
    if out.len() < 16 {
        // SAFETY: the mask covers the values of the slice and no others.
        unsafe { _mm512_mask_storeu_ps(to, first_16(out.len()), values) }
    } else if S && to.cast::<__m512>().is_aligned() {
        // SAFETY: 16 values fit and the address is a multiple of 64.
        unsafe { _mm512_stream_ps(to, values) }
    } else if S && to.cast::<__m128>().is_aligned() {
        // What allocators promise. Neighbouring stores still leave the processor as whole lines.
        // SAFETY: 16 values fit and the address is a multiple of 16.
        unsafe {
            _mm_stream_ps(to, _mm512_castps512_ps128(values));
            _mm_stream_ps(to.add(4), _mm512_extractf32x4_ps::<1>(values));
            _mm_stream_ps(to.add(8), _mm512_extractf32x4_ps::<2>(values));
            _mm_stream_ps(to.add(12), _mm512_extractf32x4_ps::<3>(values));
        }
    } else {
        // SAFETY: 16 values fit.
        unsafe { _mm512_storeu_ps(to, values) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn fp8<const S: bool>(values: &[u8], fp8: &Fp8, out: &mut [f32]) {
    let lookup = Lookup::new();
    let scale = _mm512_set1_ps(fp8.scale);
    let (whole, rest) = values.as_chunks::<64>();
    let (whole_out, rest_out) = out.split_at_mut(whole.len() * 64);
    for (bytes, out) in whole.iter().zip(whole_out.as_chunks_mut::<64>().0) {
        let parts = lookup.values(load(bytes));
        for (part, out) in parts.into_iter().zip(out.as_chunks_mut::<16>().0) {
            store::<S>(out, _mm512_mul_ps(part, scale));
        }
    }
    if !rest.is_empty() {
        let parts = lookup.values(load_rest(rest));
        for (part, out) in parts.into_iter().zip(rest_out.chunks_mut(16)) {
            store::<S>(out, _mm512_mul_ps(part, scale));
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn fp8_bf16(values: &[u8], fp8: &Fp8, out: &mut [u16]) {
    let tables = fp8.halves.each_ref().map(|half| [0, 1, 2, 3].map(|part| load(&half[part * 64..])));
    // As for float32, with groups of eight bytes and one unpacking.
    let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    for (bytes, out) in values.chunks(64).zip(out.chunks_mut(64)) {
        let bytes = _mm512_permutexvar_epi64(order, load_rest(bytes));
        let negative = _mm512_movepi8_mask(bytes);
        let [low, high] = tables.map(|[a, b, c, d]| {
            let plus = _mm512_permutex2var_epi8(a, bytes, b);
            _mm512_mask_blend_epi8(negative, plus, _mm512_permutex2var_epi8(c, bytes, d))
        });
        let parts = [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)];
        for (part, out) in parts.into_iter().zip(out.chunks_mut(32)) {
            // SAFETY: the mask covers the values of the slice and no others.
            unsafe { _mm512_mask_storeu_epi16(out.as_mut_ptr().cast(), first_64(out.len()) as u32, part) }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn fp8_e8m0<const S: bool>(values: &[u8], scales: &[u8], out: &mut [f32]) {
    let lookup = Lookup::new();
    // Two blocks at a time, then perhaps one.
    let ((pairs, rest), (pairs_out, rest_out)) = (values.as_chunks::<64>(), out.as_chunks_mut::<64>());
    let (pair_scales, rest_scales) = scales.as_chunks::<2>();
    for ((bytes, out), scales) in pairs.iter().zip(pairs_out).zip(pair_scales) {
        let parts = lookup.values(load(bytes));
        let [first, second] = scales.map(|scale| _mm512_set1_ps(e8m0_engine(scale)));
        let scales = [first, first, second, second];
        for ((part, scale), out) in parts.into_iter().zip(scales).zip(out.as_chunks_mut::<16>().0) {
            store::<S>(out, _mm512_mul_ps(part, scale));
        }
    }
    if let &[scale] = rest_scales {
        let scale = _mm512_set1_ps(e8m0_engine(scale));
        for (part, out) in lookup.values(load_rest(rest)).into_iter().zip(rest_out.as_chunks_mut::<16>().0) {
            store::<S>(out, _mm512_mul_ps(part, scale));
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn nvfp4<const S: bool>(values: &[u8], scales: &[u8], scale_2: f32, out: &mut [f32]) {
    // SAFETY: the table has 16 values.
    let table = unsafe { _mm512_loadu_ps(E2M1.as_ptr()) };
    let scale_2 = _mm512_set1_ps(scale_2);
    let blocks = values.as_chunks::<NVFP4_PACKED>().0.iter().zip(out.as_chunks_mut::<NVFP4_BLOCK>().0);
    for ((bytes, out), &scale) in blocks.zip(scales) {
        // One byte per 64 bits; its two nibbles at the bottom of two 32-bit indices, of which four bits count.
        let wide = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(i64::from_le_bytes(*bytes)));
        let index = _mm512_or_si512(wide, _mm512_slli_epi64::<28>(wide));
        let block = _mm512_set1_ps(E4M3[scale as usize]);
        let exact = _mm512_mul_ps(_mm512_permutexvar_ps(index, table), block);
        store::<S>(out, _mm512_mul_ps(exact, scale_2));
    }
}

/// 16 words, or as many as there are, zeros behind them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load_words(bytes: &[u8]) -> __m256i {
    // SAFETY: the mask covers the whole words of the slice and nothing else.
    unsafe { _mm256_maskz_loadu_epi16(first_16(bytes.len() / 2), bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn f16<const S: bool>(values: &[u8], out: &mut [f32]) {
    for (words, out) in values.chunks(32).zip(out.chunks_mut(16)) {
        store::<S>(out, _mm512_cvtph_ps(load_words(words)));
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn e8m0<const S: bool>(values: &[u8], out: &mut [f32]) {
    for (bytes, out) in values.chunks(16).zip(out.chunks_mut(16)) {
        // SAFETY: the mask covers the bytes of the slice and no others.
        let bytes = unsafe { _mm_maskz_loadu_epi8(first_16(bytes.len()), bytes.as_ptr().cast()) };
        let wide = _mm512_cvtepu8_epi32(bytes);
        let value = _mm512_slli_epi32::<23>(wide);
        let least = _mm512_cmpeq_epi32_mask(wide, _mm512_setzero_si512());
        let value = _mm512_mask_blend_epi32(least, value, _mm512_set1_epi32(0x0040_0000));
        let most = _mm512_cmpeq_epi32_mask(wide, _mm512_set1_epi32(255));
        let value = _mm512_mask_blend_epi32(most, value, _mm512_set1_epi32(f32::NAN.to_bits() as i32));
        store::<S>(out, _mm512_castsi512_ps(value));
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn round_bf16(values: &[f32], out: &mut [u16]) {
    let half_less_one = _mm512_set1_epi32(0x7FFF);
    for (values, out) in values.chunks(16).zip(out.chunks_mut(16)) {
        let mask = first_16(values.len());
        // SAFETY: the mask covers the values of the slice and no others.
        let bits = _mm512_castps_si512(unsafe { _mm512_maskz_loadu_ps(mask, values.as_ptr()) });
        let top = _mm512_srli_epi32::<16>(bits);
        // Adding half a unit, less one where the last kept bit is even, carries exactly when rounding goes up.
        let odd = _mm512_and_si512(top, _mm512_set1_epi32(1));
        let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(bits, _mm512_add_epi32(half_less_one, odd)));
        let value = _mm512_castsi512_ps(bits);
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
        let quiet = _mm512_or_si512(top, _mm512_set1_epi32(0x40));
        let words = _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet));
        // SAFETY: as above; both slices have the same length.
        unsafe { _mm256_mask_storeu_epi16(out.as_mut_ptr().cast(), mask, words) }
    }
}
