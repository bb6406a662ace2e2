//! The inner loops of the decoder, one file per instruction set, all with the same results bit for bit.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod portable;
#[cfg(test)]
mod tests;

use super::{E4M3, E8M0_BLOCK, NVFP4_BLOCK};
use crate::cpu::{CpuError, Level};
use half::bf16;

/// Bytes of a block of NVFP4 values.
const NVFP4_PACKED: usize = NVFP4_BLOCK / 2;

/// An E4M3 table with one scale, as its kernels need it.
#[derive(Clone)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "each level takes what it needs"))]
pub(super) struct Fp8 {
    scale: f32,
    /// The product value x scale of every byte.
    products: [f32; 256],
    /// The product of every byte and the scale rounded to bfloat16, as bfloat16.
    products_bf16: [u16; 256],
    /// The same: low bytes, then high bytes.
    halves: [[u8; 256]; 2],
}

impl Fp8 {
    pub(super) fn new(scale: f32) -> Fp8 {
        // The engine casts both factors to the output type before it multiplies (vLLM 0.33.0).
        let narrow = bf16::from_f32(scale).to_f32();
        let products_bf16 = E4M3.map(|value| bf16::from_f32(value * narrow).to_bits());
        let halves = [0, 8].map(|shift| products_bf16.map(|bits| (bits >> shift) as u8));
        Fp8 { scale, products: E4M3.map(|value| value * scale), products_bf16, halves }
    }
}

/// bfloat16 holds every E4M3 value exactly. Low and high bytes of the 128 without a sign, for kernels that look bytes
/// up in registers.
static E4M3_HALVES: [[u8; 128]; 2] = {
    let mut halves = [[0; 128]; 2];
    let mut byte = 0;
    while byte < 128 {
        let [_, _, low, high] = super::scalars::e4m3(byte as u8).to_le_bytes();
        halves[0][byte] = low;
        halves[1][byte] = high;
        byte += 1;
    }
    halves
};

type ToF32 = unsafe fn(&[u8], &mut [f32]);

/// One function per format. Each may run only on a processor with the instructions of its level, and only on slices
/// whose lengths agree.
struct Table {
    level: Level,
    fp8: unsafe fn(&[u8], &Fp8, &mut [f32]),
    fp8_bf16: unsafe fn(&[u8], &Fp8, &mut [u16]),
    /// Values, E8M0 scales, output.
    fp8_e8m0: unsafe fn(&[u8], &[u8], &mut [f32]),
    /// Packed values, E4M3 block scales, table scale, output.
    nvfp4: unsafe fn(&[u8], &[u8], f32, &mut [f32]),
    bf16: ToF32,
    f16: ToF32,
    e8m0: ToF32,
    /// float32 to bfloat16, nearest, ties to even; a NaN stays one and becomes quiet.
    round_bf16: unsafe fn(&[f32], &mut [u16]),
    /// The same with stores of float32 past the caches where the address allows it, if there are such instructions.
    streamed: Option<&'static Table>,
    /// Orders streamed stores before everything after.
    fence: fn(),
}

/// The kernels of one level.
#[derive(Clone, Copy)]
pub(super) struct Kernels(&'static Table);

/// The decoding methods stop where values, scales or output end first.
impl Kernels {
    /// Those of a level, if this processor has it.
    pub(super) fn at(level: Level) -> Result<Kernels, CpuError> {
        Ok(match level.require()? {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Kernels(&avx512::TABLE),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Kernels(&avx2::TABLE),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Level::Neon => Kernels(&neon::TABLE),
            _ => Kernels::PORTABLE,
        })
    }

    /// Those that run anywhere.
    pub(super) const PORTABLE: Kernels = Kernels(&portable::TABLE);

    pub(super) fn level(self) -> Level {
        self.0.level
    }

    /// The same with stores past the caches; after the last of them comes a [`fence`](Self::fence), before anything else
    /// looks at what they wrote.
    pub(super) fn streamed(self) -> Kernels {
        self.0.streamed.map_or(self, Kernels)
    }

    /// Waits until streamed stores are where every thread sees them.
    pub(super) fn fence(self) {
        (self.0.fence)();
    }

    #[inline]
    pub(super) fn fp8(self, values: &[u8], fp8: &Fp8, out: &mut [f32]) {
        let n = values.len().min(out.len());
        // SAFETY: the level was checked when `self` was made; the lengths agree.
        unsafe { (self.0.fp8)(&values[..n], fp8, &mut out[..n]) }
    }

    #[inline]
    pub(super) fn fp8_bf16(self, values: &[u8], fp8: &Fp8, out: &mut [u16]) {
        let n = values.len().min(out.len());
        // SAFETY: the level was checked; the lengths agree.
        unsafe { (self.0.fp8_bf16)(&values[..n], fp8, &mut out[..n]) }
    }

    /// Whole blocks of [`E8M0_BLOCK`] values.
    #[inline]
    pub(super) fn fp8_e8m0(self, values: &[u8], scales: &[u8], out: &mut [f32]) {
        let blocks = (values.len().min(out.len()) / E8M0_BLOCK).min(scales.len());
        let n = blocks * E8M0_BLOCK;
        // SAFETY: the level was checked; values and output hold `blocks` blocks, one scale for each.
        unsafe { (self.0.fp8_e8m0)(&values[..n], &scales[..blocks], &mut out[..n]) }
    }

    /// Whole blocks of [`NVFP4_BLOCK`] values.
    #[inline]
    pub(super) fn nvfp4(self, values: &[u8], scales: &[u8], scale_2: f32, out: &mut [f32]) {
        let blocks = (values.len() / NVFP4_PACKED).min(out.len() / NVFP4_BLOCK).min(scales.len());
        let (values, out) = (&values[..blocks * NVFP4_PACKED], &mut out[..blocks * NVFP4_BLOCK]);
        // SAFETY: the level was checked; values and output hold `blocks` blocks, one scale for each.
        unsafe { (self.0.nvfp4)(values, &scales[..blocks], scale_2, out) }
    }

    #[inline]
    pub(super) fn bf16(self, values: &[u8], out: &mut [f32]) {
        let n = (values.len() / 2).min(out.len());
        // SAFETY: the level was checked; two bytes for each output.
        unsafe { (self.0.bf16)(&values[..2 * n], &mut out[..n]) }
    }

    #[inline]
    pub(super) fn f16(self, values: &[u8], out: &mut [f32]) {
        let n = (values.len() / 2).min(out.len());
        // SAFETY: the level was checked; two bytes for each output.
        unsafe { (self.0.f16)(&values[..2 * n], &mut out[..n]) }
    }

    #[inline]
    pub(super) fn e8m0(self, values: &[u8], out: &mut [f32]) {
        let n = values.len().min(out.len());
        // SAFETY: the level was checked; the lengths agree.
        unsafe { (self.0.e8m0)(&values[..n], &mut out[..n]) }
    }

    #[inline]
    pub(super) fn round_bf16(self, values: &[f32], out: &mut [u16]) {
        let n = values.len().min(out.len());
        // SAFETY: the level was checked; the lengths agree.
        unsafe { (self.0.round_bf16)(&values[..n], &mut out[..n]) }
    }
}
