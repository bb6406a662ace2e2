"""A session of the shell: its database, its settings, and how a statement or command is run in it."""

from __future__ import annotations

import re
import sys
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import duckdb

from engramsql.database import Database, connect
from engramsql.errors import ArgumentError, EngramError
from engramsql.export import BINARY, write
from engramsql.export.visible import visible_lines
from engramsql.interrupting import Interrupts
from engramsql.messages import say
from engramsql.shell import errors, statements
from engramsql.shell.commands import registry
from engramsql.shell.progress import QueryProgress
from engramsql.shell.reads import Reads
from engramsql.shell.results import Results
from engramsql.shell.rows import Counted
from engramsql.shell.running import Runner
from engramsql.shell.settings import Settings
from engramsql.shell.terminal import is_dumb
from engramsql.sql_text import has_rows, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engramsql.shell.results import Destination
    from engramsql.shell.statements import Piece

    T = TypeVar("T")

__all__ = ["FailedError", "Session"]

# Of a parameter; `?` and `$1` have numbers.
_NAME = re.compile(r"[^\W\d]\w*")
# A byte that is no text, as Python keeps it.
_NO_TEXT = re.compile("[\ud800-\udfff]")
# Tables, and views, that are named when a database is opened; .tables lists all.
_GREETED = 3


class FailedError(EngramError):
    """A statement or command failed; the text is what to show of it, ``line`` the first line of that."""

    @property
    def line(self) -> str:
        """The message, without the picture of the statement."""
        return str(self).partition("\n")[0]


