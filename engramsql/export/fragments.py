"""Arrow values as JSON text, whole columns at a time.

The rules (docs/cli.md): integers exact as numbers whatever their size, floats as the shortest digits that read back the
same, NaN and infinities as the strings "NaN", "Infinity" and "-Infinity", BLOB as lowercase hex, vectors and lists as
arrays, structs and maps as objects, everything else as text, which DuckDB has written (``types.py``).

Arrow makes and joins the texts: a Python object per value would take most of the time of a large result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from engramsql.export.types import Kind, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["fragments", "joined", "replaced"]

# What JSON has no number for, and a zero that readers would take for the integer, which has no sign.
_NO_JSON_NUMBER = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"', "-0": "-0.0"}
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BARE_POINT = r"^(-?)\."
_RARE_CONTROLS = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]"


def fragments(array: pa.Array, shape: Shape) -> pa.Array:
    """JSON text of each value of ``array``, as an array of strings without NULLs.

    Args:
        array: Values as DuckDB hands them out after the casts of ``types.py``.
        shape: What they are: a number may come as its digits.

    Example:
        >>> fragments(pa.array([[1.5, float("nan")], None]), Shape(Kind.NESTED, (Shape(Kind.NUMBER),))).to_pylist()
        ['[1.5,"NaN"]', 'null']
    """
    return pc.fill_null(_fragments(array, shape), "null")


def joined(*pieces: pa.Array | str) -> pa.Array:
    """Texts put together row by row; NULL where one of them is.

    Example:
        >>> joined("<", pa.array(["a", None]), ">").to_pylist()
        ['<a>', None]
    """
    return pc.binary_join_element_wise(*pieces, "")


def replaced(array: pa.Array, replacements: dict[str, str]) -> pa.Array:
    """Texts with some of their parts replaced, one after the other; what is not there costs one look."""
    for old, new in replacements.items():
        if pc.any(pc.match_substring(array, old)).as_py():
            array = pc.replace_substring(array, old, new)
    return array


def _fragments(array: pa.Array, shape: Shape) -> pa.Array:
    kind = array.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return pc.cast(array, pa.string())
    if pa.types.is_floating(kind):
        return _floats(array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Digits of a number whose type Arrow does not have.
        return _digits(array) if shape.kind is Kind.NUMBER else _quoted(array)
    if pa.types.is_map(kind):
        return _maps(array, shape)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(array, shape)
    if pa.types.is_struct(kind):
        return _structs(array, shape)
    return pa.array([None if value is None else f'"{value.hex()}"' for value in array.to_pylist()], pa.string())


def _floats(array: pa.Array) -> pa.Array:
    texts = pc.cast(array, pa.string())
    plain = pc.and_(pc.is_finite(array), pc.not_equal(array, 0))
    if pc.all(plain, skip_nulls=True).as_py():
        return texts
    odd = pc.fill_null(pc.invert(plain), False)
    rewritten = [_NO_JSON_NUMBER.get(text, text) for text in texts.filter(odd).to_pylist()]
    return pc.replace_with_mask(texts, odd, pa.array(rewritten, pa.string()))


def _digits(array: pa.Array) -> pa.Array:
    """DuckDB leaves out the zero before the point where a DECIMAL has all its digits behind it; JSON does not."""
    if not pc.any(pc.match_substring_regex(array, _BARE_POINT)).as_py():
        return array
    return pc.replace_substring_regex(array, _BARE_POINT, "\\10.")


def _quoted(array: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(array, _RARE_CONTROLS)).as_py():
        return pa.array([None if text is None else _json(text) for text in array.to_pylist()], pa.string())
    return joined('"', replaced(array, _ESCAPES), '"')


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _lists(array: pa.Array, shape: Shape) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    # Without the values of NULL lists, which a fixed-size array keeps room for.
    values = fragments(array.flatten(), shape.parts[0])
    ends = pc.cumulative_sum(pc.cast(lengths, pa.int32()))
    lists = pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), ends]), values)
    return _where_valid(array, joined("[", pc.binary_join(lists, ","), "]"))


def _structs(array: pa.Array, shape: Shape) -> pa.Array:
    if array.type.num_fields == 0:
        return _where_valid(array, pa.array(["{}"] * len(array), pa.string()))
    children = zip(array.type, array.flatten(), shape.parts, strict=True)
    fields = [(_json(field.name), fragments(child, part)) for field, child, part in children]
    return _where_valid(array, joined(*_object(fields)))


def _object(fields: Iterable[tuple[str, pa.Array]]) -> list[pa.Array | str]:
    pieces: list[pa.Array | str] = []
    for name, values in fields:
        pieces += [f"{',' if pieces else '{'}{name}:", values]
    return [*pieces, "}"]


def _maps(array: pa.Array, shape: Shape) -> pa.Array:
    """Maps as objects; a key that is no text becomes its JSON text."""
    keys_shape, values_shape = shape.parts
    cells: list[str | None] = []
    for position in range(len(array)):
        scalar = array[position]
        if not scalar.is_valid:
            cells.append(None)
            continue
        entries = scalar.values
        texts = fragments(entries.field(0), keys_shape).to_pylist()
        keys = (key if key.startswith('"') else _json(key) for key in texts)
        pairs = zip(keys, fragments(entries.field(1), values_shape).to_pylist(), strict=True)
        cells.append("{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}")
    return pa.array(cells, pa.string())


def _where_valid(array: pa.Array, texts: pa.Array) -> pa.Array:
    if array.null_count == 0:
        return texts
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))
