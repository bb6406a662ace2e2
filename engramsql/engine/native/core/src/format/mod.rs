//! Value formats: how a row's stored bytes become float32.
//!
//! Float32 output is the exact product value x scale; rounding to bfloat16, as an engine does, is a separate call.
//! Layouts and rounding orders follow the engines: vLLM 0.33.0 for the Qwen PLE and DeepSeek V4.1 tables, ModelOpt's
//! convention (`weight_scale_2` multiplies) for NVFP4.

mod decoder;
mod kernels;
mod scalars;

pub use decoder::{Decoder, Stream};
pub use scalars::{E2M1, E4M3, e8m0_engine, e8m0_ocp};

use crate::cpu::{self, CpuError};

/// Names of the value formats.
pub const NAMES: &[&str] = &["fp8_e4m3", "fp8_e4m3_e8m0", "nvfp4", "bf16", "f16", "f32", "e8m0"];

/// Columns that share one E8M0 exponent byte in a `fp8_e4m3_e8m0` row.
pub const E8M0_BLOCK: usize = 32;
/// Columns that share one E4M3 scale byte in an `nvfp4` row.
pub const NVFP4_BLOCK: usize = 16;

/// Why a value format was refused.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// No format of that name.
    #[error("unknown value format '{name}'; known formats: {known}", known = NAMES.join(", "))]
    Unknown {
        /// Name given.
        name: String,
    },
    /// The format multiplies by a scale that nobody gave.
    #[error(
        "value format '{format}' needs a scale and none was given; give it one (a missing scale is never taken as 1.0)"
    )]
    MissingScale {
        /// Format name.
        format: &'static str,
    },
    /// A scale for a format that has none, or carries its scales in the rows.
    #[error("value format '{format}' takes no scale, but {scale} was given; leave it out")]
    UnexpectedScale {
        /// Format name.
        format: &'static str,
        /// Scale given.
        scale: f32,
    },
    /// A scale that cannot be meant.
    #[error("scale {scale} of value format '{format}' is not a finite number other than 0")]
    BadScale {
        /// Format name.
        format: &'static str,
        /// Scale given.
        scale: f32,
    },
    /// Bytes that hold no whole row of the format.
    #[error("{bytes} bytes are no whole row of value format '{format}' ({rule})")]
    BadLength {
        /// Format name.
        format: &'static str,
        /// Bytes given.
        bytes: usize,
        /// What a length must satisfy.
        rule: &'static str,
    },
    /// `ENGRAMSQL_KERNEL` names no level that can run here.
    #[error(transparent)]
    Kernel(#[from] CpuError),
}

/// How one row's bytes become float32 values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueFormat {
    /// FP8 E4M3 (FN flavour) times one scale per table.
    Fp8E4m3 {
        /// The table's scale.
        scale: f32,
    },
    /// FP8 E4M3 with one E8M0 exponent byte per 32 columns (engine rule: 0 is 0.0, 255 is infinity); row = values, scales.
    Fp8E4m3E8m0,
    /// E2M1 nibbles (low nibble first) with one E4M3 byte per 16 columns and one scale per table; row = packed, block scales.
    Nvfp4 {
        /// The table's `weight_scale_2`, a multiplier.
        scale_2: f32,
    },
    /// bfloat16.
    Bf16,
    /// IEEE half.
    F16,
    /// float32.
    F32,
    /// Bare E8M0 exponent bytes under the OCP rule (0 is 2^-127, 255 is NaN): for looking at scales, no table has it.
    E8m0,
}

/// The block scales of a format, a byte each.
struct Blocks {
    /// Columns that share one.
    columns: usize,
    code: ScaleCode,
}

/// What the byte of a block scale means.
enum ScaleCode {
    E8m0,
    E4m3,
}

impl ValueFormat {
    /// The format called `name`; a scale that is needed and missing, or given and meaningless, is refused, and so is a
    /// name while `ENGRAMSQL_KERNEL` names no level that can run.
    pub fn from_name(name: &str, scale: Option<f32>) -> Result<ValueFormat, FormatError> {
        cpu::level()?;
        let format = match name {
            "fp8_e4m3" => {
                ValueFormat::Fp8E4m3 { scale: scale.ok_or(FormatError::MissingScale { format: "fp8_e4m3" })? }
            }
            "nvfp4" => ValueFormat::Nvfp4 { scale_2: scale.ok_or(FormatError::MissingScale { format: "nvfp4" })? },
            "fp8_e4m3_e8m0" => ValueFormat::Fp8E4m3E8m0,
            "bf16" => ValueFormat::Bf16,
            "f16" => ValueFormat::F16,
            "f32" => ValueFormat::F32,
            "e8m0" => ValueFormat::E8m0,
            _ => return Err(FormatError::Unknown { name: name.to_owned() }),
        };
        match (format.scale(), scale) {
            (None, Some(scale)) => Err(FormatError::UnexpectedScale { format: format.name(), scale }),
            (Some(scale), _) if !scale.is_finite() || scale == 0.0 => {
                Err(FormatError::BadScale { format: format.name(), scale })
            }
            _ => Ok(format),
        }
    }

