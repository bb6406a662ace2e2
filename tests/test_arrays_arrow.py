"""Rows and vectors as Arrow arrays over the memory they were read into."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from extension_support import FP8, GOLDEN

from engramsql.engine import Session, Table
from engramsql.errors import ArgumentError, FormatError, RowIdError, RowIdTypeError

ROWS, WIDTH = 1408, 160


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session.open(tmp_path_factory.mktemp("arrow") / "db", create=True)


@pytest.fixture(scope="module")
def table(session: Session) -> Table:
    session.register("ple", FP8)
    return session.table("ple")


def expected(rows: Any, ids: list[int | None]) -> list[Any]:
    return [None if id is None else rows[id] for id in ids]


@pytest.mark.parametrize("ids", [[7], [5, 6, 5], list(range(0, ROWS, 3)), []], ids=lambda ids: f"{len(ids)}")
@pytest.mark.parametrize("kind", [list, np.array, pa.array, lambda ids: pa.chunked_array([ids, ids[:1]])[: len(ids)]])
def test_rows_and_vectors(table: Table, ids: list[int], kind: Any):
    given = kind(ids)
    rows = table.fetch_arrow(given)
    rows.validate(full=True)
    assert rows.type == pa.binary(WIDTH)
    assert rows.to_pylist() == [row.tobytes() for row in table.fetch(ids)]
    vectors = table.vectors_arrow(given)
    vectors.validate(full=True)
    assert vectors.type == pa.list_(pa.float32(), WIDTH)
    assert (rows.null_count, vectors.null_count) == (0, 0)
    np.testing.assert_array_equal(vectors.flatten().to_numpy(), table.vectors(ids).ravel())
    halves = table.vectors_arrow(given, dtype="bfloat16")
    halves.validate(full=True)
    assert halves.type == pa.list_(pa.uint16(), WIDTH)
    np.testing.assert_array_equal(halves.flatten().to_numpy(), table.vectors(ids, dtype="bfloat16").ravel())


@pytest.mark.parametrize(
    "ids",
    [
        [None],
        [None, None, 3],
        [0, None, ROWS - 1],
        [None, 1, None, 2, None],
        [1, None],
        [None, *range(ROWS), None],
        [*range(20), *[None] * 20, *range(20)],
    ],
    ids=lambda ids: f"{len(ids)}",
)
@pytest.mark.parametrize(
    "kind",
    [
        lambda ids: pa.array(ids, pa.int64()),
        lambda ids: pa.array([None, *ids], pa.int32())[1:],
        lambda ids: pa.chunked_array([pa.array(ids[:1], pa.uint64()), pa.array(ids[1:], pa.uint64())]),
    ],
    ids=["array", "slice", "chunks"],
)
def test_null_ids_are_null_rows_in_their_places(table: Table, ids: list[int | None], kind: Any):
    given = kind(ids)
    every, vectors = table.fetch(range(ROWS)), table.vectors(range(ROWS))
    rows = table.fetch_arrow(given)
    rows.validate(full=True)
    assert rows.null_count == ids.count(None)
    assert rows.to_pylist() == expected([row.tobytes() for row in every], ids)
    for dtype, values in (("float32", vectors), ("bfloat16", table.vectors(range(ROWS), dtype="bfloat16"))):
        lists = table.vectors_arrow(given, dtype=dtype)
        lists.validate(full=True)
        assert lists.null_count == ids.count(None)
        assert [None if v is None else np.array(v, values.dtype).tobytes() for v in lists.to_pylist()] == expected(
            [row.tobytes() for row in values], ids
        )
    # Nothing of what was in the memory before is written to a file with the array.
    blank = np.frombuffer(rows.buffers()[1], np.uint8).reshape(len(ids), WIDTH)
    assert not blank[[id is None for id in ids]].any()


def test_ids_of_type_null(table: Table):
    rows = table.fetch_arrow(pa.nulls(3))
    rows.validate(full=True)
    assert rows.to_pylist() == [None] * 3


@pytest.mark.parametrize("name", ["ckpt_qwen4_exp_bf16", "ckpt_qwen4_exp_nvfp4", "ckpt_deepseek_v41"])
def test_other_formats(session: Session, name: str):
    for entry in session.register(name, GOLDEN / name):
        table = session.table(entry.name)
        vectors = table.vectors_arrow([0, 5, 0])
        vectors.validate(full=True)
        assert vectors.type.list_size == table.dim
        np.testing.assert_array_equal(vectors.flatten().to_numpy(), table.vectors([0, 5, 0]).ravel())
        assert table.fetch_arrow([0, 5]).to_pylist() == [row.tobytes() for row in table.fetch([0, 5])]


def test_nothing_is_copied(table: Table):
    """One allocation of the result's size, which is NumPy's; none by Arrow."""
    ids = np.random.default_rng(5).integers(0, ROWS, 20_000)
    for call, width in ((table.fetch_arrow, WIDTH), (table.vectors_arrow, 4 * WIDTH)):
        call(ids)
        arrow = pa.total_allocated_bytes()
        tracemalloc.start()
        try:
            result = call(ids)
            held, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        size = len(ids) * width
        assert pa.total_allocated_bytes() == arrow
        assert size <= held <= most < 1.1 * size
        buffer = result.buffers()[-1]
        assert buffer.size == size
        assert buffer.address % 16 == 0
        if call == table.vectors_arrow:
            assert result.flatten().to_numpy(zero_copy_only=True).ctypes.data == buffer.address


def test_arrays_outlive_their_table(tmp_path: Path):
    session = Session.open(tmp_path / "db", create=True)
    session.register("ple", FP8)
    vectors = session.table("ple").vectors_arrow([1, 2])
    values = session.table("ple").vectors([1, 2])
    del session
    np.testing.assert_array_equal(vectors.flatten().to_numpy(), values.ravel())
    path = tmp_path / "f.arrow"
    with pa.ipc.new_file(str(path), pa.schema([("v", vectors.type)])) as sink:
        sink.write_batch(pa.record_batch([vectors], names=["v"]))
    assert pa.ipc.open_file(str(path)).read_all()["v"].chunk(0).equals(vectors)


def test_too_many_values_are_refused_before_anything_is_read(table: Table):
    most = (2**31 - 1) // WIDTH
    ids = np.zeros(most + 1, np.int64)
    for call in (table.fetch_arrow, table.vectors_arrow):
        with pytest.raises(ArgumentError, match=f"{most + 1} rows of 160 .* at most {most} ids at a time"):
            call(ids)


def test_refusals(table: Table, session: Session, tmp_path: Path):
    with pytest.raises(RowIdError, match=f"row id {ROWS} is out of range"):
        table.fetch_arrow(pa.array([0, None, ROWS]))
    with pytest.raises(RowIdTypeError, match="not an integer"):
        table.vectors_arrow(pa.array([0.5, None]))
    with pytest.raises(ArgumentError, match=r"one dimension, got 2; pass ids\.ravel\(\)"):
        table.fetch_arrow([[1, 2]])
    with pytest.raises(ArgumentError, match="must not be missing .* fetch_arrow"):
        table.fetch(pa.array([0, None]))
    with pytest.raises(ArgumentError, match="dtype must be"):
        table.vectors_arrow([0], dtype="float16")
    (tmp_path / "shard_000.bin").write_bytes(bytes(80))
    session.register("plain", tmp_path, width=8)
    plain = session.table("plain")
    assert plain.fetch_arrow([9]).to_pylist() == [bytes(8)]
    with pytest.raises(FormatError):
        plain.vectors_arrow([9])


def test_arrow_is_imported_by_what_needs_it():
    code = f"""
import sys, tempfile
from engramsql.engine import Session
table = Session.open(tempfile.mkdtemp(), create=True).table({str(FP8)!r})
table.fetch([1])
assert "pyarrow" not in sys.modules
table.fetch_arrow([1])
assert "pyarrow" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
