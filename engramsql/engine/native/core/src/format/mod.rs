//! Value formats: how a row's stored bytes become float32.

/// Names of the value formats.
pub const NAMES: &[&str] = &["fp8_e4m3", "fp8_e4m3_e8m0", "nvfp4", "bf16", "f16", "f32"];

/// Why a value format was refused.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum FormatError {}

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
}

impl ValueFormat {
    /// The format called `name` with an optional scale; a scale that is needed and missing, or given and meaningless, is refused.
    pub fn from_name(_name: &str, _scale: Option<f32>) -> Result<ValueFormat, FormatError> {
        todo!()
    }
    /// Name, one of [`NAMES`].
    pub fn name(&self) -> &'static str {
        todo!()
    }
    /// Values in a row of `row_bytes` bytes, or `None` if no whole number of values fits.
    pub fn dim_of(&self, _row_bytes: usize) -> Option<usize> {
        todo!()
    }
    /// Bytes of a row of `dim` values, block scales included.
    pub fn row_bytes(&self, _dim: usize) -> usize {
        todo!()
    }
    /// Decodes one packed row (`row_bytes(out.len())` bytes: values, then block scales).
    pub fn decode_row(&self, _row: &[u8], _out: &mut [f32]) {
        todo!()
    }
}
