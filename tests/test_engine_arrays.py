"""Ids in, arrays out: what a Table accepts, refuses and returns."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from golden_data import GOLDEN, arrays_of
from helpers import named

from engramsql.engine import Session, Spec, Table, decode, token_map
from engramsql.errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    RowIdError,
    RowIdTypeError,
    SpecError,
    TokenIdError,
    TokenIdTypeError,
)

ROWS, ROW_BYTES = 1408, 160


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session.open(tmp_path / "db", create=True)


@pytest.fixture
def table(session: Session) -> Table:
    session.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
    return session.table("ple")


def expected(name: str) -> dict[str, np.ndarray]:
    return arrays_of(GOLDEN / f"{name}_expected.npz")


@pytest.mark.parametrize("name", ["ckpt_qwen4_exp_fp8", "ckpt_qwen4_exp_bf16", "ckpt_qwen4_exp_nvfp4"])
def test_golden_checkpoint(session: Session, name: str):
    session.register("ple", GOLDEN / name)
    table, golden = session.table("ple"), expected(name)
    tokens = golden["main.tokens"]
    rowids = table.rowids(tokens)
    assert rowids.dtype == np.int64
    np.testing.assert_array_equal(rowids, golden["main.rowids"])
    rows = table.fetch(rowids)
    assert rows.shape == (*rowids.shape, table.row_bytes)
    if "main.rows" in golden:
        np.testing.assert_array_equal(rows, golden["main.rows"])
    e_t = table.e_t(tokens)
    assert e_t.dtype == np.float32
    np.testing.assert_array_equal(e_t.reshape(*rowids.shape, -1), table.vectors(rowids))
    np.testing.assert_array_equal(table.e_t(tokens, dtype="bfloat16"), golden["main.e_t_bf16"])


def test_history_continues_a_sequence(table: Table):
    tokens = expected("ckpt_qwen4_exp_fp8")["main.tokens"]
    whole = table.rowids(tokens)
    np.testing.assert_array_equal(table.rowids(tokens[10:], history=tokens[:10]), whole[10:])
    np.testing.assert_array_equal(table.e_t(tokens[10:], tokens[:10]), table.e_t(tokens)[10:])


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 3],
        (3, 1, 3),
        [np.int64(3), np.uint8(1), 3],
        np.array([3, 1, 3]),
        np.array([3, 1, 3], dtype=np.uint64),
        np.array([3, 1, 3], dtype=np.int32),
        np.array([3, 1, 3], dtype=np.uint8),
        np.array([3, 1, 3], dtype=">i8"),
        np.array([3, 0, 1, 0, 3])[::2],
        np.array([3, 1, 3], dtype=object),
        pa.array([3, 1, 3]),
        pa.chunked_array([[3, 1], [3]]),
    ],
    ids=named,
)
def test_any_integers_are_ids(table: Table, ids: object):
    rows = table.fetch(ids)
    assert rows.shape == (3, ROW_BYTES)
    np.testing.assert_array_equal(rows[0], rows[2])
    np.testing.assert_array_equal(rows, table.fetch(np.array([3, 1, 3])))


def test_ranges_and_shapes(table: Table):
    np.testing.assert_array_equal(table.fetch(range(3)), table.fetch([0, 1, 2]))
    np.testing.assert_array_equal(table.fetch([[0, 1], [2, 3]]), table.fetch(range(4)).reshape(2, 2, -1))
    assert table.fetch([]).shape == (0, ROW_BYTES)
    assert table.fetch(np.array([])).shape == (0, ROW_BYTES)
    assert table.fetch(np.empty((2, 0), dtype=np.int64)).shape == (2, 0, ROW_BYTES)
    assert table.vectors([]).shape == (0, 160)
    assert table.rowids([]).shape == (0, 16)


@pytest.mark.parametrize("bad", [-1, ROWS, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 2**200])
def test_an_id_out_of_range_is_named(table: Table, bad: int):
    with pytest.raises(RowIdError, match=rf"row id {str(bad)[:20]}.* out of range: table 'ple' has {ROWS} rows"):
        table.fetch([0, bad])


@pytest.mark.parametrize("bad", [np.array([0, 2**63], dtype=np.uint64), np.array([[0], [ROWS]], dtype=np.uint16)])
def test_an_unsigned_id_out_of_range_is_named(table: Table, bad: "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]"):
    with pytest.raises(RowIdError, match=f"row id {bad.max()} is out of range"):
        table.vectors(bad)


@pytest.mark.parametrize(
    ("bad", "shown"),
    [
        ([0, 1.5], "1.5 at position 1"),
        ([1.0], "1.0 at position 0"),
        (["7"], "'7' at position 0"),
        ([None], "None at position 0"),
        ([True], "True at position 0"),
        ([np.bool_(True)], "True at position 0"),
        (np.array([1.0, 2.5]), "2.5 at position 1"),
        (np.array([1.0, np.nan]), "nan at position 1"),
        (np.array([True]), "True at position 0"),
        (np.array(["7"]), "'7' at position 0"),
        (np.array([0, None], dtype=object), "None at position 1"),
    ],
    ids=repr,
)
def test_an_id_that_is_no_integer_is_named(table: Table, bad: object, shown: str):
    with pytest.raises(RowIdTypeError, match=rf"row id {shown} is not an integer .*table 'ple' has {ROWS} rows"):
        table.fetch(bad)


@pytest.mark.parametrize("bad", ["12", b"12", 5, None, {1, 2}, {1: 2}, iter([1])], ids=named)
def test_what_is_no_list_is_refused(table: Table, bad: object):
    with pytest.raises(ArgumentTypeError, match="row ids must be a list or an integer array"):
        table.fetch(bad)


@pytest.mark.parametrize(
    "bad", [np.ma.masked_array([1, 2], mask=[False, True]), pa.array([1, None])], ids=["masked", "null"]
)
def test_missing_ids_are_refused(table: Table, bad: object):
    with pytest.raises(ArgumentError, match="must not be missing"):
        table.fetch(bad)


@pytest.mark.parametrize("bad", [[[1, 2], [3]], [1, [2]], [[1], 2], [[], [1]]], ids=repr)
def test_ragged_lists_are_refused(table: Table, bad: object):
    with pytest.raises(ArgumentError, match="must all have the same length"):
        table.fetch(bad)


@pytest.mark.parametrize("bad", [-1, 512, 2**31, 2**40, 2**64])
def test_a_token_outside_the_vocabulary_is_named_with_its_position(table: Table, bad: int):
    with pytest.raises(TokenIdError, match=rf"token id {bad} at position 1 .*0 to 511"):
        table.rowids([0, bad])
    with pytest.raises(TokenIdError, match=rf"token id {bad} at history position 0 .*0 to 511"):
        table.rowids([0], history=[bad])


@pytest.mark.parametrize("bad", [None, 1.0, "1", False])
def test_a_token_that_is_no_integer_is_named(table: Table, bad: object):
    with pytest.raises(TokenIdTypeError, match="at position 1 is not an integer"):
        table.rowids([0, bad])


def test_tokens_have_one_dimension(table: Table):
    with pytest.raises(ArgumentError, match="token ids must have one dimension, got 2"):
        table.rowids([[1, 2]])


def test_out_is_filled_and_returned(table: Table):
    rows = np.full((2, ROW_BYTES), 0xAA, dtype=np.uint8)
    assert table.fetch([5, 6], out=rows) is rows
    np.testing.assert_array_equal(rows, table.fetch([5, 6]))
    vectors = np.empty((2, 160), dtype=np.float32)
    assert table.vectors([5, 6], out=vectors) is vectors
    patterns = np.empty((2, 160), dtype=np.uint16)
    assert table.vectors([5, 6], out=patterns, dtype="bfloat16") is patterns
    e_t = np.empty((3, 16 * 160), dtype=np.float32)
    assert table.e_t([5, 6, 7], out=e_t) is e_t
    np.testing.assert_array_equal(e_t, table.e_t([5, 6, 7]))


def read_only(array: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]") -> object:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ([[0]], "must be a numpy array, got list"),
        (np.empty((2, ROW_BYTES), np.int8), "of dtype uint8, got int8"),
        (np.empty((3, ROW_BYTES), np.uint8), r"of shape \(2, 160\), got \(3, 160\)"),
        (np.empty(2 * ROW_BYTES, np.uint8), r"of shape \(2, 160\), got \(320,\)"),
        (np.empty((ROW_BYTES, 2), np.uint8).T, "C-contiguous"),
        (np.empty((4, ROW_BYTES), np.uint8)[::2], "C-contiguous"),
        (read_only(np.empty((2, ROW_BYTES), np.uint8)), "writable"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_out_that_does_not_fit_is_refused(table: Table, out: object, message: str):
    with pytest.raises(ArgumentError, match=f"out must be .*{message}|out {message}"):
        table.fetch([5, 6], out=out)


def test_out_must_not_be_the_ids(table: Table):
    memory = np.zeros(ROW_BYTES, dtype=np.uint8)
    with pytest.raises(ArgumentError, match="shares memory with the ids"):
        table.fetch(memory[:8].view(np.int64), out=memory.reshape(1, -1))


def test_a_failed_call_leaves_the_table_usable(table: Table):
    out = np.zeros((1, ROW_BYTES), dtype=np.uint8)
    with pytest.raises(RowIdError):
        table.fetch([ROWS], out=out)
    table.fetch([0], out=out)


@pytest.mark.parametrize("dtype", ["float64", np.float16, "uint16", 5])
def test_an_unknown_dtype_is_refused(table: Table, dtype: object):
    with pytest.raises(ArgumentError, match="dtype must be 'float32' or 'bfloat16'"):
        table.vectors([0], dtype=dtype)


@pytest.mark.parametrize("dtype", [None, "float32", np.float32, np.dtype("float32")])
def test_names_of_float32(table: Table, dtype: object):
    assert table.vectors([0], dtype=dtype).dtype == np.float32


def test_results_outlive_session_and_table(tmp_path: Path):
    session = Session.open(tmp_path / "db", create=True)
    session.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
    table = session.table("ple")
    before = table.fetch(range(100))
    copy = before.copy()
    del session, table
    gc.collect()
    np.testing.assert_array_equal(before, copy)


def test_one_table_serves_many_threads(table: Table):
    ids = np.random.default_rng(7).integers(0, ROWS, 2000)
    expected = table.fetch(ids)
    with ThreadPoolExecutor(8) as pool:
        for rows in pool.map(table.fetch, [ids] * 100):
            np.testing.assert_array_equal(rows, expected)


def test_ids_that_another_thread_writes_meanwhile(table: Table):
    """Whatever mixture of both is read, an id outside the table is named; it is no bug of ours."""
    ids = np.zeros(300_000, dtype=np.int64)
    out = np.empty((len(ids), ROW_BYTES), dtype=np.uint8)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            time.sleep(0.001)
            ids[:] = 2**40
            time.sleep(0.0002)
            ids[:] = 0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        served = refused = 0
        row = table.fetch([0])
        end = time.monotonic() + 20
        while min(served, refused) < 25 and time.monotonic() < end:
            try:
                table.fetch(ids, out=out)
            except RowIdError as error:
                assert f"row id {2**40} is out of range" in str(error)
                refused += 1
                time.sleep(0.0005)  # lets the writer have the interpreter
            else:
                assert (out[::1000] == row).all()
                served += 1
        assert min(served, refused) > 0
    finally:
        stop.set()
        writer.join()


def test_decode_bytes_and_arrays():
    row = np.arange(160, dtype=np.uint8)
    vector = decode(row.tobytes(), "fp8_e4m3", 0.5)
    assert vector.shape == (160,)
    for data in (row, bytearray(row), memoryview(row.tobytes()), row[None]):
        np.testing.assert_array_equal(decode(data, "fp8_e4m3", 0.5).ravel(), vector)
    np.testing.assert_array_equal(decode(np.float32([1.5, -2]).tobytes(), "f32"), np.float32([1.5, -2]))


@pytest.mark.parametrize(
    ("data", "format", "scale", "message"),
    [
        (b"123", "f32", None, "3 bytes are no whole row"),
        (b"", "f32", None, "0 bytes are no whole row"),
        (b"1", "fp7", None, "unknown value format 'fp7'"),
        (b"1", "fp8_e4m3", None, "scale"),
        (b"12", "bf16", 2.0, "scale"),
    ],
)
def test_decode_refuses(data: bytes, format: str, scale: float | None, message: str):
    with pytest.raises(FormatError, match=message):
        decode(data, format, scale)


@pytest.mark.parametrize("data", ["text", 5, None, np.zeros(4, np.float32)], ids=repr)
def test_decode_wants_bytes(data: object):
    with pytest.raises(ArgumentTypeError, match="data must be"):
        decode(data, "f32")


def test_specs_by_name_and_config():
    released = Spec.released_qwen_ple()
    assert released.name in Spec.released_names()
    assert Spec.named(released.name).head_sizes == released.head_sizes
    assert released.heads == len(released.head_offsets) == 16
    assert released.table_rows == 320_001_536
    np.testing.assert_array_equal(released.rowids([5, 6]), Spec.named(released.name).rowids([5, 6]))
    with pytest.raises(SpecError):
        Spec.named("no-such-spec")
    with pytest.raises(SpecError):
        Spec.from_config("qwen_ple_v1", {})
    with pytest.raises(ArgumentError, match="config is no JSON"):
        Spec.from_config("qwen_ple_v1", "{")


def test_packed_batches_equal_single_sequences():
    spec = Spec.released_qwen_ple()
    first, second = [1, 2, 3], [4, 5]
    packed = spec.rowids_packed(first + second, [0, 3, 5])
    np.testing.assert_array_equal(packed, np.concatenate([spec.rowids(first), spec.rowids(second)]))


def test_token_map_of_a_tokenizer():
    ids = token_map(GOLDEN / "ckpt_deepseek_v41" / "tokenizer.json")
    assert ids.dtype == np.uint32
    assert set(ids) == set(range(ids.max() + 1))
    with pytest.raises(SpecError, match=r"config\.json|tokenizer"):
        token_map(GOLDEN / "ckpt_deepseek_v41" / "config.json")
