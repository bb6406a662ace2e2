"""Columns, and those of the files that a statement names.

A file is looked at in the background, once, and again when it has changed: only what DuckDB reads to tell its columns.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from engramsql.quoting import literal

if TYPE_CHECKING:
    import duckdb

__all__ = ["Column", "Files"]


@dataclass(frozen=True)
class Column:
    """A column of a relation; the type is empty where nobody knows it."""

    name: str
    type: str = ""


# Size and time of change of a file.
_Stamp = tuple[int, int]


class Files:
    """The columns of files by their paths as typed. Who uses it sees to it that one thread does at a time."""

    def __init__(self) -> None:
        #: What is known; replaced as a whole, so that another thread may read it.
        self.known: dict[str, tuple[Column, ...]] = {}
        self._stamps: dict[str, _Stamp] = {}
        #: What is to be looked at.
        self.waiting: dict[str, _Stamp] = {}

    def ask(self, path: str) -> bool:
        """Notes that the columns of a file are wanted; whether it must be looked at for that."""
        stamp = _stamp(path)
        if stamp is None or self._stamps.get(path) == stamp:
            return False
        self.waiting[path] = stamp
        return True

    def asked(self) -> dict[str, _Stamp]:
        """What is to be looked at now; it is not waited for any longer."""
        asked, self.waiting = self.waiting, {}
        # One that fails is not tried again until it changes.
        self._stamps |= asked
        return asked

    def look(self, cursor: duckdb.DuckDBPyConnection, files: dict[str, _Stamp]) -> None:
        """Asks DuckDB for the columns; a file that it cannot read has none."""
        import duckdb

        for path in files:
            try:
                found = cursor.execute(f"DESCRIBE SELECT * FROM {literal(path)}").fetchall()
            except duckdb.InterruptException:
                raise
            except duckdb.Error:
                found = []
            self.known = {**self.known, path: tuple(Column(name, type_) for name, type_, *_ in found)}


def _stamp(path: str) -> _Stamp | None:
    """Of an ordinary file, or of the first of a pattern; None if there is none: a pipe or a network is not touched."""
    try:
        expanded = os.path.expanduser(path)
        for name in chain([expanded], glob.iglob(expanded) if glob.has_magic(expanded) else ()):
            if os.path.isfile(name):
                found = os.stat(name)
                return found.st_size, found.st_mtime_ns
    except (OSError, ValueError):
        pass
    return None
