//! AVX2 with F16C: E4M3 bytes become float16 patterns of 1/256 of their value, which the processor widens.
//!
//! Safety of every function here: the processor has the features of [`Level::Avx2`], and the lengths agree as the fields
//! of [`Table`] say. Vectors are loaded from and stored to arrays of their size; the portable kernels finish a row.
#![allow(clippy::missing_safety_doc, reason = "one Safety rule for the file, above")]

use super::super::{E2M1, E4M3, E8M0_BLOCK, NVFP4_BLOCK, e8m0_engine};
use super::{Fp8, NVFP4_PACKED, Table, portable};
use crate::cpu::Level;
use std::arch::x86_64::*;

pub(super) static TABLE: Table = table::<false>(Some(&STREAMED));
static STREAMED: Table = table::<true>(None);

const fn table<const S: bool>(streamed: Option<&'static Table>) -> Table {
    Table {
        level: Level::Avx2,
        fp8: fp8::<S>,
        fp8_e8m0: fp8_e8m0::<S>,
        nvfp4: nvfp4::<S>,
        f16: f16::<S>,
        e8m0: e8m0::<S>,
        round_bf16,
        streamed,
        fence,
        // As fast from a table (4.0 G values/s against 3.0), and as the compiler makes of a shift.
        ..portable::KERNELS
    }
}

fn fence() {
    // SAFETY: SSE is part of every x86-64 processor.
    unsafe { _mm_sfence() }
}

/// Writes 8 values; past the caches if `S` and the address allows it.
#[inline]
#[target_feature(enable = "avx2")]
fn store<const S: bool>(out: &mut [f32; 8], values: __m256) {
    let to = out.as_mut_ptr();
    if S && to.cast::<__m256>().is_aligned() {
        // SAFETY: 8 values fit and the address is a multiple of 32.
        unsafe { _mm256_stream_ps(to, values) }
    } else if S && to.cast::<__m128>().is_aligned() {
        // SAFETY: 8 values fit and the address is a multiple of 16.
        unsafe {
            _mm_stream_ps(to, _mm256_castps256_ps128(values));
            _mm_stream_ps(to.add(4), _mm256_extractf128_ps::<1>(values));
        }
    } else {
        // SAFETY: 8 values fit.
        unsafe { _mm256_storeu_ps(to, values) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// The values of 16 E4M3 bytes, 8 in each register.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn values(bytes: __m128i) -> [__m256; 2] {
    // S SSSSSSSS EEEEMMM << 7: sign, its copy in the top bit of float16's exponent, four exponent and three mantissa bits.
    // Without the copy it is a float16 whose bias is 8 larger; subnormals are in their place too.
    let wide = _mm256_slli_epi16::<7>(_mm256_cvtepi8_epi16(bytes));
    let halves = _mm256_and_si256(wide, _mm256_set1_epi16(0xBF80_u16 as i16));
    let all_ones = _mm256_set1_epi16(0x3F80);
    let nan = _mm256_cmpeq_epi16(_mm256_and_si256(halves, all_ones), all_ones);
    // 0x3F80 ^ 0x4180 is 0x7E00, the quiet NaN.
    let halves = _mm256_xor_si256(halves, _mm256_and_si256(nan, _mm256_set1_epi16(0x4180)));
    let unbias = _mm256_set1_ps(256.0);
    [
        _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), unbias),
        _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256::<1>(halves)), unbias),
    ]
}

/// 16 values x scale.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn scaled<const S: bool>(bytes: &[u8; 16], scale: __m256, out: &mut [f32; 16]) {
    for (part, out) in values(load(bytes)).into_iter().zip(out.as_chunks_mut::<8>().0) {
        store::<S>(out, _mm256_mul_ps(part, scale));
    }
}

#[target_feature(enable = "avx2,f16c")]
unsafe fn fp8<const S: bool>(values: &[u8], fp8: &Fp8, out: &mut [f32]) {
    let scale = _mm256_set1_ps(fp8.scale);
    let ((whole, rest), (whole_out, rest_out)) = (values.as_chunks::<16>(), out.as_chunks_mut::<16>());
    for (bytes, out) in whole.iter().zip(whole_out) {
        scaled::<S>(bytes, scale, out);
    }
    portable::fp8(rest, fp8, rest_out);
}

