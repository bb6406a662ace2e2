//! NEON: E4M3 bytes are looked up in registers, 16 at a time.
//!
//! Only what the compiler does not already vectorise from the portable kernels. Safety of every function here: the
//! lengths agree as the fields of [`Table`] say; NEON is part of every 64-bit ARM processor.
#![allow(clippy::missing_safety_doc, reason = "one Safety rule for the file, above")]

use super::super::{E8M0_BLOCK, e8m0_engine};
use super::{E4M3_HALVES, Fp8, Table, portable};
use crate::cpu::Level;
use std::arch::aarch64::*;

pub(super) static TABLE: Table = Table { level: Level::Neon, fp8, fp8_e8m0, ..portable::KERNELS };

/// E4M3 in sixteen registers: low and high bytes of the bfloat16 values, 128 each.
#[derive(Clone, Copy)]
struct Lookup([[uint8x16x4_t; 2]; 2]);

impl Lookup {
    #[inline]
    #[target_feature(enable = "neon")]
    fn new() -> Lookup {
        // SAFETY: each half has 128 bytes, loaded as two times 64.
        Lookup(
            E4M3_HALVES
                .each_ref()
                .map(|half| unsafe { [vld1q_u8_x4(half.as_ptr()), vld1q_u8_x4(half[64..].as_ptr())] }),
        )
    }

    /// 16 values x scale.
    #[inline]
    #[target_feature(enable = "neon")]
    fn scaled(self, bytes: &[u8; 16], scale: f32, out: &mut [f32; 16]) {
        // SAFETY: 16 bytes.
        let bytes = unsafe { vld1q_u8(bytes.as_ptr()) };
        let index = vandq_u8(bytes, vdupq_n_u8(0x7F));
        // The first lookup gives 0 for indices from 64, the second keeps what it finds for those that wrap below 0.
        let upper = vsubq_u8(index, vdupq_n_u8(64));
        let [low, high] = self.0.map(|[first, second]| vqtbx4q_u8(vqtbl4q_u8(first, index), second, upper));
        let high = vorrq_u8(high, vandq_u8(bytes, vdupq_n_u8(0x80)));
        let words = [vreinterpretq_u16_u8(vzip1q_u8(low, high)), vreinterpretq_u16_u8(vzip2q_u8(low, high))];
        for (words, out) in words.into_iter().zip(out.as_chunks_mut::<8>().0) {
            let first = vreinterpretq_f32_u32(vshll_n_u16::<16>(vget_low_u16(words)));
            let second = vreinterpretq_f32_u32(vshll_high_n_u16::<16>(words));
            // SAFETY: 8 values fit, in two halves.
            unsafe {
                vst1q_f32(out.as_mut_ptr(), vmulq_n_f32(first, scale));
                vst1q_f32(out.as_mut_ptr().add(4), vmulq_n_f32(second, scale));
            }
        }
    }
}

#[target_feature(enable = "neon")]
unsafe fn fp8(values: &[u8], fp8: &Fp8, out: &mut [f32]) {
    let lookup = Lookup::new();
    let ((whole, rest), (whole_out, rest_out)) = (values.as_chunks::<16>(), out.as_chunks_mut::<16>());
    for (bytes, out) in whole.iter().zip(whole_out) {
        lookup.scaled(bytes, fp8.scale, out);
    }
    portable::fp8(rest, fp8, rest_out);
}

#[target_feature(enable = "neon")]
unsafe fn fp8_e8m0(values: &[u8], scales: &[u8], out: &mut [f32]) {
    let lookup = Lookup::new();
    let blocks = values.as_chunks::<E8M0_BLOCK>().0.iter().zip(out.as_chunks_mut::<E8M0_BLOCK>().0);
    for ((bytes, out), &scale) in blocks.zip(scales) {
        let scale = e8m0_engine(scale);
        for (bytes, out) in bytes.as_chunks::<16>().0.iter().zip(out.as_chunks_mut::<16>().0) {
            lookup.scaled(bytes, scale, out);
        }
    }
}