    /// Name, one of [`NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            ValueFormat::Fp8E4m3 { .. } => "fp8_e4m3",
            ValueFormat::Fp8E4m3E8m0 => "fp8_e4m3_e8m0",
            ValueFormat::Nvfp4 { .. } => "nvfp4",
            ValueFormat::Bf16 => "bf16",
            ValueFormat::F16 => "f16",
            ValueFormat::F32 => "f32",
            ValueFormat::E8m0 => "e8m0",
        }
    }

    /// The scale per table, for formats that have one.
    pub fn scale(&self) -> Option<f32> {
        match *self {
            ValueFormat::Fp8E4m3 { scale } | ValueFormat::Nvfp4 { scale_2: scale } => Some(scale),
            _ => None,
        }
    }

    /// Values in a row of `row_bytes` bytes, or `None` if no whole number of values (and blocks) fits.
    pub fn dim_of(&self, row_bytes: usize) -> Option<usize> {
        let dim = match self {
            ValueFormat::Fp8E4m3 { .. } | ValueFormat::E8m0 => row_bytes,
            // dim + dim / 32 bytes and dim / 2 + dim / 16 bytes.
            ValueFormat::Fp8E4m3E8m0 => row_bytes / (E8M0_BLOCK + 1) * E8M0_BLOCK,
            ValueFormat::Nvfp4 { .. } => row_bytes / (NVFP4_BLOCK / 2 + 1) * NVFP4_BLOCK,
            ValueFormat::Bf16 | ValueFormat::F16 => row_bytes / 2,
            ValueFormat::F32 => row_bytes / 4,
        };
        (dim > 0 && self.row_bytes(dim) == row_bytes).then_some(dim)
    }

    /// Like [`dim_of`](Self::dim_of), with the rule that a bad length breaks.
    pub fn dim_of_bytes(&self, bytes: usize) -> Result<usize, FormatError> {
        let rule = match self {
            ValueFormat::Fp8E4m3 { .. } | ValueFormat::E8m0 => "at least one byte",
            ValueFormat::Fp8E4m3E8m0 => "a multiple of 33: 32 values and their scale byte",
            ValueFormat::Nvfp4 { .. } => "a multiple of 9: 16 packed values and their scale byte",
            ValueFormat::Bf16 | ValueFormat::F16 => "a multiple of 2",
            ValueFormat::F32 => "a multiple of 4",
        };
        self.dim_of(bytes).ok_or(FormatError::BadLength { format: self.name(), bytes, rule })
    }

    /// Bytes of a row of `dim` values, block scales included.
    pub fn row_bytes(&self, dim: usize) -> usize {
        self.value_bytes(dim) + self.scale_bytes(dim)
    }

    /// Bytes of the values of a row, without block scales.
    pub fn value_bytes(&self, dim: usize) -> usize {
        match self {
            ValueFormat::Fp8E4m3 { .. } | ValueFormat::Fp8E4m3E8m0 | ValueFormat::E8m0 => dim,
            ValueFormat::Nvfp4 { .. } => dim / 2,
            ValueFormat::Bf16 | ValueFormat::F16 => dim * 2,
            ValueFormat::F32 => dim * 4,
        }
    }

    /// Bytes of a row's block scales; 0 for formats without.
    pub fn scale_bytes(&self, dim: usize) -> usize {
        self.blocks().map_or(0, |blocks| dim / blocks.columns)
    }

    /// Whether rows hold block scales.
    pub fn has_block_scales(&self) -> bool {
        self.blocks().is_some()
    }

    /// The block scale that a byte of a row stands for, zero without a sign; `None` for formats without. The scale of the
    /// table is not in it.
    #[inline]
    pub(crate) fn block_scale(&self, byte: u8) -> Option<f32> {
        Some(match self.blocks()?.code {
            ScaleCode::E8m0 => e8m0_engine(byte),
            ScaleCode::E4m3 => E4M3[usize::from(byte)] + 0.0,
        })
    }

    #[inline]
    fn blocks(&self) -> Option<Blocks> {
        match self {
            ValueFormat::Fp8E4m3E8m0 => Some(Blocks { columns: E8M0_BLOCK, code: ScaleCode::E8m0 }),
            ValueFormat::Nvfp4 { .. } => Some(Blocks { columns: NVFP4_BLOCK, code: ScaleCode::E4m3 }),
            ValueFormat::Fp8E4m3 { .. }
            | ValueFormat::Bf16
            | ValueFormat::F16
            | ValueFormat::F32
            | ValueFormat::E8m0 => None,
        }
    }

    /// Decodes one packed row: `row_bytes(out.len())` bytes (values, then block scales) into `out`.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn decode_row(&self, row: &[u8], out: &mut [f32]) {
        assert_eq!(row.len(), self.row_bytes(out.len()), "row bytes do not fit the values asked for");
        let (values, scales) = row.split_at(self.value_bytes(out.len()));
        Decoder::new(*self).decode(values, scales, out);
    }
}

#[cfg(test)]
mod tests;