/// bfloat16 bits of 8 values, one per 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn rounded(values: __m256) -> __m256i {
    let bits = _mm256_castps_si256(values);
    let top = _mm256_srli_epi32::<16>(bits);
    // Adding half a unit, less one where the last kept bit is even, carries exactly when rounding goes up.
    let odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    let rounding = _mm256_add_epi32(_mm256_set1_epi32(0x7FFF), odd);
    let rounded = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, rounding));
    let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(values, values));
    let quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    _mm256_blendv_epi8(rounded, quiet, nan)
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_bf16(out: &mut [u16; 16], values: [__m256; 2]) {
    let packed = _mm256_packus_epi32(rounded(values[0]), rounded(values[1]));
    // Packing works in halves of the register.
    let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
    // SAFETY: 16 values fit.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), ordered) }
}

#[target_feature(enable = "avx2,f16c")]
unsafe fn fp8_e8m0<const S: bool>(values: &[u8], scales: &[u8], out: &mut [f32]) {
    let blocks = values.as_chunks::<E8M0_BLOCK>().0.iter().zip(out.as_chunks_mut::<E8M0_BLOCK>().0);
    for ((bytes, out), &scale) in blocks.zip(scales) {
        let scale = _mm256_set1_ps(e8m0_engine(scale));
        for (bytes, out) in bytes.as_chunks::<16>().0.iter().zip(out.as_chunks_mut::<16>().0) {
            scaled::<S>(bytes, scale, out);
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn nvfp4<const S: bool>(values: &[u8], scales: &[u8], scale_2: f32, out: &mut [f32]) {
    // SAFETY: the table has 16 values, the first 8 without a sign.
    let table = unsafe { _mm256_loadu_ps(E2M1.as_ptr()) };
    let sign_bit = _mm256_set1_epi32(i32::MIN);
    let scale_2 = _mm256_set1_ps(scale_2);
    let blocks = values.as_chunks::<NVFP4_PACKED>().0.iter().zip(out.as_chunks_mut::<NVFP4_BLOCK>().0);
    for ((bytes, out), &scale) in blocks.zip(scales) {
        let block = _mm256_set1_ps(E4M3[scale as usize]);
        for (bytes, out) in bytes.as_chunks::<4>().0.iter().zip(out.as_chunks_mut::<8>().0) {
            // One byte per 64 bits; its two nibbles at the bottom of two 32-bit indices, of which three bits count.
            let wide = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(i32::from_le_bytes(*bytes)));
            let index = _mm256_or_si256(wide, _mm256_slli_epi64::<28>(wide));
            let sign = _mm256_and_si256(_mm256_slli_epi32::<28>(index), sign_bit);
            let value = _mm256_xor_ps(_mm256_permutevar8x32_ps(table, index), _mm256_castsi256_ps(sign));
            store::<S>(out, _mm256_mul_ps(_mm256_mul_ps(value, block), scale_2));
        }
    }
}

#[target_feature(enable = "avx2,f16c")]
unsafe fn f16<const S: bool>(values: &[u8], out: &mut [f32]) {
    let ((whole, rest), (whole_out, rest_out)) = (values.as_chunks::<16>(), out.as_chunks_mut::<8>());
    for (bytes, out) in whole.iter().zip(whole_out) {
        store::<S>(out, _mm256_cvtph_ps(load(bytes)));
    }
    portable::widen_f16(rest, rest_out);
}

#[target_feature(enable = "avx2")]
unsafe fn e8m0<const S: bool>(values: &[u8], out: &mut [f32]) {
    let ((whole, rest), (whole_out, rest_out)) = (values.as_chunks::<8>(), out.as_chunks_mut::<8>());
    for (bytes, out) in whole.iter().zip(whole_out) {
        let wide = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(i64::from_le_bytes(*bytes)));
        let value = _mm256_slli_epi32::<23>(wide);
        let least = _mm256_cmpeq_epi32(wide, _mm256_setzero_si256());
        let value = _mm256_blendv_epi8(value, _mm256_set1_epi32(0x0040_0000), least);
        let most = _mm256_cmpeq_epi32(wide, _mm256_set1_epi32(255));
        let value = _mm256_blendv_epi8(value, _mm256_set1_epi32(f32::NAN.to_bits() as i32), most);
        store::<S>(out, _mm256_castsi256_ps(value));
    }
    portable::e8m0(rest, rest_out);
}

#[target_feature(enable = "avx2")]
unsafe fn round_bf16(values: &[f32], out: &mut [u16]) {
    let ((whole, rest), (whole_out, rest_out)) = (values.as_chunks::<16>(), out.as_chunks_mut::<16>());
    for (values, out) in whole.iter().zip(whole_out) {
        // SAFETY: 16 values, loaded in two halves.
        let parts = unsafe { [_mm256_loadu_ps(values.as_ptr()), _mm256_loadu_ps(values.as_ptr().add(8))] };
        store_bf16(out, parts);
    }
    portable::round_bf16(rest, rest_out);
}
