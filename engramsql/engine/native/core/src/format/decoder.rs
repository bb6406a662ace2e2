//! The decoder: one value format and the kernels that decode it.

use super::ValueFormat;
use super::kernels::{Fp8, Kernels};
use crate::cpu::{self, CpuError, Level};

/// A [`ValueFormat`] made ready to decode many rows.
#[derive(Clone)]
pub struct Decoder {
    format: ValueFormat,
    kernels: Kernels,
    prepared: Prepared,
}

/// The format with what its kernels want computed once.
#[derive(Clone)]
enum Prepared {
    Fp8(Box<Fp8>),
    Fp8E8m0,
    Nvfp4 { scale_2: f32 },
    Bf16,
    F16,
    F32,
    E8m0,
}

impl Decoder {
    /// Prepares `format`, with the kernels of [`cpu::level`].
    pub fn new(format: ValueFormat) -> Decoder {
        // A setting that names no level is refused wherever a name, a file or a table becomes a format; results do not
        // depend on it.
        let kernels = cpu::level().and_then(Kernels::at).unwrap_or(Kernels::PORTABLE);
        Decoder::with(format, kernels)
    }

    /// Prepares `format` with the kernels of one level, to compare levels.
    ///
    /// # Errors
    /// A level that this processor lacks.
    pub fn at(level: Level, format: ValueFormat) -> Result<Decoder, CpuError> {
        Ok(Decoder::with(format, Kernels::at(level)?))
    }

    fn with(format: ValueFormat, kernels: Kernels) -> Decoder {
        let prepared = match format {
            ValueFormat::Fp8E4m3 { scale } => Prepared::Fp8(Box::new(Fp8::new(scale))),
            ValueFormat::Fp8E4m3E8m0 => Prepared::Fp8E8m0,
            ValueFormat::Nvfp4 { scale_2 } => Prepared::Nvfp4 { scale_2 },
            ValueFormat::Bf16 => Prepared::Bf16,
            ValueFormat::F16 => Prepared::F16,
            ValueFormat::F32 => Prepared::F32,
            ValueFormat::E8m0 => Prepared::E8m0,
        };
        Decoder { format, kernels, prepared }
    }

    /// The format.
    pub fn format(&self) -> &ValueFormat {
        &self.format
    }

    /// The level of its kernels.
    pub fn level(&self) -> Level {
        self.kernels.level()
    }

    /// Decodes one row to float32: `values` and `scales` as stored, `out.len()` values.
    #[inline]
    pub fn decode(&self, values: &[u8], scales: &[u8], out: &mut [f32]) {
        self.decode_by(self.kernels, values, scales, out);
    }

    #[inline]
    fn decode_by(&self, kernels: Kernels, values: &[u8], scales: &[u8], out: &mut [f32]) {
        match &self.prepared {
            Prepared::Fp8(fp8) => kernels.fp8(values, fp8, out),
            Prepared::Fp8E8m0 => kernels.fp8_e8m0(values, scales, out),
            Prepared::Nvfp4 { scale_2 } => kernels.nvfp4(values, scales, *scale_2, out),
            Prepared::Bf16 => kernels.bf16(values, out),
            Prepared::F16 => kernels.f16(values, out),
            Prepared::F32 => {
                // Becomes a plain copy on little-endian processors.
                for (bytes, out) in values.as_chunks::<4>().0.iter().zip(out) {
                    *out = f32::from_le_bytes(*bytes);
                }
            }
            Prepared::E8m0 => kernels.e8m0(values, out),
        }
    }

    /// Decodes one row to bfloat16 bit patterns, rounded once to nearest, ties to even: what the model consumes.
    /// `scratch` holds `out.len()` values.
    pub fn decode_bf16(&self, values: &[u8], scales: &[u8], scratch: &mut [f32], out: &mut [u16]) {
        match &self.prepared {
            Prepared::Fp8(fp8) => self.kernels.fp8_bf16(values, fp8, out),
            // Stored bits are the answer; a detour through float32 would quiet signalling NaNs.
            Prepared::Bf16 => {
                for (bytes, out) in values.as_chunks::<2>().0.iter().zip(out) {
                    *out = u16::from_le_bytes(*bytes);
                }
            }
            _ => {
                self.decode(values, scales, scratch);
                self.kernels.round_bf16(scratch, out);
            }
        }
    }

    /// Rounds values that [`decode`](Decoder::decode) gave to the bits that [`decode_bf16`](Decoder::decode_bf16) gives.
    pub(crate) fn round_bf16(&self, values: &[f32], out: &mut [u16]) {
        match &self.prepared {
            // Every value is exact, and so are the bits of a signalling NaN.
            Prepared::Bf16 => {
                for (value, out) in values.iter().zip(out) {
                    *out = (value.to_bits() >> 16) as u16;
                }
            }
            _ => self.kernels.round_bf16(values, out),
        }
    }
}

/// Decodes rows into an output so large that the caches would not keep it, without reading its memory first.
///
/// Made by [`Decoder::stream`]. It pays for an output beyond the caches that nobody reads at once: random rows of 160
/// values decoded to 671 MB took 65 ns each instead of 87, consecutive ones half the time (AVX-512). For a smaller
/// output [`Decoder::decode`] is faster.
///
/// The output can be looked at again when this value is dropped, which waits for its stores.
pub struct Stream<'a> {
    decoder: &'a Decoder,
    kernels: Kernels,
    dim: usize,
    out: &'a mut [f32],
}

impl Decoder {
    /// Rows of `dim` values into `out`: row `i` belongs at `i * dim`. It pays if `out` begins at a multiple of 16
    /// bytes (better 64) and `dim` is a multiple of 16, not for `bf16` and `f32`; the rows are right in any case.
    pub fn stream<'a>(&'a self, dim: usize, out: &'a mut [f32]) -> Stream<'a> {
        Stream { decoder: self, kernels: self.kernels.streamed(), dim, out }
    }
}

impl Stream<'_> {
    /// Decodes the row at `position`, as [`Decoder::decode`].
    ///
    /// # Panics
    /// If the output has no row `position`.
    #[inline]
    pub fn decode(&mut self, position: usize, values: &[u8], scales: &[u8]) {
        let out = &mut self.out[position * self.dim..][..self.dim];
        self.decoder.decode_by(self.kernels, values, scales, out);
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.kernels.fence();
    }
}
