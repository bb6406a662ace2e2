"""CSV and JSON lines, by the rules of the results on the command line: shortest digits, BLOB as hex, NaN as text."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engramsql.export.columns import Column, json_cells, plain_cells, unique_names, write_texts
from engramsql.export.files.values import VALUE_KEY
from engramsql.export.fragments import joined, replaced
from engramsql.export.text import csv_cells
from engramsql.export.types import Kind, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engramsql.export.files.sink import Sink
    from engramsql.export.files.writer import Layout

__all__ = ["Csv", "JsonLines"]

# Values that are text at one time.
_SLICE_VALUES = 1 << 16


class _Text(ABC):
    """Records as lines, some at a time."""

    def __init__(self, layout: Layout, sink: Sink) -> None:
        self._sink = sink
        self._fields = list(layout.schema)
        self._columns = layout.columns or [Column(field.name, _shape(_shown_type(field))) for field in self._fields]

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds records."""
        width = max(1, batch.nbytes // (4 * max(1, batch.num_rows)))
        step = max(1, _SLICE_VALUES // width)
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            if width > _SLICE_VALUES:
                self._long(part)
                continue
            arrays = [_shown(field, array) for field, array in zip(self._fields, part.columns, strict=True)]
            write_texts(self._sink, self._lines(arrays))  # type: ignore[arg-type]

    def _long(self, record: pa.RecordBatch) -> None:
        """Writes one record whose text is many times its values: cell by cell, a long one piece by piece."""
        for position, (field, column, array) in enumerate(
            zip(self._fields, self._columns, record.columns, strict=True)
        ):
            self._sink.write(self._before(position))
            if _values_of(array) > _SLICE_VALUES:
                self._sink.write(self._quote)
                for piece in _pieces(field, column, array):
                    write_texts(self._sink, self._quoted(piece))  # type: ignore[arg-type]
                self._sink.write(self._quote)
            else:
                write_texts(self._sink, self._cells(column, _shown(field, array)))  # type: ignore[arg-type]
        self._sink.write(self._end)

    _quote = b""
    _end = b"\n"

    @abstractmethod
    def _lines(self, arrays: list[pa.Array]) -> pa.Array:
        """The records as lines, from their columns."""

    @abstractmethod
    def _before(self, position: int) -> bytes:
        """What comes before a cell."""

    @abstractmethod
    def _cells(self, column: Column, array: pa.Array) -> pa.Array:
        """Values as they stand in the file."""

    @abstractmethod
    def _quoted(self, texts: pa.Array) -> pa.Array:
        """JSON text as it stands in a cell."""

    def close(self) -> None:  # noqa: B027 (nothing is left to do)
        """A line is whole as it is."""

    def abandon(self) -> None:  # noqa: B027 (nothing is left to do)
        """Nothing is held."""


class Csv(_Text):
    """RFC 4180 with a header and LF; NULL is empty, an empty text is ``""``, a vector its JSON text."""

    def __init__(self, layout: Layout, sink: Sink) -> None:
        super().__init__(layout, sink)
        names = csv_cells(pa.array([column.name for column in self._columns], pa.string())).to_pylist()
        sink.write((",".join(names) + "\n").encode())

    def _lines(self, arrays: list[pa.Array]) -> pa.Array:
        cells = [self._cells(column, array) for column, array in zip(self._columns, arrays, strict=True)]
        return joined(pc.binary_join_element_wise(*cells, ","), "\n")

    _quote = b'"'

    def _before(self, position: int) -> bytes:
        return b"," if position else b""

    def _cells(self, column: Column, array: pa.Array) -> pa.Array:
        return csv_cells(plain_cells(column, array))

    def _quoted(self, texts: pa.Array) -> pa.Array:
        return replaced(texts, {'"': '""'})


class JsonLines(_Text):
    """An object per line."""

    def __init__(self, layout: Layout, sink: Sink) -> None:
        super().__init__(layout, sink)
        # Of two members of one name readers keep one.
        names = unique_names(column.name for column in self._columns)
        keys = [json.dumps(name, ensure_ascii=False) for name in names]
        self._starts = [f"{',' if position else '{'}{key}:" for position, key in enumerate(keys)]

    def _lines(self, arrays: list[pa.Array]) -> pa.Array:
        cells = [self._cells(column, array) for column, array in zip(self._columns, arrays, strict=True)]
        return joined(*chain.from_iterable(zip(self._starts, cells, strict=True)), "}\n")

    _end = b"}\n"

    def _before(self, position: int) -> bytes:
        return self._starts[position].encode()

    def _cells(self, column: Column, array: pa.Array) -> pa.Array:
        return json_cells(column, array)

    def _quoted(self, texts: pa.Array) -> pa.Array:
        return texts


def _values_of(array: pa.Array) -> int:
    """Values of a column of lists, 0 of any other; of one record."""
    return array.nbytes // 4 if _is_list(array.type) and array.null_count == 0 else 0


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _pieces(field: pa.Field, column: Column, array: pa.Array) -> Iterator[pa.Array]:
    """JSON text of one list, a bounded number of values at a time."""
    inner = array.flatten()
    (part,) = column.shape.parts
    width = max(1, inner.nbytes // (4 * max(1, len(inner))))
    step = max(1, _SLICE_VALUES // width)
    bfloat16 = (field.metadata or {}).get(VALUE_KEY) == b"bfloat16"
    for start in range(0, len(inner), step):
        texts = json_cells(Column(column.name, part), _as_float32(inner.slice(start, step), bfloat16))
        yield from (pa.array(["["]), texts[:1]) if start == 0 else (joined(",", texts[:1]),)
        yield joined(",", texts[1:])
    yield pa.array(["]"] if len(inner) else ["[]"])


def _shown_type(field: pa.Field) -> pa.DataType:
    return _shown(field, pa.array([], field.type)).type


def _shown(field: pa.Field, array: pa.Array) -> pa.Array:
    """The column with values that text can show: halves as float32, which holds all of them, names as themselves."""
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    values = (field.metadata or {}).get(VALUE_KEY)
    return _as_float32(array, values == b"bfloat16")


def _as_float32(array: pa.Array, bfloat16: bool) -> pa.Array:
    type_ = array.type
    if pa.types.is_list(type_) and pa.types.is_fixed_size_list(type_.value_type):
        inner = _as_float32(array.values, bfloat16)
        return pa.ListArray.from_arrays(array.offsets, inner)
    if not pa.types.is_fixed_size_list(type_):
        return array
    item = type_.value_type
    if not (pa.types.is_float16(item) or (bfloat16 and pa.types.is_uint16(item))):
        return array
    width = type_.list_size
    # The slots of NULLs too.
    values = array.values.slice(array.offset * width, len(array) * width).to_numpy(zero_copy_only=False)
    single = (values.astype(np.uint32) << 16).view(np.float32) if bfloat16 else values.astype(np.float32)
    mask = array.is_null()
    valid = pc.invert(mask)
    bits = pa.py_buffer(np.packbits(np.asarray(valid), bitorder="little"))
    return pa.Array.from_buffers(
        pa.list_(pa.float32(), width), len(array), [bits], null_count=array.null_count, children=[pa.array(single)]
    )


def _shape(type_: pa.DataType) -> Shape:
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return Shape(Kind.NESTED, (_shape(type_.value_type),))
    number = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)
    return Shape(Kind.NUMBER if number else Kind.TEXT)
