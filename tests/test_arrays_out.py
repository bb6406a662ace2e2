"""Results in the caller's memory: NumPy arrays, tensors by DLPack, buffers; and ids of other libraries."""

from __future__ import annotations

import array
import ctypes
import mmap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dlpack_support import Exported
from extension_support import FP8

from engramsql.engine import Session, Table
from engramsql.errors import ArgumentError, ArgumentTypeError, RowIdError, RowIdTypeError

ROWS, WIDTH = 1408, 160
IDS = [5, 6]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    session = Session.open(tmp_path_factory.mktemp("out") / "db", create=True)
    session.register("ple", FP8)
    return session.table("ple")


# --- tensors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True], ids=["DLPack 1.0", "before 1.0"])
def test_a_tensor_is_filled_in_place_and_returned(table: Table, old: bool):
    rows = Exported(np.zeros((2, WIDTH), np.uint8), old=old)
    assert table.fetch(IDS, out=rows) is rows
    np.testing.assert_array_equal(rows.array, table.fetch(IDS))
    vectors = Exported(np.zeros((2, WIDTH), np.float32), old=old)
    assert table.vectors(IDS, out=vectors) is vectors
    np.testing.assert_array_equal(vectors.array, table.vectors(IDS))
    e_t = Exported(np.zeros((3, 16 * WIDTH), np.float32), old=old)
    assert table.e_t([5, 6, 7], out=e_t) is e_t
    np.testing.assert_array_equal(e_t.array, table.e_t([5, 6, 7]))


def test_a_bfloat16_tensor(table: Table):
    out = Exported(np.zeros((2, WIDTH), np.uint16), code=4)
    assert table.vectors(IDS, out=out, dtype="bfloat16") is out
    np.testing.assert_array_equal(out.array, table.vectors(IDS, dtype="bfloat16"))
    with pytest.raises(ArgumentError, match='out must be of dtype float32, got bfloat16; pass dtype="bfloat16"'):
        table.vectors(IDS, out=out)


def test_a_part_of_a_tensor(table: Table):
    whole = np.zeros((6, WIDTH), np.uint8)
    table.fetch(IDS, out=Exported(whole[2:4]))
    np.testing.assert_array_equal(whole[2:4], table.fetch(IDS))
    assert not whole[:2].any()
    assert not whole[4:].any()
    offset = Exported(whole[:2], byte_offset=4 * WIDTH)
    table.fetch(IDS, out=offset)
    np.testing.assert_array_equal(whole[4:], whole[2:4])


def test_pinned_memory_is_memory(table: Table):
    out = Exported(np.zeros((2, WIDTH), np.uint8), device=3, device_type=3)
    table.fetch(IDS, out=out)
    np.testing.assert_array_equal(out.array, table.fetch(IDS))


def test_an_empty_tensor(table: Table):
    for data in (None, 0):
        claims = {} if data is None else {"data": data}
        out = Exported(np.empty((0, WIDTH), np.uint8), **claims)
        assert table.fetch([], out=out) is out


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (Exported(np.zeros((2, WIDTH), np.int8)), "of dtype uint8, got int8"),
        (Exported(np.zeros((2, WIDTH), np.uint8), lanes=2), "of dtype uint8, got uint8x2"),
        (Exported(np.zeros((2, WIDTH), np.uint8), code=17), "of dtype uint8, got DLPack type 17 of 8 bits"),
        (Exported(np.zeros((3, WIDTH), np.uint8)), r"of shape \(2, 160\), got \(3, 160\)"),
        (Exported(np.zeros(2 * WIDTH, np.uint8)), r"of shape \(2, 160\), got \(320,\)"),
        (Exported(np.zeros((WIDTH, 2), np.uint8).T), "C-contiguous"),
        (Exported(np.zeros((4, WIDTH), np.uint8)[::2]), "C-contiguous"),
        (Exported(np.zeros((2, WIDTH), np.uint8), flags=1), "writable, got a read-only tensor"),
        (Exported(np.zeros((2, WIDTH), np.uint8), flags=2), "filled in place"),
        (Exported(np.zeros((2, WIDTH), np.uint8), major=2), "a DLPack 1.x tensor"),
        (Exported(np.zeros((2, WIDTH), np.uint8), device=2), "on the CPU, got one on device type 2"),
        (Exported(np.zeros((2, WIDTH), np.uint8), device_type=13), "on the CPU, got one on device type 13"),
        (Exported(np.zeros((2, WIDTH), np.uint8), data=0), "must have memory"),
        (Exported("no array"), "exportable by DLPack"),
        (pa.array([0] * (2 * WIDTH), pa.uint8()), "writable, got an Arrow array"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tensor_that_does_not_fit_is_refused(table: Table, out: Any, message: str):
    with pytest.raises(ArgumentError, match=message):
        table.fetch(IDS, out=out)


def test_a_misaligned_tensor_is_refused(table: Table):
    memory = np.zeros(2 * WIDTH * 4 + 4, np.uint8)[4:].view(np.float32).reshape(2, WIDTH)
    with pytest.raises(ArgumentError, match="aligned"):
        table.vectors(IDS, out=Exported(memory, byte_offset=1))


# --- buffers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "memory",
    [
        lambda size: bytearray(size),
        lambda size: memoryview(bytearray(size + 16))[8:-8],
        lambda size: mmap.mmap(-1, size),
        lambda size: pa.allocate_buffer(size),
        lambda size: (ctypes.c_char * size)(),
        lambda size: array.array("b", bytes(size)),
    ],
    ids=["bytearray", "memoryview", "mmap", "arrow buffer", "ctypes", "array"],
)
def test_plain_memory_is_filled(table: Table, memory: Any):
    out = memory(2 * WIDTH)
    assert table.fetch(IDS, out=out) is out
    assert bytes(memoryview(out)) == table.fetch(IDS).tobytes()
    out = memory(2 * WIDTH * 4)
    assert table.vectors(IDS, out=out) is out
    assert bytes(memoryview(out)) == table.vectors(IDS).tobytes()


