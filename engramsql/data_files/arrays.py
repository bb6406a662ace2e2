"""Arrays of NumPy files, archives of them and safetensors, block by block."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from engramsql.data_files.texts import exact_json
from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Matrix", "open_matrix"]

# Of the description at the beginning of a safetensors file, as its own reader bounds it.
_MOST_HEADER = 100_000_000
_ZIP_MAGIC = b"PK"
_TENSOR_TYPES = {
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip


@dataclass(frozen=True)
class Matrix:
    """An array of one dimension or two in a file."""

    label: str
    """File and array, for messages."""
    shape: tuple[int, ...]
    blocks: Callable[[int], Iterator[NDArray[Any]]]
    """Its rows, or the values of one dimension, so many values at a time, but at least a row."""


@contextmanager
def open_matrix(name: str, kind: str, column: str | None) -> Iterator[Matrix]:
    """The array of a NumPy file, or the only one of integers in an archive or safetensors file.

    Args:
        name: The file.
        kind: ``npy``, ``npz`` or ``safetensors``.
        column: The array, where there are several.

    Raises:
        ArgumentError: If there is no such array, or several could be meant.
    """
    if kind == "npy":
        if column is not None:
            raise ArgumentError(f"'{name}' has no columns; leave '{column}' out")
        with open(name, "rb", buffering=0) as opened:
            yield _array(name, opened)
    elif kind == "npz":
        with zipfile.ZipFile(name) as archive:
            yield _member(name, archive, column)
    else:
        with open(name, "rb", buffering=0) as opened:
            yield _tensor(name, opened, column)


def _array(name: str, file: IO[bytes]) -> Matrix:
    if file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC:
        raise ArgumentError(f"'{name}' is an archive of arrays, and no array: its name should end with .npz")
    file.seek(0)
    if file.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
        raise ArgumentError(f"'{name}' is no NumPy array: it does not begin as one")
    file.seek(0)
    shape, fortran, dtype = _npy_header(file)
    if dtype.hasobject:
        raise ArgumentError(f"'{name}' has Python objects; integers of one dimension or two are read")
    return _read(f"'{name}'", file, file.tell(), dtype, shape, fortran=fortran)


def _read(
    label: str, file: IO[bytes], offset: int, dtype: np.dtype[Any], shape: tuple[int, ...], *, fortran: bool = False
) -> Matrix:
    """An array that is read block by block: mapped, it would end the process if somebody cut the file meanwhile.

    Raises:
        ArgumentError: If it has no dimension.
        ValueError: If the file ends before it does.
    """
    if not shape:
        raise ArgumentError(f"{label} has no dimensions; one or two are read")
    missing = offset + math.prod(shape) * dtype.itemsize - os.fstat(file.fileno()).st_size
    if missing > 0:
        raise ValueError(f"{missing} bytes are missing at its end")
    width = math.prod(shape[1:])

    def part(first: int, count: int) -> NDArray[Any]:
        # Times and others are no buffers to Python; their bytes are.
        data = np.empty(count * dtype.itemsize, np.uint8)
        view, at = memoryview(data.data), offset + first * dtype.itemsize
        while len(view):
            done = os.preadv(file.fileno(), [view], at)
            if done == 0:
                raise ValueError("it was cut while it was read")
            view, at = view[done:], at + done
        return data.view(dtype)

    def blocks(values: int) -> Iterator[NDArray[Any]]:
        step = max(1, values // max(1, width))
        for first in range(0, shape[0], step):
            rows = min(step, shape[0] - first)
            if fortran and len(shape) == 2:
                yield (
                    np.stack([part(column * shape[0] + first, rows) for column in range(width)], axis=1)
                    if (width)
                    else np.empty((rows, 0), dtype)
                )
            else:
                yield part(first * width, rows * width).reshape(rows, *shape[1:])

    return Matrix(label, shape, blocks)


def _only(name: str, arrays: dict[str, str], integers: list[str], column: str | None, what: str) -> str:
    """The array to read: ``column``, or the only one of integers; ``arrays`` has a description of each."""
    shown = ", ".join(f"{key} ({text})" for key, text in arrays.items()) or "none"
    if column is not None:
        if column not in arrays:
            raise ArgumentError(f"'{name}' has no {what} '{column}'; its {what}s: {shown}")
        return column
    if len(integers) != 1:
        found = f"{len(integers)} {what}s of integers" if integers else f"no {what} of integers"
        name_one = "; name one with --column (column=)" if integers else ""
        raise ArgumentError(f"'{name}' has {found}{name_one}; its {what}s: {shown}")
    return integers[0]


def _member(name: str, archive: zipfile.ZipFile, column: str | None) -> Matrix:
    headers = {}
    for member in archive.namelist():
        if member.endswith(".npy"):
            with archive.open(member) as file:
                headers[member[:-4]] = _npy_header(file)
    shown = {key: f"{dtype} {list(shape)}" for key, (shape, _, dtype) in headers.items()}
    whole = [key for key, (shape, _, dtype) in headers.items() if dtype.kind in "iu" and len(shape) in (1, 2)]
    chosen = _only(name, shown, whole, column, "array")
    shape, fortran, dtype = headers[chosen]
    if fortran and len(shape) > 1:
        raise ArgumentError(f"'{name}', array '{chosen}' is in Fortran order; write it in C order")
    if not shape or dtype.hasobject:
        raise ArgumentError(
            f"'{name}', array '{chosen}' is {dtype} {list(shape)}; integers of one or two dimensions are read"
        )

    def blocks(values: int) -> Iterator[NDArray[Any]]:
        width = math.prod(shape[1:])
        step = max(1, values // max(1, width))
        with archive.open(f"{chosen}.npy") as file:
            _npy_header(file)
            for first in range(0, shape[0], step):
                rows = min(step, shape[0] - first)
                data = file.read(rows * width * dtype.itemsize)
                if len(data) != rows * width * dtype.itemsize:
                    raise ValueError(f"array '{chosen}' ends early")
                yield np.frombuffer(data, dtype).reshape(rows, *shape[1:])

    return Matrix(f"'{name}', array '{chosen}'", shape, blocks)


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"an array of format version {version}")
    return shape, fortran, dtype


def _tensor(name: str, file: IO[bytes], column: str | None) -> Matrix:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or not 2 <= length <= min(_MOST_HEADER, size - 8):
        raise ArgumentError(f"'{name}' is no safetensors file: its header does not fit into its {size} bytes")
    header = exact_json(file.read(length))
    if not isinstance(header, dict):
        raise ArgumentError(f"'{name}' is no safetensors file: its header is no object")
    tensors = {key: value for key, value in header.items() if key != "__metadata__"}
    for key, value in tensors.items():
        if not _is_description(value):
            raise ArgumentError(f"'{name}', tensor '{key}': its description is none: {json.dumps(value):.80}")
    shown = {key: f"{value['dtype']} {value['shape']}" for key, value in tensors.items()}
    whole = [key for key, value in tensors.items() if value["dtype"] in _TENSOR_TYPES and len(value["shape"]) in (1, 2)]
    chosen = _only(name, shown, whole, column, "tensor")
    tensor = tensors[chosen]
    if chosen not in whole:
        raise ArgumentError(
            f"'{name}', tensor '{chosen}' is {shown[chosen]}; integers of one dimension or two are read"
        )
    dtype, shape = np.dtype(_TENSOR_TYPES[tensor["dtype"]]), tuple(tensor["shape"])
    begin, end = tensor["data_offsets"]
    if end - begin != dtype.itemsize * math.prod(shape) or 8 + length + end > size:
        raise ArgumentError(f"'{name}', tensor '{chosen}': bytes {begin} to {end} are not {shown[chosen]} in this file")
    return _read(f"'{name}', tensor '{chosen}'", file, 8 + length + begin, dtype, shape)


def _is_description(value: Any) -> bool:
    """Whether it has the type, shape and place of a tensor."""
    if not isinstance(value, dict) or not isinstance(value.get("dtype"), str):
        return False
    shape, offsets = value.get("shape"), value.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        return False
    return all(type(number) is int and number >= 0 for number in (*shape, *offsets))
