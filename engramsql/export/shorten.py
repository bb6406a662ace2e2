"""Cells for people: vectors, lists and BLOBs by their first values, their length and a small picture.

A cell is its forms from the longest to the shortest: a column takes the longest that fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from engramsql.export.columns import plain_cells
from engramsql.export.fragments import fragments, joined
from engramsql.export.sparkline import sparkline
from engramsql.export.types import Kind
from engramsql.export.visible import cut, pad, visible, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engramsql.export.columns import Column
    from engramsql.export.style import Style

__all__ = ["Cell", "cells_of", "ellipsis_of", "padded", "safe_text", "whole_texts", "widest"]

NULL = "NULL"
# A text that could be taken for NULL is shown in quotes, and so is one that could be taken for such a text.
_QUOTES = "'"
_NOT_PLAIN = "[^ -~]"
_WHOLE_VALUES = 8
_WHOLE_BYTES = 16
_FIRST_TEXT = 16
_FIRST_BYTES = 8
_LARGE, _SMALL = 12, 7


@dataclass(frozen=True)
class Cell:
    """One cell: its forms from the longest to the shortest, and whether it is NULL."""

    forms: tuple[str, ...]
    null: bool = False

    @property
    def width(self) -> int:
        """Terminal cells of the longest form."""
        return width_of(self.forms[0])

    @property
    def least(self) -> int:
        """Terminal cells of the shortest form."""
        return width_of(self.forms[-1])

    def fitted(self, width: int, ellipsis: str) -> str:
        """The longest form of at most ``width`` cells, or what fits of the shortest."""
        for form in self.forms:
            if width_of(form) <= width:
                return form
        return cut(self.forms[-1], width, ellipsis)


@dataclass(frozen=True)
class _Pictures:
    large: str
    small: str


_NO_PICTURES = _Pictures("", "")


def cells_of(column: Column, type_: str, array: pa.Array, style: Style | None) -> list[Cell]:
    """The cells of one column; without a style every value is whole.

    Args:
        column: Name and kind.
        type_: The column's type as SQL writes it.
        array: Values, as ``columns.batches`` hands them out.
        style: What the terminal can show.
    """
    kind = array.type
    if style is not None and style.shorten:
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            return [
                _list(value, short, style)
                for value, short in zip(
                    _whole(column, array, _WHOLE_VALUES), _lists(column, type_, array, style), strict=True
                )
            ]
        if column.shape.kind is Kind.TEXT and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            return [_blob(value, style) for value in array.to_pylist()]
    text = column.shape.kind is Kind.TEXT and (pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return [_plain(value, style, text=text) for value in plain_cells(column, array).to_pylist()]


def ellipsis_of(style: Style) -> str:
    """What stands for what is left out."""
    return "\u2026" if style.unicode else "..."


def whole_texts(column: Column, array: pa.Array) -> pa.Array:
    """Whole values of one column as an array of strings: without control characters, NULL told from the text NULL."""
    texts = plain_cells(column, array)
    if pc.any(pc.match_substring_regex(texts, _NOT_PLAIN)).as_py():
        texts = pa.array([text and visible(text) for text in texts.to_pylist()], pa.string())
    if column.shape.kind is Kind.TEXT:
        like_null = pc.match_substring_regex(texts, f"^{_QUOTES}*{NULL}{_QUOTES}*$")
        if pc.any(like_null).as_py():
            texts = pc.if_else(like_null, joined(_QUOTES, texts, _QUOTES), texts)
    return pc.fill_null(texts, NULL)


def widest(texts: pa.Array) -> int:
    """Terminal cells of the widest of the texts."""
    if pc.any(pc.match_substring_regex(texts, _NOT_PLAIN)).as_py():
        return max(map(width_of, texts.to_pylist()))
    return int(pc.max(pc.binary_length(texts)).as_py() or 0)


def padded(texts: pa.Array, width: int, *, right: bool) -> pa.Array:
    """The texts filled up with spaces to ``width`` cells."""
    if pc.any(pc.match_substring_regex(texts, _NOT_PLAIN)).as_py():
        return pa.array([pad(text, width, right=right) for text in texts.to_pylist()], pa.string())
    return pc.utf8_lpad(texts, width) if right else pc.utf8_rpad(texts, width)


def _plain(value: str | None, style: Style | None, *, text: bool) -> Cell:
    if value is None:
        return Cell((NULL,), null=True)
    shown = visible(value) if style is None else safe_text(value, style)
    if text and shown.strip(_QUOTES) == NULL:
        shown = f"{_QUOTES}{shown}{_QUOTES}"
    return Cell((shown,))


def _whole(column: Column, array: pa.Array, most: int) -> list[str | None]:
    """The text of short lists; "" stands for a longer one."""
    lengths = pc.list_value_length(array)
    long = pc.fill_null(pc.greater(lengths, most), False)
    if not pc.any(long).as_py():
        return list(plain_cells(column, array).to_pylist())
    short = iter(plain_cells(column, array.filter(pc.invert(long))).to_pylist())
    return ["" if is_long else next(short) for is_long in long.to_pylist()]


def _list(whole: str | None, short: tuple[str, ...], style: Style) -> Cell:
    if whole is None:
        return Cell((NULL,), null=True)
    if not whole:
        return Cell(short)
    shown = safe_text(whole, style)
    # Eight floats of many digits, or eight lists, are as unreadable as a long list.
    return Cell((shown,)) if len(shown) <= max(24, style.width // 3) or not short else Cell((shown, *short))


def _lists(column: Column, type_: str, array: pa.Array, style: Style) -> list[tuple[str, ...]]:
    """The short forms of lists; none of NULL and of an empty list."""
    inner = type_[: type_.rindex("[")] if type_.endswith("]") else type_
    number = pa.types.is_integer(array.type.value_type) or pa.types.is_floating(array.type.value_type)
    forms: list[tuple[str, ...]] = []
    for position in range(len(array)):
        values = array[position].values
        if values is None or len(values) == 0:
            forms.append(())
        elif number:
            numbers = values.to_pylist()
            pictures = _pictures(numbers, style)
            forms.append(
                _forms([_short(value) for value in numbers[: style.values]], len(numbers), inner, pictures, style)
            )
        else:
            texts = fragments(values.slice(0, style.values), column.shape.parts[0]).to_pylist()
            first = [cut(safe_text(text, style), _FIRST_TEXT, ellipsis_of(style)) for text in texts]
            forms.append(_forms(first, len(values), inner, _NO_PICTURES, style))
    return forms


def _forms(first: list[str], count: int, inner: str, pictures: _Pictures, style: Style) -> tuple[str, ...]:
    ellipsis = ellipsis_of(style)
    size = f"{count} x {inner}"
    starts = [
        f"[{', '.join([*first[:shown], *([ellipsis] if shown < count else [])])}]" for shown in range(len(first), 0, -1)
    ]
    forms = [f"{start} {size}{pictures.large}" for start in starts]
    # The type stands above the column too.
    forms += [f"{starts[-1]} {count}{pictures.small}", f"{size}{pictures.large}", size]
    return tuple(dict.fromkeys(forms))


def _blob(value: bytes | None, style: Style) -> Cell:
    if value is None:
        return Cell((NULL,), null=True)
    if len(value) <= _WHOLE_BYTES:
        return Cell((value.hex(),))
    ellipsis = ellipsis_of(style)
    pictures = _pictures(value, style)
    size = f"{len(value)} bytes"
    start, less = (f"{value[:shown].hex()}{ellipsis} {size}" for shown in (_FIRST_BYTES, _FIRST_BYTES // 2))
    forms = [f"{start}{pictures.large}", f"{less}{pictures.small}", f"{size}{pictures.large}", size]
    return Cell(tuple(dict.fromkeys(forms)))


def _pictures(values: Sequence[float | None], style: Style) -> _Pictures:
    if not style.unicode:
        return _NO_PICTURES
    return _Pictures(f" {sparkline(values, _LARGE)}", f" {sparkline(values, _SMALL)}")


def _short(value: float | int | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.3g}".replace("nan", "NaN").replace("inf", "Infinity")
    return str(value)


def safe_text(text: str, style: Style) -> str:
    """``text`` as the terminal can show it, without control characters."""
    safe = visible(text)
    return safe if style.unicode else safe.encode("ascii", "backslashreplace").decode()
