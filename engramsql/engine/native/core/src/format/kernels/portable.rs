//! Plain Rust: the truth that the other kernels are held against.

use super::super::scalars::f16_value;
use super::super::{E2M1, E4M3, E8M0_BLOCK, NVFP4_BLOCK, e8m0_engine, e8m0_ocp};
use super::{Fp8, NVFP4_PACKED, Table};
use crate::cpu::Level;
use half::bf16;

pub(super) static TABLE: Table = KERNELS;

/// As a constant too: other levels take from here what they have no faster code for.
pub(super) const KERNELS: Table = Table {
    level: Level::Portable,
    fp8,
    fp8_bf16,
    fp8_e8m0,
    nvfp4,
    bf16: widen_bf16,
    f16: widen_f16,
    e8m0,
    round_bf16,
    streamed: None,
    fence: || {},
};

pub(super) fn fp8(values: &[u8], fp8: &Fp8, out: &mut [f32]) {
    zip(values, out, |byte| fp8.products[byte as usize]);
}

pub(super) fn fp8_bf16(values: &[u8], fp8: &Fp8, out: &mut [u16]) {
    for (&byte, out) in values.iter().zip(out) {
        *out = fp8.products_bf16[byte as usize];
    }
}

fn fp8_e8m0(values: &[u8], scales: &[u8], out: &mut [f32]) {
    for ((values, out), &scale) in values.chunks_exact(E8M0_BLOCK).zip(out.chunks_exact_mut(E8M0_BLOCK)).zip(scales) {
        let scale = e8m0_engine(scale);
        zip(values, out, |byte| E4M3[byte as usize] * scale);
    }
}

fn nvfp4(values: &[u8], scales: &[u8], scale_2: f32, out: &mut [f32]) {
    let blocks = values.chunks_exact(NVFP4_PACKED).zip(out.chunks_exact_mut(NVFP4_BLOCK));
    for ((values, out), &scale) in blocks.zip(scales) {
        let block = E4M3[scale as usize];
        for (&byte, pair) in values.iter().zip(out.as_chunks_mut::<2>().0) {
            // vLLM's CUDA order: the first product is exact, so only the second rounds.
            pair[0] = (E2M1[(byte & 0xF) as usize] * block) * scale_2;
            pair[1] = (E2M1[(byte >> 4) as usize] * block) * scale_2;
        }
    }
}

pub(super) fn widen_bf16(values: &[u8], out: &mut [f32]) {
    for (bytes, out) in values.as_chunks::<2>().0.iter().zip(out) {
        // By bits: a library conversion may quiet a signalling NaN.
        *out = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
    }
}

pub(super) fn widen_f16(values: &[u8], out: &mut [f32]) {
    for (bytes, out) in values.as_chunks::<2>().0.iter().zip(out) {
        *out = f16_value(u16::from_le_bytes(*bytes));
    }
}

pub(super) fn e8m0(values: &[u8], out: &mut [f32]) {
    zip(values, out, e8m0_ocp);
}

pub(super) fn round_bf16(values: &[f32], out: &mut [u16]) {
    for (&value, out) in values.iter().zip(out) {
        *out = bf16::from_f32(value).to_bits();
    }
}

#[inline(always)]
fn zip(bytes: &[u8], out: &mut [f32], decode: impl Fn(u8) -> f32) {
    for (&byte, out) in bytes.iter().zip(out) {
        *out = decode(byte);
    }
}
