"""A box for people: columns as wide as their values, numbers to the right, no wider than the terminal.

Into a file or a pipe every row and every value goes whole.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import chain
from typing import IO, TYPE_CHECKING

import pyarrow.compute as pc

from engramsql.export.columns import batches, columns_of, plain_cells, write_texts
from engramsql.export.fragments import joined
from engramsql.export.frame import Box, Row
from engramsql.export.layout import Need
from engramsql.export.shorten import padded, whole_texts, widest
from engramsql.export.visible import visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    import pyarrow as pa

    from engramsql.export.style import Style

__all__ = ["write_box"]

# Rows that are counted when only some of them are shown: of more, the first are shown, and that there are more.
_COUNTED_ROWS = 10_000
# Bytes of them, so that a few wide rows are not worth reading thousands.
_COUNTED_BYTES = 64 << 20
# What is looked at before a box without limits says how wide its columns are.
_MEASURED_ROWS = 10_000
_MEASURED_BYTES = 1 << 20
# What EXPLAIN answers: a picture of lines, which is no value of a box.
_PLAN = ("explain_key", "explain_value")


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
    box = Box(relation, style)
    if style is None:
        _write_whole(box, relation, sink)
    elif not style.max_rows:
        _write_all(box, batches(relation), sink)
    else:
        _write_some(box, _some(relation, style.max_rows), sink)


def _write_plan(relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    column = columns_of(relation)[1]
    for part in batches(relation):
        for text in plain_cells(column, part[1]).to_pylist():
            sink.write(f"{visible_lines(text or '').rstrip()}\n".encode())


def _write_some(box: Box, some: _Some, sink: IO[bytes]) -> None:
    first, last = (list(chain.from_iterable(map(box.rows, parts))) for parts in (some.first, some.last))
    box.measure([*first, *last])
    sink.write(box.head().encode(*box.encoding))
    sink.write(box.body(first).encode(*box.encoding))
    if last:
        sink.write((box.skip() + box.body(last)).encode(*box.encoding))
    sink.write((box.foot() + box.summary(some.count, some.shown, some.more)).encode(*box.encoding))


def _write_all(box: Box, parts: Iterator[_Part], sink: IO[bytes]) -> None:
    """All rows on a terminal."""
    measured: list[Row] = []
    size = 0
    for part in parts:
        measured += box.rows(part)
        size += sum(array.nbytes for array in part)
        if len(measured) >= _MEASURED_ROWS or size >= _MEASURED_BYTES:
            break
    box.measure(measured)
    sink.write(box.head().encode(*box.encoding))
    count = 0
    for rows in chain([measured], map(box.rows, parts)):
        sink.write(box.body(rows).encode(*box.encoding))
        count += len(rows)
    sink.write((box.foot() + box.summary(count, count, False)).encode(*box.encoding))


def _write_whole(box: Box, relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    """All rows with whole values, whole columns at a time."""
    columns = columns_of(relation)

    def texts_of(part: _Part) -> _Part:
        return [whole_texts(column, array) for column, array in zip(columns, part, strict=True)]

    parts = map(texts_of, batches(relation))
    measured: list[_Part] = []
    needs = [Need(0, 0)] * len(columns)
    rows, size = 0, 0
    for texts in parts:
        measured.append(texts)
        widths = map(widest, texts)
        needs = [Need(max(need.most, width), 0) for need, width in zip(needs, widths, strict=True)]
        rows += len(texts[0])
        size += sum(array.nbytes for array in texts)
        if rows >= _MEASURED_ROWS or size >= _MEASURED_BYTES:
            break
    box.fit(needs)
    sink.write(box.head().encode())
    bar = box.frame.bar
    count = 0
    for texts in chain(measured, parts):
        shape = zip(texts, box.layout.widths, box.right, strict=True)
        cells = [padded(array, width, right=right) for array, width, right in shape]
        write_texts(sink, joined(f"{bar} ", pc.binary_join_element_wise(*cells, f" {bar} "), f" {bar}\n"))
        count += len(texts[0])
    sink.write((box.foot() + box.summary(count, count, False)).encode())


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
