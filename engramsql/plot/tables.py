"""What the pictures of tables ask of a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engramsql.errors import ArgumentError
from engramsql.quoting import literal

if TYPE_CHECKING:
    from engramsql.database import Database

__all__ = ["DEFAULT_ROWS", "Sample", "TableInfo", "ask", "sample_of", "table_info"]

DEFAULT_ROWS = 1_000_000
"""Rows that a picture looks at, if not told otherwise: a second's work, however large the table."""
_RUNS = 64


@dataclass(frozen=True)
class TableInfo:
    """A table for SQL and for people."""

    sql: str
    name: str
    rows: int
    format: str | None
    scale: float | None


@dataclass(frozen=True)
class Sample:
    """Ranges of row ids to look at, and in words which part of the table they are."""

    runs: tuple[tuple[int, int], ...]
    words: str


def table_info(database: Database, name: str) -> TableInfo:
    """The table of a name or path.

    Raises:
        UnknownTableError: If there is no such table.
    """
    table = database.table(name)
    return TableInfo(literal(name), name, table.rows, table.format, table.scale)


def ask(database: Database, query: str, params: list[object] | None = None) -> list[tuple[Any, ...]]:
    """All rows of a query on the connection of the database, whose interrupt ends it."""
    relation = database.sql(query, params)
    if relation is None:
        raise ArgumentError(f"no result: {query}")
    return list(relation.fetchall())


def sample_of(rows: int, most: int) -> Sample:
    """All rows, or at most ``most`` in runs that lie evenly over the table.

    Example:
        >>> sample_of(1000, 10**6), sample_of(1000, 100).words
        (Sample(runs=((0, 1000),), words='all 1,000 rows'), 'sample of 100 of 1,000 rows, in 64 runs')
    """
    if rows <= most:
        return Sample(((0, rows),), f"all {rows:,} rows")
    count = min(_RUNS, most)
    # What was asked for is divided evenly, and so is what lies between: no two runs overlap.
    taken = [most * run // count for run in range(count + 1)]
    left_out = [(rows - most) * run // max(1, count - 1) for run in range(count)]
    runs = tuple((taken[run] + left_out[run], taken[run + 1] - taken[run]) for run in range(count))
    return Sample(runs, f"sample of {most:,} of {rows:,} rows, in {count} run{'' if count == 1 else 's'}")
