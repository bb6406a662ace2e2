"""A result as batches of columns, each cell as the text that every text format agrees on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from engramsql.export.fragments import fragments

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    import pyarrow as pa

__all__ = ["Column", "Kind", "batches", "columns_of", "json_cells", "plain_cells"]

# DuckDB hands out whole vectors of 2048 rows anyway.
_BATCH_ROWS = 2048
# Values that are text at one time: bounds memory when each row holds thousands of floats.
_SLICE_VALUES = 1 << 16

_INTEGERS = frozenset(["tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"])
# Arrow has no type that holds all of their values; DuckDB writes them as digits.
_WIDE_NUMBERS = frozenset(["hugeint", "uhugeint", "decimal", "bignum", "varint"])
_NESTED = frozenset(["list", "array", "struct", "map", "union"])


class Kind(Enum):
    """How a column's values become text."""

    NUMBER = "number"
    TEXT = "text"
    NESTED = "nested"


@dataclass(frozen=True)
class Column:
    """One column of a result."""

    name: str
    kind: Kind


class _Plan(NamedTuple):
    column: Column
    expression: str


def columns_of(relation: duckdb.DuckDBPyRelation) -> list[Column]:
    """Names (duplicates kept) and kinds of the columns."""
    return [plan.column for plan in _plans(relation)]


def batches(relation: duckdb.DuckDBPyRelation) -> Iterator[list[pa.Array]]:
    """The columns of the result, a bounded number of values at a time."""
    projection = ", ".join(plan.expression for plan in _plans(relation))
    for batch in relation.project(projection).to_arrow_reader(_BATCH_ROWS):
        width = max(1, batch.nbytes // (4 * max(1, batch.num_rows)))
        step = max(1, _SLICE_VALUES // width)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step).columns


def json_cells(column: Column, array: pa.Array) -> list[str]:
    """JSON text of each value; NULL is ``null``."""
    if column.kind is Kind.NUMBER and _is_string(array):
        return ["null" if digits is None else digits for digits in array.to_pylist()]
    return fragments(array)


def plain_cells(column: Column, array: pa.Array) -> list[str | None]:
    """Bare text of each value: what JSON shows, texts without quotes; NULL is None."""
    if _is_string(array):
        return list(array.to_pylist())
    cells = fragments(array)
    plain = cells if column.kind is Kind.NESTED else [cell.strip('"') for cell in cells]
    return [None if null else cell for cell, null in zip(plain, array.is_null().to_pylist(), strict=True)]


def _plans(relation: duckdb.DuckDBPyRelation) -> list[_Plan]:
    names_and_types = zip(relation.columns, relation.types, strict=True)
    return [_plan(name, type_.id, position) for position, (name, type_) in enumerate(names_and_types, start=1)]


def _plan(name: str, type_id: str, position: int) -> _Plan:
    """Columns are named by position: a result may have two of one name."""
    if type_id in _INTEGERS or type_id in ("float", "double", "boolean"):
        return _Plan(Column(name, Kind.NUMBER), f"#{position}")
    if type_id in _WIDE_NUMBERS:
        return _Plan(Column(name, Kind.NUMBER), f"CAST(#{position} AS VARCHAR)")
    if type_id in _NESTED:
        return _Plan(Column(name, Kind.NESTED), f"#{position}")
    if type_id == "blob":
        return _Plan(Column(name, Kind.TEXT), f"lower(hex(#{position}))")
    return _Plan(Column(name, Kind.TEXT), f"CAST(#{position} AS VARCHAR)")


def _is_string(array: pa.Array) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(array.type) or pa.types.is_large_string(array.type))
