"""A box for people: columns as wide as their values, numbers to the right, no wider than the terminal.

Into a file or a pipe every row and every value goes whole.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from itertools import chain
from typing import IO, TYPE_CHECKING

from engramsql.export.columns import batches, columns_of, plain_cells, type_names
from engramsql.export.layout import Layout, Need, layout
from engramsql.export.shorten import Cell, cells_of, safe_text
from engramsql.export.types import Kind
from engramsql.export.visible import cut, pad, visible, visible_lines, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import duckdb
    import pyarrow as pa

    from engramsql.export.columns import Column
    from engramsql.export.style import Style

__all__ = ["write_box"]

# Rows that are counted when only some of them are shown: of more, the first are shown, and that there are more.
_COUNTED_ROWS = 10_000
# Bytes of them, so that a few wide rows are not worth reading thousands.
_COUNTED_BYTES = 64 << 20
# What is looked at before a box without limits says how wide its columns are.
_MEASURED_ROWS = 10_000
_MEASURED_BYTES = 1 << 20
# A text column can get this narrow to make room for others.
_LEAST_TEXT = 16
_LEAST_NAME = 8
_MOST_TYPE = 16
# What EXPLAIN answers: a picture of lines, which is no value of a table.
_PLAN = ("explain_key", "explain_value")


@dataclass(frozen=True)
class _Frame:
    """The characters of a box."""

    top: tuple[str, str, str]
    middle: tuple[str, str, str]
    bottom: tuple[str, str, str]
    bar: str
    line: str
    ellipsis: str
    skipped: str


_LINES = _Frame(
    ("\u250c", "\u252c", "\u2510"),
    ("\u251c", "\u253c", "\u2524"),
    ("\u2514", "\u2534", "\u2518"),
    "\u2502",
    "\u2500",
    "\u2026",
    "\u00b7",
)
_ASCII = _Frame(("+", "+", "+"), ("+", "+", "+"), ("+", "+", "+"), "|", "-", "...", ":")
_SIMPLE_TYPE = re.compile(r"([A-Z_ ]+)((?:\[\d*\])*)")
_SHORT_TYPES = {
    f"{sign}{name}": f"{letter}int{bits}"
    for sign, letter in (("", ""), ("U", "u"))
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64), ("HUGEINT", 128))
}
_BOLD, _FAINT, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"

_Row = tuple[Cell, ...]
_Part = list["pa.Array"]


@dataclass(frozen=True)
class _Some:
    """The rows of a result that are shown."""

    first: list[_Part]
    last: list[_Part]
    shown: int
    count: int
    more: bool


def write_box(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """A box. With a style long results and cells are cut, and say so; without one nothing is.

    Memory is bounded: the widths of a box without limits are those of its first rows; a later cell that is wider moves
    the bars of its line.
    """
    if tuple(relation.columns) == _PLAN:
        _write_plan(relation, sink)
        return
    table = _Table(relation, style)
    if style is None or not style.max_rows:
        _write_all(table, batches(relation), sink)
    else:
        _write_some(table, _some(relation, style.max_rows), sink)


def _write_plan(relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    column = columns_of(relation)[1]
    for part in batches(relation):
        for text in plain_cells(column, part[1]):
            sink.write(f"{visible_lines(text or '').rstrip()}\n".encode())


def _write_some(table: _Table, some: _Some, sink: IO[bytes]) -> None:
    first, last = (list(chain.from_iterable(map(table.rows, parts))) for parts in (some.first, some.last))
    table.measure([*first, *last])
    sink.write(table.head().encode(*table.encoding))
    sink.write(table.body(first).encode(*table.encoding))
    if last:
        sink.write((table.skip() + table.body(last)).encode(*table.encoding))
    sink.write((table.foot() + table.summary(some.count, some.shown, some.more)).encode(*table.encoding))


def _write_all(table: _Table, parts: Iterator[_Part], sink: IO[bytes]) -> None:
    measured: list[_Row] = []
    size = 0
    for part in parts:
        measured += table.rows(part)
        size += sum(array.nbytes for array in part)
        if len(measured) >= _MEASURED_ROWS or size >= _MEASURED_BYTES:
            break
    table.measure(measured)
    sink.write(table.head().encode(*table.encoding))
    count = 0
    for rows in chain([measured], map(table.rows, parts)):
        sink.write(table.body(rows).encode(*table.encoding))
        count += len(rows)
    sink.write((table.foot() + table.summary(count, count, False)).encode(*table.encoding))


def _some(relation: duckdb.DuckDBPyRelation, max_rows: int) -> _Some:
    """The first and last rows of a result, or the first of one that is too long to be counted."""
    limit = max(_COUNTED_ROWS, max_rows)
    first: list[_Part] = []
    last: deque[_Part] = deque()
    count, size, more, kept = 0, 0, False, 0
    # The limit is part of the query: of a sorted result only so many rows are kept.
    parts = batches(relation.limit(limit + 1))
    for part in parts:
        rows = len(part[0])
        if count < max_rows:
            first.append([array.slice(0, max_rows - count) for array in part])
        last.append(part)
        kept += rows
        while kept - len(last[0][0]) >= max_rows:
            kept -= len(last.popleft()[0])
        count += rows
        size += sum(array.nbytes for array in part)
        if count > limit or (size > _COUNTED_BYTES and count > max_rows):
            more = True
            break
    parts.close()
    if more or count <= max_rows:
        # Of what was not read to its end nobody knows the last rows.
        return _Some(first, [], min(count, max_rows), min(count, limit), more)
    tail = max_rows // 2
    return _Some(_slice(first, 0, max_rows - tail), _slice(list(last), kept - tail, tail), max_rows, count, False)


def _slice(parts: list[_Part], start: int, count: int) -> list[_Part]:
    """``count`` rows of batches that lie one behind the other."""
    out = []
    for part in parts:
        rows = len(part[0])
        if start < rows and count > 0:
            piece = [array.slice(start, count) for array in part]
            out.append(piece)
            count -= len(piece[0])
        start = max(0, start - rows)
    return out


def _short_type(type_: str) -> str:
    """A type as DuckDB's own box calls it."""
    if (found := _SIMPLE_TYPE.fullmatch(type_)) is None:
        return type_
    return _SHORT_TYPES.get(found[1], found[1].lower()) + found[2]


