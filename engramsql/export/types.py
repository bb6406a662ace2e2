"""What a column's type becomes before its values leave DuckDB, which writes the text of most of them itself.

Arrow has no type that holds every HUGEINT, and Python none for every date: what is not a plain number is cast by
DuckDB, also inside lists, structs and maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from duckdb.sqltypes import DuckDBPyType

from engramsql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Callable

    Leaf = Callable[[DuckDBPyType], str | None]

__all__ = ["Kind", "Shape", "cast_type", "contains", "exact_leaf", "shape_of", "text_leaf"]

_PLAIN_NUMBERS = frozenset(
    ["tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "float", "double"]
)
# Arrow has no type that holds all of their values, or pyarrow writes them with an exponent; DuckDB writes digits.
_DIGITS = frozenset(["hugeint", "uhugeint", "decimal", "bignum", "varint"])


class Kind(Enum):
    """How values become text."""

    NUMBER = "number"
    TEXT = "text"
    NESTED = "nested"


@dataclass(frozen=True)
class Shape:
    """How values of one type become text; ``parts`` are a list's values, a struct's fields or a map's key and value."""

    kind: Kind
    parts: tuple[Shape, ...] = ()


def shape_of(type_: DuckDBPyType) -> Shape:
    """The shape of a type's values."""
    if _is_nested(type_):
        return Shape(Kind.NESTED, tuple(shape_of(part) for _, part in _parts(type_)))
    number = type_.id in _PLAIN_NUMBERS or type_.id in _DIGITS or type_.id == "boolean"
    return Shape(Kind.NUMBER if number else Kind.TEXT)


def text_leaf(type_: DuckDBPyType) -> str | None:
    """For the text formats: everything but plain numbers, truth values and bytes becomes DuckDB's text of it."""
    plain = type_.id in _PLAIN_NUMBERS or type_.id in ("boolean", "blob") or str(type_) == "VARCHAR"
    return None if plain else "VARCHAR"


def exact_leaf(type_: DuckDBPyType) -> str | None:
    """For Arrow and Parquet: types whose values DuckDB's Arrow export changes or hands out in a layout of its own."""
    if type_.id in ("hugeint", "uhugeint"):
        return "DECIMAL(38,0)"  # refuses what it cannot hold; the export would wrap it
    return "VARCHAR" if type_.id in ("bignum", "varint", "bit", "time with time zone") else None


def cast_type(type_: DuckDBPyType, leaf: Leaf) -> str | None:
    """The SQL type with every leaf that ``leaf`` names another type for replaced, or None if there is none."""
    if not _is_nested(type_):
        return leaf(type_)
    parts = _parts(type_)
    casts = [cast_type(part, leaf) for _, part in parts]
    if not any(casts):
        return None
    types = [cast or str(part) for cast, (_, part) in zip(casts, parts, strict=True)]
    if type_.id == "list":
        return f"{types[0]}[]"
    if type_.id == "array":
        return f"{types[0]}[{dict(type_.children)['size']}]"
    if type_.id == "struct":
        fields = zip(parts, types, strict=True)
        return f"STRUCT({', '.join(f'{identifier(name)} {inner}' for (name, _), inner in fields)})"
    return f"{type_.id.upper()}({', '.join(types)})"


def contains(type_: DuckDBPyType, ids: tuple[str, ...]) -> bool:
    """Whether the type, or one inside it, is one of these."""
    return type_.id in ids or (_is_nested(type_) and any(contains(part, ids) for _, part in _parts(type_)))


def _is_nested(type_: DuckDBPyType) -> bool:
    """Not a UNION, and no struct without names, as rows once were: their text is DuckDB's."""
    if type_.id == "struct":
        return all(name for name, _ in type_.children)
    return type_.id in ("list", "array", "map", "tuple")


def _parts(type_: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    # The rest of an array's children is its size, which is no type.
    return [(name, part) for name, part in type_.children if isinstance(part, DuckDBPyType)]
