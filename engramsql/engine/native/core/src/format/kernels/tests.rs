//! Every level that this processor has, called by name, against the portable kernels: the same bits.

use super::super::{Decoder, ValueFormat};
use crate::cpu::{self, Level};

/// Small deterministic generator; the cases need variety, not quality.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

/// Scales of any size and sign: subnormal, so large that products overflow, with and without rounding to bfloat16.
const SCALES: [f32; 14] = [
    1.0,
    -1.0,
    209.0 / (1 << 20) as f32,
    -3.7e-5,
    0.1,
    f32::MIN_POSITIVE,
    1e-40,
    -1e-45,
    f32::MAX,
    -f32::MAX,
    1.5e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
];

fn formats() -> Vec<ValueFormat> {
    let mut formats =
        vec![ValueFormat::Fp8E4m3E8m0, ValueFormat::Bf16, ValueFormat::F16, ValueFormat::F32, ValueFormat::E8m0];
    formats.extend(SCALES.map(|scale| ValueFormat::Fp8E4m3 { scale }));
    formats.extend(SCALES.map(|scale_2| ValueFormat::Nvfp4 { scale_2 }));
    formats
}

/// One row decoded to float32 and bfloat16, from and to addresses with the given remainders.
#[derive(Debug, PartialEq)]
struct Decoded {
    f32: Vec<u32>,
    bf16: Vec<u16>,
}

const GUARD: u32 = 0xDEAD_BEEF;

fn decode(decoder: &Decoder, row: &[u8], dim: usize, shift: usize) -> Decoded {
    let format = decoder.format();
    let mut moved = vec![0; shift % 67];
    moved.extend_from_slice(row);
    let (values, scales) = moved[shift % 67..].split_at(format.value_bytes(dim));
    // A guard on both sides shows stores outside.
    let at = shift % 17 + 1;
    let mut wide = vec![f32::from_bits(GUARD); at + dim + 17];
    decoder.decode(values, scales, &mut wide[at..at + dim]);
    let mut narrow = vec![GUARD as u16; at + dim + 33];
    let mut scratch = vec![0.0; dim];
    decoder.decode_bf16(values, scales, &mut scratch, &mut narrow[at..at + dim]);
    let outside = |i: usize| !(at..at + dim).contains(&i);
    assert!((0..wide.len()).filter(|&i| outside(i)).all(|i| wide[i].to_bits() == GUARD));
    assert!((0..narrow.len()).filter(|&i| outside(i)).all(|i| narrow[i] == GUARD as u16));
    Decoded {
        f32: wide[at..at + dim].iter().map(|value| value.to_bits()).collect(),
        bf16: narrow[at..at + dim].to_vec(),
    }
}

/// The levels to hold against the portable one; a machine with none proves nothing here.
fn levels() -> Vec<Level> {
    cpu::available().into_iter().filter(|&level| level != Level::Portable).collect()
}

fn assert_same(format: ValueFormat, row: &[u8], dim: usize, shift: usize) {
    let truth = decode(&Decoder::at(Level::Portable, format).unwrap(), row, dim, shift);
    for level in levels() {
        let decoder = Decoder::at(level, format).unwrap();
        assert_eq!(decoder.level(), level);
        assert_eq!(decode(&decoder, row, dim, shift), truth, "{level}, {format:?}, dim {dim}, shift {shift}");
    }
}

#[test]
fn random_rows_of_every_length_and_alignment() {
    let mut draw = Draw(1);
    for format in formats() {
        for length in 0..=600 {
            let dim = match format {
                ValueFormat::Fp8E4m3E8m0 => length / 32 * 32,
                ValueFormat::Nvfp4 { .. } => length / 16 * 16,
                _ => length,
            };
            let row = draw.bytes(format.row_bytes(dim));
            assert_same(format, &row, dim, draw.below(1 << 16));
        }
    }
}

#[test]
fn every_byte_with_every_scale() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut draw = Draw(2);
    let random = (0..3000).map(|_| f32::from_bits(draw.next() as u32)).filter(|scale| !scale.is_nan());
    for scale in SCALES.into_iter().chain(random) {
        assert_same(ValueFormat::Fp8E4m3 { scale }, &bytes, 256, 0);
    }
    assert_same(ValueFormat::E8m0, &bytes, 256, 0);
    for exponent in 0..=255u8 {
        let mut row = bytes.clone();
        row.extend([exponent; 8]);
        assert_same(ValueFormat::Fp8E4m3E8m0, &row, 256, 0);
    }
}

#[test]
fn every_pair_of_nibbles_with_every_block_scale() {
    let bytes: Vec<u8> = (0..=255).collect();
    for scale_2 in SCALES {
        for scale in 0..=255u8 {
            let mut row = bytes.clone();
            row.extend([scale; 32]);
            assert_same(ValueFormat::Nvfp4 { scale_2 }, &row, 512, 0);
        }
    }
}

#[test]
fn every_half() {
    let row: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    assert_same(ValueFormat::F16, &row, 1 << 16, 0);
    assert_same(ValueFormat::Bf16, &row, 1 << 16, 0);
}

#[test]
fn float32_rounds_to_bfloat16_alike() {
    // Every upper half with the lower halves around a tie.
    for low in [0u32, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF] {
        let row: Vec<u8> = (0..=0xFFFFu32).flat_map(|high| (high << 16 | low).to_le_bytes()).collect();
        assert_same(ValueFormat::F32, &row, 1 << 16, 0);
    }
}

#[test]
fn slices_that_do_not_fit_end_with_the_shorter() {
    let mut draw = Draw(3);
    for format in formats() {
        for _ in 0..200 {
            let (values, scales) = (draw.bytes(draw.0 as usize % 300), draw.bytes(draw.0 as usize % 20));
            let dim = draw.below(300);
            let decoded = |level| {
                let mut out = vec![0.0; dim];
                Decoder::at(level, format).unwrap().decode(&values, &scales, &mut out);
                out.iter().map(|value: &f32| value.to_bits()).collect::<Vec<u32>>()
            };
            for level in levels() {
                assert_eq!(decoded(level), decoded(Level::Portable), "{level}, {format:?}");
            }
        }
    }
}

#[test]
fn streamed_rows_are_the_same_rows() {
    let mut draw = Draw(4);
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<u32>>();
    for format in formats() {
        for (dim, shift) in [(160, 0), (160, 1), (160, 8), (256, 16), (32, 5)] {
            let row_bytes = format.row_bytes(dim);
            let rows = draw.bytes(3 * row_bytes);
            for level in cpu::available() {
                let decoder = Decoder::at(level, format).unwrap();
                let (mut streamed, mut expected) = (vec![0f32; shift + 3 * dim], vec![0f32; 3 * dim]);
                let mut stream = decoder.stream(dim, &mut streamed[shift..]);
                for position in [2, 0, 1] {
                    let row = &rows[position * row_bytes..][..row_bytes];
                    let (values, scales) = row.split_at(format.value_bytes(dim));
                    stream.decode(position, values, scales);
                    decoder.decode(values, scales, &mut expected[position * dim..][..dim]);
                }
                drop(stream);
                assert_eq!(bits(&streamed[shift..]), bits(&expected), "{level}, {format:?}, dim {dim}, shift {shift}");
            }
        }
    }
}