class _Table:
    """A result as lines of text."""

    def __init__(self, relation: duckdb.DuckDBPyRelation, style: Style | None) -> None:
        self._style = style
        self._columns: list[Column] = columns_of(relation)
        self._names = [self._safe(column.name) for column in self._columns]
        self._types = type_names(relation)
        self._titles = [self._safe(_short_type(type_)) for type_ in self._types]
        self._right = [
            column.shape.kind is Kind.NUMBER and type_ != "BOOLEAN"
            for column, type_ in zip(self._columns, self._types, strict=True)
        ]
        unicode = style is None or style.unicode
        self._frame = _LINES if unicode else _ASCII
        # What such a terminal has no character for is shown as its escape.
        self.encoding = ("utf-8", "strict") if unicode else ("ascii", "backslashreplace")
        self._layout = Layout((), ())

    def rows(self, part: _Part) -> list[_Row]:
        """The rows of a batch."""
        cells = [
            cells_of(column, type_, array, self._style)
            for column, type_, array in zip(self._columns, self._types, part, strict=True)
        ]
        return list(zip(*cells, strict=True))

    def measure(self, rows: Iterable[_Row]) -> None:
        """Gives the columns their widths."""
        limit = 0 if self._style is None else self._style.width
        rows = list(rows)
        needs = []
        for position, (name, type_) in enumerate(zip(self._names, self._titles, strict=True)):
            cells = [row[position] for row in rows]
            title = width_of(name)
            most = max([1, title, min(len(type_), _MOST_TYPE), *(cell.width for cell in cells)])
            # A number that is cut would be another number.
            values = max([cell.least for cell in cells], default=0)
            least = values if self._right[position] else min(values, _LEAST_TEXT)
            least = max(1, least, min(title, _LEAST_NAME), min(len(type_), _LEAST_NAME))
            needs.append(Need(most, min(most, least)))
        self._layout = layout(needs, limit)

    def head(self) -> str:
        """Top of the box: names and types."""
        return (
            self._rule(self._frame.top)
            + self._line([self._fit(name, k) for k, name in self._shown(self._names)], _BOLD)
            + self._line([self._fit(type_, k) for k, type_ in self._shown(self._titles)], _FAINT)
            + self._rule(self._frame.middle)
        )

    def body(self, rows: Iterable[_Row]) -> str:
        """Lines of the rows."""
        return "".join(self._line([self._cell(row[k], k) for k in self._layout.columns]) for row in rows)

    def skip(self) -> str:
        """The line that stands for rows that are not shown."""
        return self._line(
            [
                pad(self._frame.skipped, width, right=self._right[column])
                for column, width in zip(self._layout.columns, self._layout.widths, strict=True)
            ],
            _FAINT,
        )

    def foot(self) -> str:
        """Bottom of the box."""
        return self._rule(self._frame.bottom)

    def summary(self, count: int, shown: int, more: bool) -> str:
        """How many rows and columns there are, and how many of them are to be seen."""
        rows = f"{'more than ' if more else ''}{count:,} row{'' if count == 1 and not more else 's'}"
        if shown < count or more:
            rows += f" (first {shown:,} shown)" if more else f" ({shown:,} shown)"
        columns = len(self._columns)
        if len(self._layout.columns) < columns:
            rows += f", {columns} columns ({len(self._layout.columns)} shown)"
        return rows + "\n"

    def _shown(self, values: list[str]) -> Iterator[tuple[int, str]]:
        return ((k, values[column]) for k, column in enumerate(self._layout.columns))

    def _safe(self, text: str) -> str:
        return visible(text) if self._style is None else safe_text(text, self._style)

    def _fit(self, text: str, k: int) -> str:
        width = self._layout.widths[k]
        return pad(
            cut(text, width, self._frame.ellipsis, count=False), width, right=self._right[self._layout.columns[k]]
        )

    def _cell(self, cell: Cell, column: int) -> str:
        k = self._layout.columns.index(column)
        width = self._layout.widths[k]
        right = self._right[column]
        # Without a width to keep to, and where it is a number, a cell may be wider than its column.
        free = self._style is None or not self._style.width or right
        text = pad(cell.forms[0] if free else cell.fitted(width, self._frame.ellipsis), width, right=right)
        return self._colored(text, _FAINT) if cell.null else text

    def _line(self, cells: list[str], color: str = "") -> str:
        bar = self._frame.bar
        texts = [self._colored(cell, color) for cell in cells]
        if self._layout.gap is not None:
            texts.insert(self._layout.gap, self._frame.ellipsis[:1])
        return f"{bar} {f' {bar} '.join(texts)} {bar}\n"

    def _rule(self, ends: tuple[str, str, str]) -> str:
        widths = list(self._layout.widths)
        if self._layout.gap is not None:
            widths.insert(self._layout.gap, 1)
        return ends[0] + ends[1].join(self._frame.line * (width + 2) for width in widths) + ends[2] + "\n"

    def _colored(self, text: str, color: str) -> str:
        return f"{color}{text}{_PLAIN}" if color and self._style is not None and self._style.color else text
