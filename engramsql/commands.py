"""What the commands do. Everything here may import what is heavy; the command line's grammar is in ``cli.py``."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from engramsql import script
from engramsql._directory import is_database
from engramsql.database import Database, connect
from engramsql.errors import ArgumentError
from engramsql.quoting import folded

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    import duckdb

__all__ = ["interruptible", "output", "register", "require", "run_script", "shards_text", "warn_of_lost"]

# How long a wait lasts before Ctrl-C is looked for.
_STEP_SECONDS = 0.05
# How long a query may take to stop after Ctrl-C before the process ends without it.
_STOP_SECONDS = 5.0
_INTERRUPTED = 130


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
    if lost and sys.stderr is not None:
        print(
            f"engramsql: warning: {', '.join(lost)}: not kept, a database keeps registered tables and views made with "
            "Database.create_view(); write CREATE TEMP for what only this run needs",
            file=sys.stderr,
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


def interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], None]) -> None:
    """Runs ``work`` so that Ctrl-C stops its query at once.

    DuckDB does not look for signals while it makes Arrow batches, so the work has a thread of its own; this one waits,
    and asks for the end of the query until the work has ended: the connection is never closed under a running query.

    Raises:
        KeyboardInterrupt: If Ctrl-C came, even if the work then ended by itself.
    """
    failure: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # handed to the waiting thread, which raises it
            failure.append(error)
        finally:
            done.set()

    with _counted_interrupts() as interrupts:
        threading.Thread(target=run, name="engramsql-script", daemon=True).start()
        # In steps: a signal that the system gives to another thread does not end a wait, its handler runs after it.
        while not done.wait(_STEP_SECONDS) and not interrupts:
            pass
        if interrupts:
            _stop(connection, done, interrupts)
            raise KeyboardInterrupt
    if failure:
        raise failure[0]


@contextmanager
def _counted_interrupts() -> Iterator[list[int]]:
    """A list that grows by one with each Ctrl-C, which does nothing else; where Ctrl-C is ignored it still is."""
    interrupts: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    # Only the main thread may set handlers, and None is one that Python did not set.
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield interrupts
        return
    signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield interrupts
    finally:
        # After Ctrl-C the process ends with its own exit code; one more, while it closes, must not change that. A
        # handler in Python would be taken away too early.
        signal.signal(signal.SIGINT, signal.SIG_IGN if interrupts else before)


def _stop(connection: duckdb.DuckDBPyConnection, done: threading.Event, interrupts: list[int]) -> None:
    """Interrupts until the script has ended: one interrupt is lost if it falls between two statements.

    A script that waits for the reader of its output cannot end; the process then ends without it.
    """
    deadline = time.monotonic() + _STOP_SECONDS
    connection.interrupt()
    while not done.wait(_STEP_SECONDS):
        connection.interrupt()
        if time.monotonic() > deadline or len(interrupts) > 1:
            os._exit(_INTERRUPTED)
