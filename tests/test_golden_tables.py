"""Tiny checkpoints of every kind: row ids, rows and e_t equal what the published engines computed, by every route."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from golden_data import GOLDEN, Case, case
from helpers import assert_same_bf16, bf16_bits, bf16_values, f32_bits, one, q

if TYPE_CHECKING:
    from numpy.typing import NDArray

QWEN = ["fp8", "bf16", "nvfp4"]
TABLES = [*QWEN, "v41_l1", "v41_l3"]


def expected(table: str) -> tuple[Case, NDArray[np.int64], NDArray[np.uint16]]:
    """(case, row ids [tokens, heads], e_t bfloat16 bits [tokens, heads * dim])."""
    if table in QWEN:
        c = case(f"ckpt_qwen4_exp_{table}_expected", "main")
        return c, c["rowids"].astype(np.int64), c["e_t_bf16_gpu_order" if table == "nvfp4" else "e_t_bf16"]
    c = case("ckpt_deepseek_v41_expected", "main")
    layer = int(table.removeprefix("v41_l"))
    return c, c["ids"][:, [1, 3].index(layer)].astype(np.int64), c[f"e_t_bf16_layer_{layer}"]


def expected_rows(table: str, c: Case) -> NDArray[np.uint8] | None:
    """Stored bytes [tokens, heads, row bytes] where golden has them: values, then block scales."""
    if table == "fp8":
        return c["rows"]
    if table == "nvfp4":
        return np.concatenate([c["packed_rows"], c["block_scales"]], axis=2)
    return None


@pytest.mark.parametrize("table", TABLES)
def test_rowids(golden_db: Any, table: str) -> None:
    c, ids, _ = expected(table)
    tokens = c["tokens"].astype(np.int64)
    assert np.array_equal(golden_db.table(table).rowids(tokens), ids)
    assert one(golden_db, "SELECT rowids_for_seq(?, ?::BIGINT[])", table, tokens.tolist()) == ids.tolist()
    for cut in (1, 7, len(tokens) - 1):
        tail = golden_db.table(table).rowids(tokens[cut:], history=tokens[:cut])
        assert np.array_equal(tail, ids[cut:])


@pytest.mark.parametrize("table", TABLES)
def test_rows_and_values_through_fetch(golden_db: Any, table: str) -> None:
    c, ids, e_t = expected(table)
    tokens, heads = ids.shape
    rows = q(golden_db, "SELECT * FROM engram_fetch(?, ?::BIGINT[][])", table, ids.tolist())
    assert [r[:4] for r in rows] == [(t * heads + h, t, h, int(ids[t, h])) for t in range(tokens) for h in range(heads)]
    values = np.array([r[4] for r in rows], dtype=np.float32).reshape(tokens, -1)
    assert_same_bf16(bf16_bits(values), e_t)
    raw = expected_rows(table, c)
    if raw is not None:
        assert b"".join(r[5] for r in rows) == raw.tobytes()
    if table == "bf16":
        assert b"".join(r[5] for r in rows) == e_t.astype("<u2").tobytes()
        assert np.array_equal(f32_bits(values), f32_bits(bf16_values(e_t)))


@pytest.mark.parametrize("table", TABLES)
def test_flat_list_has_no_token(golden_db: Any, table: str) -> None:
    _, ids, _ = expected(table)
    rows = q(golden_db, "SELECT ord, token, head, rowid FROM engram_fetch(?, ?::BIGINT[])", table, ids.ravel().tolist())
    assert [(r[0], r[1], r[3]) for r in rows] == [(k, None, int(i)) for k, i in enumerate(ids.ravel())]


@pytest.mark.parametrize("table", TABLES)
def test_embeddings(golden_db: Any, table: str) -> None:
    c, _, e_t = expected(table)
    tokens = c["tokens"].astype(np.int64).tolist()
    rows = q(golden_db, "SELECT token, token_id, e_t FROM engram_embeddings(?, ?::BIGINT[])", table, tokens)
    assert [r[:2] for r in rows] == list(enumerate(tokens))
    assert_same_bf16(bf16_bits([r[2] for r in rows]), e_t)
    tail = q(golden_db, "SELECT e_t FROM engram_embeddings(?, ?::BIGINT[], ?::BIGINT[])", table, tokens[9:], tokens[:9])
    assert_same_bf16(bf16_bits([r[0] for r in tail]), e_t[9:])


@pytest.mark.parametrize("table", TABLES)
def test_scalars(golden_db: Any, table: str) -> None:
    c, ids, e_t = expected(table)
    dim = e_t.shape[1] // ids.shape[1]
    found = q(
        golden_db,
        f"SELECT engram_row('{table}', i), engram_vector('{table}', i) FROM (SELECT unnest(?::BIGINT[]) AS i)",
        ids.ravel().tolist(),
    )
    assert_same_bf16(bf16_bits([v for _, v in found]), e_t.reshape(-1, dim))
    raw = expected_rows(table, c)
    if raw is not None:
        assert b"".join(r for r, _ in found) == raw.tobytes()
    vectors = q(golden_db, f"SELECT engram_e_t('{table}', l) FROM (SELECT unnest(?::BIGINT[][]) AS l)", ids.tolist())
    assert_same_bf16(bf16_bits([v for (v,) in vectors]), e_t)


@pytest.mark.parametrize("table", TABLES)
def test_python(golden_db: Any, table: str) -> None:
    c, ids, e_t = expected(table)
    tokens = c["tokens"].astype(np.int64)
    t = golden_db.table(table)
    dim = e_t.shape[1] // ids.shape[1]

    rows = t.fetch(ids.ravel())
    assert rows.dtype == np.uint8
    assert rows.shape == (ids.size, t.row_bytes)
    raw = expected_rows(table, c)
    if raw is not None:
        assert np.array_equal(rows, raw.reshape(ids.size, -1))

    vectors = t.vectors(ids.ravel())
    assert vectors.dtype == np.float32
    assert_same_bf16(bf16_bits(vectors), e_t.reshape(-1, dim))
    out = np.full_like(vectors, np.nan)
    t.vectors(ids.ravel(), out=out)
    assert np.array_equal(f32_bits(out), f32_bits(vectors))

    found = t.e_t(tokens)
    assert found.dtype == np.float32
    assert np.array_equal(f32_bits(found), f32_bits(vectors).reshape(found.shape))
    assert_same_bf16(t.e_t(tokens, dtype="bfloat16"), e_t)


def test_float_is_the_exact_product(golden_db: Any) -> None:
    c, _, e_t = expected("fp8")
    found = golden_db.table("fp8").e_t(c["tokens"].astype(np.int64))
    assert found.shape == e_t.shape
    assert hashlib.sha256(found.astype("<f4").tobytes()).digest() == c["e_t_f32_sha256"].tobytes()
    sql = q(golden_db, "SELECT e_t FROM engram_embeddings('fp8', ?::BIGINT[])", c["tokens"].tolist())
    bytes_ = np.array([r[0] for r in sql], dtype="<f4").tobytes()
    assert hashlib.sha256(bytes_).digest() == c["e_t_f32_sha256"].tobytes()


@pytest.mark.parametrize("table", TABLES)
def test_geometry(golden_db: Any, table: str) -> None:
    row = q(golden_db, "SELECT rows, dim, row_bytes, heads, shards FROM engram_tables() WHERE name = ?", table)[0]
    c, ids, e_t = expected(table)
    dim = e_t.shape[1] // ids.shape[1]
    if table in QWEN:
        assert row[0] == c.top["padded_rows"]
        assert row[4] == c.top["shards"]
    else:
        k = [1, 3].index(int(table[-1]))
        assert row[0] == c.top["config"]["engram_num_embeddings"][k]
    assert row[1] == dim
    assert row[3] == ids.shape[1]
    assert row[2] == {"fp8": dim, "bf16": 2 * dim, "nvfp4": dim // 2 + dim // 16}.get(table, dim + dim // 32)
    heads = q(golden_db, "SELECT head, size, first_row FROM engram_heads(?) ORDER BY head", table)
    assert [h[0] for h in heads] == list(range(ids.shape[1]))
    for h, size, first in heads:
        assert ((ids[:, h] >= first) & (ids[:, h] < first + size)).all()


def test_token_map_of_the_tiny_tokenizer(golden_db: Any) -> None:
    """Ids whose normalised text is equal hash alike: the map is what the published builder made of tokenizer.json."""
    c, _, _ = expected("v41_l1")
    token_map = c["token_map"].astype(np.int64)
    t = golden_db.table("v41_l1")
    first = {int(m): i for i, m in reversed(list(enumerate(token_map)))}
    dead = c.top["dead_token_id"]
    for i, m in enumerate(token_map.tolist()):
        if i != dead and first[m] != dead:
            assert np.array_equal(t.rowids([i]), t.rowids([first[m]]))


@pytest.mark.parametrize("table", TABLES)
def test_a_second_reader_sees_the_same_tensors(golden_db: Any, table: str) -> None:
    """The safetensors package, which shares no code with ours, reads the same bytes for every row of the table."""
    safe_open = pytest.importorskip("safetensors").safe_open
    folder = GOLDEN / ("ckpt_deepseek_v41" if table.startswith("v41") else f"ckpt_qwen4_exp_{table}")
    tensors: dict[str, NDArray[np.uint8]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        # numpy has no FP8 or BF16: take the raw bytes that the package's own header parser points at.
        with safe_open(path, "np") as f:
            names = set(f.keys())
        for name, entry in _deserialize(path.read_bytes()):
            assert name in names
            tensors[name] = np.frombuffer(entry["data"], dtype=np.uint8).reshape(entry["shape"][0] or 1, -1)
    if table.startswith("v41"):
        layer = table[-1]
        parts = [tensors[f"layers.{layer}.engram.embed.weight"], tensors[f"layers.{layer}.engram.embed.scale"]]
        want = np.concatenate(parts, axis=1)
    else:
        prefix = "model.language_model.layers.1.ple.ple_embedding.ngram_embedding.shard_"
        count = sum(n.startswith(prefix) and n.endswith(".weight") for n in tensors)
        blocks = []
        for s in range(count):
            block = tensors[f"{prefix}{s}.weight"]
            if table == "nvfp4":
                block = np.concatenate([block, tensors[f"{prefix}{s}.weight_scale"]], axis=1)
            blocks.append(block)
        want = np.concatenate(blocks)
    t = golden_db.table(table)
    assert t.rows == len(want)
    assert np.array_equal(t.fetch(np.arange(t.rows)), want)


def _deserialize(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    from safetensors import deserialize

    return deserialize(data)
