"""engram_decode turns bytes into the float32 values of the published engines, bit for bit."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from golden_data import case
from helpers import assert_same_bf16, assert_same_bits, bf16_bits, f32_bits, one, sql_refuses

if TYPE_CHECKING:
    from numpy.typing import NDArray


def decode(db: Any, rows: NDArray[np.uint8], format_: str, scale: float | None = None) -> NDArray[np.float32]:
    """Decodes each row in one statement over a column, and checks that a constant gives the same."""
    blobs = [r.tobytes() for r in rows]
    arguments = "?" if scale is None else f"?, {scale!r}::FLOAT"
    call = f"engram_decode(b, {arguments})"
    sql = f"SELECT {call} FROM (SELECT unnest(?::BLOB[]) AS b)"
    found = db.connection.execute(sql, [format_, blobs]).fetchall()
    constant = one(db, f"SELECT engram_decode(?::BLOB, {arguments})", blobs[0], format_)
    assert np.array_equal(f32_bits(constant), f32_bits(found[0][0]))
    return np.array([f for (f,) in found], dtype=np.float32)


def f32(bits: NDArray[np.uint32]) -> float:
    return struct.unpack("<f", struct.pack("<I", int(bits.item())))[0]


def test_every_e4m3_byte(db: Any) -> None:
    c = case("decode", "e4m3fn")
    found = decode(db, np.arange(256, dtype=np.uint8)[None], "fp8_e4m3", 1.0)
    assert_same_bits(found[0], c["f32"])
    assert_same_bf16(bf16_bits(found[0]), c["bf16"])


def test_every_e8m0_byte_by_the_engine_rule(db: Any) -> None:
    c = case("decode", "e8m0")
    # 0x38 is 1.0, so every value is its block's scale.
    rows = np.concatenate([np.full((256, 32), 0x38, np.uint8), np.arange(256, dtype=np.uint8)[:, None]], axis=1)
    found = decode(db, rows, "fp8_e4m3_e8m0")
    assert found.shape == (256, 32)
    assert_same_bits(found[:, 0], c["engine_f32"])
    assert_same_bits(found[:, 31], c["engine_f32"])
    differ = np.flatnonzero(c["engine_f32"] != c["ocp_f32"])
    assert differ.tolist() == [0, 255]


def test_every_pair_of_nibbles(db: Any) -> None:
    c = case("decode", "e2m1")
    packed = np.arange(256, dtype=np.uint8).reshape(32, 8)
    rows = np.concatenate([packed, np.full((32, 1), 0x38, np.uint8)], axis=1)
    found = decode(db, rows, "nvfp4", 1.0)
    assert_same_bits(found.reshape(256, 2), c["byte_to_pair_f32"])


def test_bf16(db: Any) -> None:
    c = case("decode", "bf16")
    found = decode(db, c["bits"].astype("<u2")[None].view(np.uint8), "bf16")
    assert_same_bits(found[0], c["f32"])


@pytest.mark.parametrize(("type_", "format_"), [("<f2", "f16"), ("<f4", "f32")])
def test_half_and_single(db: Any, type_: str, format_: str) -> None:
    values = np.array([0.0, -0.0, 1.0, -2.5, 6e-8, 65504.0, np.inf, -np.inf, np.nan, 0.1], dtype=type_)
    found = decode(db, values[None].view(np.uint8), format_)
    assert_same_bits(found[0], f32_bits(values.astype(np.float32)))


@pytest.mark.parametrize("name", ["qwen_fp8_real_scale", "qwen_fp8_other_scale"])
def test_qwen_rows(db: Any, name: str) -> None:
    c = case("decode", name)
    found = decode(db, c["rows"], "fp8_e4m3", f32(c["scale_f32"]))
    assert_same_bits(found, c["out_f32"])
    assert_same_bf16(bf16_bits(found), c["out_bf16"])


def test_v41_rows(db: Any) -> None:
    c = case("decode", "v41_rows")
    assert np.array_equal(c["packed"], np.concatenate([c["weight"], c["scale"]], axis=1))
    found = decode(db, c["packed"], "fp8_e4m3_e8m0")
    assert_same_bits(found, c["out_f32"])
    assert_same_bf16(bf16_bits(found), c["out_bf16"])


def test_v41_extremes(db: Any) -> None:
    c = case("decode", "v41_extreme")
    found = decode(db, np.concatenate([c["weight"], c["scale"]], axis=1), "fp8_e4m3_e8m0")
    assert_same_bits(found, c["out_f32"])
    assert_same_bf16(bf16_bits(found), c["out_bf16"])


def test_nvfp4_rows_in_the_order_of_the_lookup_kernel(db: Any) -> None:
    c = case("decode", "nvfp4_rows")
    rows = np.concatenate([c["packed"], c["block_scale"]], axis=1)
    found = decode(db, rows, "nvfp4", f32(c["global_scale_f32"]))
    assert_same_bits(found, c["out_f32_gpu_order"])
    assert_same_bf16(bf16_bits(found), c["out_bf16_gpu_order"])
    assert_same_bf16(bf16_bits(found), c["out_bf16_cpu"])


def test_e8m0_is_an_exponent_not_a_number(db: Any) -> None:
    row = bytes([0x38] * 32) + bytes([120])
    assert one(db, "SELECT engram_decode(?::BLOB, 'fp8_e4m3_e8m0')", row)[0] == 2.0**-7


def test_more_rows_than_one_vector(db: Any) -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 0x7F, (5000, 32), dtype=np.uint8)
    found = decode(db, rows, "fp8_e4m3", 0.5)
    table = np.array([decode_e4m3(b) for b in range(256)], np.float32)
    assert_same_bits(found, f32_bits(table[rows] * np.float32(0.5)))


def decode_e4m3(byte: int) -> float:
    """The definition, in words: S EEEE MMM, bias 7, subnormals at E = 0, NaN at 0x7F and 0xFF."""
    sign = -1.0 if byte & 0x80 else 1.0
    exponent, mantissa = (byte >> 3) & 15, byte & 7
    if exponent == 15 and mantissa == 7:
        return float("nan")
    return sign * (mantissa * 2.0**-9 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


def test_null_in_null_out(db: Any) -> None:
    assert one(db, "SELECT engram_decode(NULL::BLOB, 'bf16')") is None
    rows = db.connection.execute(
        "SELECT engram_decode(CASE WHEN i % 3 = 0 THEN NULL ELSE '\\x80\\x3F'::BLOB END, 'bf16') FROM range(5000) t(i)"
    ).fetchall()
    assert [r for (r,) in rows] == [None if i % 3 == 0 else [1.0] for i in range(5000)]


@pytest.mark.parametrize(
    ("blob", "format_", "scale", "fragments"),
    [
        (b"\x38" * 8, "fp8_e5m2", "1.0", ["fp8_e5m2", "fp8_e4m3"]),
        (b"\x38" * 8, "int6", None, ["int6"]),
        (b"\x38" * 8, "F8_E4M3FNUZ", "1.0", ["FNUZ"]),
        (b"\x38" * 8, "fp8_e4m3", None, ["scale"]),
        (b"\x38" * 9, "nvfp4", None, ["scale"]),
        (b"\x38" * 33, "fp8_e4m3_e8m0", "2.0", ["scale"]),
        (b"\x38" * 3, "bf16", None, ["bf16", "3"]),
        (b"\x38" * 34, "fp8_e4m3_e8m0", None, ["34"]),
        (b"\x38" * 10, "nvfp4", "1.0", ["10"]),
        (b"\x38" * 5, "f32", None, ["f32", "5"]),
    ],
)
def test_refused(db: Any, blob: bytes, format_: str, scale: str | None, fragments: list[str]) -> None:
    arguments = "?::BLOB, ?" + (f", {scale}" if scale else "")
    sql_refuses(db, f"SELECT engram_decode({arguments})", *fragments, params=[blob, format_])
