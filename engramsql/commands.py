"""What the commands do. Everything here may import what is heavy; the command line's grammar is in ``cli.py``."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from engramsql import script
from engramsql._directory import is_database
from engramsql.database import Database, connect
from engramsql.errors import ArgumentError
from engramsql.interrupting import interruptible
from engramsql.messages import say
from engramsql.quoting import folded

if TYPE_CHECKING:
    import argparse


__all__ = ["output", "register", "require", "run_script", "shards_text", "warn_of_lost"]


def run_script(
    path: str | None,
    text: str,
    format: str,
    *,
    read_only: bool = False,
    ram_budget: str | None = None,
    threads: int | None = None,
    chosen: bool = False,
) -> None:
    """Runs statements and dot commands on the database at ``path`` and writes their results to stdout.

    With ``chosen`` the user asked for the format: then the ending of a file does not change it.
    """
    from engramsql.shell.session import Session

    if path is not None:
        require(path)
    session = Session(
        connect(path, read_only=read_only, ram_budget=ram_budget, threads=threads),
        sink=output(),
        mode=format,
        chosen=chosen,
    )
    try:
        interruptible(session.connection, lambda: script.run(session, text))
        if session.made and session.database.directory is not None:
            warn_of_lost(session.database)
    finally:
        session.close()


def output() -> IO[bytes]:
    """Where results go: stdout, which takes all that is written.

    With PYTHONUNBUFFERED it would be the bare file, whose ``write`` may take a part only: a pipe's does when a signal
    comes.
    """
    stream: IO[bytes] = sys.stdout.buffer
    return open(stream.fileno(), "wb", closefd=False) if isinstance(stream, io.RawIOBase) else stream


def require(path: str) -> None:
    """Refuses a path that is mistyped: only ``register`` makes a database."""
    if path != ":memory:" and not Path(path).exists():
        raise ArgumentError(
            f"'{path}' does not exist; make a database with: engramsql register NAME SOURCE --db {shlex.quote(path)}"
        )


def warn_of_lost(database: Database) -> None:
    """Names the tables and views that a script made and that nothing keeps."""
    names = [*(entry.name for entry in database.tables()), *(entry.name for entry in database.views())]
    kept = set(map(folded, names))
    made = database.connection.execute(
        """
        SELECT 'table ' || table_name, table_name FROM duckdb_tables()
        WHERE database_name = 'memory' AND NOT internal AND NOT temporary
        UNION ALL
        SELECT 'view ' || view_name, view_name FROM duckdb_views()
        WHERE database_name = 'memory' AND NOT internal AND NOT temporary
        """
    ).fetchall()
    lost = [what for what, name in made if folded(name) not in kept]
    if lost:
        say(
            f"engramsql: warning: {', '.join(lost)}: not kept, a database keeps registered tables and views made with "
            "Database.create_view(); write CREATE TEMP for what only this run needs"
        )


def register(options: argparse.Namespace) -> None:
    """Registers a source and says what was found."""
    with _database(options.db) as database:
        entries = database.register(
            options.name,
            options.source,
            spec=options.spec,
            format=options.format,
            scale=options.scale,
            width=options.width,
            rows_per_shard=options.rows_per_shard,
            layer=options.layer,
            tokenizer=options.tokenizer,
        )
    for entry in entries:
        print(
            f"{entry.name}: {entry.rows} rows x {entry.row_bytes} bytes in {shards_text(entry.shards)}, "
            f"format {entry.format or 'not known'}, spec {entry.spec or 'not known'}"
        )


def shards_text(count: int) -> str:
    """So many shards, in words."""
    return f"{count} shard" if count == 1 else f"{count} shards"


def _database(path: str) -> Database:
    """The database to change: a change of a checkpoint's temporary database would be lost."""
    if not is_database(Path(path)):
        raise ArgumentError(f"'{path}' is no database directory; name a database, or an empty or new directory")
    return connect(path)
