"""An HTML table that needs nothing else: no style sheet, no script, no encoding but ASCII."""

from __future__ import annotations

import re
from html import escape
from typing import IO, TYPE_CHECKING

from engramsql.export.columns import batches, columns_of, plain_cells
from engramsql.export.types import Kind

if TYPE_CHECKING:
    import duckdb

    from engramsql.export.style import Style

__all__ = ["TABLE", "html_text", "write_html"]

TABLE = '<table border="1" style="border-collapse: collapse; white-space: pre-wrap">'
_NULL = '<td class="null"><i>NULL</i></td>'
# HTML has no place for them, not even as references; a carriage return would become a newline.
_CONTROLS = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]")


def write_html(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """A table with a header, a line per row; NULL is ``NULL`` in italics, and its cell of the class ``null``."""
    columns = columns_of(relation)
    names = "".join(f"<th>{html_text(column.name)}</th>" for column in columns)
    opening = ['<td style="text-align: right">' if column.shape.kind is Kind.NUMBER else "<td>" for column in columns]
    # A query that fails before its first row has written nothing.
    head = f"{TABLE}\n<thead>\n<tr>{names}</tr>\n</thead>\n<tbody>\n"
    for arrays in batches(relation):
        cells = [
            [
                _NULL if cell is None else f"{tag}{html_text(cell)}</td>"
                for cell in plain_cells(column, array).to_pylist()
            ]
            for column, tag, array in zip(columns, opening, arrays, strict=True)
        ]
        lines = "".join(f"<tr>{''.join(row)}</tr>\n" for row in zip(*cells, strict=True))
        sink.write(f"{head}{lines}".encode("ascii"))
        head = ""
    sink.write(f"{head}</tbody>\n</table>\n".encode("ascii"))


def html_text(text: str) -> str:
    r"""``text`` as HTML in ASCII; what HTML has no place for is its escape, in ``<code>``.

    Example:
        >>> html_text("a<b \u00fc\x1b")
        'a&lt;b &#252;<code>\\x1b</code>'
    """
    escaped = escape(text).replace("\r", "&#13;")
    marked = _CONTROLS.sub(lambda found: f"<code>\\x{ord(found[0]):02x}</code>", escaped)
    return marked.encode("ascii", "xmlcharrefreplace").decode("ascii")
