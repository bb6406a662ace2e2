"""A database in a notebook: its tables and views as HTML, from the catalog alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql.export.html import TABLE, html_text
from engramsql.progress import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engramsql.engine import SqlViewEntry, TableEntry, ViewEntry

__all__ = ["closed_html", "database_html"]

_TABLES = ("table", "rows", "row bytes", "format", "dim", "spec", "heads", "shards", "size", "source")
_VIEWS = ("view", "kind", "table", "records", "size")
_NUMBERS = frozenset(["rows", "row bytes", "dim", "heads", "shards", "size", "records"])
_MOST = 100
"""Lines of a table of the notebook; of more, the first are shown, and how many there are."""


def database_html(
    label: str, tables: Sequence[TableEntry], views: Sequence[ViewEntry], sql_views: Sequence[SqlViewEntry]
) -> str:
    """Tables, materialised views and SQL views of a database; no row is read."""
    parts = [f"<p><b>Database</b> {html_text(label)}</p>"]
    if tables:
        parts.append(_table(_TABLES, [_table_cells(entry) for entry in tables]))
    else:
        parts.append("<p>no tables; register one with <code>Database.register(name, source)</code></p>")
    lines = [
        *([view.name, "materialised", view.table, f"{view.slots:,}", size(view.bytes)] for view in views),
        *([view.name, "sql", "", "", ""] for view in sql_views),
    ]
    if lines:
        parts.append(_table(_VIEWS, lines))
    return f"<div>{''.join(parts)}</div>"


def closed_html(label: str) -> str:
    """A database that was closed."""
    return f"<div><p><b>Database</b> {html_text(label)}, closed</p></div>"


def _table_cells(entry: TableEntry) -> list[str]:
    unknown = "not known"
    return [
        entry.name,
        f"{entry.rows:,}",
        f"{entry.row_bytes:,}",
        entry.format or unknown,
        unknown if entry.dim is None else f"{entry.dim:,}",
        entry.spec or unknown,
        f"{entry.heads:,}",
        f"{entry.shards:,}",
        size(entry.bytes),
        str(entry.source),
    ]


def _table(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = "".join("<tr>" + "".join(map(_cell, names, cells)) + "</tr>" for cells in lines[:_MOST])
    more = f"<p>{len(lines):,} in all, {_MOST} shown</p>" if len(lines) > _MOST else ""
    return f"{TABLE}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _cell(name: str, text: str) -> str:
    side = "right" if name in _NUMBERS else "left"
    return f'<td style="text-align: {side}">{html_text(text)}</td>'
