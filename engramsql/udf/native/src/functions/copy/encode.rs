//! Vectors as row bytes: exact, or refused.

use crate::error::{Error, Result};
use engram_engine::format::ValueFormat;
use half::{bf16, f16};

/// A format that holds a float as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Encoding(ValueFormat);

impl Encoding {
    /// The encoding into `format`.
    ///
    /// # Errors
    /// No format, or one that would round or needs scales nobody gave.
    pub fn new(format: Option<ValueFormat>) -> Result<Encoding> {
        match format {
            Some(format @ (ValueFormat::F32 | ValueFormat::Bf16 | ValueFormat::F16)) => Ok(Encoding(format)),
            Some(format) => Err(Error::argument(format!(
                "to encode vectors as {} is not offered, only as f32, bf16 and f16; give the rows as BLOB instead",
                format.name()
            ))),
            None => Err(Error::argument(
                "vectors need a value format: VALUE_FORMAT f32, or bf16 or f16 where every value is exactly one",
            )),
        }
    }

    /// Bytes of a value.
    pub fn bytes(self) -> usize {
        self.0.row_bytes(1)
    }

    /// Appends the bytes of `values`, row `row` of the store.
    ///
    /// # Errors
    /// The first value that the format does not hold exactly.
    pub fn append(self, values: &[f32], row: u64, out: &mut Vec<u8>) -> Result<()> {
        for (position, &value) in values.iter().enumerate() {
            let (bytes, back) = match self.0 {
                ValueFormat::Bf16 => {
                    let short = bf16::from_f32(value);
                    (short.to_bits().to_le_bytes(), short.to_f32())
                }
                ValueFormat::F16 => {
                    let short = f16::from_f32(value);
                    (short.to_bits().to_le_bytes(), short.to_f32())
                }
                _ => {
                    out.extend_from_slice(&value.to_bits().to_le_bytes());
                    continue;
                }
            };
            // By their bits: a NaN keeps its payload or is refused, and -0 is not 0.
            if back.to_bits() != value.to_bits() {
                return Err(Error::argument(format!(
                    "row {row} has {value:?} at position {position}, which is no {} exactly; write f32, or round it first",
                    self.0.name()
                )));
            }
            out.extend_from_slice(&bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(format: ValueFormat, values: &[f32]) -> Result<Vec<u32>> {
        let encoding = Encoding::new(Some(format))?;
        let mut bytes = Vec::new();
        encoding.append(values, 7, &mut bytes)?;
        assert_eq!(bytes.len(), values.len() * encoding.bytes());
        let mut back = vec![0.0; values.len()];
        format.decode_row(&bytes, &mut back);
        Ok(bits(&back))
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn what_is_written_is_read_back_bit_by_bit() {
        // The largest and the smallest of each format among them.
        let f16 = [0.0, -0.0, 1.5, -2.0, 65504.0, f32::INFINITY, 2f32.powi(-24)];
        let bf16 = [0.0, -0.0, 1.5, f32::MIN_POSITIVE, 2f32.powi(-133), f32::from_bits(0x7F7F_0000), f32::NEG_INFINITY];
        let f32 = [0.1, f32::MAX, f32::from_bits(1), f32::from_bits(0x7FC0_1234)];
        for (format, values) in
            [(ValueFormat::F16, &f16[..]), (ValueFormat::Bf16, &bf16[..]), (ValueFormat::F32, &f32[..])]
        {
            assert_eq!(encode(format, values).unwrap(), bits(values), "{format:?}");
        }
    }

    #[test]
    fn what_a_format_would_round_is_refused() {
        for (format, value) in [
            (ValueFormat::F16, 0.1),
            (ValueFormat::F16, 65505.0),
            (ValueFormat::F16, 2f32.powi(-25)),
            (ValueFormat::Bf16, 1.001),
            (ValueFormat::Bf16, f32::from_bits(0x7FC0_1234)),
        ] {
            let refused = encode(format, &[1.0, value]).unwrap_err().message("engram");
            assert!(refused.starts_with(&format!("engram: row 7 has {value:?} at position 1")), "{refused}");
        }
    }

    #[test]
    fn scales_are_not_invented() {
        let refused = Encoding::new(Some(ValueFormat::Fp8E4m3 { scale: 1.0 })).unwrap_err().message("engram");
        assert!(refused.contains("encode vectors as fp8_e4m3 is not offered"), "{refused}");
    }
}
