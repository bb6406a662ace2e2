"""NumPy arrays and safetensors: a column is one block of bytes, and how long it is stands before it.

The beginning of a file is written last, over zeros, so that what a killed export leaves opens nowhere. A column that
comes after another one waits in a nameless file beside it.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from engramsql.errors import ArgumentError, StorageError
from engramsql.export.files.values import VALUE_KEY
from engramsql.export.files.writer import refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from engramsql.export.files.sink import Sink
    from engramsql.export.files.writer import Layout

__all__ = ["Npy", "Npz", "Safetensors"]

_BLOCK = 4 << 20
# As NumPy writes it: its readers map the array behind, which begins at a multiple of 64 bytes.
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER_BYTES = 128
# What a header says of a row count, at most.
_MOST_ROWS = 2**63 - 1
_TENSOR_TYPES = {
    "float32": "F32", "float64": "F64", "float16": "F16", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
}  # fmt: skip


@dataclass(frozen=True)
class _Column:
    """A column as an array: [rows] or [rows, width]."""

    name: str
    dtype: np.dtype[Any]
    width: int | None
    bfloat16: bool

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * (1 if self.width is None else self.width)

    def shape(self, rows: int) -> tuple[int, ...]:
        return (rows,) if self.width is None else (rows, self.width)


def _column(field: pa.Field, format: str, layout: Layout) -> _Column:
    """What a column becomes.

    Raises:
        ArgumentError: If it has no numbers, or lists of different lengths.
    """
    type_, width = field.type, None
    if pa.types.is_fixed_size_binary(type_):
        return _Column(field.name, np.dtype(np.uint8), type_.byte_width, False)
    if pa.types.is_fixed_size_list(type_):
        type_, width = type_.value_type, type_.list_size
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        remedy = "its lists may differ in length: cast them to an array, such as FLOAT[160]"
        if (layout.schema.metadata or {}).get(b"engramsql.export") == b"tokens":
            remedy = "sequences differ in length: export a record per token, or another format"
        raise refused(format, field.name, field.type, remedy)
    if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
        raise refused(format, field.name, field.type, "arrays hold numbers; leave it out with --columns (columns=)")
    bfloat16 = (field.metadata or {}).get(VALUE_KEY) == b"bfloat16"
    return _Column(field.name, np.dtype(type_.to_pandas_dtype()), width, bfloat16)


def _values(column: _Column, array: pa.Array, first: int, format: str) -> NDArray[Any]:
    """The values of some records in row order, without a copy where there is none to be made.

    Raises:
        ArgumentError: If one is NULL.
    """
    inner = array
    if array.null_count == 0 and pa.types.is_fixed_size_list(array.type):
        inner = array.flatten()
    if inner.null_count or array.null_count:
        at = int(np.argmax(np.asarray(array.is_null()))) if array.null_count else 0
        if not array.null_count and column.width:
            at = int(np.argmax(np.asarray(inner.is_null()))) // column.width
        raise ArgumentError(
            f"column '{column.name}', record {first + at}: NULL has no place in {format}; leave such records out, or "
            "choose arrow or parquet"
        )
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        # Rows of no bytes have no buffer.
        data = array.buffers()[1]
        if data is None:
            return np.empty(0, np.uint8)
        return np.frombuffer(data, np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    values: NDArray[Any] = np.ascontiguousarray(inner.to_numpy(zero_copy_only=False), dtype=column.dtype)
    return values


def _npy_header(column: _Column, rows: int) -> bytes:
    """The header of an array file, always of the same length."""
    text = f"{{'descr': '{column.dtype.str}', 'fortran_order': False, 'shape': {column.shape(rows)}, }}"
    return _MAGIC + (_HEADER_BYTES - 10).to_bytes(2, "little") + text.ljust(_HEADER_BYTES - 11).encode() + b"\n"


class Npy:
    """One column as a NumPy array; bfloat16 as uint16 bit patterns, rows as uint8."""

    def __init__(self, layout: Layout, sink: Sink) -> None:
        names = layout.schema.names
        if len(names) != 1:
            raise ArgumentError(
                f"an npy file is one array, and there are {len(names)} columns: {', '.join(names)}; name one with "
                "--columns (columns=), or write npz"
            )
        self._column = _column(layout.schema.field(0), "npy", layout)
        self._sink, self._rows = sink, 0
        sink.write(bytes(_HEADER_BYTES))

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds records."""
        self._sink.write(_values(self._column, batch.column(0), self._rows, "npy"))
        self._rows += batch.num_rows

    def close(self) -> None:
        """Writes the header."""
        self._sink.seek(0)
        self._sink.write(_npy_header(self._column, self._rows))

    def abandon(self) -> None:
        """Nothing is held."""


