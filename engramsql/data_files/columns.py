"""Columns of Parquet and Arrow IPC files, batch by batch, and Arrow's lists and encodings."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ColumnBatch", "arrow_batches", "is_list", "plain", "plain_type"]

# Rows of a column file at a time: documents may be long.
_BATCH_ROWS = 4096
_BATCH_VALUES = 1 << 20
_READ_BYTES = 1 << 20


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

    # Buffered: otherwise a column of a whole row group is read at once.
    with pq.ParquetFile(name, buffer_size=_READ_BYTES) as file:
        chosen = choose(file.schema_arrow)
        yield chosen
        first = 0
        for group in range(file.num_row_groups):
            rows = _rows_at_once(file.metadata.row_group(group), chosen)
            for batch in file.iter_batches(rows, row_groups=[group], columns=[chosen]):
                # By its name: `a.b` is read together with the member `b` of `a`.
                yield ColumnBatch(plain(batch.column(batch.schema.names.index(chosen))), first)
                first += batch.num_rows


def _rows_at_once(group: Any, column: str) -> int:
    """Rows of a row group that have about _BATCH_VALUES values: rows may be documents."""
    columns = map(group.column, range(group.num_columns))
    values: list[int] = [leaf.num_values for leaf in columns if (leaf.path_in_schema + ".").startswith(column + ".")]
    rows: int = group.num_rows
    return max(1, min(_BATCH_ROWS, _BATCH_VALUES * rows // max([1, *values])))


def _arrow(name: str, choose: Callable[[pa.Schema], str]) -> Iterator[str | ColumnBatch]:
    import pyarrow as pa

    size = os.path.getsize(name)

    def looked_at(count: int | None, read: Callable[[int], pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index in itertools.count() if count is None else range(count):
            _check_size(name, size)
            try:
                yield read(index)
            except StopIteration:
                return

    with pa.memory_map(name) as source:
        magic = source.read(6)
        source.seek(0)
        # The two forms of IPC share their endings in the wild; the file says which it is.
        if magic == b"ARROW1":
            file = pa.ipc.open_file(source)
            schema, batches = file.schema, looked_at(file.num_record_batches, file.get_batch)
        else:
            reader = pa.ipc.open_stream(source)
            schema, batches = reader.schema, looked_at(None, lambda _: reader.read_next_batch())
        chosen = choose(schema)
        yield chosen
        first = 0
        for batch in batches:
            column = batch.column(chosen)
            for begin, rows in _stretches(column):
                _check_size(name, size)
                yield ColumnBatch(plain(column.slice(begin, rows)), first + begin)
            first += batch.num_rows


def _check_size(name: str, size: int) -> None:
    """Refuses a file that was cut: a page of the mapping that it no longer has would end the process."""
    if os.path.getsize(name) < size:
        raise ValueError("it was cut while it was read")


def _stretches(column: pa.Array) -> Iterator[tuple[int, int]]:
    """First row and rows of stretches with about _BATCH_VALUES values: a batch may be as large as the file."""
    import pyarrow.compute as pc

    rows = len(column)
    values = rows
    if is_list(column.type):
        values = max(rows, pc.sum(pc.list_value_length(column)).as_py() or 0)
    step = max(1, _BATCH_VALUES * rows // max(1, values))
    for begin in range(0, rows, step):
        yield begin, min(step, rows - begin)


def is_list(type_: pa.DataType) -> bool:
    """Whether it is one of Arrow's list types."""
    import pyarrow as pa

    kinds = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, kind)(type_) for kind in kinds)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type without the encodings that keep repeated values once."""
    import pyarrow as pa

    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    if is_list(type_):
        value = plain_type(type_.value_type)
        if value != type_.value_type or pa.types.is_list_view(type_) or pa.types.is_large_list_view(type_):
            return pa.large_list(value)
    return type_


def plain(array: pa.Array) -> pa.Array:
    """The same values without such encodings."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_run_end_encoded(array.type):
        return plain(pc.run_end_decode(array))
    if pa.types.is_dictionary(array.type):
        return plain(array.dictionary_decode())
    if plain_type(array.type) == array.type:
        return array
    # No cast: pyarrow 26 loses values in that of list views.
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), pa.int64())
    mask = array.is_null() if array.null_count else None
    return pa.LargeListArray.from_arrays(offsets, plain(array.flatten()), mask=mask)
