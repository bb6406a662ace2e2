"""``engramsql profile``: what is in a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engramsql.commands import output, require
from engramsql.database import connect
from engramsql.export import write
from engramsql.export.style import style_of
from engramsql.progress import ProgressLine

if TYPE_CHECKING:
    from engramsql.database import Database

__all__ = ["profile"]


def profile(path: str | None, name: str, format: str) -> None:
    """Profiles table ``name`` of the database at ``path``, or the table at path ``name``, and writes it to stdout.

    Raises:
        UnknownTableError: If there is no table of that name.
        FormatError: If the table has no value format.
        ReadError: If a row cannot be read.
    """
    if path is not None:
        require(path)
    with connect(path, read_only=path is not None) as database:
        _profile(database, name, format)


def _profile(database: Database, name: str, format: str) -> None:
    import duckdb

    with ProgressLine(name, sys.stderr) as line:
        heads = database.profile(name, progress=line.show_stage)
    with duckdb.connect() as connection:
        sink = output()
        write(connection.from_arrow(heads), format, sink, style_of(sys.stdout))
        sink.flush()
