"""BLOBs as bytes for people: row id, offset, 16 bytes in hex, and those of them that are ASCII."""

from __future__ import annotations

import re
from itertools import count
from typing import IO, TYPE_CHECKING

from engramsql.errors import ArgumentError
from engramsql.export.columns import batches, columns_of, plain_cells
from engramsql.export.visible import visible
from engramsql.quoting import folded, identifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    import pyarrow as pa

    from engramsql.export.columns import Column
    from engramsql.export.style import Style

__all__ = ["write_hex"]

_LINE_BYTES = 16
_HALF = _LINE_BYTES // 2
# As wide as a row id of the largest tables there are.
_LABEL_WIDTH = 10
_SIMPLE_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_SHOWN = "".join(chr(code) if 0x20 <= code < 0x7F else "." for code in range(256))


def write_hex(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """A dump of each BLOB: nothing is cut, and a line says by itself which bytes it has.

    A line is row id (the number of the row in the result, from 1 on, where there is no column ``rowid``), the column if
    there are several BLOBs in a row, offset in hex, bytes, ASCII. NULL is a line without an offset, an empty BLOB one
    without bytes.

    Raises:
        ArgumentError: If the result has no BLOB column.
    """
    columns = columns_of(relation)
    blobs = [position for position, type_ in enumerate(relation.types) if type_.id == "blob"]
    if not blobs:
        names = ", ".join(f"'{name}' ({type_})" for name, type_ in zip(relation.columns, relation.types, strict=True))
        raise ArgumentError(f"hex shows BLOBs, and the result has none: {names}; select one, such as the column row")
    ids = next((position for position, column in enumerate(columns) if folded(column.name) == "rowid"), None)
    name = "rowid" if ids is not None else "number"
    tags = [f"  {_name(columns[position].name)}" if len(blobs) > 1 else "" for position in blobs]
    tag_width = max(map(len, tags))
    tags = [tag.ljust(tag_width) for tag in tags]
    heading = f"{name:>{_LABEL_WIDTH}}{'  column'.ljust(tag_width) if tag_width else ''}  offset    bytes\n"
    numbers = map(str, count(1))
    sink.write(heading.encode())
    for arrays in batches(relation):
        labels = _labels(arrays[ids], columns[ids]) if ids is not None else numbers
        values = zip(*(arrays[position].to_pylist() for position in blobs), strict=True)
        for row, label in zip(values, labels, strict=False):
            for value, tag in zip(row, tags, strict=True):
                prefix = f"{label:>{_LABEL_WIDTH}}{tag}  "
                sink.write("".join(prefix + line for line in _lines(value)).encode())


def _labels(array: pa.Array, column: Column) -> list[str]:
    return ["NULL" if cell is None else cell for cell in plain_cells(column, array).to_pylist()]


def _name(name: str) -> str:
    return name if _SIMPLE_NAME.fullmatch(name) else visible(identifier(name))


def _lines(value: bytes | None) -> Iterator[str]:
    if value is None:
        yield "NULL\n"
        return
    if not value:
        yield f"{0:08x}\n"
    for offset in range(0, len(value), _LINE_BYTES):
        piece = value[offset : offset + _LINE_BYTES]
        halves = f"{piece[:_HALF].hex(' '):<{3 * _HALF}} {piece[_HALF:].hex(' '):<{3 * _HALF}}"
        yield f"{offset:08x}  {halves} |{piece.decode('latin-1').translate(_SHOWN)}|\n"
