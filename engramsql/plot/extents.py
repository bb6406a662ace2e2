"""The files of a table as strips: where rows lie, and which strip and cell a byte belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engramsql.plot.tables import ask

if TYPE_CHECKING:
    from engramsql.database import Database
    from engramsql.plot.tables import TableInfo

__all__ = ["CELLS", "MOST_LINES", "Extent", "Group", "extents_of", "groups_of"]

CELLS = 48
"""Cells of a strip: what 80 columns have room for beside a label and a remark."""
MOST_LINES = 24
"""Strips of a picture; of more shards, neighbours share one."""


@dataclass(frozen=True)
class Extent:
    """A piece of a file with rows, as ``engram_shards`` tells."""

    shard: int
    file: str
    first_row: int
    rows: int
    offset: int
    bytes: int
    present: bool
    resident: int


@dataclass(frozen=True)
class Group:
    """Extents of one strip, one behind the other."""

    label: str
    extents: tuple[Extent, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all of them."""
        return sum(extent.bytes for extent in self.extents)

    def cell(self, extent: Extent, offset: int) -> int:
        """The cell of a byte of an extent, by its offset in the file."""
        before = sum(other.bytes for other in self.extents[: self.extents.index(extent)])
        return (before + offset - extent.offset) * CELLS // self.bytes


def extents_of(database: Database, table: TableInfo) -> list[Extent]:
    """The extents of a table, in the order of their rows."""
    query = (
        'SELECT shard, file, first_row, rows, "offset", bytes, present, coalesce(resident_bytes, 0) '
        f'FROM engram_shards({table.sql}) ORDER BY shard, first_row, "offset"'
    )
    return [Extent(*row) for row in ask(database, query)]


def groups_of(extents: list[Extent]) -> list[Group]:
    """At most MOST_LINES strips of extents: one each, or as many neighbours as it takes."""
    each = max(1, -(-len(extents) // MOST_LINES))
    groups = []
    for start in range(0, len(extents), each):
        part = tuple(extents[start : start + each])
        groups.append(Group(_label(part, extents), part))
    return groups


def _label(part: tuple[Extent, ...], extents: list[Extent]) -> str:
    first, last = part[0], part[-1]
    if first.shard != last.shard:
        return f"shards {first.shard}-{last.shard}"
    twins = [extent for extent in extents if extent.shard == first.shard]
    if len(twins) == 1 or len(part) > 1:
        return f"shard {first.shard}"
    # Values and scales of the same rows, or rows of several tensors.
    return f"shard {first.shard}, part {twins.index(first) + 1}"
