//! How often each stored code occurs, or, where codes have more than eight bits, values of each power of two.

use super::pass::{OfHead, Question, ask};
use crate::error::Result;
use crate::format::{Decoder, E2M1, E4M3, ValueFormat, e8m0_ocp};
use crate::gather::split_row;
use crate::progress::Progress;
use crate::read::Row;
use crate::table::Table;
use std::ops::Range;

/// Values of one head that fall into one bin.
#[derive(Debug, Clone, PartialEq)]
pub struct Bin {
    /// Head, 0-based; `None`: rows that no head reaches, or of a table without a spec.
    pub head: Option<u32>,
    /// The stored code, where codes have at most eight bits.
    pub code: Option<u8>,
    /// What the code stands for before any scale; or the end of the bin that is nearer to zero or, below zero, farther.
    pub low: f64,
    /// The same as `low` for codes, zero, infinities and NaN; else the other end.
    pub high: f64,
    /// Values in it; bins without any are not told.
    pub count: u64,
}

/// Counts the values of the rows `rows` of a table, which are in range, head by head, in one pass.
///
/// Formats with codes of at most eight bits (`fp8_e4m3`, `fp8_e4m3_e8m0`, `nvfp4`, `e8m0`) are counted by code, in the order
/// of the codes. Others are counted by sign and power of two, ascending: a bin holds the values with
/// low <= value < high above zero and low < value <= high below, where the ends are powers of two; the smallest above zero
/// holds the subnormal numbers of float32. Zeros of either sign, each infinity and NaN (last) have bins of their own.
///
/// # Errors
/// A table without a value format, [`Error::Cancelled`](crate::Error::Cancelled), and what reading meets.
pub fn histogram(table: &Table, rows: Range<u64>, progress: &Progress) -> Result<Vec<Bin>> {
    let (decoder, dim) = table.decoder()?;
    let codes = Codes::of(decoder.format());
    let question = Histogram { decoder, dim, codes };
    let found = ask(table, &question, rows, "histogram", progress)?;
    Ok(found.into_iter().flat_map(|OfHead { head, found }| codes.bins(head, &found.0)).collect())
}

/// How the values of a format are counted.
#[derive(Clone, Copy)]
enum Codes {
    /// A byte a value, and what it stands for.
    Bytes(fn(u8) -> f32),
    /// Two values in a byte.
    Nibbles,
    /// By the upper bits of the decoded value: sign and exponent.
    Powers,
}

/// Places of a count: 256 bytes, or 512 combinations of sign and exponent, then zeros and NaN.
const COUNTS: usize = 514;
const ZEROS: usize = 512;
const NANS: usize = 513;

struct Counts(Box<[u64; COUNTS]>);

impl Default for Counts {
    fn default() -> Counts {
        Counts(Box::new([0; COUNTS]))
    }
}

struct Histogram<'a> {
    decoder: &'a Decoder,
    dim: usize,
    codes: Codes,
}

impl Question for Histogram<'_> {
    type Found = Counts;
    /// Counters that are used in turn, since one that was just written is waited for; and a decoded row.
    type Scratch = ([[u64; 256]; 4], Vec<f32>);

    fn scratch(&self) -> Self::Scratch {
        ([[0; 256]; 4], vec![0.0; self.dim])
    }

    #[inline]
    fn take(&self, (counters, decoded): &mut Self::Scratch, found: &mut Counts, row: Row<'_>) {
        let (values, scales) = split_row(row, self.decoder.format().value_bytes(self.dim));
        if let Codes::Powers = self.codes {
            self.decoder.decode(values, scales, decoded);
            for value in decoded {
                found.0[place_of(*value)] += 1;
            }
            return;
        }
        let (whole, rest) = values.as_chunks::<4>();
        for codes in whole {
            for (counter, &code) in counters.iter_mut().zip(codes) {
                counter[usize::from(code)] += 1;
            }
        }
        for &code in rest {
            counters[0][usize::from(code)] += 1;
        }
    }

    fn finish(&self, (counters, _): &mut Self::Scratch, found: &mut Counts) {
        for counter in counters {
            for (total, count) in found.0.iter_mut().zip(counter) {
                *total += std::mem::take(count);
            }
        }
    }

    fn merge(found: &mut Counts, later: Counts) {
        found.0.iter_mut().zip(later.0.iter()).for_each(|(total, count)| *total += count);
    }
}

/// Where a decoded value is counted.
#[inline]
fn place_of(value: f32) -> usize {
    if value == 0.0 {
        ZEROS
    } else if value.is_nan() {
        NANS
    } else {
        (value.to_bits() >> 23) as usize
    }
}

