"""Which bytes a read would take from where: the answer of ``engram_plan`` on strips."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engramsql.plot.tables import ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engramsql.database import Database
    from engramsql.plot.tables import TableInfo

__all__ = ["PlannedRead", "PlannedReads", "planned_reads"]


@dataclass(frozen=True)
class PlannedRead:
    """One line of ``engram_plan``; rows that the row cache has are without a file."""

    path: str
    file: str | None
    offset: int
    bytes: int
    rows: int
    used: int
    resident: bool


class PlannedReads:
    """Reads by file and offset."""

    def __init__(self, reads: list[PlannedRead]) -> None:
        self.all = reads
        self._files: dict[str, list[PlannedRead]] = defaultdict(list)
        for read in sorted((read for read in reads if read.file is not None), key=lambda read: read.offset):
            self._files[str(read.file)].append(read)

    def covering(self, file: str, offset: int) -> PlannedRead | None:
        """The read that takes this byte of a file."""
        reads = self._files.get(file, [])
        position = bisect_right(reads, offset, key=lambda read: read.offset) - 1
        # Reads may overlap: pages that values and scales share are in one of each.
        for read in reads[max(0, position - 1) : position + 1][::-1]:
            if read.offset <= offset < read.offset + read.bytes:
                return read
        return None


def planned_reads(database: Database, table: TableInfo, ids: Sequence[int]) -> PlannedReads:
    """The reads of these rows; no row is read.

    Raises:
        duckdb.Error: If an id is not of the table.
    """
    query = (
        'SELECT path, file, coalesce("offset", 0), coalesce(bytes, 0), rows, coalesce(bytes_used, 0), '
        f"coalesce(resident, false) FROM engram_plan({table.sql}, ?::BIGINT[])"
    )
    return PlannedReads([PlannedRead(*row) for row in ask(database, query, [list(ids)])])
