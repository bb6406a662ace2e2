"""CSV, TSV, Markdown and one value per line. Nothing is cut; a vector is its JSON text."""

from __future__ import annotations

from itertools import count
from typing import IO, TYPE_CHECKING

from engramsql.export.columns import batches, columns_of, plain_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

__all__ = ["write_csv", "write_markdown", "write_tsv", "write_vertical"]

_TSV_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_MARKDOWN_ESCAPES = str.maketrans({"|": "\\|", "\n": "<br>", "\r": ""})


def write_csv(relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    """RFC 4180 with a header and LF; NULL is empty, an empty text is ``""``."""
    header = [_csv_cell(column.name) for column in columns_of(relation)]
    _write_lines(relation, sink, [",".join(header)], lambda row: ",".join(map(_csv_cell, row)))


def write_tsv(relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    r"""Tab-separated with a header; tab, newline and backslash are ``\t``, ``\n``, ``\\``, NULL is ``\N``."""
    header = [_tsv_cell(column.name) for column in columns_of(relation)]
    _write_lines(relation, sink, ["\t".join(header)], lambda row: "\t".join(map(_tsv_cell, row)))


def write_markdown(relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    """A Markdown table; NULL is empty."""
    names = [_markdown_cell(column.name) for column in columns_of(relation)]
    header = [_markdown_row(names), _markdown_row(["---"] * len(names))]
    _write_lines(relation, sink, header, lambda row: _markdown_row(list(map(_markdown_cell, row))))


def write_vertical(relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    r"""A line with the number of the row, then ``name: value`` per column; escapes and NULL as in TSV."""
    names = [_tsv_cell(column.name) for column in columns_of(relation)]
    width = max(map(len, names))
    numbers = count(1)
    for batch in _rows(relation):
        for row, number in zip(batch, numbers, strict=False):
            lines = [f"{name:>{width}}: {_tsv_cell(cell)}\n" for name, cell in zip(names, row, strict=True)]
            sink.write("".join([f"*** row {number} ***\n", *lines]).encode())


def _write_lines(
    relation: duckdb.DuckDBPyRelation,
    sink: IO[bytes],
    header: list[str],
    line_of: Callable[[tuple[str | None, ...]], str],
) -> None:
    # A query that fails before its first row has written nothing.
    rows = _rows(relation)
    first = next(rows, [])
    sink.write("".join(f"{line}\n" for line in header).encode())
    sink.write("".join(f"{line_of(row)}\n" for row in first).encode())
    for batch in rows:
        sink.write("".join(f"{line_of(row)}\n" for row in batch).encode())


def _rows(relation: duckdb.DuckDBPyRelation) -> Iterator[list[tuple[str | None, ...]]]:
    columns = columns_of(relation)
    for arrays in batches(relation):
        cells = [plain_cells(column, array) for column, array in zip(columns, arrays, strict=True)]
        yield list(zip(*cells, strict=True))


def _csv_cell(text: str | None) -> str:
    if text is None:
        return ""
    if not text or any(character in text for character in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _tsv_cell(text: str | None) -> str:
    return r"\N" if text is None else text.translate(_TSV_ESCAPES)


def _markdown_cell(text: str | None) -> str:
    return "" if text is None else text.translate(_MARKDOWN_ESCAPES)


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
