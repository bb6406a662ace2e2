"""Arrow values as JSON text, column by column.

The rules (docs/cli.md): integers exact as numbers whatever their size, floats as the shortest digits that read back the
same, NaN and infinities as the strings "NaN", "Infinity" and "-Infinity", BLOB as lowercase hex, vectors and lists as
arrays, structs and maps as objects, everything else as text.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["fragments"]

_NO_NUMBER = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def fragments(array: pa.Array) -> list[str]:
    """JSON text of each value of ``array``.

    Example:
        >>> fragments(pa.array([[1.5, float("nan")], None]))
        ['[1.5,"NaN"]', 'null']
    """
    kind = array.type
    if pa.types.is_boolean(kind):
        return ["null" if value is None else str(value).lower() for value in array.to_pylist()]
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return _numbers(array)
    if pa.types.is_floating(kind):
        return [_NO_NUMBER.get(text, text) for text in _numbers(array)]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return [_quoted(value) for value in array.to_pylist()]
    if pa.types.is_map(kind):
        return _maps(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(array)
    if pa.types.is_struct(kind):
        return _structs(array)
    if pa.types.is_dictionary(kind):
        return fragments(array.dictionary_decode())
    return [_other(value) for value in array.to_pylist()]


def _numbers(array: pa.Array) -> list[str]:
    return ["null" if text is None else text for text in pc.cast(array, pa.string()).to_pylist()]


def _quoted(value: str | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lists(array: pa.Array) -> list[str]:
    lengths = pc.list_value_length(array).to_pylist()
    # Without the values of NULL lists, which a fixed-size array keeps room for.
    values = iter(fragments(array.flatten()))
    return ["null" if length is None else f"[{_joined(values, length)}]" for length in lengths]


def _joined(values: Iterator[str], count: int) -> str:
    return ",".join(islice(values, count))


def _structs(array: pa.Array) -> list[str]:
    names = [_quoted(field.name) for field in array.type]
    children = [fragments(child) for child in array.flatten()]
    rows = zip(*children, strict=True) if children else iter([()] * len(array))
    return [
        "null" if null else "{" + ",".join(f"{name}:{text}" for name, text in zip(names, row, strict=True)) + "}"
        for row, null in zip(rows, array.is_null().to_pylist(), strict=True)
    ]


def _maps(array: pa.Array) -> list[str]:
    """Maps as objects; a key that is no text becomes its JSON text."""
    cells = []
    for position in range(len(array)):
        scalar = array[position]
        if not scalar.is_valid:
            cells.append("null")
            continue
        entries = scalar.values
        keys = (key if key.startswith('"') else _quoted(key) for key in fragments(entries.field(0)))
        pairs = zip(keys, fragments(entries.field(1)), strict=True)
        cells.append("{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}")
    return cells


def _other(value: object) -> str:
    if value is None:
        return "null"
    return _quoted(value.hex() if isinstance(value, bytes) else str(value))