/// Ends of the bin of an exponent field above zero; infinity is both ends of the last.
fn ends(exponent: usize) -> (f64, f64) {
    let power = |exponent: i64| f64::from_bits(((exponent + 1023) as u64) << 52);
    match exponent as i64 {
        0 => (power(-149), power(-126)),
        255 => (f64::INFINITY, f64::INFINITY),
        exponent => (power(exponent - 127), power(exponent - 126)),
    }
}

impl Codes {
    fn of(format: &ValueFormat) -> Codes {
        match format {
            ValueFormat::Fp8E4m3 { .. } | ValueFormat::Fp8E4m3E8m0 => Codes::Bytes(|code| E4M3[usize::from(code)]),
            ValueFormat::E8m0 => Codes::Bytes(e8m0_ocp),
            ValueFormat::Nvfp4 { .. } => Codes::Nibbles,
            ValueFormat::Bf16 | ValueFormat::F16 | ValueFormat::F32 => Codes::Powers,
        }
    }

    /// The bins of one head that hold anything.
    fn bins(self, head: Option<u32>, counts: &[u64; COUNTS]) -> Vec<Bin> {
        let of_code = |code: u8, value: f32, count| {
            let value = f64::from(value);
            Bin { head, code: Some(code), low: value, high: value, count }
        };
        let mut bins: Vec<Bin> = match self {
            Codes::Bytes(value) => {
                (0..=255).map(|code: u8| of_code(code, value(code), counts[usize::from(code)])).collect()
            }
            Codes::Nibbles => {
                let of = |nibble: u8| -> u64 {
                    let twice = |byte: &u8| u64::from(byte & 0xF == nibble) + u64::from(byte >> 4 == nibble);
                    (0..=255).map(|byte: u8| counts[usize::from(byte)] * twice(&byte)).sum()
                };
                (0..16).map(|nibble: u8| of_code(nibble, E2M1[usize::from(nibble)], of(nibble))).collect()
            }
            Codes::Powers => {
                let bin = |low, high, count| Bin { head, code: None, low, high, count };
                let below = (0..256).rev().map(|exponent| {
                    let (near, far) = ends(exponent);
                    bin(-far, -near, counts[256 + exponent])
                });
                let above = (0..256).map(|exponent| {
                    let (near, far) = ends(exponent);
                    bin(near, far, counts[exponent])
                });
                let zeros = bin(0.0, 0.0, counts[ZEROS]);
                below.chain([zeros]).chain(above).chain([bin(f64::NAN, f64::NAN, counts[NANS])]).collect()
            }
        };
        bins.retain(|bin| bin.count > 0);
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_between_the_ends_of_its_bin() {
        let values = [f32::from_bits(1), 1e-40, f32::MIN_POSITIVE, 0.75, 1.0, 1.5, 2.0, f32::MAX];
        for value in values.into_iter().flat_map(|value| [value, -value]) {
            let mut counts = [0; COUNTS];
            counts[place_of(value)] = 3;
            let bins = Codes::Powers.bins(Some(1), &counts);
            let [Bin { head: Some(1), code: None, low, high, count: 3 }] = bins[..] else { panic!("{bins:?}") };
            let (low, high, value) = if value < 0.0 { (-high, -low, -value) } else { (low, high, value) };
            assert!(low <= f64::from(value) && f64::from(value) < high, "{value} in {low} to {high}");
        }
    }

    #[test]
    fn bins_ascend_and_nan_is_last() {
        let mut counts = [0; COUNTS];
        for value in [1.0, -1.0, -3.0, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN, 5.0] {
            counts[place_of(value)] += 1;
        }
        let bins = Codes::Powers.bins(None, &counts);
        let lows: Vec<f64> = bins.iter().map(|bin| bin.low).collect();
        assert_eq!(lows[..7], [f64::NEG_INFINITY, -4.0, -2.0, 0.0, 1.0, 4.0, f64::INFINITY]);
        assert!(lows[7].is_nan() && lows.len() == 8);
        assert_eq!(bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [1, 1, 1, 2, 1, 1, 1, 2]);
    }

    #[test]
    fn a_byte_of_nibbles_counts_twice() {
        let mut counts = [0; COUNTS];
        (counts[0x11], counts[0x2F]) = (5, 7);
        let bins = Codes::Nibbles.bins(None, &counts);
        let found: Vec<_> = bins.iter().map(|bin| (bin.code, bin.low, bin.count)).collect();
        assert_eq!(found, [(Some(1), 0.5, 10), (Some(2), 1.0, 7), (Some(15), -6.0, 7)]);
    }
}
