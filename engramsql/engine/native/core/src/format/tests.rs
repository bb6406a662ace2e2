use super::*;

fn all_bytes() -> Vec<u8> {
    (0..=255).collect()
}

#[test]
fn e4m3_matches_its_definition_over_all_bytes() {
    for byte in 0..=255u8 {
        let (sign, exponent, mantissa) = (byte >> 7, (byte >> 3) & 15, byte & 7);
        let value = E4M3[byte as usize];
        if byte & 0x7F == 0x7F {
            assert!(value.is_nan());
            continue;
        }
        let magnitude = match exponent {
            0 => f64::from(mantissa) * 2f64.powi(-9),
            _ => (1.0 + f64::from(mantissa) / 8.0) * 2f64.powi(i32::from(exponent) - 7),
        };
        assert_eq!(f64::from(value.abs()), magnitude, "byte {byte:#x}");
        assert_eq!(value.is_sign_negative(), sign == 1, "byte {byte:#x}");
    }
    assert_eq!(E4M3[0x7E], 448.0);
    assert_eq!(E4M3[0x01], 0.001953125);
}

#[test]
fn e8m0_follows_the_engine_in_rows_and_ocp_alone() {
    let ends = [0u8, 1, 120, 127, 254, 255];
    let engine = ends.map(e8m0_engine);
    assert_eq!(engine[..5], [0.0, 2f32.powi(-126), 2f32.powi(-7), 1.0, 2f32.powi(127)]);
    assert_eq!(engine[5], f32::INFINITY);
    assert_eq!(e8m0_ocp(0), 2f32.powi(-127));
    assert!(e8m0_ocp(255).is_nan());

    // A row of FP8 ones (0x38) shows each scale as it is.
    for byte in ends {
        let mut row = vec![0x38u8; 32];
        row.push(byte);
        let mut out = [0f32; 32];
        ValueFormat::Fp8E4m3E8m0.decode_row(&row, &mut out);
        assert!(out.iter().all(|&value| value == e8m0_engine(byte)));
    }
}

#[test]
fn nvfp4_takes_the_low_nibble_first() {
    let mut row = [0u8; 9];
    row[0] = 0x72; // low 2 -> 1.0, high 7 -> 6.0
    row[8] = 0x40; // block scale 2.0
    let mut out = [0f32; 16];
    ValueFormat::Nvfp4 { scale_2: 0.5 }.decode_row(&row, &mut out);
    assert_eq!(out[..3], [1.0, 6.0, 0.0]);
}

#[test]
fn scaled_table_equals_the_plain_product_for_every_byte() {
    for scale in [209.0 / (1u32 << 20) as f32, 1.0, -3.7e-5, f32::MIN_POSITIVE] {
        let mut out = [0f32; 256];
        Decoder::new(ValueFormat::Fp8E4m3 { scale }).decode(&all_bytes(), &[], &mut out);
        for (byte, value) in out.iter().enumerate() {
            let product = E4M3[byte] * scale;
            assert!(value.to_bits() == product.to_bits() || (value.is_nan() && product.is_nan()));
        }
    }
}

#[test]
fn every_bf16_pattern_survives_unrounded() {
    let decoder = Decoder::new(ValueFormat::Bf16);
    for bits in 0..=u16::MAX {
        let (mut value, mut back) = ([0f32], [0u16]);
        decoder.decode(&bits.to_le_bytes(), &[], &mut value);
        assert_eq!(value[0].to_bits(), u32::from(bits) << 16);
        decoder.decode_bf16(&bits.to_le_bytes(), &[], &mut value, &mut back);
        assert_eq!(back[0], bits);
    }
}

#[test]
fn lengths_that_hold_no_whole_row_have_no_dim() {
    let nvfp4 = ValueFormat::Nvfp4 { scale_2: 1.0 };
    assert_eq!(nvfp4.dim_of(18), Some(32));
    assert_eq!(nvfp4.dim_of(120), None);
    assert_eq!(ValueFormat::Fp8E4m3E8m0.dim_of(264), Some(256));
    assert_eq!(ValueFormat::Fp8E4m3E8m0.dim_of(256), None);
    assert_eq!(ValueFormat::Bf16.dim_of(3), None);
    assert_eq!(ValueFormat::F32.dim_of(0), None);
}

#[test]
fn scales_are_neither_invented_nor_ignored() {
    assert!(matches!(ValueFormat::from_name("fp8_e4m3", None), Err(FormatError::MissingScale { .. })));
    assert!(matches!(ValueFormat::from_name("nvfp4", None), Err(FormatError::MissingScale { .. })));
    assert!(matches!(ValueFormat::from_name("bf16", Some(2.0)), Err(FormatError::UnexpectedScale { .. })));
    assert!(matches!(ValueFormat::from_name("fp8_e4m3", Some(f32::NAN)), Err(FormatError::BadScale { .. })));
    assert!(matches!(ValueFormat::from_name("int6", None), Err(FormatError::Unknown { .. })));
}

#[test]
fn every_half_widens_as_the_half_crate_says() {
    for bits in 0..=u16::MAX {
        let value = scalars::f16_value(bits);
        assert_eq!(value.to_bits(), half::f16::from_bits(bits).to_f32_const().to_bits(), "{bits:#x}");
    }
}
