"""Which parts of a table are in memory: a map of its shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql.plot.extents import CELLS, Extent, Group, extents_of, groups_of
from engramsql.plot.figure import Line, Mark, Strips
from engramsql.plot.planned import planned_reads
from engramsql.plot.tables import table_info
from engramsql.progress import size

if TYPE_CHECKING:
    from engramsql.database import Database
    from engramsql.plot.planned import PlannedRead

__all__ = ["residency_figure"]

_LOOKS = 4
_MARKS = (
    Mark("none of it in memory", "\u00b7", ".", "#e8e8e8"),
    Mark("some", "\u2591", "-", "#9ecae1"),
    Mark("half", "\u2592", "=", "#4292c6"),
    Mark("all", "\u2588", "#", "#084594"),
)


def residency_figure(database: Database, name: str) -> Strips:
    """A strip per shard, in row order, with how much of each part the page cache holds.

    The remarks are exact, as ``engram_shards`` counts them. The map asks ``engram_plan`` about a few rows of each part;
    rows that the row cache has count as in memory.

    Raises:
        UnknownTableError: If there is no such table.
    """
    table = table_info(database, name)
    extents = extents_of(database, table)
    groups = groups_of(extents)
    rows = [[_rows(group, cell) for cell in range(CELLS)] for group in groups]
    asked = sorted({row for cells in rows for looks in cells for _, row in looks})
    reads = planned_reads(database, table, asked)
    lines = []
    for group, cells in zip(groups, rows, strict=True):
        found = [[_resident(reads.covering(extent.file, _offset(extent, row))) for extent, row in c] for c in cells]
        resident = sum(extent.resident for extent in group.extents)
        missing = "" if all(extent.present for extent in group.extents) else ", files missing"
        remark = f"{_share(resident, group.bytes)} of {size(group.bytes)}{missing}"
        lines.append(Line(group.label, tuple(_mark(looks) for looks in found), remark))
    total, resident = sum(extent.bytes for extent in extents), sum(extent.resident for extent in extents)
    notes = ["the figures are exact"] if len(asked) < table.rows else []
    if len(extents) > len(groups):
        notes.append(f"{len(extents)} extents in {len(groups)} strips")
    return Strips(
        f"residency of {table.name}: {size(resident)} of {size(total)} in the page cache ({_share(resident, total)}); "
        + ("map of all rows" if len(asked) == table.rows else f"map of {len(asked):,} rows, a sample"),
        tuple(notes),
        "rows of the shard, from first to last",
        "",
        _MARKS,
        tuple(lines),
    )


def _rows(group: Group, cell: int) -> list[tuple[Extent, int]]:
    """Some rows whose bytes are in a cell of a strip: the same extents that the cell shows, evenly spaced."""
    found = []
    for look in range(_LOOKS):
        place = group.bytes * (cell * _LOOKS + look) // (CELLS * _LOOKS)
        for extent in group.extents:
            if place < extent.bytes:
                found.append((extent, extent.first_row + place * extent.rows // extent.bytes))
                break
            place -= extent.bytes
    return found


def _offset(extent: Extent, row: int) -> int:
    return extent.offset + (row - extent.first_row) * extent.bytes // extent.rows


def _resident(read: PlannedRead | None) -> bool:
    # What no read would take from a file is in the row cache.
    return read is None or read.resident


def _mark(looks: list[bool]) -> int:
    if not looks or not any(looks):
        return 0
    return 3 if all(looks) else 1 if sum(looks) * 2 < len(looks) else 2


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}".replace("%", " %") if whole else "nothing"
