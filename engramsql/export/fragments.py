"""Arrow values as JSON text, column by column.

The rules (docs/cli.md): integers exact as numbers whatever their size, floats as the shortest digits that read back the
same, NaN and infinities as the strings "NaN", "Infinity" and "-Infinity", BLOB as lowercase hex, vectors and lists as
arrays, structs and maps as objects, everything else as text, which DuckDB has written (``types.py``).
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from engramsql.export.types import Kind, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["fragments"]

# What JSON has no number for, and a zero that readers would take for the integer, which has no sign.
_NO_JSON_NUMBER = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"', "-0": "-0.0"}


def fragments(array: pa.Array, shape: Shape) -> list[str]:
    """JSON text of each value of ``array``.

    Args:
        array: Values as DuckDB hands them out after the casts of ``types.py``.
        shape: What they are: a number may come as its digits.

    Example:
        >>> fragments(pa.array([[1.5, float("nan")], None]), Shape(Kind.NESTED, (Shape(Kind.NUMBER),)))
        ['[1.5,"NaN"]', 'null']
    """
    kind = array.type
    if pa.types.is_boolean(kind):
        return ["null" if value is None else str(value).lower() for value in array.to_pylist()]
    if pa.types.is_integer(kind):
        return _numbers(array)
    if pa.types.is_floating(kind):
        return [_NO_JSON_NUMBER.get(text, text) for text in _numbers(array)]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _numbers(array) if shape.kind is Kind.NUMBER else [_quoted(value) for value in array.to_pylist()]
    if pa.types.is_map(kind):
        return _maps(array, shape)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(array, shape)
    if pa.types.is_struct(kind):
        return _structs(array, shape)
    return [_quoted(None if value is None else value.hex()) for value in array.to_pylist()]


def _numbers(array: pa.Array) -> list[str]:
    return ["null" if text is None else text for text in pc.cast(array, pa.string()).to_pylist()]


def _quoted(value: str | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lists(array: pa.Array, shape: Shape) -> list[str]:
    lengths = pc.list_value_length(array).to_pylist()
    # Without the values of NULL lists, which a fixed-size array keeps room for.
    values = iter(fragments(array.flatten(), shape.parts[0]))
    return ["null" if length is None else f"[{_joined(values, length)}]" for length in lengths]


def _joined(values: Iterator[str], count: int) -> str:
    return ",".join(islice(values, count))


def _structs(array: pa.Array, shape: Shape) -> list[str]:
    names = [_quoted(field.name) for field in array.type]
    children = [fragments(child, part) for child, part in zip(array.flatten(), shape.parts, strict=True)]
    rows = zip(*children, strict=True) if children else iter([()] * len(array))
    return [
        "null" if null else "{" + ",".join(f"{name}:{text}" for name, text in zip(names, row, strict=True)) + "}"
        for row, null in zip(rows, array.is_null().to_pylist(), strict=True)
    ]


def _maps(array: pa.Array, shape: Shape) -> list[str]:
    """Maps as objects; a key that is no text becomes its JSON text."""
    keys_shape, values_shape = shape.parts
    cells = []
    for position in range(len(array)):
        scalar = array[position]
        if not scalar.is_valid:
            cells.append("null")
            continue
        entries = scalar.values
        keys = (key if key.startswith('"') else _quoted(key) for key in fragments(entries.field(0), keys_shape))
        pairs = zip(keys, fragments(entries.field(1), values_shape), strict=True)
        cells.append("{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}")
    return cells
