"""CSV, TSV and Markdown. Nothing is cut; a vector is its JSON text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from engramsql.export.columns import batches, columns_of, plain_cells, write_texts
from engramsql.export.fragments import joined, replaced
from engramsql.export.types import Kind

if TYPE_CHECKING:
    import duckdb

    from engramsql.export.columns import Column
    from engramsql.export.style import Style

__all__ = ["csv_cells", "tsv_cells", "write_csv", "write_markdown", "write_tsv"]

_TSV_NULL = r"\N"
_TSV_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
# A backslash before a bar would take its own meaning away, and a text may have a <br> of its own.
_MARKDOWN_ESCAPES = {"\\": "\\\\", "|": "\\|", "&": "&amp;", "<": "&lt;", "\n": "<br>", "\r": "&#13;"}
_OUTER_SPACE = "^[ \t]+|[ \t]+$"


def write_csv(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """RFC 4180 with a header and LF; NULL is empty, an empty text is ``""``."""
    _write_lines(relation, sink, _Form("", ",", "", "", csv_cells, rule=False))


def write_tsv(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    r"""Tab-separated with a header; tab, newline and backslash are ``\t``, ``\n``, ``\\``, NULL is ``\N``."""
    _write_lines(relation, sink, _Form("", "\t", "", _TSV_NULL, tsv_cells, rule=False))


def write_markdown(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """A Markdown table; NULL is empty."""
    _write_lines(relation, sink, _Form("| ", " | ", " |", "", _markdown_cells, rule=True))


def tsv_cells(texts: pa.Array) -> pa.Array:
    r"""Values that stand on one line: tab, newline and backslash as escapes, NULL as ``\N``."""
    return pc.fill_null(replaced(texts, _TSV_ESCAPES), _TSV_NULL)


@dataclass(frozen=True)
class _Form:
    """A line's begin, what stands between two cells, its end; NULL; how texts become cells; a rule below the header."""

    start: str
    between: str
    end: str
    null: str
    cells: Callable[[pa.Array], pa.Array]
    rule: bool

    def line(self, cells: list[str]) -> str:
        return f"{self.start}{self.between.join(cells)}{self.end}\n"


def _write_lines(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], form: _Form) -> None:
    columns = columns_of(relation)
    names = form.cells(pa.array([column.name for column in columns], pa.string())).to_pylist()
    head = form.line(names) + (form.line(["---"] * len(names)) if form.rule else "")
    # A query that fails before its first row has written nothing.
    for arrays in batches(relation):
        sink.write(head.encode())
        head = ""
        cells = [_cells(column, array, form) for column, array in zip(columns, arrays, strict=True)]
        lines = pc.binary_join_element_wise(*cells, form.between)
        write_texts(sink, joined(form.start, lines, f"{form.end}\n"))
    sink.write(head.encode())


def _cells(column: Column, array: pa.Array, form: _Form) -> pa.Array:
    texts = plain_cells(column, array)
    # Numbers have nothing that needs an escape.
    return pc.fill_null(texts, form.null) if column.shape.kind is Kind.NUMBER else form.cells(texts)


def csv_cells(texts: pa.Array) -> pa.Array:
    """Values as RFC 4180 has them: quoted where they must be, NULL as nothing, an empty text as ``""``."""
    quoted = pc.or_(pc.match_substring_regex(texts, '[,"\n\r]'), pc.equal(texts, ""))
    if pc.any(quoted).as_py():
        texts = pc.if_else(quoted, joined('"', replaced(texts, {'"': '""'}), '"'), texts)
    return pc.fill_null(texts, "")


def _markdown_cells(texts: pa.Array) -> pa.Array:
    outer = pc.match_substring_regex(texts, _OUTER_SPACE)
    cells = replaced(texts, _MARKDOWN_ESCAPES)
    if pc.any(outer).as_py():
        # Space at the ends of a cell would be taken for the cell's.
        cells = pa.array([cell and re.sub(_OUTER_SPACE, _references, cell) for cell in cells.to_pylist()], pa.string())
    return pc.fill_null(cells, "")


def _references(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(character)};" for character in found[0])