class _Columns:
    """Columns that wait in nameless files until the first of all, which goes to the sink itself, is complete."""

    def __init__(self, layout: Layout, format: str, direct: int | None) -> None:
        self.columns = [_column(field, format, layout) for field in layout.schema]
        self.rows = 0
        self._format, self._direct = format, direct
        # Without a name there is nothing to remove, even after a kill.
        self.waiting: list[IO[bytes] | None] = [
            None if index == direct else tempfile.TemporaryFile(dir=layout.directory)  # noqa: SIM115
            for index in range(len(self.columns))
        ]
        self._checksums = [0] * len(self.columns)

    def write(self, batch: pa.RecordBatch, sink: Sink) -> None:
        for index, (column, array) in enumerate(zip(self.columns, batch.columns, strict=True)):
            values = _values(column, array, self.rows, self._format)
            waiting = self.waiting[index]
            if waiting is None:
                sink.write(values)
            else:
                data = np.ascontiguousarray(values).data.cast("B")
                waiting.write(data)
                self._checksums[index] = zlib.crc32(data, self._checksums[index])
        self.rows += batch.num_rows

    def blocks(self, index: int) -> Iterator[bytes]:
        """A column that waited.

        Raises:
            StorageError: If it is not what was written: nobody asks the disk whether it has what waits.
        """
        waiting = self.waiting[index]
        if waiting is None:
            return
        waiting.seek(0)
        checksum = 0
        while block := waiting.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
            yield block
        if checksum != self._checksums[index]:
            name = self.columns[index].name
            raise StorageError(f"column '{name}' came back from the disk as other bytes than were written to it")

    def close(self) -> None:
        for waiting in self.waiting:
            if waiting is not None:
                waiting.close()


class Npz:
    """A NumPy array per column in an archive without compression. Needs room for the columns twice meanwhile."""

    def __init__(self, layout: Layout, sink: Sink) -> None:
        self._sink = sink
        # An archive has the checksum of a member before it, and that of an array includes its length.
        self._columns = _Columns(layout, "npz", None)

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds records."""
        self._columns.write(batch, self._sink)

    def close(self) -> None:
        """Writes the archive."""
        columns = self._columns
        with zipfile.ZipFile(self._sink, "w", zipfile.ZIP_STORED) as archive:
            for index, column in enumerate(columns.columns):
                # The oldest time that an archive knows: the same records make the same file.
                member = zipfile.ZipInfo(f"{column.name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                with archive.open(member, "w", force_zip64=True) as file:
                    file.write(_npy_header(column, columns.rows))
                    for block in columns.blocks(index):
                        file.write(block)
        columns.close()

    def abandon(self) -> None:
        """Lets go of the columns."""
        self._columns.close()


class Safetensors:
    """A tensor per column, bfloat16 among them; the widest goes straight into the file."""

    def __init__(self, layout: Layout, sink: Sink) -> None:
        columns = [_column(field, "safetensors", layout) for field in layout.schema]
        if (reserved := "__metadata__") in layout.schema.names:
            type_ = layout.schema.field(reserved).type
            raise refused("safetensors", reserved, type_, "the name means something else there; name it otherwise")
        widest = max(range(len(columns)), key=lambda index: columns[index].row_bytes)
        self._order = [widest, *(index for index in range(len(columns)) if index != widest)]
        self._sink = sink
        self._columns = _Columns(layout, "safetensors", widest)
        self._metadata = {key.decode(): value.decode() for key, value in (layout.schema.metadata or {}).items()}
        # The length that the header may have at most, to be filled up with spaces, and all of it a multiple of 8.
        self._header_bytes = -(-len(self._header(_MOST_ROWS // max(1, columns[widest].row_bytes))) // 8) * 8 + 64
        sink.write(bytes(8 + self._header_bytes))

    def _header(self, rows: int) -> bytes:
        tensors: dict[str, Any] = {"__metadata__": self._metadata}
        at = 0
        for index in self._order:
            column = self._columns.columns[index]
            end = at + rows * column.row_bytes
            kind = "BF16" if column.bfloat16 else _TENSOR_TYPES[column.dtype.name]
            tensors[column.name] = {"dtype": kind, "shape": list(column.shape(rows)), "data_offsets": [at, end]}
            at = end
        return json.dumps(tensors, separators=(",", ":"), ensure_ascii=False).encode()

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds records."""
        self._columns.write(batch, self._sink)

    def close(self) -> None:
        """Adds the other tensors, and writes the header."""
        for index in self._order[1:]:
            for block in self._columns.blocks(index):
                self._sink.write(block)
        self._sink.seek(0)
        self._sink.write(self._header_bytes.to_bytes(8, "little"))
        self._sink.write(self._header(self._columns.rows).ljust(self._header_bytes))
        self._columns.close()

    def abandon(self) -> None:
        """Lets go of the columns."""
        self._columns.close()
