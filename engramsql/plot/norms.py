"""Norms of the rows, head by head."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql.errors import FormatError
from engramsql.plot.figure import Range, Ranges
from engramsql.plot.tables import DEFAULT_ROWS, ask, table_info

if TYPE_CHECKING:
    from engramsql.database import Database

__all__ = ["norms_figure"]

# Single rows that lie apart cost a read each when they are cold.
_FRACTION = 10


def norms_figure(database: Database, name: str, rows: int = DEFAULT_ROWS // _FRACTION) -> Ranges:
    """Smallest, quartiles and largest Euclidean norm of the rows of each head: all rows, or evenly spaced ones.

    Raises:
        UnknownTableError: If there is no such table.
        FormatError: If the table has no value format.
    """
    table = table_info(database, name)
    if table.format is None:
        raise FormatError(f"table '{name}' has no value format; register it with one to see the norms of its rows")
    # Without a spec there are no heads: all rows are one part.
    heads = (
        ask(database, f"SELECT head, ngram_order, first_row, rows FROM engram_heads({table.sql}) ORDER BY head")
        if database.table(name).spec is not None
        else []
    )
    parts = [(f"{head} ({order}-gram)", first, count) for head, order, first, count in heads]
    reached = sum(count for *_, count in parts)
    if not parts:
        parts = [("all rows", 0, table.rows)]
        reached = table.rows
    share = min(1.0, rows / max(1, reached))
    # Every head has its part of the sample, and at least one row.
    counts = [max(1, round(count * share)) if share < 1 else count for *_, count in parts]
    ids = " UNION ALL ".join(
        f"SELECT {part} AS part, ({first} + range * {size}::HUGEINT // {count})::BIGINT AS id FROM range({count})"
        for part, ((_, first, size), count) in enumerate(zip(parts, counts, strict=True))
    )
    found = ask(
        database,
        f"""
        SELECT part, quantile_cont(sqrt(stats.sum_squares), [0, 0.25, 0.5, 0.75, 1])
            FILTER (WHERE stats.nans = 0 AND stats.infs = 0 AND stats.sum_squares IS NOT NULL),
            count(*) FILTER (WHERE stats.nans > 0 OR stats.infs > 0)
        FROM (SELECT part, engram_row_stats({table.sql}, id) AS stats FROM ({ids}))
        GROUP BY part ORDER BY part
        """,
    )
    lines = tuple(Range(parts[part][0], *map(float, norms)) for part, norms, _ in found if norms is not None)
    odd = sum(count for *_, count in found)
    seen = sum(counts)
    words = (
        f"all {seen:,} rows" if share == 1 else f"sample of {seen:,} of {reached:,} rows, evenly spaced in each head"
    )
    notes = []
    if reached < table.rows:
        notes.append(f"{table.rows - reached:,} rows that no head reaches are left out")
    if odd:
        notes.append(f"{odd:,} rows with a NaN or an infinite value are left out")
    notes.append("a line from the smallest to the largest norm, a bar for the middle half, a mark for the median")
    return Ranges(f"norms of the rows of {table.name}, {words}", tuple(notes), "Euclidean norm", "head", lines)