def test_typed_buffers_need_shape_and_type(table: Table):
    memory = bytearray(2 * WIDTH * 4)
    shaped = memoryview(memory).cast("f", (2, WIDTH))
    assert table.vectors(IDS, out=shaped) is shaped
    assert bytes(memory) == table.vectors(IDS).tobytes()
    typed = (ctypes.c_float * WIDTH * 2)()
    assert table.vectors(IDS, out=typed) is typed
    assert bytes(typed) == bytes(memory)
    with pytest.raises(ArgumentError, match=r"of shape \(2, 160\), got \(320,\)"):
        table.vectors(IDS, out=memoryview(memory).cast("f"))
    with pytest.raises(ArgumentError, match="of dtype float32, got int32"):
        table.vectors(IDS, out=memoryview(memory).cast("i", (2, WIDTH)))


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (bytearray(2 * WIDTH + 1), ArgumentError, "out must be 320 bytes long, got 321"),
        (bytes(2 * WIDTH), ArgumentError, "writable, got a read-only bytes"),
        (pa.py_buffer(bytes(2 * WIDTH)), ArgumentError, "writable, got a read-only Buffer"),
        (memoryview(bytearray(4 * WIDTH))[::2], ArgumentError, "of shape|C-contiguous"),
        ([0] * 320, ArgumentTypeError, "must be a numpy array, got list"),
        ("text", ArgumentTypeError, "must be a numpy array, got str"),
        (5, ArgumentTypeError, "must be a numpy array, got int"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_buffer_that_does_not_fit_is_refused(table: Table, out: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        table.fetch(IDS, out=out)


def test_a_misaligned_buffer_is_refused(table: Table):
    with pytest.raises(ArgumentError, match="aligned"):
        table.vectors(IDS, out=memoryview(bytearray(2 * WIDTH * 4 + 1))[1:])


def test_an_empty_buffer(table: Table):
    out = bytearray()
    assert table.fetch([], out=out) is out


def test_ml_dtypes(table: Table):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    out = np.zeros((2, WIDTH), ml_dtypes.bfloat16)
    assert table.vectors(IDS, out=out, dtype=ml_dtypes.bfloat16) is out
    np.testing.assert_array_equal(out.view(np.uint16), table.vectors(IDS, dtype="bfloat16"))


# --- exclusive access -----------------------------------------------------------------------------------------------


def test_memory_of_a_running_call_is_refused_however_it_is_named(table: Table):
    """One thread fills the memory over and over; others name it as array, tensor and buffer."""
    ids = np.random.default_rng(3).integers(0, ROWS, 200_000)
    memory = np.zeros((len(ids), WIDTH), np.uint8)
    names = [memory, Exported(memory), memoryview(memory)]
    expected = table.fetch(ids)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            table.fetch(ids, out=Exported(memory))

    refused = 0
    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(200):
            for name in names:
                try:
                    table.fetch(ids, out=name)
                except ArgumentError as error:
                    assert "running call" in str(error)
                    refused += 1
            if refused > 20:
                break
    except BaseException:
        stop.set()
        worker.join()
        raise
    stop.set()
    worker.join()
    assert refused > 0
    for name in names:
        table.fetch(ids, out=name)
    np.testing.assert_array_equal(memory, expected)


# --- ids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_ids_by_dlpack_arrow_and_numpy(table: Table, dtype: str):
    ids = np.array([5, 6, 5], dtype)
    expected = table.fetch([5, 6, 5])
    for given in (ids, Exported(ids), pa.array(ids), pa.chunked_array([ids[:1], ids[1:]])):
        np.testing.assert_array_equal(table.fetch(given), expected)
    np.testing.assert_array_equal(table.rowids(Exported(ids)), table.rowids([5, 6, 5]))


def test_ids_of_a_tensor_keep_their_shape(table: Table):
    assert table.fetch(Exported(np.array([[1, 2], [3, 4]]))).shape == (2, 2, WIDTH)


def test_ids_of_a_tensor_that_are_refused(table: Table):
    with pytest.raises(RowIdError, match=f"row id {2**64 - 1} is out of range"):
        table.fetch(Exported(np.array([0, 2**64 - 1], np.uint64)))
    with pytest.raises(RowIdTypeError, match="1.5 at position 1"):
        table.fetch(Exported(np.array([1.0, 1.5])))
    with pytest.raises(ArgumentTypeError, match="row ids cannot be read as an array: "):
        table.fetch(Exported(np.array([1]), device_type=2))


# --- torch ----------------------------------------------------------------------------------------------------------


def test_torch(table: Table, tmp_path: Path):
    torch = pytest.importorskip("torch")
    ids = torch.tensor([[5, 6], [7, 5]], dtype=torch.int32)
    out = torch.zeros((2, 2, WIDTH))
    at = out.data_ptr()
    assert table.vectors(ids, out=out) is out
    assert out.data_ptr() == at
    assert torch.equal(out, torch.from_dlpack(table.vectors(ids.numpy())))
    halves = torch.zeros((2, 2, WIDTH), dtype=torch.bfloat16)
    assert table.vectors(ids, out=halves, dtype=torch.bfloat16) is halves
    assert torch.equal(halves, out.to(torch.bfloat16))
    rows = torch.zeros((4, WIDTH), dtype=torch.uint8)
    table.fetch(ids.flatten(), out=rows)
    assert rows.numpy().tobytes() == table.fetch([5, 6, 7, 5]).tobytes()
    e_t = torch.empty((2, 16 * WIDTH))
    table.e_t(ids[0], out=e_t)
    assert torch.equal(e_t, torch.from_numpy(table.e_t([5, 6])))


def test_torch_takes_results_without_a_copy(table: Table):
    torch = pytest.importorskip("torch")
    vectors = table.vectors(IDS)
    assert torch.from_dlpack(vectors).data_ptr() == vectors.ctypes.data
    patterns = table.vectors(IDS, dtype="bfloat16")
    halves = torch.from_dlpack(patterns).view(torch.bfloat16)
    assert halves.data_ptr() == patterns.ctypes.data
    assert torch.equal(halves, torch.from_dlpack(vectors).to(torch.bfloat16))
    assert torch.from_dlpack(table.fetch(IDS)).dtype == torch.uint8


def test_torch_tensors_that_are_refused(table: Table):
    torch = pytest.importorskip("torch")
    with pytest.raises(ArgumentError, match="exportable by DLPack: .*gradient"):
        table.vectors(IDS, out=torch.zeros((2, WIDTH), requires_grad=True))
    with pytest.raises(ArgumentError, match="C-contiguous"):
        table.vectors(IDS, out=torch.zeros((WIDTH, 2)).T)
    with pytest.raises(ArgumentError, match="float32, got float64"):
        table.vectors(IDS, out=torch.zeros((2, WIDTH), dtype=torch.float64))
    with pytest.raises(ArgumentError, match="exportable by DLPack: .*meta"):
        table.vectors(IDS, out=torch.zeros((2, WIDTH), device="meta"))
    with pytest.raises(RowIdTypeError, match="True at position 0"):
        table.vectors(torch.tensor([True]))
    with pytest.raises(RowIdTypeError, match="1.5 at position 0"):
        table.vectors(torch.tensor([1.5]))