class Session:
    """What one user does with one database at a time.

    Without a person it runs a script: then nothing is paged, and no line says how far a statement is.
    """

    def __init__(
        self, opened: Database, *, sink: IO[bytes] | None = None, mode: str | None = None, chosen: bool = False
    ) -> None:
        """Takes the database, which :meth:`close` closes.

        Args:
            opened: The database.
            sink: Where the results of a script go; if left out, they are shown on the terminal to a person.
            mode: Output mode.
            chosen: Whether the user asked for that mode; else the ending of a file has precedence.
        """
        self.settings = Settings()
        if mode is not None:
            self.settings.set("mode", mode)
        #: Whether a person sits before it.
        self.terminal = sink is None
        self.interrupts = Interrupts()
        self._runner = Runner(self.interrupts)
        #: Where results go.
        self.results = Results(self.settings, self._runner.cancelled, sink=sink, mode_chosen=chosen)
        #: Values of ``$name``, and the SQL they were given as.
        self.params: dict[str, tuple[object, str]] = {}
        #: Ends the session after this statement.
        self.ended = False
        #: What the next prompt begins with.
        self.draft = ""
        #: The last statement, as it was typed.
        self.last = ""
        #: Opens a database as the first one was opened.
        self.connect: Callable[[str | None], Database] = connect
        #: How many files deep `.read` is.
        self.depth = 0
        #: Called before the database is closed, by whoever uses it too.
        self.leaving: Callable[[], object] = lambda: None
        #: Entries of the history, oldest first.
        self.entries: Callable[[], list[str]] = list
        #: Whether a statement made something that may be lost at the end.
        self.made = False
        self._take(opened)

    # The database

    def _take(self, database: Database) -> None:
        self.database = database
        self._connection = database.connection
        # A person has no Python variables; ours are not their tables.
        self._connection.execute("SET python_enable_replacements = false")
        if self.terminal:
            # Only then it knows how far a query is; it draws nothing itself.
            self._connection.execute("SET enable_progress_bar = true")
            self._connection.execute("SET enable_progress_bar_print = false")
        self.reads = Reads(self._connection)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection that statements run on."""
        return self._connection

    def open(self, path: str | None) -> None:
        """Opens another database instead, if it can be opened."""
        database = self.connect(path)
        self.leaving()
        self.close_database()
        self._take(database)

    def greeting(self) -> str:
        """The database, its tables and its views, in a line."""
        label = self.database.label
        tables = self.database.tables()
        views = [view.name for view in self.database.record_views()]
        views += [view.name for view in self.database.views()]
        shown = [f"{entry.name} ({entry.rows:,} rows)" for entry in tables[:_GREETED]]
        more = len(tables) - len(shown)
        if more:
            shown.append(f"{more} more table{'' if more == 1 else 's'}")
        if len(views) > _GREETED:
            shown.append(f"{len(views)} views")
        else:
            shown += [f"view {name}" for name in views]
        rest = "; .tables lists all" if more or len(views) > _GREETED else ""
        return f"{label}: {', '.join(shown) or 'no tables'}{rest}"

    def close_database(self) -> None:
        """Closes the database."""
        self.reads.close()
        self.database.close()

    def close(self) -> None:
        """Ends the session."""
        self.results.set_output(None)
        self.leaving()
        self.close_database()

    # What was typed

    def execute(self, text: str) -> bool:
        """Runs commands and statements until one fails, whose error is shown; whether all went well."""
        for piece in statements.parse(text).all:
            try:
                self.run(piece)
            except FailedError as failure:
                self.say(str(failure))
                return False
            except KeyboardInterrupt:
                self.say("interrupted")
                return False
            except Exception as error:
                # The session goes on.
                self.say(f"a fault in EngramSQL itself: {type(error).__name__}: {one_line(str(error))}")
                return False
            if self.ended:
                break
        return True

    def run(self, piece: Piece) -> None:
        """Runs one command or statement.

        Raises:
            FailedError: If it failed, with all that there is to say.
            KeyboardInterrupt: If Ctrl-C ended it.
        """
        if found := _NO_TEXT.search(piece.text):
            raise FailedError(f"byte 0x{ord(found[0]) & 0xFF:02x} in what was typed is not UTF-8; nothing was run")
        if piece.kind is statements.Kind.COMMAND:
            self._run_command(piece.text)
            return
        self.last = piece.text
        params = None
        try:
            params = self._params_of(piece.text)
            self._run_statement(piece, params)
        except (duckdb.Error, EngramError, OSError, UnicodeError) as error:
            if not self.terminal and _is_about_output(error):
                raise
            raise FailedError(self._described(error, piece, params)) from error
        if piece.text[:6].lower() == "create":
            self.made = True

    def _run_command(self, line: str) -> None:
        try:
            command, words = registry.parse(line)
            command.run(self, words)
        except FailedError:
            raise
        except (duckdb.Error, EngramError, OSError, UnicodeError) as error:
            if not self.terminal and _is_about_output(error):
                raise
            raise FailedError(one_line(str(error))) from error

    def _described(self, error: Exception, piece: Piece, params: object) -> str:
        if isinstance(error, OSError) and _is_about_output(error):
            return f"cannot write the result: {error.strerror or error}"
        return errors.describe(error, piece, self._connection, params)

    # Statements

    def _run_statement(self, piece: Piece, params: object) -> None:
        before = self.reads.now() if self.settings.timer else None
        started = time.perf_counter()
        counted = self._shown(lambda: self.database.sql(piece.text, params=params), piece)
        if before is not None:
            seconds = time.perf_counter() - started
            self.say(self.reads.since(before).line(seconds, None if counted is None else counted.rows))

    def query(self, sql: str) -> None:
        """Shows the result of a query of ours: in a box where the mode is none for it."""
        piece = statements.Piece(statements.Kind.SQL, sql, 0)
        mode = self.results.mode()
        if mode == "hex" or (self.results.on_screen and mode in BINARY):
            mode = "box"
        self._shown(lambda: self.database.sql(sql), piece, mode)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a small query of ours.

        Raises:
            duckdb.Error: If it fails.
        """
        with self._progress() as progress:
            return self._run(lambda: self.database.execute(sql).fetchall(), progress.tick)

    def work(self, work: Callable[[Destination], None], *, says: bool = False) -> None:
        """Runs what writes to the place where results go, and can be ended by Ctrl-C.

        Args:
            work: What is run.
            says: Whether it says itself how far it is.
        """
        with self._progress() as progress, self.results.opened(progress.hide) as to:
            tick = (lambda _: None) if says else progress.tick
            self._run(lambda: work(to), tick)

    def wait(self, work: Callable[[], T]) -> T:
        """The result of work that reads, or waits for, something else than the database; Ctrl-C ends it."""
        with self._progress() as progress:
            return self._run(work, progress.tick)

    def _run(self, work: Callable[[], T], tick: Callable[[float], None]) -> T:
        """The result of work that Ctrl-C ends, with the query it waits for."""
        return self._runner.run(work, self._connection.interrupt, tick)

    def _shown(
        self, relation_of: Callable[[], duckdb.DuckDBPyRelation | None], piece: Piece, mode: str | None = None
    ) -> Counted | None:
        """Runs a statement and shows what it returns; None if that is nothing."""
        mode = mode or ("vertical" if piece.vertical else self.results.mode())
        with self._progress() as progress:
            changed: list[tuple[int]] = []

            def begin() -> Counted | None:
                relation = relation_of()
                if relation is None or not has_rows(piece.text, relation.columns):
                    if self.terminal and relation is not None and relation.columns == ["Count"]:
                        changed.extend(relation.fetchall())
                    return None
                return Counted(relation)

            # A relation is fetched when it is written; what has no result opens no file.
            result = self._run(begin, progress.tick)
            if result is None:
                progress.hide()
                for (count,) in changed:
                    self.say(f"{count:,} row{'' if count == 1 else 's'} changed")
                return None
            self.results.check_place_for(mode)
            # It stands for the relation, with all that writers use.
            rows = cast("duckdb.DuckDBPyRelation", result)
            format = self.results.format(mode)
            with self.results.opened(progress.hide) as to:
                self._run(lambda: write(rows, format, to.file, to.style), progress.tick)
            return result

    def _params_of(self, statement: str) -> dict[str, object] | None:
        """The parameters that a statement names; a statement that does not parse names none."""
        if "$" not in statement:
            return None
        try:
            parsed = duckdb.extract_statements(statement)
        except duckdb.Error:
            return None
        named = {name for one in parsed for name in one.named_parameters}
        for name in sorted(named):
            if name not in self.params and _NAME.fullmatch(name):
                raise ArgumentError(f"${name} has no value; write .param {name} VALUE")
        return {name: self.params[name][0] for name in named if name in self.params} or None

    @contextmanager
    def _progress(self) -> Iterator[QueryProgress]:
        # A dumb terminal could not take the line away.
        stream = sys.stderr if self.terminal and self.settings.progress and not is_dumb() else None
        progress = QueryProgress(stream, self._connection, self.reads)
        try:
            yield progress
        finally:
            progress.hide()

    # What it says

    def say(self, text: str) -> None:
        """A message, on stderr; what a value or a name in it holds cannot reach the terminal as an escape code."""
        say(text)

    def print(self, text: str) -> None:
        """Text of ours, where results go; where it has no place it is a message."""
        with self.results.opened_for_text() as to:
            if to is None:
                self.say(text)
                return
            shown = text if to.style is None else visible_lines(text)
            file, data = to.file, f"{shown}\n".encode()
            # The reader may be slow, or a pipe that has none yet.
            self._run(lambda: file.write(data), lambda _: None)

    def say_contradiction(self) -> None:
        """Says that the file waited for will hold something else than its ending says, if so."""
        if told := self.results.contradiction():
            self.say(told)


def _is_about_output(error: Exception) -> bool:
    """Whether it is about where a result goes; pyarrow's, for a query that failed while it ran, has no number."""
    return isinstance(error, OSError) and not isinstance(error, EngramError) and error.errno is not None
