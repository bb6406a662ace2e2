"""What the commands ``relocate``, ``drop`` and ``orphans`` do to a database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engramsql._directory import is_database
from engramsql.commands import require
from engramsql.database import connect
from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    from engramsql.database import Database
    from engramsql.engine import Orphan

__all__ = ["drop", "orphans", "relocate"]


def relocate(path: str, name: str, source: str) -> None:
    """Points a table to the place where its files are now, and says where that is."""
    with _existing(path) as database:
        entry = database.relocate(name, source)
    print(f"{entry.name}: {entry.source}")


def drop(path: str, name: str, *, data: bool) -> None:
    """Forgets a table or view, with the directory that it has inside the database if ``data``."""
    with _existing(path) as database:
        database.drop(name, data)


def orphans(path: str, *, remove: bool) -> None:
    """Lists what belongs to no table or view, one line each, or removes it and lists what was removed."""
    with _existing(path, read_only=not remove) as database:
        for orphan in database.remove_orphans() if remove else database.orphans():
            print(_line(orphan, "removed" if remove else "in use" if orphan.in_use else None))
        if remove:
            for orphan in database.orphans():
                print(_line(orphan, "in use, kept" if orphan.in_use else "kept"))


def _line(orphan: Orphan, note: str | None) -> str:
    return f"{orphan.path}: {orphan.kind}, {orphan.bytes} bytes{'' if note is None else f', {note}'}"


def _existing(path: str, *, read_only: bool = False) -> Database:
    """The database to look after: the temporary database of a checkpoint has nothing to keep in order."""
    require(path)
    if not is_database(Path(path)):
        raise ArgumentError(f"'{path}' is no database directory")
    return connect(path, read_only=read_only)
