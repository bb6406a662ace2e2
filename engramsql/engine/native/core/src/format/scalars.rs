//! The small number formats, one value at a time.

/// FP8 E4M3 (FN flavour): S EEEE MMM, bias 7, no infinity, 0x7F and 0xFF are NaN.
pub static E4M3: [f32; 256] = e4m3_table();

/// FP4 E2M1: S EE M; magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6, code 8 is -0.
pub static E2M1: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

const fn e4m3_table() -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = e4m3(byte as u8);
        byte += 1;
    }
    table
}

/// The value of one E4M3 byte.
pub(super) const fn e4m3(byte: u8) -> f32 {
    let sign = (byte as u32 >> 7) << 31;
    let exponent = (byte as u32 >> 3) & 0xF;
    let mantissa = byte as u32 & 7;
    if exponent == 0xF && mantissa == 7 {
        return f32::from_bits(sign | 0x7FC0_0000);
    }
    if exponent == 0 {
        // Subnormal: mantissa x 2^-9, exact in float32.
        let magnitude = mantissa as f32 / 512.0;
        return f32::from_bits(sign | magnitude.to_bits());
    }
    // Re-bias the exponent from 7 to 127; the three mantissa bits become the top ones.
    f32::from_bits(sign | (exponent + 120) << 23 | mantissa << 20)
}

/// E8M0 exponent byte as vLLM's V4.1 lookup reads it: placed in the float32 exponent field, so 0 is 0.0 and 255 infinity.
#[inline]
pub fn e8m0_engine(byte: u8) -> f32 {
    f32::from_bits((byte as u32) << 23)
}

/// E8M0 exponent byte by the OCP MX specification: 2^(byte - 127), 255 is NaN.
#[inline]
pub fn e8m0_ocp(byte: u8) -> f32 {
    match byte {
        0 => f32::from_bits(0x0040_0000),
        255 => f32::NAN,
        _ => e8m0_engine(byte),
    }
}

/// IEEE half from its bits, by integer operations that vectorise anywhere. A signalling NaN becomes quiet, as in the
/// processors' conversions.
#[inline]
pub(super) fn f16_value(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7FFF);
    // Re-bias the exponent from 15 to 127.
    let normal = (magnitude << 13) + (112 << 23);
    // Mantissa x 2^-24, exact.
    let subnormal = (magnitude as f32 * f32::from_bits(103 << 23)).to_bits();
    let infinite = magnitude << 13 | 0x7F80_0000;
    let value = match magnitude {
        0..0x0400 => subnormal,
        0x0400..0x7C00 => normal,
        0x7C00 => infinite,
        _ => infinite | 0x0040_0000,
    };
    f32::from_bits(sign | value)
}
