"""What the commands of a table's life do; their arguments are in ``options``."""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql._arguments import format_of, is_terminal
from engramsql._directory import CATALOG_FILE, is_database
from engramsql.commands import output, require, run_script, shards_text
from engramsql.database import Database, connect
from engramsql.errors import ArgumentError, EngramError, EngramWarning, UnknownTableError
from engramsql.exit_codes import DIFFERENT, ERROR, GOOD
from engramsql.export import write
from engramsql.export.style import style_of
from engramsql.lifecycle.options import database_of, looks_like_path
from engramsql.messages import say
from engramsql.progress import ProgressLine, elapsed, size
from engramsql.quoting import folded
from engramsql.verification import difference_table, finding_line, finding_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import pyarrow as pa

    from engramsql.engine import Finding
    from engramsql.verification import Verification

__all__ = [
    "build",
    "build_index",
    "build_view",
    "check",
    "drop_view",
    "export_view",
    "import_view",
    "list_views",
    "verify",
]


def build(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
    """Builds a table and says what it is."""
    started = time.perf_counter()
    # Only now, as with register: a database comes into being with its first table.
    with _told_to_resume(), _new_database(options.db) as database, _warned_later(), _line(options.name) as line:
        entries = database.build(
            options.name,
            _source(database, options.source),
            shard_size=options.shard_size,
            jobs=options.jobs,
            resume=options.resume,
            restart=options.restart,
            replace=options.replace,
            sample_rows=options.sample_rows,
            progress=line.show_stage,
            spec=options.spec,
            format=options.format,
            scale=options.scale,
            width=options.width,
            rows_per_shard=options.rows_per_shard,
            layer=options.layer,
            tokenizer=options.tokenizer,
        )
    seconds = time.perf_counter() - started
    for entry in entries:
        print(f"{entry.name}: {entry.rows} rows x {entry.row_bytes} bytes in {shards_text(entry.shards)}")
    total = sum(entry.bytes for entry in entries)
    # What an earlier run wrote was not written in the time of this one.
    if options.resume:
        print(f"{size(total)}; this run took {elapsed(seconds)}")
    else:
        print(f"{size(total)} in {elapsed(seconds)}, {size(total / max(seconds, 1e-9))}/s")
    return GOOD


def build_view(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
    """Builds a view and says what it holds."""
    with _told_to_resume(), _database(options.db) as database, _line(options.name) as line:
        entry = database.build_view(
            options.name,
            options.table,
            options.tokens,
            keys=options.keys,
            sql=options.sql,
            column=options.column,
            heads=options.heads,
            order=options.order,
            form=options.form,
            top=options.top,
            budget=options.budget,
            shard_size=options.shard_size,
            memory=options.memory,
            resume=options.resume,
            restart=options.restart,
            replace=options.replace,
            progress=line.show_stage,
        )
    covered = ""
    if entry.tokens is not None and entry.covered is not None:
        share = entry.covered / max(entry.tokens, 1)
        covered = f"; covers {entry.covered} of {entry.tokens} tokens ({share:.1%})"
    print(f"{entry.name}: {entry.slots} records x {entry.record_bytes} bytes ({size(entry.bytes)}){covered}")
    return GOOD


def list_views(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
    """Lists the materialised views."""
    select = "SELECT * EXCLUDE (kind, sql) FROM engram_views() WHERE kind = 'materialised'"
    run_script(database_of(options), select, format_of(options), read_only=True)
    return GOOD


def drop_view(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
    """Forgets a materialised view, with its directory if ``--data``."""
    with _database(options.db) as database:
        if folded(options.name) not in {folded(view.name) for view in database.record_views()}:
            raise UnknownTableError(f"'{options.db}' has no view '{options.name}'; list them with: engramsql view list")
        database.drop(options.name, options.data)
    return GOOD


def import_view(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
    """Makes a view of a file of records where it lies."""
    with _database(options.db) as database, _line(options.name) as line:
        entry = database.import_view(
            options.name,
            options.file,
            options.table,
            keys=options.keys,
            index=options.index,
            replace=options.replace,
            progress=line.show_stage,
        )
    print(f"{entry.name}: {entry.slots} records x {entry.record_bytes} bytes in '{options.file}'")
    return GOOD


def export_view(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
    """Writes a view as engramdb-python reads it."""
    with _database(options.db, read_only=True) as database, _line(options.name) as line:
        directory = database.export_view(
            options.name,
            options.directory,
            slot_bytes=options.slot_bytes,
            indexes=options.index,
            progress=line.show_stage,
        )
        print(f"{options.name}: {', '.join(sorted(os.listdir(directory)))} in '{directory}'")
    return GOOD


def build_index(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Builds the slot index of a view, or one of the peer's formats elsewhere."""
    if (options.format is None) != (options.to is None):
        parser.error("--format and --to belong together: which of engramdb-python's formats, and where it is written")
    if options.format is None:
        with _database(options.db) as database, _line(options.view) as line:
            database.build_index(options.view, memory=options.memory, progress=line.show_stage)
            print(f"{options.view}: index of {database.view(options.view).slots} keys")
        return GOOD
    with _database(options.db, read_only=True) as database, _line(options.view) as line:
        from engramsql.interchange.views import write_index

        view = database.view(options.view)
        write_index(view, options.format, Path(options.to), line.show_stage)
    print(f"{options.view}: index of {view.slots} keys in '{options.to}'")
    return GOOD


def verify(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Verifies a table, view, path or all of a database, or compares two tables; findings go to stdout."""
    name, path = options.name, options.db
    if path is None:
        if name is None:
            parser.error("name what to verify: a path, or a database with --db DB")
        if not looks_like_path(name) and os.path.exists(name):
            name = os.path.join(os.curdir, name)
        if not looks_like_path(name):
            parser.error(f"'{name}' is a name: give its database with --db DB; a path has a '{os.sep}'")
        if os.path.exists(os.path.join(name, CATALOG_FILE)):
            name, path = None, name
    else:
        require(path)
    if name is None and options.against is not None:
        parser.error("--against compares one table with another; name it")
    # What was found is remembered, good or bad, where that can be written.
    read_only = path is not None and not os.access(path, os.W_OK)
    with connect(path, read_only=read_only) as database:
        if options.against is not None:
            return _compare(database, name, options)
        names = _names(database, path) if name is None else [name]
        if read_only or path is None or not options.resume:
            # Only a verification that may be resumed keeps what it found.
            return _verify_names(database, names, options)
        with _told_to_resume():
            return _verify_names(database, names, options)


def _names(database: Database, path: str) -> list[str]:
    names = [entry.name for entry in database.tables()] + [view.name for view in database.record_views()]
    if not names:
        raise ArgumentError(f"'{path}' has no table to verify")
    return names


def _verify_names(database: Database, names: list[str], options: argparse.Namespace) -> int:
    """Verifies one or several, each to its end; a terminal sees what is bad, anything else every finding."""
    brief = options.format is None and is_terminal(sys.stdout)
    found: list[tuple[str, list[Finding]]] = []
    closing: list[str] = []
    code = GOOD
    for name in names:
        try:
            with _line(name) as line:
                outcome = database.verify(name, options.level, resume=options.resume, progress=line.show_stage)
        except EngramError as error:
            # One that cannot be opened does not hide the others.
            if len(names) == 1:
                raise
            say(f"engramsql: {name}: {' '.join(str(error).split())}")
            code = ERROR
            continue
        if not outcome.good and code == GOOD:
            code = DIFFERENT
        last = _closing(database, outcome, options.level)
        if brief:
            for finding in outcome.findings:
                if not finding.ok:
                    print(finding_line(name, finding))
            print(last, flush=True)
        else:
            found.append((name, outcome.findings))
            closing.append(last)
    if not brief:
        if found:
            _show(finding_table(found), format_of(options))
        for last in closing:
            say(last)
    return code


def _closing(database: Database, outcome: Verification, level: str) -> str:
    """The outcome in one line."""
    if not outcome.good:
        bad = sum(not finding.ok for finding in outcome.findings)
        return f"{outcome.name}: BAD, {bad} of {len(outcome.findings)} findings"
    views = {folded(entry.name) for entry in database.record_views()}
    opened = database.view(outcome.name) if folded(outcome.name) in views else database.table(outcome.name)
    shards = opened.shards()
    files = len({shard.file for shard in shards})
    what = "good" if level == "full" else f"good at level {level}"
    return f"{outcome.name}: {what}, {size(sum(shard.bytes for shard in shards))} in {files} file{'s' * (files != 1)}"


def _compare(database: Database, name: str, options: argparse.Namespace) -> int:
    against = _source(database, options.against)
    with _line(name) as line:
        found = database.verify(name, options.level, against=against, resume=options.resume, progress=line.show_stage)
    compared = found.comparison
    if compared is not None:
        if compared.first or options.format is not None or not is_terminal(sys.stdout):
            _show(difference_table(name, compared), format_of(options))
        say(f"{name}: {compared.different} of {compared.rows} rows differ from {options.against}")
    return GOOD if found.good else DIFFERENT


def check(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Looks at headers and sizes of everything, or of one name."""
    if options.path is None and options.db is None:
        parser.error("name a checkpoint, store or database directory")
    from engramsql.checking import check as run

    if options.db is None:
        return run(options.path)
    return run(options.db, options.path)


@contextmanager
def _warned_later() -> Iterator[None]:
    """Keeps warnings until the line that tells how far it is has gone: they would be written behind it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EngramWarning)
        yield
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


@contextmanager
def _told_to_resume() -> Iterator[None]:
    """Says after Ctrl-C how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        # One more would interrupt the line itself.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("engramsql: interrupted; what is complete is kept, go on with --resume")
        raise


def _source(database: Database, source: str) -> str | Path:
    """A table's name if it is one, else a path; a view's name is no path either, and is refused as what it is."""
    names = [entry.name for entry in database.tables()] + [view.name for view in database.record_views()]
    if not looks_like_path(source) and folded(source) in map(folded, names):
        return source
    return Path(source)


def _show(table: pa.Table, format: str) -> None:
    import duckdb

    with duckdb.connect() as connection:
        sink = output()
        write(connection.from_arrow(table), format, sink, style_of(sys.stdout))
        sink.flush()


@contextmanager
def _line(name: str) -> Iterator[ProgressLine]:
    with ProgressLine(name, sys.stderr) as line:
        yield line


def _database(path: str, *, read_only: bool = False) -> Database:
    """The database that is there: what is built needs one to be kept in."""
    require(path)
    if not is_database(Path(path)):
        raise ArgumentError(f"'{path}' is no database directory; only one of these has views")
    return connect(path, read_only=read_only)


def _new_database(path: str) -> Database:
    if not is_database(Path(path)):
        raise ArgumentError(f"'{path}' is no database directory; name a database, or an empty or new directory")
    return connect(path)
