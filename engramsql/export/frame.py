"""The lines of a box: columns with their widths, names, types and cells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engramsql.export.columns import columns_of, type_names
from engramsql.export.layout import Layout, Need, layout
from engramsql.export.shorten import Cell, cells_of, safe_text
from engramsql.export.types import Kind
from engramsql.export.visible import cut, pad, visible, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import duckdb
    import pyarrow as pa

    from engramsql.export.columns import Column
    from engramsql.export.style import Style

__all__ = ["Box", "Row"]

# A text column can get this narrow to make room for others.
_LEAST_TEXT = 16
_LEAST_NAME = 8
_MOST_TYPE = 16


@dataclass(frozen=True)
class Frame:
    """The characters of a box."""

    top: tuple[str, str, str]
    middle: tuple[str, str, str]
    bottom: tuple[str, str, str]
    bar: str
    line: str
    ellipsis: str
    skipped: str


_LINES = Frame(
    ("\u250c", "\u252c", "\u2510"),
    ("\u251c", "\u253c", "\u2524"),
    ("\u2514", "\u2534", "\u2518"),
    "\u2502",
    "\u2500",
    "\u2026",
    "\u00b7",
)
_ASCII = Frame(("+", "+", "+"), ("+", "+", "+"), ("+", "+", "+"), "|", "-", "...", ":")
_SIMPLE_TYPE = re.compile(r"([A-Z_ ]+)((?:\[\d*\])*)")
_SHORT_TYPES = {
    f"{sign}{name}": f"{letter}int{bits}"
    for sign, letter in (("", ""), ("U", "u"))
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64), ("HUGEINT", 128))
}
_BOLD, _FAINT, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"

Row = tuple[Cell, ...]


def _short_type(type_: str) -> str:
    """A type as DuckDB's own box calls it."""
    if (found := _SIMPLE_TYPE.fullmatch(type_)) is None:
        return type_
    return _SHORT_TYPES.get(found[1], found[1].lower()) + found[2]


class Box:
    """A result as the lines of a box."""

    def __init__(self, relation: duckdb.DuckDBPyRelation, style: Style | None) -> None:
        self._style = style
        self._columns: list[Column] = columns_of(relation)
        self._names = [self._safe(column.name) for column in self._columns]
        self._types = type_names(relation)
        self._titles = [self._safe(_short_type(type_)) for type_ in self._types]
        self.right = [
            column.shape.kind is Kind.NUMBER and type_ != "BOOLEAN"
            for column, type_ in zip(self._columns, self._types, strict=True)
        ]
        unicode = style is None or style.unicode
        self.frame = _LINES if unicode else _ASCII
        # What such a terminal has no character for is shown as its escape.
        self.encoding = ("utf-8", "strict") if unicode else ("ascii", "backslashreplace")
        self.layout = Layout((), ())

    def rows(self, part: list[pa.Array]) -> list[Row]:
        """The rows of a batch."""
        cells = [
            cells_of(column, type_, array, self._style)
            for column, type_, array in zip(self._columns, self._types, part, strict=True)
        ]
        return list(zip(*cells, strict=True))

    def measure(self, rows: list[Row]) -> None:
        """Gives the columns widths that their cells fit into, within the width of the terminal."""
        needs = [Need(0, 0)] * len(self._columns)
        if rows:
            columns = zip(*rows, strict=True)
            needs = [Need(max(cell.width for cell in cells), max(cell.least for cell in cells)) for cells in columns]
        self.fit(needs)

    def fit(self, cells: list[Need]) -> None:
        """The same for cells whose widths are known."""
        needs = []
        for name, type_, right, need in zip(self._names, self._titles, self.right, cells, strict=True):
            title = width_of(name)
            most = max(1, title, min(len(type_), _MOST_TYPE), need.most)
            # A number that is cut would be another number.
            least = need.least if right else min(need.least, _LEAST_TEXT)
            least = max(1, least, min(title, _LEAST_NAME), min(len(type_), _LEAST_NAME))
            needs.append(Need(most, min(most, least)))
        self.layout = layout(needs, 0 if self._style is None else self._style.width)

    def head(self) -> str:
        """Top of the box: names and types."""
        return (
            self._rule(self.frame.top)
            + self._line([self._fit(name, k) for k, name in self._shown(self._names)], _BOLD)
            + self._line([self._fit(type_, k) for k, type_ in self._shown(self._titles)], _FAINT)
            + self._rule(self.frame.middle)
        )

    def body(self, rows: Iterable[Row]) -> str:
        """Lines of the rows."""
        return "".join(self._line([self._cell(row[k], k) for k in self.layout.columns]) for row in rows)

    def skip(self) -> str:
        """The line that stands for rows that are not shown."""
        return self._line(
            [
                pad(self.frame.skipped, width, right=self.right[column])
                for column, width in zip(self.layout.columns, self.layout.widths, strict=True)
            ],
            _FAINT,
        )

    def foot(self) -> str:
        """Bottom of the box."""
        return self._rule(self.frame.bottom)

    def summary(self, count: int, shown: int, more: bool) -> str:
        """How many rows and columns there are, and how many of them are to be seen."""
        rows = f"{'more than ' if more else ''}{count:,} row{'' if count == 1 and not more else 's'}"
        if shown < count or more:
            rows += f" (first {shown:,} shown)" if more else f" ({shown:,} shown)"
        columns = len(self._columns)
        if len(self.layout.columns) < columns:
            rows += f", {columns} columns ({len(self.layout.columns)} shown)"
        return rows + "\n"

    def _shown(self, values: list[str]) -> Iterator[tuple[int, str]]:
        return ((k, values[column]) for k, column in enumerate(self.layout.columns))

    def _safe(self, text: str) -> str:
        return visible(text) if self._style is None else safe_text(text, self._style)

    def _fit(self, text: str, k: int) -> str:
        width = self.layout.widths[k]
        return pad(cut(text, width, self.frame.ellipsis, count=False), width, right=self.right[self.layout.columns[k]])

    def _cell(self, cell: Cell, column: int) -> str:
        k = self.layout.columns.index(column)
        width = self.layout.widths[k]
        right = self.right[column]
        # Without a width to keep to, and where it is a number, a cell may be wider than its column.
        free = self._style is None or not self._style.width or right
        text = pad(cell.forms[0] if free else cell.fitted(width, self.frame.ellipsis), width, right=right)
        return self._colored(text, _FAINT) if cell.null else text

    def _line(self, cells: list[str], color: str = "") -> str:
        bar = self.frame.bar
        texts = [self._colored(cell, color) for cell in cells]
        if self.layout.gap is not None:
            texts.insert(self.layout.gap, self.frame.ellipsis[:1])
        return f"{bar} {f' {bar} '.join(texts)} {bar}\n"

    def _rule(self, ends: tuple[str, str, str]) -> str:
        widths = list(self.layout.widths)
        if self.layout.gap is not None:
            widths.insert(self.layout.gap, 1)
        return ends[0] + ends[1].join(self.frame.line * (width + 2) for width in widths) + ends[2] + "\n"

    def _colored(self, text: str, color: str) -> str:
        return f"{color}{text}{_PLAIN}" if color and self._style is not None and self._style.color else text
