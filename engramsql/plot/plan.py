"""What a fetch of some rows would read: where, how much, and what of it is in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engramsql.errors import ArgumentError
from engramsql.plot.extents import CELLS, extents_of, groups_of
from engramsql.plot.figure import Line, Mark, Strips
from engramsql.plot.planned import planned_reads
from engramsql.plot.tables import table_info
from engramsql.progress import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engramsql.database import Database
    from engramsql.plot.extents import Extent
    from engramsql.plot.planned import PlannedRead

__all__ = ["plan_figure"]

_MARKS = (
    Mark("not read", "\u00b7", ".", "#e8e8e8"),
    Mark("read from memory", "\u2592", "=", "#4292c6"),
    Mark("read from the disk", "\u2588", "#", "#cb181d"),
)
_NOTHING, _MEMORY, _DISK = range(3)


def plan_figure(database: Database, name: str, ids: Sequence[int]) -> Strips:
    """A strip per shard that is read, with the reads of these row ids in file order; no row is read.

    Raises:
        UnknownTableError: If there is no such table.
        ArgumentError: If there are no ids.
        duckdb.Error: If an id is not of the table.
    """
    if not ids:
        raise ArgumentError("no row ids; give some, as in: plan ple 17 4 256, or files with --ids or --tokens")
    table = table_info(database, name)
    reads = planned_reads(database, table, ids).all
    extents = extents_of(database, table)
    pieces = _pieces(reads, extents)
    touched = [extent for extent in extents if extent in pieces]
    lines = []
    groups = groups_of(touched)
    for group in groups:
        cells = [_NOTHING] * CELLS
        taken = [(extent, piece) for extent in group.extents for piece in pieces[extent]]
        for extent, piece in taken:
            mark = _MEMORY if piece.resident else _DISK
            for cell in range(group.cell(extent, piece.start), group.cell(extent, piece.end - 1) + 1):
                cells[cell] = max(cells[cell], mark)
        # A read that goes on into the next extent of the strip is one.
        count, total = len({piece.read for _, piece in taken}), sum(piece.end - piece.start for _, piece in taken)
        lines.append(Line(group.label, tuple(cells), f"{count:,} read{'' if count == 1 else 's'}, {size(total)}"))
    notes = _notes(reads, len(extents) - len(touched))
    strips_of = Counter(
        read for group in groups for read in {p.read for extent in group.extents for p in pieces[extent]}
    )
    if crossing := sum(strips > 1 for strips in strips_of.values()):
        one = crossing == 1
        notes += (
            f"{crossing:,} read{' takes' if one else 's take'} from more than one line and count{'s' * one} in each",
        )
    return Strips(_title(table.name, len(ids)), notes, "bytes of the shard", "", _MARKS, tuple(lines))


@dataclass(frozen=True)
class _Piece:
    """The part of a read that is of one extent, in bytes of the file."""

    start: int
    end: int
    resident: bool
    read: int
    """Which of the reads it is part of."""


def _pieces(reads: Sequence[PlannedRead], extents: Sequence[Extent]) -> dict[Extent, list[_Piece]]:
    """The extents that are read, and what of them."""
    files: dict[str, list[Extent]] = defaultdict(list)
    for extent in extents:
        files[extent.file].append(extent)
    pieces: dict[Extent, list[_Piece]] = defaultdict(list)
    for number, read in enumerate(reads):
        for extent in files.get(read.file or "", []):
            start = max(read.offset, extent.offset)
            end = min(read.offset + read.bytes, extent.offset + extent.bytes)
            if start < end:
                pieces[extent].append(_Piece(start, end, read.resident, number))
    return pieces


def _title(name: str, count: int) -> str:
    return f"read plan of {name}: {count:,} row id{'' if count == 1 else 's'}"


def _notes(reads: Sequence[PlannedRead], untouched: int) -> tuple[str, ...]:
    from_files = [read for read in reads if read.file is not None]
    total, used = sum(read.bytes for read in from_files), sum(read.used for read in from_files)
    disk = sum(read.bytes for read in from_files if not read.resident)
    paths = Counter(read.path for read in reads)
    ways = ", ".join(f"{count:,} {path}" for path, count in paths.most_common())
    notes = [f"reads: {ways}; {size(total)}, {size(disk)} of it from the disk"]
    if used:
        notes.append(f"{size(used)} of them are of rows asked for: read amplification {total / used:.2f}")
    if untouched:
        notes.append(f"{untouched} extent{' of the table is' if untouched == 1 else 's of the table are'} not read")
    return tuple(notes)
