"""What ``engramsql export`` does, and ``.export`` of the shell; their arguments are in ``options``."""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from engramsql._nearest import nearest_choice, with_nearest_option
from engramsql._views import without_variables
from engramsql.commands import require
from engramsql.database import connect
from engramsql.errors import ArgumentError
from engramsql.exit_codes import GOOD
from engramsql.export.files import Options, export_to, export_to_stdout
from engramsql.export.files import options as grammar
from engramsql.messages import say
from engramsql.progress import ProgressLine, elapsed, size
from engramsql.sql_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engramsql.database import Database
    from engramsql.export.files import Export

__all__ = ["command", "run", "shell_parser"]

_QUOTES = """--sql "QUERY": between '...' the first single quote of the query ends it"""
_ROW_CACHE = "64MiB"


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Exports what the command line names and says what was written."""
    grammar.settle(options, parser)
    what = _what(options)
    path = options.db
    if path is not None:
        require(path)
    elif isinstance(what, str):
        if not os.path.exists(what):
            parser.error(f"'{what}' is a name: give its database with --db DB; a path has a '{os.sep}'")
        what = Path(what)
    with (
        connect(path, read_only=path is not None, ram_budget=options.ram_budget) as database,
        _told_to_resume(options.output),
    ):
        if what is not None and options.ram_budget is None and "ENGRAMSQL_RAM_BUDGET" not in os.environ:
            _bound_row_cache(database, what)
        said = _exported(database, what, options)
        if options.output == grammar.STDOUT:
            say(said)
        else:
            print(said)
    return GOOD


def _bound_row_cache(database: Database, what: str | Path) -> None:
    """Keeps the row cache of this process small if rows will come from the disk: an export has bounded memory.

    Rows that are in the page cache are read there, and a budget that somebody set would have them copied out of it.
    """
    shards = database.table(what).shards()
    resident = sum(shard.resident_bytes or 0 for shard in shards)
    if 2 * resident < sum(shard.bytes for shard in shards):
        database.set_ram_budget(_ROW_CACHE)


def command(database: Database, words: Sequence[str]) -> str:
    """The ``.export`` of the shell: the words of ``engramsql export`` without ``--db``; what was written, in a line.

    Raises:
        ArgumentError: If the words are wrong, with what is.
    """
    parser = shell_parser()
    _refuse_bare_query(words)
    options = parser.parse_args(list(words))
    grammar.settle(options, parser)
    if options.db is not None or options.ram_budget is not None:
        raise ArgumentError(".export writes from the database that is open; leave --db and --ram-budget out")
    if options.output == grammar.STDOUT:
        raise ArgumentError(".export writes files, and '-' is none; name a file, or run engramsql export TABLE -")
    what = _what(options)
    try:
        return _exported(database, what, options)
    except Exception as error:
        is_ours = type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb")
        if is_ours or options.sql is None or "'" in options.sql:
            raise
        # Whether the query had any is lost by now; that it has none explains names that are not known.
        raise ArgumentError(f"{one_line(str(error))} ({_QUOTES})") from error


def _refuse_bare_query(words: Sequence[str]) -> None:
    """Says what the parser cannot: that what follows ``--sql`` are the words of one query."""
    if "--sql" not in words:
        return
    query = list(
        itertools.takewhile(lambda word: word != "-o" and not word.startswith("--"), words[words.index("--sql") + 1 :])
    )
    if len(query) > 1:
        raise ArgumentError(f".export: put the query between double quotes, {_QUOTES}")


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong; the shell goes on."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"{self.prog}: {with_nearest_option(nearest_choice(message), self)}")


def shell_parser() -> argparse.ArgumentParser:
    """The parser of ``.export``, which raises what is wrong."""
    parser = _Parser(prog=".export", add_help=False, allow_abbrev=False)
    grammar.build(parser, shell=True)
    return parser


def _what(options: argparse.Namespace) -> str | Path | None:
    """The table, None for a query."""
    if options.what is not None and options.table is not None:
        raise ArgumentError(f"give the table once: '{options.what}' or --table {options.table}")
    name = options.what if options.what is not None else options.table
    if options.sql is not None:
        if name is not None:
            raise ArgumentError(f"a query names its tables itself; leave '{name}' out")
        return None
    if name is None:
        raise ArgumentError("name what to export: a table, or a query with --sql QUERY")
    return Path(name) if os.sep in name else str(name)


def _exported(database: Database, what: str | Path | None, options: argparse.Namespace) -> str:
    started = time.perf_counter()
    counted = options.tokens is not None or options.ids is not None or what is None
    noun = "tokens" if options.tokens is not None else "rows"
    label = "query" if what is None else os.path.basename(os.fspath(what))
    with ProgressLine(label, sys.stderr) as line, without_variables(database.connection):
        progress: Callable[[str, int, int], object] = line.show_stage
        if counted:
            progress = lambda stage, done, total: line.show_count(noun, done, total)  # noqa: E731
        chosen = Options(
            format=options.format,
            compression=options.compression,
            values=options.values,
            round=options.round,
            columns=options.columns,
            column=options.column,
            per=options.per,
            history=options.history,
            rows_per_file=options.rows_per_file,
            resume=options.resume,
            restart=options.restart,
            replace=options.replace,
            progress=progress,
            sql=options.sql,
        )
        exported: Any = _relation(database, options.sql) if what is None else what
        if options.output == grammar.STDOUT:
            found = export_to_stdout(database, exported, tokens=options.tokens, ids=options.ids, options=chosen)
        else:
            found = export_to(
                database, exported, options.output, tokens=options.tokens, ids=options.ids, options=chosen
            )
    return _said(found, options.output, time.perf_counter() - started, resumed=options.resume)


def _relation(database: Database, sql: str) -> object:
    import duckdb

    statements = duckdb.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ArgumentError(f"--sql takes one SELECT, and this is none or several: {sql.strip()[:60]!r}")
    return database.sql(sql)


def _said(found: Export, path: str, seconds: float, *, resumed: bool) -> str:
    files = f" in {len(found.files)} files" if len(found.files) > 1 else ""
    records = f"{found.rows} record{'s' * (found.rows != 1)}, {size(found.bytes)}{files}"
    # What an earlier run wrote was not written in the time of this one.
    pace = "" if resumed else f", {size(found.bytes / max(seconds, 1e-9))}/s"
    return (
        f"{'standard output' if path == grammar.STDOUT else path}: {records}, {found.format}; {elapsed(seconds)}{pace}"
    )


@contextmanager
def _told_to_resume(output: str) -> Iterator[None]:
    """Says after Ctrl-C how to go on, if there is something to go on with."""
    try:
        yield
    except KeyboardInterrupt:
        # One more would interrupt the line itself.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        path = Path(os.path.abspath(output))
        if output == grammar.STDOUT:
            what = "what was written is not whole"
        elif path.with_name(f".{path.name}.unfinished").exists():
            what = "what is complete is kept, go on with --resume"
        else:
            what = "nothing was written"
        say(f"engramsql: interrupted; {what}")
        raise
