"""One value per line, for wide rows."""

from __future__ import annotations

from itertools import count
from typing import IO, TYPE_CHECKING

import pyarrow as pa

from engramsql.export.columns import batches, columns_of, plain_cells, type_names
from engramsql.export.shorten import cells_of, safe_text
from engramsql.export.text import tsv_cells
from engramsql.export.visible import pad, width_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from engramsql.export.columns import Column
    from engramsql.export.style import Style

__all__ = ["write_vertical"]

_FAINT, _PLAIN = "\x1b[2m", "\x1b[0m"


def write_vertical(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    r"""A line with the number of the row, then ``name: value`` per column; escapes and NULL as in TSV.

    With a style vectors, lists and BLOBs are shortened, if it says so; every row is there all the same.
    """
    columns = columns_of(relation)
    types = type_names(relation)
    names = tsv_cells(pa.array([column.name for column in columns], pa.string())).to_pylist()
    if style is not None:
        names = [safe_text(column.name, style) for column in columns]
    width = max(map(width_of, names))
    faint, plain = (_FAINT, _PLAIN) if style is not None and style.color else ("", "")
    labels = [f"{faint}{pad(name, width, right=True)}:{plain} " for name in names]
    texts = _texts(style)
    numbers = count(1)
    for arrays in batches(relation):
        cells = [texts(column, type_, array) for column, type_, array in zip(columns, types, arrays, strict=True)]
        for row, number in zip(zip(*cells, strict=True), numbers, strict=False):
            lines = [f"{label}{cell}\n" for label, cell in zip(labels, row, strict=True)]
            sink.write("".join([f"{faint}*** row {number} ***{plain}\n", *lines]).encode())


def _texts(style: Style | None) -> Callable[[Column, str, pa.Array], list[str]]:
    if style is None:
        return lambda column, type_, array: tsv_cells(plain_cells(column, array)).to_pylist()
    return lambda column, type_, array: [cell.forms[0] for cell in cells_of(column, type_, array, style)]
