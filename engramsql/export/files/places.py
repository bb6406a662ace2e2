"""Where an export must not be written: over what it is read from, and among the files of a database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql._directory import CATALOG_FILE
from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    from engramsql.database import Database
    from engramsql.engine import Table

__all__ = ["refuse_sources"]

# In a database directory: its directories, and the catalog with its copy and its lock.
_OWN = ("tables", "views")
_CATALOG = CATALOG_FILE.partition(".")[0] + "."


def refuse_sources(target: Path, database: Database, table: Table | None, given: object) -> None:
    """Refuses a place that is read from, whether or not it may be replaced.

    Args:
        target: Where an export is to be written.
        database: The database.
        table: The table that is exported, if it is one.
        given: The tokens or ids: files are among the sources.

    Raises:
        ArgumentError: If it is a file of the tokens or ids, of a table, or of a database.
    """
    from engramsql.id_files import paths_of

    place = Path(os.path.realpath(target))
    for path in paths_of(given) or ():
        if _same(place, path):
            raise ArgumentError(f"'{target}' is read by this export, so it is not replaced; name another place")
    directory = database.directory
    if directory is not None:
        inside = _parts_below(place, directory)
        if inside and (
            inside[0] in _OWN or (len(inside) == 1 and inside[0].startswith(CATALOG_FILE.partition(".")[0]))
        ):
            raise ArgumentError(f"'{target}' is among the files of database '{directory}'; name another place")
    for name, source in _sources(database, table):
        if os.path.lexists(target) and (_same(place, source) or _parts_below(place, source)):
            raise ArgumentError(f"'{target}' is a file of table '{name}', so it is not replaced; name another place")


def _sources(database: Database, table: Table | None) -> Iterator[tuple[str, str | os.PathLike[str]]]:
    """Tables with the directories and files that they lie in."""
    for entry in database.tables():
        yield entry.name, entry.source
    if table is not None:
        yield table.name, table.source
        for file in {shard.file for shard in table.shards()}:
            yield table.name, file


def _same(place: Path, other: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samefile(place, other)
    except OSError:
        return False


def _parts_below(place: Path, directory: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names on the way from a directory to what lies in it; none if it does not."""
    base = Path(os.path.realpath(directory))
    return place.relative_to(base).parts if place.is_relative_to(base) else ()
