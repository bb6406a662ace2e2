"""Files whose layout cannot be proven are refused at registration, by name; what can be proven is read exactly."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import (
    BLOCK_SCALE,
    HEAD_OFFSETS,
    HEAD_SIZES,
    HTML_PAGE,
    LFS_POINTER,
    MULTIPLIERS,
    SCALE,
    SCALE_2,
    SHARD,
    T,
    cut,
    make_qwen,
    make_store,
    make_v41,
    qwen_multipliers,
    write_index,
    write_safetensors,
)
from helpers import f32_bits, one, outcome, q, refuses


def refused(db: Any, path: Path, *fragments: object, **options: Any) -> str:
    """Registering must be refused in one line, and leave no table behind."""
    message = refuses(lambda: db.register("t", path, **options), *fragments)
    assert "\n" not in message.strip(), message
    assert q(db, "SELECT name FROM engram_tables()") == []
    return message


# --- good ones, so that the bad ones below fail for their reason ----------------------------------------------------


@pytest.mark.parametrize("kind", ["fp8", "bf16", "nvfp4"])
@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("pad", [0, 1, 5])
def test_odd_header_lengths_and_any_number_of_files(db: Any, tmp_path: Path, kind: str, files: int, pad: int) -> None:
    made = make_qwen(tmp_path, kind, files=files, pad=pad, metadata={"format": "pt"} if pad else None)
    db.register("t", tmp_path)
    want = made.rows if made.scales is None else np.concatenate([made.rows, made.scales], axis=1)
    t = db.table("t")
    assert t.rows == len(want)
    assert np.array_equal(t.fetch(np.arange(len(want))), want)
    got = q(db, "SELECT row FROM engram_fetch('t', range(?))", len(want))
    assert b"".join(r for (r,) in got) == want.tobytes()


def test_shards_are_ordered_as_numbers(db: Any, tmp_path: Path) -> None:
    """shard_10 follows shard_9, not shard_1."""
    made = make_qwen(tmp_path, shards=12, files=4)
    db.register("t", tmp_path)
    assert np.array_equal(db.table("t").fetch(np.arange(len(made.rows))), made.rows)


def test_unsharded_and_text_only_names(db: Any, tmp_path: Path) -> None:
    made = make_qwen(tmp_path / "a")
    prefix = "model.language_model."
    names = [SHARD.format(s) for s in range(4)] + [SCALE, MULTIPLIERS, HEAD_SIZES, HEAD_OFFSETS]
    make_qwen(tmp_path / "b", rename={n: "model." + n.removeprefix(prefix) for n in names})
    db.register("b", tmp_path / "b")
    assert np.array_equal(db.table("b").fetch(np.arange(256)), made.rows)
    whole = SHARD.format(0).replace("shard_0.", "")
    make_qwen(
        tmp_path / "c",
        drop=tuple(SHARD.format(s) for s in range(4)),
        replace={whole: T("F8_E4M3", (256, 32), made.rows.tobytes())},
    )
    db.register("c", tmp_path / "c")
    assert np.array_equal(db.table("c").fetch(np.arange(256)), made.rows)


@pytest.mark.parametrize(
    ("dtype", "shape", "data"), [("F32", (), struct.pack("<f", 0.25)), ("F16", (1,), struct.pack("<e", 0.25))]
)
def test_scale_of_other_dtypes(db: Any, tmp_path: Path, dtype: str, shape: tuple[int, ...], data: bytes) -> None:
    made = make_qwen(tmp_path / "a", replace={SCALE: T(dtype, shape, data)})
    db.register("t", tmp_path / "a")
    got = db.table("t").vectors([0, 255])
    want = one(db, "SELECT engram_decode(?::BLOB, 'fp8_e4m3', 0.25)", made.rows[255].tobytes())
    assert np.array_equal(f32_bits(got[1]), f32_bits(want))


def test_symbolic_links_are_followed(db: Any, tmp_path: Path) -> None:
    """The usual download cache holds links into a blob folder."""
    made = make_qwen(tmp_path / "blobs", files=2)
    (tmp_path / "snapshot").mkdir()
    for path in (tmp_path / "blobs").iterdir():
        (tmp_path / "snapshot" / path.name).symlink_to(Path("..") / "blobs" / path.name)
    db.register("t", tmp_path / "snapshot")
    assert np.array_equal(db.table("t").fetch(np.arange(256)), made.rows)


def test_v41_names_of_the_engine(db: Any, tmp_path: Path) -> None:
    made = make_v41(tmp_path)
    text = (tmp_path / "model.safetensors").read_bytes()
    renamed = text.replace(b'"layers.1.engram.embed.scale"', b'"layers.1.engram.embed.SCALE"')
    assert renamed != text
    db.register("v", tmp_path)
    want = np.concatenate([made.values[0], made.scales[0]], axis=1)
    assert np.array_equal(db.table("v_l1").fetch(np.arange(len(want))), want)
    db.drop("v_l1")
    db.drop("v_l3")
    (tmp_path / "model.safetensors").write_bytes(renamed)
    refused(db, tmp_path, "layers.1.engram.embed.scale")


# --- missing, short and foreign files -------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [1, 4])
def test_truncated_checkpoint_file(db: Any, tmp_path: Path, files: int) -> None:
    make_qwen(tmp_path, files=files)
    victim = max(tmp_path.glob("*.safetensors"))
    cut(victim, 17)
    refused(db, tmp_path, victim.name, "17")


def test_truncated_inside_the_header(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path)
    for size in (5, 8, 100):
        (tmp_path / "model.safetensors").write_bytes((tmp_path / "model.safetensors").read_bytes()[:size])
        refused(db, tmp_path, "model.safetensors")
        make_qwen(tmp_path)


def test_missing_file_of_the_index(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, files=4)
    (tmp_path / "model-00002-of-00004.safetensors").unlink()
    refused(db, tmp_path, "model-00002-of-00004.safetensors")


def test_every_missing_file_is_named(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, files=4)
    (tmp_path / "model-00002-of-00004.safetensors").unlink()
    (tmp_path / "model-00004-of-00004.safetensors").unlink()
    refused(db, tmp_path, "model-00002-of-00004.safetensors", "model-00004-of-00004.safetensors")


def test_a_missing_file_without_our_tensors_does_not_matter(db: Any, tmp_path: Path) -> None:
    """A table needs its own files only: a released checkpoint may be downloaded in part."""
    made = make_qwen(tmp_path, files=3)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    index["weight_map"]["model.language_model.embed_tokens.weight"] = "model-00009-of-00009.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    db.register("t", tmp_path)
    assert np.array_equal(db.table("t").fetch(np.arange(256)), made.rows)


def test_stray_file_is_ignored(db: Any, tmp_path: Path) -> None:
    made = make_qwen(tmp_path, files=3)
    make_qwen(tmp_path / "other", seed=9)
    (tmp_path / "other" / "model.safetensors").rename(tmp_path / "model.safetensors")
    db.register("t", tmp_path)
    assert np.array_equal(db.table("t").fetch(np.arange(256)), made.rows)


def test_stale_index(db: Any, tmp_path: Path) -> None:
    """The index says a tensor lies in a file whose header does not have it."""
    make_qwen(tmp_path, files=3)
    path = tmp_path / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    tensor = SHARD.format(1)
    other = next(f for f in sorted(set(index["weight_map"].values())) if f != index["weight_map"][tensor])
    index["weight_map"][tensor] = other
    path.write_text(json.dumps(index))
    refused(db, tmp_path, tensor, other)


def test_missing_shard_tensor(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, drop=(SHARD.format(2),))
    refused(db, tmp_path, "shard_2")


@pytest.mark.parametrize(
    ("content", "words"),
    [(LFS_POINTER, ("LFS",)), (HTML_PAGE, ("HTML",)), (b"", ("empty", "0 bytes", "zero"))],
    ids=["lfs", "html", "empty"],
)
def test_a_file_that_is_something_else(db: Any, tmp_path: Path, content: bytes, words: tuple[str, ...]) -> None:
    make_qwen(tmp_path / "one")
    (tmp_path / "one" / "model.safetensors").write_bytes(content)
    refused(db, tmp_path / "one", "model.safetensors", words)
    make_qwen(tmp_path / "many", files=4)
    (tmp_path / "many" / "model-00003-of-00004.safetensors").write_bytes(content)
    refused(db, tmp_path / "many", "model-00003-of-00004.safetensors", words)
    make_store(tmp_path / "store")
    (tmp_path / "store" / "shard_001.bin").write_bytes(content)
    refused(db, tmp_path / "store", "shard_001.bin", words, width=8)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{", b"\xff\xfe{}", b'{"model_type": "llama"}', b"{}"])
def test_config_that_says_nothing(db: Any, tmp_path: Path, content: bytes) -> None:
    make_qwen(tmp_path)
    (tmp_path / "config.json").write_bytes(content)
    refused(db, tmp_path, ("config.json", "model_type"))


def test_source_that_is_not_there(db: Any, tmp_path: Path) -> None:
    refused(db, tmp_path / "nowhere", "nowhere")
    (tmp_path / "bare").mkdir()
    refused(db, tmp_path / "bare", "bare")
    (tmp_path / "file").write_bytes(b"x")
    refused(db, tmp_path / "file", "file")


def test_index_that_is_broken(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, files=2)
    for content in (b"", b"{}", b'{"weight_map": []}', b'{"weight_map": {"a": 5}}'):
        (tmp_path / "model.safetensors.index.json").write_bytes(content)
        refused(db, tmp_path, "model.safetensors.index.json")


def test_index_that_points_outside(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path / "a", files=2)
    path = tmp_path / "a" / "model.safetensors.index.json"
    path.write_text(path.read_text().replace("model-00001-of-00002", "../model-00001-of-00002"))
    refused(db, tmp_path / "a", "model-00001-of-00002")


# --- headers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 2**20, 2**40, 2**63, 2**64 - 1, 100_000_001])
def test_header_length(db: Any, tmp_path: Path, length: int) -> None:
    make_qwen(tmp_path, length=length)
    refused(db, tmp_path, "model.safetensors", "header")


@pytest.mark.parametrize(
    "text", [b"[]", b"{", b"not json", b"\xff\xff\xff\xff", b'{"a": 5}', b'{"a": {"dtype": "F32"}}']
)
def test_header_that_is_no_header(db: Any, tmp_path: Path, text: bytes) -> None:
    make_qwen(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 64)
    refused(db, tmp_path, "model.safetensors", "header")


def test_duplicate_tensor_name(db: Any, tmp_path: Path) -> None:
    made = make_qwen(tmp_path)
    pairs = [(SHARD.format(0), T("F8_E4M3", (64, 32), made.rows[:64].tobytes()))] * 2
    write_safetensors(tmp_path / "model.safetensors", pairs)
    refused(db, tmp_path, "duplicate", SHARD.format(0))


def shard_with(header: dict[str, Any]) -> dict[str, T]:
    return {SHARD.format(1): T("F8_E4M3", (64, 32), b"\x38" * 2048, header)}


@pytest.mark.parametrize(
    "shape",
    [[2**40, 2**30], [2**63, 2], [2**32, 2**32], [-64, 32], [64, -32], [64.5, 32], [64.0, 32.0], ["64", 32], [64],
     [64, 32, 1], [63, 32], [64, 31], [32, 64], [0, 32], None, 64, [1e300, 32], [2**64, 1]],
    ids=str,
)  # fmt: skip
def test_shape_that_does_not_match_its_bytes(db: Any, tmp_path: Path, shape: object) -> None:
    make_qwen(tmp_path, replace=shard_with({"shape": shape}))
    refused(db, tmp_path, "shard_1")


@pytest.mark.parametrize(
    "offsets",
    [
        [-8, 2040],
        [5, 1],
        [0.5, 2048.5],
        ["0", "8"],
        [0],
        [2**63, 2**63 + 2048],
        [2**64 - 2048, 2**64],
        None,
        [0, 2**40],
    ],
    ids=str,
)
def test_offsets_out_of_the_file(db: Any, tmp_path: Path, offsets: object) -> None:
    make_qwen(tmp_path, replace=shard_with({"data_offsets": offsets}))
    refused(db, tmp_path, ("shard_1", "shard_2"))


def test_overlapping_extents(db: Any, tmp_path: Path) -> None:
    """Both extents lie inside the file and match their shapes, but share bytes."""
    make_qwen(tmp_path, replace=shard_with({"data_offsets": [1024, 1024 + 2048]}))
    refused(db, tmp_path, ("overlap", "share"), ("shard_0", "shard_1", "shard_2"))


def test_hole_between_tensors(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, gap_before=SHARD.format(2))
    refused(db, tmp_path, ("hole", "gap", "unused"), "model.safetensors")


def test_bytes_after_the_last_tensor(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, tail=b"\0" * 13)
    refused(db, tmp_path, "13", "model.safetensors")


@pytest.mark.parametrize("dtype", ["F9_X", "F8_E5M2", "I8", "F4", "", "f8_e4m3", "F32", "F8_E8M0", "I64"])
def test_unknown_or_unsupported_dtype(db: Any, tmp_path: Path, dtype: str) -> None:
    replace = {SHARD.format(s): T("F8_E4M3", (64, 32), b"\x38" * 2048, {"dtype": dtype}) for s in range(4)}
    refused_message = refuses(lambda: register(db, tmp_path, replace), "shard_0")
    assert not dtype or dtype in refused_message


def register(db: Any, path: Path, replace: dict[str, T]) -> None:
    make_qwen(path, replace=replace)
    db.register("t", path)


def test_shards_of_different_dtypes(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, replace={SHARD.format(1): T("BF16", (64, 32), b"\0" * 4096)})
    refused(db, tmp_path, "shard_1", "BF16")


# --- scales ---------------------------------------------------------------------------------------------------------


def test_missing_scale(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, drop=(SCALE,))
    refused(db, tmp_path, "weight_scale")


def test_missing_scale_2(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, "nvfp4", drop=(SCALE_2,))
    refused(db, tmp_path, "weight_scale_2")


def test_missing_block_scales(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, "nvfp4", drop=(BLOCK_SCALE.format(3),))
    refused(db, tmp_path, "shard_3.weight_scale")


@pytest.mark.parametrize(
    "scale",
    [T("BF16", (2,), b"\x51\x39" * 2), T("I64", (1,), b"\1" + b"\0" * 7), T("F8_E8M0", (1,), b"\x78"),
     T("F32", (1,), struct.pack("<f", float("nan"))), T("F32", (1,), struct.pack("<f", float("inf")))],
    ids=["two", "I64", "F8_E8M0", "nan", "inf"],
)  # fmt: skip
def test_scale_that_is_no_scale(db: Any, tmp_path: Path, scale: T) -> None:
    make_qwen(tmp_path, replace={SCALE: scale})
    refused(db, tmp_path, "weight_scale")


def test_scale_that_contradicts_the_file(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path)
    refused(db, tmp_path, "scale", scale=0.5)


def test_format_that_contradicts_the_file(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path)
    for name in ("bf16", "nvfp4", "fp8_e4m3_e8m0"):
        refused(db, tmp_path, name, format=name)


def test_v41_with_i8_values_and_f32_scales(db: Any, tmp_path: Path) -> None:
    rows = make_v41(tmp_path / "a").values[0].shape[0]
    replace = {
        "layers.1.engram.embed.weight": T("I8", (rows, 64), b"\1" * rows * 64),
        "layers.1.engram.embed.scale": T("F32", (rows, 2), struct.pack("<f", 1.0) * rows * 2),
    }
    make_v41(tmp_path / "b", replace=replace)
    refused(db, tmp_path / "b", "I8", "layers.1.engram.embed.weight")
    del replace["layers.1.engram.embed.weight"]
    make_v41(tmp_path / "c", replace=replace)
    refused(db, tmp_path / "c", "F32", "layers.1.engram.embed.scale")


def test_v41_missing_scale(db: Any, tmp_path: Path) -> None:
    make_v41(tmp_path, drop=("layers.3.engram.embed.scale",))
    refused(db, tmp_path, "layers.3.engram.embed.scale")


@pytest.mark.parametrize("bits", [3, 5, 6])
def test_packed_rows_of_another_width(db: Any, tmp_path: Path, bits: int) -> None:
    """Packed rows claimed as 8-bit or 4-bit: width x dtype does not give dim, so nothing is decoded."""
    columns = 32 * bits // 8
    for dtype in ("U8", "F8_E4M3", "I8"):
        replace = {SHARD.format(s): T(dtype, (64, columns), b"\x11" * 64 * columns) for s in range(4)}
        make_qwen(tmp_path / f"{dtype}", replace=replace)
        refused(db, tmp_path / f"{dtype}", "shard_0")


def test_other_packings(db: Any, tmp_path: Path) -> None:
    """MLX keeps .scales and .biases beside packed words, others int6 with F16 scales: refused, not decoded."""
    base = SHARD.format(0).removesuffix(".weight")
    replace = {SHARD.format(s): T("U8", (64, 24), b"\x11" * 64 * 24) for s in range(4)}
    replace[base + ".scales"] = T("F16", (64, 2), b"\0" * 256)
    replace[base + ".biases"] = T("F16", (64, 2), b"\0" * 256)
    make_qwen(tmp_path, replace=replace, drop=(SCALE,))
    refused(db, tmp_path, "shard_0")


# --- geometry and hash constants ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [(MULTIPLIERS, qwen_multipliers(3, 512)), (HEAD_SIZES, [53, 59, 61, 67]), (HEAD_OFFSETS, [0, 53, 112, 173])],
)
def test_stored_constant_that_differs(db: Any, tmp_path: Path, name: str, values: list[int]) -> None:
    """Derived constants are checked against those stored; neither is silently preferred."""
    make_qwen(tmp_path / "good", replace={name: T("I64", (len(values),), struct.pack(f"<{len(values)}q", *values))})
    db.register("good", tmp_path / "good")
    db.drop("good")
    wrong = [*values[:-1], values[-1] + 2]
    make_qwen(tmp_path / "bad", replace={name: T("I64", (len(values),), struct.pack(f"<{len(values)}q", *wrong))})
    refused(db, tmp_path / "bad", name.rsplit(".", 1)[1], wrong[-1], values[-1])
    short = values[:-1]
    make_qwen(tmp_path / "short", replace={name: T("I64", (len(short),), struct.pack(f"<{len(short)}q", *short))})
    refused(db, tmp_path / "short", name.rsplit(".", 1)[1])


def test_constants_may_be_absent(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, drop=(MULTIPLIERS, HEAD_SIZES, HEAD_OFFSETS))
    db.register("t", tmp_path)
    assert len(one(db, "SELECT rowids_for_seq('t', [1, 2])")) == 2


@pytest.mark.parametrize("field", ["eos_token_id", "ple_layer_ids"])
def test_config_without_a_required_field(db: Any, tmp_path: Path, field: str) -> None:
    make_qwen(tmp_path, config={field: None})
    refused(db, tmp_path, field)


@pytest.mark.parametrize(
    "field", ["engram_vocab_size", "engram_n_heads", "engram_max_ngram_size", "engram_num_embeddings",
              "engram_layer_ids", "engram_compressed_vocab_size", "engram_pad_token_id"]
)  # fmt: skip
def test_v41_config_without_a_required_field(db: Any, tmp_path: Path, field: str) -> None:
    make_v41(tmp_path, config={field: None})
    refused(db, tmp_path, field)


@pytest.mark.parametrize(
    "config",
    [{"ngram_size": 1}, {"ngram_size": 0}, {"ngram_size": -3}, {"heads_per_ngram": 0}, {"vocab_size": 0},
     {"vocab_size": -5}, {"ngram_vocab_size_base": 0.5}, {"split_ngram_parts": 0},
     {"make_ngram_vocab_size_divisible_by": 0}, {"ple_embed_dim": 130},
     {"eos_token_id": 600}, {"eos_token_id": -1}, {"ple_layer_ids": []}, {"ngram_size": "3"}, {"vocab_size": 2**70}],
    ids=str,
)  # fmt: skip
def test_config_out_of_reason(db: Any, tmp_path: Path, config: dict[str, Any]) -> None:
    make_qwen(tmp_path, config=config)
    refused(db, tmp_path, next(iter(config)))


@pytest.mark.parametrize(
    "config",
    [{"ngram_vocab_size_base": 70}, {"heads_per_ngram": 4, "ple_embed_dim": 256}, {"split_ngram_parts": 3}],
    ids=str,
)
def test_config_that_does_not_fit_the_rows(db: Any, tmp_path: Path, config: dict[str, Any]) -> None:
    make_qwen(tmp_path, config=config, drop=(MULTIPLIERS, HEAD_SIZES, HEAD_OFFSETS))
    refused(db, tmp_path)


def test_fewer_rows_than_the_config_needs(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path, replace={SHARD.format(3): T("F8_E4M3", (40, 32), b"\x38" * 40 * 32)})
    refused(db, tmp_path, "shard_3", "40")
    make_qwen(tmp_path, replace={SHARD.format(1): T("F8_E4M3", (60, 32), b"\x38" * 60 * 32)})
    refused(db, tmp_path, "shard_1", "60")


def test_v41_rows_that_differ_from_the_config(db: Any, tmp_path: Path) -> None:
    rows = make_v41(tmp_path / "a").config["text_config"]["engram_num_embeddings"]
    make_v41(tmp_path / "b", config={"engram_num_embeddings": [rows[0], rows[1] + 1]})
    refused(db, tmp_path / "b", rows[1])
    make_v41(tmp_path / "c", config={"engram_num_embeddings": rows[:1]})
    refused(db, tmp_path / "c", "engram_num_embeddings")


def test_v41_compressed_vocabulary_of_another_size(db: Any, tmp_path: Path) -> None:
    """Every multiplier depends on it, so a tokenizer that yields another count is refused."""
    make_v41(tmp_path, compressed=21)
    refused(db, tmp_path, "21", "22")


def test_v41_without_a_tokenizer(db: Any, tmp_path: Path) -> None:
    """Rows can be served without one; row ids can not, and the message says what to give."""
    made = make_v41(tmp_path / "a", tokenizer=False)
    _, said = outcome(lambda: db.register("v", tmp_path / "a"))
    if said is not None:
        assert "tokenizer" in said
    else:
        want = np.concatenate([made.values[0], made.scales[0]], axis=1)
        assert np.array_equal(db.table("v_l1").fetch(np.arange(len(want))), want)
        refuses(lambda: db.table("v_l1").rowids([5]), "tokenizer")
    make_v41(tmp_path / "b")
    db.register("w", tmp_path / "a", tokenizer=tmp_path / "b" / "tokenizer.json")
    db.register("x", tmp_path / "b")
    assert one(db, "SELECT rowids_for_seq('w_l1', [5, 23, 7])") == one(db, "SELECT rowids_for_seq('x_l1', [5, 23, 7])")


# --- stores ---------------------------------------------------------------------------------------------------------


def test_store_by_width_alone(db: Any, tmp_path: Path) -> None:
    data = make_store(tmp_path)
    db.register("t", tmp_path, width=8)
    assert np.array_equal(db.table("t").fetch(np.arange(30)), data)


def test_store_with_a_manifest(db: Any, tmp_path: Path) -> None:
    data = make_store(tmp_path, manifest=True)
    db.register("t", tmp_path)
    assert np.array_equal(db.table("t").fetch(np.arange(30)), data)
    db.register("u", tmp_path, width=8, rows_per_shard=10)


def test_store_without_geometry(db: Any, tmp_path: Path) -> None:
    make_store(tmp_path)
    refused(db, tmp_path, "width")


def test_store_with_badge_names(db: Any, tmp_path: Path) -> None:
    data = make_store(tmp_path, manifest=True)
    for path in list(tmp_path.glob("shard_*.bin")):
        path.rename(tmp_path / path.name.replace("shard_", "badge_"))
    db.register("t", tmp_path)
    assert np.array_equal(db.table("t").fetch(np.arange(30)), data)


@pytest.mark.parametrize(
    "options",
    [{"rows_per_shard": 5}, {"rows_per_shard": 20}, {"width": 4}, {"width": 16}, {"width": 3}, {"width": 0}],
    ids=str,
)
@pytest.mark.parametrize("manifest", [True, False])
def test_declaration_that_contradicts_the_store(
    db: Any, tmp_path: Path, options: dict[str, int], manifest: bool
) -> None:
    make_store(tmp_path, manifest=manifest)
    if not manifest and "rows_per_shard" in options:
        options = {**options, "width": 8}
    elif not manifest and options["width"] in (4, 16):
        options = {**options, "rows_per_shard": 10}
    refused(db, tmp_path, ("rows_per_shard", "width", "rows of"), **options)


@pytest.mark.parametrize(
    "layout",
    [{"rows_per_shard": 5}, {"rows_per_shard": 11}, {"width": 4}, {"shards": 2}, {"total_rows": 29}, {"elem_bytes": 2},
     {"rows_per_shard": -10}, {"width": 2**62}, {"rows_per_shard": 2**62, "width": 8}, {"width": "8"}],
    ids=str,
)  # fmt: skip
def test_manifest_that_contradicts_the_files(db: Any, tmp_path: Path, layout: dict[str, Any]) -> None:
    make_store(tmp_path, manifest=layout)
    refused(db, tmp_path, ("manifest.json", "shard_0"))


def test_store_with_a_missing_shard(db: Any, tmp_path: Path) -> None:
    make_store(tmp_path / "a", manifest=True)
    (tmp_path / "a" / "shard_001.bin").unlink()
    refused(db, tmp_path / "a", "shard_001.bin")
    make_store(tmp_path / "b")
    (tmp_path / "b" / "shard_001.bin").unlink()
    refused(db, tmp_path / "b", "shard_001.bin", width=8)
    make_store(tmp_path / "c", manifest=True)
    (tmp_path / "c" / "shard_002.bin").unlink()
    refused(db, tmp_path / "c", "shard_002.bin")


@pytest.mark.parametrize("nbytes", [17, 16])
@pytest.mark.parametrize("shard", [0, 1, 2])
def test_store_with_a_short_shard(db: Any, tmp_path: Path, nbytes: int, shard: int) -> None:
    make_store(tmp_path, manifest=True)
    cut(tmp_path / f"shard_{shard:03d}.bin", nbytes)
    refused(db, tmp_path, f"shard_{shard:03d}.bin", nbytes)


def test_store_with_a_short_shard_and_no_manifest(db: Any, tmp_path: Path) -> None:
    """Only the last shard may be shorter, and only by whole rows."""
    make_store(tmp_path)
    cut(tmp_path / "shard_002.bin", 17)
    refused(db, tmp_path, "shard_002.bin", width=8)
    make_store(tmp_path)
    cut(tmp_path / "shard_001.bin", 16)
    refused(db, tmp_path, "shard_001.bin", width=8)
    make_store(tmp_path)
    cut(tmp_path / "shard_002.bin", 16)
    db.register("t", tmp_path, width=8)
    assert db.table("t").rows == 28


def test_format_that_does_not_fit_the_width(db: Any, tmp_path: Path) -> None:
    make_store(tmp_path, width=9, rows=8)
    refused(db, tmp_path, "f32", "9", width=9, format="f32")
    refused(db, tmp_path, "fp8_e4m3_e8m0", "9", width=9, format="fp8_e4m3_e8m0")
    refused(db, tmp_path, "fp9", width=9, format="fp9")
    refused(db, tmp_path, "scale", width=9, format="fp8_e4m3")


def test_spec_that_does_not_fit_the_rows(db: Any, tmp_path: Path) -> None:
    make_store(tmp_path, width=160)
    refused(db, tmp_path, ("rows", "320001536", "320,001,536"), width=160, spec="qwen3.8-flash-next")
    refused(db, tmp_path, "no-such-spec", width=160, spec="no-such-spec")


def test_unknown_option(db: Any, tmp_path: Path) -> None:
    make_store(tmp_path)
    refused(db, tmp_path, "widht", widht=8)


def test_an_index_is_written_by_our_helper(tmp_path: Path) -> None:
    """The helper itself: an index names every tensor once."""
    write_index(tmp_path, {"a": {"x": T("U8", (1,), b"1")}, "b": {"y": T("U8", (1,), b"2")}})
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index == {"metadata": {"total_size": 2}, "weight_map": {"x": "a", "y": "b"}}
