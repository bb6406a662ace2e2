"""A session of the shell: its database, its settings, and how a statement or command is run in it."""

from __future__ import annotations

import re
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, cast

import duckdb

from engramsql import script
from engramsql.database import Database, connect
from engramsql.errors import ArgumentError, EngramError
from engramsql.export import BINARY, write
from engramsql.export.style import Style, style_of
from engramsql.export.visible import visible_lines
from engramsql.shell import errors, statements
from engramsql.shell.commands import registry
from engramsql.shell.endings import mode_of
from engramsql.shell.output import AppendingSink, CommandSink, FileSink, Sink, TerminalSink, is_dumb, terminal_size
from engramsql.shell.progress import QueryProgress
from engramsql.shell.reads import Reads
from engramsql.shell.rows import Counted
from engramsql.shell.running import Interrupts, Runner
from engramsql.shell.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engramsql.shell.statements import Piece

__all__ = ["Destination", "FailedError", "Session"]

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


@dataclass(frozen=True)
class Destination:
    """Where a result goes, and what the terminal there can show; None if there is none."""

    file: IO[bytes]
    style: Style | None


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
        #: Whether the mode was chosen by the user, and is no default.
        self.mode_chosen = chosen
        #: Whether a person sits before it.
        self.terminal = sink is None
        self.interrupts = Interrupts()
        self.runner = Runner(self.interrupts)
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
        self._sink = sink
        self._once: Callable[[Callable[[], None]], Sink] | None = None
        self._once_path: str | None = None
        self._output: AppendingSink | None = None
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
        self.set_output(None)
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
                self.say(f"a fault in EngramSQL itself: {type(error).__name__}: {script.one_line(str(error))}")
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
            raise FailedError(script.one_line(str(error))) from error

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
        mode = self._result_mode()
        if mode == "hex" or (self._on_screen and mode in BINARY):
            mode = "box"
        self._shown(lambda: self.database.sql(sql), piece, mode)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a small query of ours.

        Raises:
            duckdb.Error: If it fails.
        """
        with self._progress() as progress:
            return self.runner.run(
                lambda: self.database.execute(sql).fetchall(), self._connection.interrupt, progress.tick
            )

    def work(self, work: Callable[[Destination], None], *, says: bool = False) -> None:
        """Runs what writes to the place where results go, and can be ended by Ctrl-C.

        Args:
            work: What is run.
            says: Whether it says itself how far it is.
        """
        with self._progress() as progress, self._opened(progress.hide) as to:
            tick = (lambda _: None) if says else progress.tick
            self.runner.run(lambda: work(to), self._connection.interrupt, tick)

    def _shown(
        self, relation_of: Callable[[], duckdb.DuckDBPyRelation | None], piece: Piece, mode: str | None = None
    ) -> Counted | None:
        """Runs a statement and shows what it returns; None if that is nothing."""
        mode = mode or ("vertical" if piece.vertical else self._result_mode())
        with self._progress() as progress:
            changed: list[tuple[int]] = []

            def begin() -> Counted | None:
                relation = relation_of()
                if relation is None or not script.has_rows(piece.text, relation.columns):
                    if self.terminal and relation is not None and relation.columns == ["Count"]:
                        changed.extend(relation.fetchall())
                    return None
                return Counted(relation)

            # A relation is fetched when it is written; what has no result opens no file.
            result = self.runner.run(begin, self._connection.interrupt, progress.tick)
            if result is None:
                progress.hide()
                for (count,) in changed:
                    self.say(f"{count:,} row{'' if count == 1 else 's'} changed")
                return None
            self._check_place_for(mode)
            # It stands for the relation, with all that writers use.
            rows = cast("duckdb.DuckDBPyRelation", result)
            with self._opened(progress.hide) as to:
                self.runner.run(lambda: write(rows, mode, to.file, to.style), self._connection.interrupt, progress.tick)
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

    # Where results go

    def once_to_file(self, path: str) -> None:
        """The next result goes to a file."""
        mode_of(path)
        self._once = lambda before: FileSink(self.runner.cancelled, path)
        self._once_path = path

    def once_to_command(self, command: str) -> None:
        """The next result goes to a command of the system's shell."""
        self._once = lambda before: CommandSink(self.runner.cancelled, command, before)
        self._once_path = None

    def set_output(self, path: str | None) -> None:
        """All results go to a file from now on, or, again, to where they went at first."""
        if path is not None:
            mode_of(path)
        if self._output is not None:
            self._output.close()
        self._output = None if path is None else AppendingSink(self.runner.cancelled, path)

    @property
    def output(self) -> str:
        """Where results go."""
        return "stdout" if self._output is None else self._output.path

    @property
    def _on_screen(self) -> bool:
        return self.terminal and self._once is None and self._output is None

    @property
    def _path(self) -> str | None:
        """The file that the next result goes to, if it is one."""
        if self._once is not None:
            return self._once_path
        return None if self._output is None else self._output.path

    def _result_mode(self) -> str:
        """The mode of the next result: what the ending of its file says, unless another was chosen.

        A box is for people: it is never what a file of such a name is to hold.
        """
        mode, path = self.settings.mode, self._path
        named = None if path is None else mode_of(path)
        return mode if named is None or (self.mode_chosen and mode != "box") else named

    def say_contradiction(self) -> None:
        """Says that the file waited for will hold something else than its ending says, if so."""
        path, mode = self._path, self._result_mode()
        named = None if path is None else mode_of(path)
        if named is not None and named != mode:
            self.say(f"'{path}' will be written as {mode}, the mode that was set; .mode {named} is what its name says")

    def _check_place_for(self, mode: str) -> None:
        """Refuses what the place where results go cannot hold.

        Raises:
            ArgumentError: If it is bytes for the terminal, or a second result beside one that fills its file.
        """
        if self._on_screen and mode in BINARY:
            raise ArgumentError(
                f"{mode} is not for terminals: .once FILE writes the next result to a file, "
                ".mode box shows results here again"
            )
        if self._once is None and self._output is not None:
            output = self._output
            if output.filled or (mode in BINARY and output.used):
                raise ArgumentError(
                    f"'{output.path}' can hold one {output.filled or mode} result and nothing else; "
                    ".output another file, or write each result with .once FILE"
                )
            output.filled = mode if mode in BINARY else ""

    @contextmanager
    def _opened(self, before: Callable[[], None], *, prose: bool = False) -> Iterator[Destination]:
        """Where a result is written; a reader that has seen enough is no error."""
        once, self._once = self._once, None
        sink: Sink
        if once is not None:
            sink = once(before)
        elif self._output is not None:
            sink = self._output
        elif self._sink is not None:
            yield Destination(self._sink, style_of(sys.stdout))
            self._sink.flush()
            return
        else:
            sink = TerminalSink(self.runner.cancelled, before, paged=self.settings.pager, folded=prose)
        style = self._style() if isinstance(sink, TerminalSink) else None
        try:
            yield Destination(cast("IO[bytes]", sink), style)
        except BrokenPipeError:
            sink.unread()
        except BaseException:
            sink.abort()
            raise
        else:
            sink.finish()

    def _style(self) -> Style | None:
        """What the terminal can show, and is to show."""
        found = style_of(sys.stdout)
        if found is None:
            return None
        vector = self.settings.vector
        return replace(
            found,
            width=self.settings.max_width or terminal_size().columns,
            max_rows=self.settings.max_rows,
            shorten=vector is not False,
            values=found.values if isinstance(vector, bool) else vector,
        )

    def say(self, text: str) -> None:
        """A message, on stderr; what a value or a name in it holds cannot reach the terminal as an escape code."""
        if sys.stderr is not None:
            print(visible_lines(text), file=sys.stderr, flush=True)

    def print(self, text: str) -> None:
        """Text of ours, where results go; it is none: what ``.once`` waits for is still to come."""
        once, self._once = self._once, None
        if self._output is not None and (self._output.filled or self._result_mode() in BINARY):
            # It has no place in such a file.
            self._once = once
            self.say(text)
            return
        try:
            with self._opened(lambda: None, prose=True) as to:
                shown = text if to.style is None else visible_lines(text)
                to.file.write(f"{shown}\n".encode())
        finally:
            self._once = once


def _is_about_output(error: Exception) -> bool:
    """Whether it is about where a result goes; pyarrow's, for a query that failed while it ran, has no number."""
    return isinstance(error, OSError) and not isinstance(error, EngramError) and error.errno is not None
