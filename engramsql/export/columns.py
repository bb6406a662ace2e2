"""A result as batches of columns, each cell as the text that every text format agrees on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count as count_from
from typing import IO, TYPE_CHECKING, NamedTuple

from engramsql.export.fragments import fragments
from engramsql.export.types import Kind, Shape, cast_type, shape_of, text_leaf

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    import duckdb
    import pyarrow as pa
    from duckdb.sqltypes import DuckDBPyType

__all__ = ["Column", "batches", "columns_of", "json_cells", "plain_cells", "type_names", "unique_names", "write_texts"]

# DuckDB hands out whole vectors of 2048 rows anyway.
_BATCH_ROWS = 2048
# Values that are text at one time: bounds memory when each row holds thousands of floats.
_SLICE_VALUES = 1 << 16


@dataclass(frozen=True)
class Column:
    """One column of a result."""

    name: str
    shape: Shape


class _Plan(NamedTuple):
    column: Column
    expression: str


def columns_of(relation: duckdb.DuckDBPyRelation) -> list[Column]:
    """Names (duplicates kept) and kinds of the columns."""
    return [plan.column for plan in _plans(relation)]


def type_names(relation: duckdb.DuckDBPyRelation) -> list[str]:
    """The types of the columns for people, as SQL writes them."""
    return [str(type_).replace('"NULL"', "NULL") for type_ in relation.types]


def batches(relation: duckdb.DuckDBPyRelation) -> Generator[list[pa.Array], None, None]:
    """The columns of the result, a bounded number of values at a time; closed early, the query ends."""
    projection = ", ".join(plan.expression for plan in _plans(relation))
    reader = relation.project(projection).to_arrow_reader(_BATCH_ROWS)
    try:
        for batch in reader:
            width = max(1, batch.nbytes // (4 * max(1, batch.num_rows)))
            step = max(1, _SLICE_VALUES // width)
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step).columns
    finally:
        reader.close()


def json_cells(column: Column, array: pa.Array) -> pa.Array:
    """JSON text of each value, an array of strings; NULL is ``null``."""
    return fragments(array, column.shape)


def plain_cells(column: Column, array: pa.Array) -> pa.Array:
    """Bare text of each value, an array of strings: what JSON shows, texts without quotes; NULL is NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.shape.kind is Kind.TEXT and (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return array
    cells = fragments(array, column.shape)
    plain = cells if column.shape.kind is Kind.NESTED else pc.utf8_trim(cells, '"')
    return pc.if_else(array.is_valid(), plain, pa.scalar(None, pa.string())) if array.null_count else plain


def write_texts(sink: IO[bytes], lines: pa.Array) -> None:
    """Writes the texts of an array of strings one behind the other, without a copy of them."""
    import pyarrow as pa

    if len(lines) == 0:
        return
    lines = lines.cast(pa.large_string())
    _, offsets, data = lines.buffers()
    starts = pa.Array.from_buffers(pa.int64(), len(lines) + 1, [None, offsets], offset=lines.offset)
    if data is not None:
        sink.write(memoryview(data)[starts[0].as_py() : starts[len(lines)].as_py()])


def unique_names(names: Iterable[str]) -> list[str]:
    """Names as object keys: the second ``a`` is ``a_1``, as in Arrow."""
    unique: list[str] = []
    for name in names:
        candidates = (f"{name}_{count}" for count in count_from(1))
        unique.append(name if name not in unique else next(key for key in candidates if key not in unique))
    return unique


def _plans(relation: duckdb.DuckDBPyRelation) -> list[_Plan]:
    """Columns are named by position: a result may have two of one name."""
    return [
        _Plan(Column(name, shape_of(type_)), _expression(type_, position))
        for position, (name, type_) in enumerate(zip(relation.columns, relation.types, strict=True), start=1)
    ]


def _expression(type_: DuckDBPyType, position: int) -> str:
    cast = cast_type(type_, text_leaf)
    return f"#{position}" if cast is None else f"CAST(#{position} AS {cast})"
