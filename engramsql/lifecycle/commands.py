"""What the commands of a table's life do; their arguments are in ``options``."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql import cli
from engramsql._directory import is_database
from engramsql.commands import output, require, shards_text
from engramsql.database import Database, connect
from engramsql.errors import ArgumentError
from engramsql.export import write
from engramsql.lifecycle.options import looks_like_path
from engramsql.progress import ProgressLine, duration, size
from engramsql.quoting import folded
from engramsql.verification import difference_table, finding_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["build", "build_index", "build_view", "check", "export_view", "import_view", "verify"]

# Rows of a comparison that are shown.
_KEEP = 100


def build(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
    """Builds a table and says what it is."""
    started = time.perf_counter()
    # Only now, as with register: a database comes into being with its first table.
    with _new_database(options.db) as database, _line(options.name) as line:
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
    print(f"{size(total)} in {duration(seconds)}, {size(total / max(seconds, 1e-9))}/s")
    return cli.GOOD


def build_view(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
    """Builds a view and says what it holds."""
    with _database(options.db) as database, _line(options.name) as line:
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
        covered = f"; {entry.covered} of {entry.tokens} tokens ({entry.covered / max(entry.tokens, 1):.1%}) find theirs"
    print(f"{entry.name}: {entry.slots} records x {entry.record_bytes} bytes ({size(entry.bytes)}){covered}")
    return cli.GOOD


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
    return cli.GOOD


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
    return cli.GOOD


def build_index(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Builds the slot index of a view, or one of the peer's formats elsewhere."""
    if (options.format is None) != (options.to is None):
        parser.error("--format and --to belong together: which of engramdb-python's formats, and where it is written")
    if options.format is None:
        with _database(options.db) as database, _line(options.view) as line:
            database.build_index(options.view, memory=options.memory, progress=line.show_stage)
            print(f"{options.view}: index of {database.view(options.view).slots} keys")
        return cli.GOOD
    with _database(options.db, read_only=True) as database, _line(options.view) as line:
        from engramsql.interchange.views import write_index

        view = database.view(options.view)
        write_index(view, options.format, Path(options.to), line.show_stage)
    print(f"{options.view}: index of {view.slots} keys in '{options.to}'")
    return cli.GOOD


def verify(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Verifies a table, view or path, or compares two tables; findings go to stdout."""
    name = options.name
    if options.db is None:
        if not looks_like_path(name) and os.path.exists(name):
            name = os.path.join(os.curdir, name)
        if not looks_like_path(name):
            parser.error(f"'{name}' is a name: give its database with --db DB; a path has a '{os.sep}'")
    else:
        require(options.db)
    # A full verification remembers what it found, where that can be written.
    read_only = options.level != "full" or (options.db is not None and not os.access(options.db, os.W_OK))
    with connect(options.db, read_only=read_only) as database, _line(name) as line:
        against = None if options.against is None else _source(database, options.against)
        found = database.verify(name, options.level, against=against, resume=options.resume, progress=line.show_stage)
    if found.comparison is None:
        _show(finding_table([(name, found.findings)]), cli.format_of(options))
    else:
        _show(difference_table(name, found.comparison), cli.format_of(options))
        compared = found.comparison
        cli.say(f"engramsql: {name}: {compared.different} of {compared.rows} rows differ from {options.against}")
    return cli.GOOD if found.good else cli.DIFFERENT


def check(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Looks at headers and sizes of everything, or of one name."""
    if options.path is None and options.db is None:
        parser.error("name a checkpoint, store or database directory")
    from engramsql.checking import check as run

    if options.db is None:
        return run(options.path)
    return run(options.db, options.path)


def _source(database: Database, source: str) -> str | Path:
    """A table's name if it is one, else a path."""
    if not looks_like_path(source) and folded(source) in {folded(entry.name) for entry in database.tables()}:
        return source
    return Path(source)


def _show(table: pa.Table, format: str) -> None:
    import duckdb

    with duckdb.connect() as connection:
        sink = output()
        write(connection.from_arrow(table), format, sink)
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
