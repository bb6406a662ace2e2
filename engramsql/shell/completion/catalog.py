"""What names there are: a snapshot of the catalog, renewed in the background."""

from __future__ import annotations

import re
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engramsql.errors import EngramError
from engramsql.quoting import folded, literal
from engramsql.shell.completion.columns import Column, Files
from engramsql.shell.completion.signatures import Signature, from_parameters, parse

if TYPE_CHECKING:
    import duckdb

    from engramsql.database import Database

__all__ = ["Catalog", "Column", "Function", "Head", "Relation", "Setting", "Snapshot", "take"]


@dataclass(frozen=True)
class Relation:
    """A table or view, with a word on what it is."""

    database: str
    schema: str
    name: str
    kind: str
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Function:
    """A function: kind is scalar, aggregate, macro, table, window or call; ours are those of the registry."""

    name: str
    kind: str
    signature: Signature
    description: str = ""
    ours: bool = False


@dataclass(frozen=True)
class Setting:
    """A setting, its value now and the type of its value."""

    name: str
    value: str = ""
    type: str = ""
    description: str = ""


@dataclass(frozen=True)
class Head:
    """A head of a table, with n-gram order and size."""

    head: int
    ngram_order: int
    size: int


@dataclass(frozen=True)
class Snapshot:
    """All names at one time.

    Attributes:
        relations: Tables and views.
        tables: Names of the tables of the database, with rows and heads in words.
        views: Names of its materialised views, with slots in words.
        functions: By name in lower case.
        heads: Of each table of the database, by folded name.
        reserved: Keywords that are no names without quotes, in lower case.
        database: Where an unqualified name is looked for, with ``schema``.
        files: Columns of files that statements have named, by their paths as typed.
    """

    relations: tuple[Relation, ...] = ()
    tables: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    types: tuple[str, ...] = ()
    heads: dict[str, tuple[Head, ...]] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()
    reserved: frozenset[str] = frozenset()
    database: str = "memory"
    schema: str = "main"
    files: dict[str, tuple[Column, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Session:
    """What only the connection itself knows: its temporary relations, and what USE said."""

    relations: tuple[Relation, ...] = ()
    database: str = "memory"
    schema: str = "main"


_COLUMNS = """
    SELECT database_name, schema_name, table_name, column_name, data_type
    FROM duckdb_columns() WHERE NOT internal AND {which}
    ORDER BY database_name, schema_name, table_name, column_index
"""
_KINDS = """
    SELECT database_name, schema_name, table_name, 'table' FROM duckdb_tables() WHERE NOT internal AND {which}
    UNION ALL
    SELECT database_name, schema_name, view_name, 'view' FROM duckdb_views() WHERE NOT internal AND {which}
"""
# One line per function: the form with the most parameters. Names with an underscore in front are nobody's to call.
_FUNCTIONS = r"""
    SELECT
        function_name, min(function_type),
        arg_max(parameters, len(parameters)), arg_max(parameter_types, len(parameters)),
        any_value(return_type), any_value(description)
    FROM duckdb_functions()
    WHERE function_type <> 'pragma' AND regexp_full_match(function_name, '[A-Za-z]\w*')
    GROUP BY function_name
"""
_REGISTRY = "SELECT name, kind, signature, description FROM engram_functions()"
_SETTINGS = "SELECT name, value, input_type, description FROM duckdb_settings()"
_TYPES = "SELECT DISTINCT upper(type_name) FROM duckdb_types() WHERE NOT contains(type_name, ' ') ORDER BY ALL"
_KEYWORDS = "SELECT upper(keyword_name), keyword_category FROM duckdb_keywords()"
_PLACE = "SELECT current_database(), current_schema()"
# A statement or dot command, which may run a file, after which the session's part is looked at again.
_SESSION_WORDS = re.compile(r"\b(?:temp|temporary|use|search_path|schema)\b|\A\s*\.", re.IGNORECASE)


def take(cursor: duckdb.DuckDBPyConnection, session: _Session = _Session()) -> Snapshot:
    """Reads the catalog once.

    Raises:
        duckdb.Error: If a part of it cannot be read.
    """

    def rows(query: str) -> list[tuple[Any, ...]]:
        return cursor.execute(query).fetchall()

    keywords = rows(_KEYWORDS)
    tables = rows("SELECT name, rows, heads FROM engram_tables()")
    views = rows("SELECT name, slots FROM engram_views() WHERE kind = 'materialised'")
    told = {name: _told(count, heads) for name, count, heads in tables}
    return Snapshot(
        relations=(*_relations(cursor, "database_name <> 'temp'", told), *session.relations),
        tables=told,
        views={name: f"{slots:,} slots" for name, slots in views},
        functions=_functions(rows(_FUNCTIONS), rows(_REGISTRY)),
        settings=tuple(
            Setting(name, str(value or ""), type_ or "", description or "")
            for name, value, type_, description in rows(_SETTINGS)
        ),
        types=tuple(name for (name,) in rows(_TYPES)),
        heads={folded(name): _heads(cursor, name) for name, _, heads in tables if heads},
        keywords=tuple(word for word, _ in keywords),
        reserved=frozenset(word.lower() for word, kind in keywords if kind in ("reserved", "type_function")),
        database=session.database,
        schema=session.schema,
    )


def _told(rows: int, heads: int | None) -> str:
    return f"{rows:,} rows" + (f", {heads} heads" if heads else "")


def _relations(cursor: duckdb.DuckDBPyConnection, which: str, told: dict[str, str]) -> tuple[Relation, ...]:
    columns: dict[tuple[str, str, str], list[Column]] = {}
    for database, schema, table, name, type_ in cursor.execute(_COLUMNS.format(which=which)).fetchall():
        columns.setdefault((database, schema, table), []).append(Column(name, type_))
    found = []
    for database, schema, name, kind in cursor.execute(_KINDS.format(which=which)).fetchall():
        if name in told and schema == "main":
            kind = f"table, {told[name]}"
        elif database == "temp":
            kind = f"temporary {kind}"
        found.append(Relation(database, schema, name, kind, tuple(columns.get((database, schema, name), ()))))
    return tuple(found)


def _functions(listed: list[tuple[Any, ...]], registry: list[tuple[Any, ...]]) -> dict[str, Function]:
    functions = {}
    for name, kind, parameters, types, result, description in listed:
        signature = from_parameters(name, parameters or [], [type_ or "" for type_ in types or []], result)
        kind = "table" if kind == "table_macro" else kind
        functions[name.lower()] = Function(name, kind, signature, description or "")
    for name, kind, text, description in registry:
        parsed = parse(text)
        if parsed is not None:
            kind = "call" if parsed.called else "table" if parsed.columns else kind
            functions[name.lower()] = Function(name, kind, parsed, description, ours=True)
    return functions


def _heads(cursor: duckdb.DuckDBPyConnection, table: str) -> tuple[Head, ...]:
    import duckdb

    try:
        found = cursor.execute(f"SELECT head, ngram_order, size FROM engram_heads({literal(table)})").fetchall()
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # its files are gone; the rest of the catalog is there all the same
        return ()
    return tuple(Head(head, order, size) for head, order, size in found)


class Catalog:
    """The last snapshot of a database's catalog, and the thread that renews it.

    The thread has a cursor of its own: it waits for no query, and none waits for it. A snapshot that fails leaves the
    one before it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._worker = _Worker(database.connection.cursor())
        database.before_close(self._worker.close)
        # Also at the end of the process, where a thread inside DuckDB would be cut off.
        self._finalize = weakref.finalize(self, self._worker.close)

    @property
    def snapshot(self) -> Snapshot:
        """The last one that was taken; empty before the first."""
        return self._worker.snapshot

    def first(self, seconds: float) -> Snapshot:
        """The last one too; before the first, what there is when it was taken or so many seconds have passed."""
        self._worker.wait_first(seconds)
        return self._worker.snapshot

    @property
    def failure(self) -> Exception | None:
        """Why the last snapshot failed, if it did."""
        return self._worker.failure

    def refresh(self, statement: str = "") -> None:
        """Starts taking a snapshot and returns at once; if one is being taken, another follows.

        Args:
            statement: What was just run. After one that can have changed temporary relations or the place where names
                are looked for, the connection itself is asked about them, so its result must have been read.
        """
        if _SESSION_WORDS.search(statement):
            self._worker.session = _session(self._database, self._worker.session)
        self._worker.ask()

    def learn(self, path: str) -> None:
        """Starts to look at the columns of a file, unless they are known; a later snapshot has them."""
        self._worker.ask_file(path)

    def wait(self, seconds: float) -> bool:
        """Waits until no snapshot is being taken; whether that is so."""
        return self._worker.wait(seconds)

    def close(self) -> None:
        """Ends the thread; the last snapshot stays."""
        self._finalize()


def _session(database: Database, before: _Session) -> _Session:
    import duckdb

    try:
        connection = database.connection
        relations = _relations(connection, "database_name = 'temp'", {})
        ((place, schema),) = connection.execute(_PLACE).fetchall()
    # A transaction that was aborted answers nothing, and a database that was closed neither.
    except (duckdb.Error, EngramError):
        return before
    return _Session(relations, place, schema)


class _Worker:
    """The thread's side; it knows no Catalog, so that one that is forgotten can end it."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self.snapshot = Snapshot()
        self.session = _Session()
        self.failure: Exception | None = None
        self._cursor = cursor
        self._changed = threading.Condition()
        self._asked = 0
        # Which request the snapshot answers.
        self._answered = 0
        self._files = Files()
        self._taken = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        with self._changed:
            if self._closed:
                return
            self._asked += 1
            self._begin()

    def ask_file(self, path: str) -> None:
        with self._changed:
            if not self._closed and self._files.ask(path):
                self._begin()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="engramsql-completion", daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, seconds)

    def wait_first(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None or self._taken, seconds)

    def close(self) -> None:
        import duckdb

        with self._changed:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
        if thread is not None:
            with suppress(duckdb.Error):  # closed with the database
                self._cursor.interrupt()
            thread.join(timeout=2)
        if thread is None or not thread.is_alive():
            self._cursor.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                asked, files = self._asked, self._files.asked()
            try:
                if asked != self._answered:
                    self.snapshot = replace(take(self._cursor, self.session), files=self._files.known)
                    self._answered = asked
                if files:
                    self._files.look(self._cursor, files)
                    self.snapshot = replace(self.snapshot, files=self._files.known)
                self.failure = None
            except Exception as error:  # completion must never end a session
                self.failure = error
                self._answered = asked
            with self._changed:
                self._taken = True
                self._changed.notify_all()
                if self._closed or (self._asked == asked and not self._files.waiting):
                    self._thread = None
                    return
