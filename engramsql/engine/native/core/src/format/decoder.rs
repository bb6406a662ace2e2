//! The portable decoder: the truth that faster kernels are held against.

use super::{E2M1, E4M3, E8M0_BLOCK, NVFP4_BLOCK, ValueFormat, e8m0_engine, e8m0_ocp};
use half::{bf16, f16};

/// A [`ValueFormat`] made ready to decode many rows.
#[derive(Clone)]
pub struct Decoder {
    format: ValueFormat,
    /// For `fp8_e4m3`: the product value x scale of every byte, so that a value costs one load.
    scaled: Option<Box<[f32; 256]>>,
    /// The same products rounded to bfloat16; see [`Decoder::decode_bf16`].
    scaled_bf16: Option<Box<[u16; 256]>>,
}

impl Decoder {
    /// Prepares `format`.
    pub fn new(format: ValueFormat) -> Decoder {
        let (scaled, scaled_bf16) = match format {
            ValueFormat::Fp8E4m3 { scale } => {
                // The engine casts both factors to the output type first (vLLM 0.33.0), so a scale stored wider than
                // bfloat16 is rounded before the product is.
                let narrow = bf16::from_f32(scale).to_f32();
                (
                    Some(Box::new(E4M3.map(|value| value * scale))),
                    Some(Box::new(E4M3.map(|value| bf16::from_f32(value * narrow).to_bits()))),
                )
            }
            _ => (None, None),
        };
        Decoder { format, scaled, scaled_bf16 }
    }

    /// The format.
    pub fn format(&self) -> &ValueFormat {
        &self.format
    }

    /// Decodes one row to float32: `values` and `scales` as stored, `out.len()` values.
    pub fn decode(&self, values: &[u8], scales: &[u8], out: &mut [f32]) {
        match self.format {
            ValueFormat::Fp8E4m3 { scale } => match &self.scaled {
                Some(table) => zip(values, out, |byte| table[byte as usize]),
                None => zip(values, out, |byte| E4M3[byte as usize] * scale),
            },
            ValueFormat::Fp8E4m3E8m0 => {
                for ((values, out), &scale) in
                    values.chunks_exact(E8M0_BLOCK).zip(out.chunks_exact_mut(E8M0_BLOCK)).zip(scales)
                {
                    let scale = e8m0_engine(scale);
                    zip(values, out, |byte| E4M3[byte as usize] * scale);
                }
            }
            ValueFormat::Nvfp4 { scale_2 } => {
                let blocks = values.chunks_exact(NVFP4_BLOCK / 2).zip(out.chunks_exact_mut(NVFP4_BLOCK));
                for ((values, out), &scale) in blocks.zip(scales) {
                    let block = E4M3[scale as usize];
                    for (&byte, pair) in values.iter().zip(out.as_chunks_mut::<2>().0) {
                        // vLLM's CUDA order: the first product is exact, so only the second rounds.
                        pair[0] = (E2M1[(byte & 0xF) as usize] * block) * scale_2;
                        pair[1] = (E2M1[(byte >> 4) as usize] * block) * scale_2;
                    }
                }
            }
            ValueFormat::Bf16 => {
                for (bytes, out) in values.as_chunks::<2>().0.iter().zip(out) {
                    // By bits: a library conversion may quiet a signalling NaN.
                    *out = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
                }
            }
            ValueFormat::F16 => {
                for (bytes, out) in values.as_chunks::<2>().0.iter().zip(out) {
                    *out = f16::from_le_bytes(*bytes).to_f32();
                }
            }
            ValueFormat::F32 => {
                for (bytes, out) in values.as_chunks::<4>().0.iter().zip(out) {
                    *out = f32::from_le_bytes(*bytes);
                }
            }
            ValueFormat::E8m0 => zip(values, out, e8m0_ocp),
        }
    }

    /// Decodes one row to bfloat16 bit patterns, rounded once to nearest, ties to even: what the model consumes.
    /// `scratch` holds `out.len()` values.
    pub fn decode_bf16(&self, values: &[u8], scales: &[u8], scratch: &mut [f32], out: &mut [u16]) {
        match (self.format, &self.scaled_bf16) {
            (_, Some(table)) => {
                for (&byte, out) in values.iter().zip(out) {
                    *out = table[byte as usize];
                }
            }
            // Stored bits are the answer; a detour through float32 would quiet signalling NaNs.
            (ValueFormat::Bf16, _) => {
                for (bytes, out) in values.as_chunks::<2>().0.iter().zip(out) {
                    *out = u16::from_le_bytes(*bytes);
                }
            }
            _ => {
                self.decode(values, scales, scratch);
                for (&value, out) in scratch.iter().zip(out) {
                    *out = bf16::from_f32(value).to_bits();
                }
            }
        }
    }
}

#[inline(always)]
fn zip(bytes: &[u8], out: &mut [f32], decode: impl Fn(u8) -> f32) {
    for (&byte, out) in bytes.iter().zip(out) {
        *out = decode(byte);
    }
}
