"""Files of integers of every kind, opened and read in pieces: what corpora, row ids and keys are read with.

Columns are in Parquet and Arrow IPC, arrays in NumPy files and safetensors, texts in CSV, JSON lines and plain text.
Each reader bounds its memory, whatever the size of the file.
"""

from __future__ import annotations

import csv
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engramsql.errors import ArgumentError, EngramError
from engramsql.interchange.damaged import DAMAGED

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = [
    "KINDS",
    "Cell",
    "Matrix",
    "arrow_batches",
    "csv_cells",
    "decimal_words",
    "ids_meant",
    "json_values",
    "kind_of",
    "named_errors",
    "open_matrix",
]

KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".safetensors": "safetensors",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "txt",
}
"""Endings of names, and what the file is."""
# What is no name of a file: ids with commas, spaces or brackets.
_ONLY_IDS = re.compile(r"[\s,\[\]]*[0-9]+[\s,\[\]0-9]*")
_ID = re.compile("[0-9]+")
# Rows of a column file at a time: documents may be long.
_BATCH_ROWS = 4096
# Of one line of CSV, which Python reads as text: more than a million ids.
_MOST_CELL = 1 << 26
# Of the description at the beginning of a safetensors file, as its own reader bounds it.
_MOST_HEADER = 100_000_000
_TENSOR_TYPES = {
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip


def kind_of(path: str | os.PathLike[str], what: str = "tokens") -> str:
    """What a file is, by the ending of its name.

    Raises:
        ArgumentError: If it is not there, or the ending is not known.
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        raise ArgumentError(f"'{name}' does not exist; name a file of {what}{ids_meant(name)}")
    kind = KINDS.get(os.path.splitext(name)[1].lower())
    if kind is None:
        raise ArgumentError(f"'{name}': the name of a file of {what} ends with one of {', '.join(KINDS)}")
    return kind


def ids_meant(name: str) -> str:
    r"""What to add to the message about a file that is not there, where ids were written instead of its name.

    Example:
        >>> ids_meant("3,5")
        ": ids are read from files, such as one with an id in each line, ids.txt: printf '%s\\n' 3 5 > ids.txt"
        >>> ids_meant("ids.txt")
        ''
    """
    if not _ONLY_IDS.fullmatch(name):
        return ""
    ids = " ".join(_ID.findall(name)[:8])
    return f": ids are read from files, such as one with an id in each line, ids.txt: printf '%s\\n' {ids} > ids.txt"


@contextmanager
def named_errors(name: str) -> Iterator[None]:
    """Errors over a file as ours, with its name.

    Raises:
        ArgumentError: If it cannot be read or is damaged; our errors stay what they are.
    """
    try:
        yield
    except EngramError as error:
        raise error if name in str(error) else type(error)(f"'{name}': {error}") from None
    except OSError as error:
        raise ArgumentError(f"cannot read '{name}': {error.strerror or error}") from error
    except (*DAMAGED, zipfile.BadZipFile, KeyError, csv.Error) as error:
        raise ArgumentError(f"cannot read '{name}': {error}") from error


class ColumnBatch(NamedTuple):
    """Some rows of a column."""

    array: pa.Array
    first: int
    """Rows of the file before them."""


def arrow_batches(name: str, kind: str, choose: Callable[[pa.Schema], str]) -> tuple[str, Iterator[ColumnBatch]]:
    """The column that ``choose`` names of a Parquet or Arrow file, batch by batch."""
    batches = _parquet(name, choose) if kind == "parquet" else _arrow(name, choose)
    # The name is the first that it gives, so that whoever reads knows it for messages.
    column = next(batches)
    assert isinstance(column, str)
    return column, batches  # type: ignore[return-value]


def _parquet(name: str, choose: Callable[[pa.Schema], str]) -> Iterator[str | ColumnBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(name) as file:
        chosen = choose(file.schema_arrow)
        yield chosen
        first = 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=[chosen]):
            yield ColumnBatch(batch.column(0), first)
            first += batch.num_rows


def _arrow(name: str, choose: Callable[[pa.Schema], str]) -> Iterator[str | ColumnBatch]:
    import pyarrow as pa

    with pa.memory_map(name) as source:
        magic = source.read(6)
        source.seek(0)
        # The two forms of IPC share their endings in the wild; the file says which it is.
        if magic == b"ARROW1":
            file = pa.ipc.open_file(source)
            schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
        else:
            reader = pa.ipc.open_stream(source)
            schema, batches = reader.schema, reader
        chosen = choose(schema)
        yield chosen
        first = 0
        for batch in batches:
            yield ColumnBatch(batch.column(chosen), first)
            first += batch.num_rows


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
        # Mapped: pages come as they are read, and go.
        yield _mapped(f"'{name}'", np.load(name, mmap_mode="r", allow_pickle=False))
    elif kind == "npz":
        with zipfile.ZipFile(name) as archive:
            yield _member(name, archive, column)
    else:
        yield _tensor(name, column)


def _mapped(label: str, array: NDArray[Any]) -> Matrix:
    def blocks(values: int) -> Iterator[NDArray[Any]]:
        step = max(1, values // max(1, int(np.prod(array.shape[1:]))))
        for first in range(0, len(array), step):
            yield array[first : first + step]

    if array.ndim == 0:
        raise ArgumentError(f"{label} has no dimensions; one or two are read")
    return Matrix(label, array.shape, blocks)


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
        width = int(np.prod(shape[1:]))
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


def _tensor(name: str, column: str | None) -> Matrix:
    size = os.path.getsize(name)
    with open(name, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or not 2 <= length <= min(_MOST_HEADER, size - 8):
            raise ArgumentError(f"'{name}' is no safetensors file: its header does not fit into its {size} bytes")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ArgumentError(f"'{name}' is no safetensors file: its header is no object")
    tensors = {key: value for key, value in header.items() if key != "__metadata__"}
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
    if end - begin != dtype.itemsize * int(np.prod(shape)) or begin < 0 or 8 + length + end > size:
        raise ArgumentError(f"'{name}', tensor '{chosen}': bytes {begin} to {end} are not {shown[chosen]} in this file")
    label = f"'{name}', tensor '{chosen}'"
    if begin == end:
        return _mapped(label, np.empty(shape, dtype))
    return _mapped(label, np.memmap(name, dtype, "r", offset=8 + length + begin, shape=shape))


class Cell(NamedTuple):
    """A value of a file of text."""

    line: int
    """Where it stands, 1-based."""
    value: Any


def csv_cells(name: str, column: str | None) -> Iterator[Cell]:
    """The texts of a column of CSV with a header, with their lines.

    Raises:
        ArgumentError: If there is no such column, or several could be meant.
    """
    # Python's limit is the process's, and far below one long sequence.
    csv.field_size_limit(max(csv.field_size_limit(), _MOST_CELL))
    with open(name, encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        header = next(reader, None)
        if header is None:
            raise ArgumentError(f"'{name}' is empty; its first line names the columns")
        if column is None:
            if len(header) != 1:
                raise ArgumentError(
                    f"'{name}' has {len(header)} columns; name one with --column (column=): {', '.join(header)}"
                )
            position = 0
        elif header.count(column) != 1:
            found = "no" if column not in header else "more than one"
            raise ArgumentError(f"'{name}' has {found} column '{column}'; its columns: {', '.join(header)}")
        else:
            position = header.index(column)
        line = reader.line_num + 1
        for row in reader:
            if row:
                if len(row) != len(header):
                    raise ArgumentError(f"line {line} has {len(row)} cells, and the header {len(header)}")
                yield Cell(line, row[position])
            line = reader.line_num + 1


def json_values(name: str, column: str | None, usable: Callable[[Any], bool]) -> Iterator[Cell]:
    """The values of JSON lines: a member of each object, or what is no object as it is.

    Args:
        name: The file.
        column: The member; by default the only one that is usable.
        usable: Whether a member may be meant.

    Raises:
        ArgumentError: If a line is no JSON, or has no such member.
    """
    with open(name, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield Cell(number, _member_of(json.loads(line), column, usable))
            except RecursionError:
                raise ArgumentError(f"line {number} is nested too deeply") from None
            except ArgumentError as error:
                raise ArgumentError(f"line {number} {error}") from None
            except ValueError as error:
                raise ArgumentError(f"line {number} is no JSON: {error}") from None


def _member_of(value: Any, column: str | None, usable: Callable[[Any], bool]) -> Any:
    if isinstance(value, dict):
        if column is None:
            members = [name for name, member in value.items() if usable(member)]
            if len(members) != 1:
                raise ArgumentError(
                    f"has {len(members)} members that could be meant; name one with --column (column=); its members: "
                    f"{', '.join(value)}"
                )
            column = members[0]
        elif column not in value:
            raise ArgumentError(f"has no member '{column}'; its members: {', '.join(value)}")
        return value[column]
    if column is not None:
        raise ArgumentError(f"is no object with a member '{column}'")
    return value


def decimal_words(text: str) -> list[Any]:
    """The numbers of a cell of CSV: a JSON list, or decimal numbers with spaces between them.

    Raises:
        ValueError: If it is neither.
    """
    text = text.strip()
    if text.startswith("["):
        value = json.loads(text)
        if not isinstance(value, list):
            raise ValueError("is no list")
        return value
    words = text.split()
    for word in words:
        if not (word.isascii() and word.removeprefix("-").isdigit()):
            raise ValueError(f"'{word[:40]}' is no decimal number")
    return list(map(int, words))
