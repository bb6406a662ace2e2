"""CSV, TSV and Markdown. Nothing is cut; a vector is its JSON text."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from engramsql.export.columns import batches, columns_of, plain_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

    from engramsql.export.style import Style

__all__ = ["tsv_cell", "write_csv", "write_markdown", "write_tsv"]

_TSV_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
# A backslash before a bar would take its own meaning away, and a text may have a <br> of its own.
_MARKDOWN_ESCAPES = str.maketrans({"\\": "\\\\", "|": "\\|", "&": "&amp;", "<": "&lt;", "\n": "<br>", "\r": "&#13;"})


def write_csv(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """RFC 4180 with a header and LF; NULL is empty, an empty text is ``""``."""
    header = [_csv_cell(column.name) for column in columns_of(relation)]
    _write_lines(relation, sink, [",".join(header)], lambda row: ",".join(map(_csv_cell, row)))


def write_tsv(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    r"""Tab-separated with a header; tab, newline and backslash are ``\t``, ``\n``, ``\\``, NULL is ``\N``."""
    header = [tsv_cell(column.name) for column in columns_of(relation)]
    _write_lines(relation, sink, ["\t".join(header)], lambda row: "\t".join(map(tsv_cell, row)))


def write_markdown(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """A Markdown table; NULL is empty."""
    names = [_markdown_cell(column.name) for column in columns_of(relation)]
    header = [_markdown_row(names), _markdown_row(["---"] * len(names))]
    _write_lines(relation, sink, header, lambda row: _markdown_row(list(map(_markdown_cell, row))))


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


def tsv_cell(text: str | None) -> str:
    r"""A value on a line of its own: tab, newline and backslash as escapes, NULL as ``\N``."""
    return r"\N" if text is None else text.translate(_TSV_ESCAPES)


def _markdown_cell(text: str | None) -> str:
    if text is None:
        return ""
    # Space at the ends of a cell would be taken for the cell's.
    inner = text.strip(" \t")
    start = len(text) - len(text.lstrip(" \t")) if inner else len(text)
    ends = [text[:start], text[start + len(inner) :]]
    before, after = ("".join(f"&#{ord(character)};" for character in end) for end in ends)
    return before + inner.translate(_MARKDOWN_ESCAPES) + after


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
