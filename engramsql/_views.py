"""The catalog's tables and views as DuckDB views of one connection.

A registered table is a view that computes its columns from the row ids, so that neither a Python variable nor a file of
its name is taken for it. The views follow the catalog file, whoever changes it.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

from engramsql._directory import CATALOG_FILE
from engramsql.errors import ArgumentError, CatalogError
from engramsql.messages import warn
from engramsql.planner.ids import ROW
from engramsql.quoting import folded, identifier, literal
from engramsql.sql_text import split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engramsql.engine import Session

__all__ = ["CatalogViews", "without_variables"]

_DROP = "drop that one"
# What of the catalog file changes when its content does: it is replaced, never written in place.
_Version = tuple[int, int, int]


class CatalogViews:
    """Keeps the views of one connection in step with the catalog. Safe to share between threads."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, session: Session) -> None:
        self._connection = connection
        self._session = session
        self._version: _Version | None = None
        self._followed = 0
        # Folded name to name and SELECT: `V` replaces `v`.
        self._made: dict[str, tuple[str, str]] = {}
        # Folded name to the statement as DuckDB kept it when the view was made here.
        self._kept: dict[str, str] = {}
        # Folded names of the catalog that something of the user's has on this connection.
        self._hidden: set[str] = set()
        # Folded name of a table to the expression of its embedding.
        self._embeddings: dict[str, str] = {}
        # What was there, as DuckDB keeps it, when the catalog was followed.
        self._there: dict[str, str] = {}
        # Two threads that make one view at a time would refuse each other. Reentrant: a warning can run any code.
        self._lock = threading.RLock()

    def refresh(self) -> None:
        """Makes, replaces and drops views until they are what the catalog says; free if the catalog did not change."""
        with self._lock:
            version = self._catalog_version()
            if version != self._version or (self._hidden and self._is_free(self._hidden)):
                self._follow()
                self._version = version
                self._followed += 1

    @property
    def version(self) -> object:
        """Changes when the views that are made here may have, after :meth:`refresh`."""
        return self._followed

    def made(self, name: str) -> str | None:
        """The statement that DuckDB keeps of a view made here, if it is one; None if it was not made."""
        return self._kept.get(folded(name)) if folded(name) in self._made else None

    def embedding(self, name: str) -> str:
        """The expression of the embedding of the row ``_engram_r.rowid`` of a table whose view was made here."""
        return self._embeddings[folded(name)]

    def _follow(self) -> None:
        tables = [entry.name for entry in self._session.tables()]
        views = {entry.name: entry.sql for entry in self._session.views()}
        cursor = self._connection.cursor()
        self._there, hidden = _texts(cursor), self._hidden
        self._hidden = set()
        for key in self._made.keys() - {folded(name) for name in (*tables, *views)}:
            if not self._is_theirs(key):
                cursor.execute(f"DROP VIEW IF EXISTS {identifier(key)}")
            del self._made[key]
        for name in tables:
            # A table whose files are gone has no view; the extension names the reason when the table is used.
            self._make_relation(cursor, name)
            if folded(name) in self._hidden - hidden:
                warn(f"table '{name}' is hidden by another relation of that name on this connection; {_DROP}")
        for name, select in views.items():
            reason = self._make_view(cursor, name, select)
            if reason is not None and folded(name) not in hidden:
                warn(f"view '{name}' was left out: {reason}")
        there = _texts(cursor)
        for key in self._made.keys() & there.keys():
            if not self._is_theirs(key):
                self._kept[key] = there[key]
        cursor.close()

    def _is_theirs(self, key: str) -> bool:
        """Whether a view of that name is there that was not made here: one of the user's, or in place of ours."""
        return key in self._there and self._there[key] != self._kept.get(key)

    def _is_free(self, names: set[str]) -> bool:
        """Whether a name that was taken is not any more."""
        cursor = self._connection.cursor()
        there = _texts(cursor).keys() | {
            folded(name)
            for (name,) in cursor.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = 'memory' AND schema_name = 'main'"
            ).fetchall()
        }
        cursor.close()
        return not names <= there

    def create(self, name: str, sql: str, *, replace: bool) -> None:
        """Makes a view and keeps it in the catalog, or does neither."""
        select, key = _single_select(sql), folded(name)
        with self._lock:
            there = _texts(self._connection.cursor())
            if key in there and key not in self._made and not replace:
                raise CatalogError(
                    f"a view named '{name}' is on this connection, not in the catalog; drop it first, or replace it "
                    "(replace=True)"
                )
            self._create(name, select, replace=replace)
            self._made[key] = (name, select)
            self._kept[key] = _texts(self._connection.cursor())[key]
            self.refresh()

    def _create(self, name: str, select: str, *, replace: bool) -> None:
        cursor = self._connection.cursor()
        with without_variables(cursor):
            cursor.begin()
            try:
                cursor.execute(_create_view(name, select))
                # Bound once as it will be: a view over itself only shows now.
                cursor.execute(f"SELECT * FROM {identifier(name)} LIMIT 0")
                self._session.create_view(name, select, replace=replace)
            except BaseException:
                cursor.rollback()
                raise
            else:
                cursor.commit()
        cursor.close()

    def _make_relation(self, cursor: duckdb.DuckDBPyConnection, name: str) -> str | None:
        """Makes the view of a table, of the text that the extension has for its name; the reason if that fails."""
        table, row = literal(name), literal(f"{ROW}.rowid")
        texts = f"SELECT _engram_relation({table}), _engram_relation({table}, {row})"
        try:
            ((select, embedding),) = cursor.execute(texts).fetchall()
        except duckdb.Error as error:
            return str(error).split("\n", 1)[0]
        self._embeddings[folded(name)] = embedding
        return self._make(cursor, name, select)

    def _make_view(self, cursor: duckdb.DuckDBPyConnection, name: str, sql: str) -> str | None:
        """Makes a view of the catalog. Its text comes from a file: only one SELECT is ever run."""
        if self._made.get(folded(name)) == (name, sql):
            return None
        try:
            select = _single_select(sql)
        except (ArgumentError, duckdb.Error) as error:
            return str(error).split("\n", 1)[0]
        with without_variables(cursor):
            return self._make(cursor, name, select)

    def _make(self, cursor: duckdb.DuckDBPyConnection, name: str, select: str) -> str | None:
        """Makes one view; the reason if DuckDB refuses it, or if the user has one of that name."""
        key = folded(name)
        if self._made.get(key) == (name, select):
            return None
        if self._is_theirs(key):
            self._made.pop(key, None)
            self._hidden.add(key)
            return f"another view of that name is on this connection; {_DROP}"
        try:
            cursor.execute(_create_view(name, select))
        except duckdb.Error as error:
            reason = str(error).split("\n", 1)[0]
            if "Existing object" in reason:
                self._hidden.add(key)
                return f"another relation of that name is on this connection; {_DROP}"
            return reason
        self._made[key] = (name, select)
        return None

    def _catalog_version(self) -> _Version:
        directory = self._session.directory
        if directory is None:
            return (0, 0, 0)
        try:
            found = os.stat(directory / CATALOG_FILE)
        except FileNotFoundError:
            return (0, 0, 0)  # an empty database
        return (found.st_mtime_ns, found.st_size, found.st_ino)


@contextmanager
def without_variables(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Keeps Python variables out: one would bind now and be gone, or another, at the next open."""
    (variables,) = cursor.execute("SELECT current_setting('python_enable_replacements')").fetchall()[0]
    cursor.execute("SET python_enable_replacements = false")
    try:
        yield
    finally:
        cursor.execute(f"SET python_enable_replacements = {str(variables).lower()}")


def _texts(cursor: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The views where those of the catalog are: folded name to the statement that DuckDB keeps."""
    rows = cursor.execute(
        "SELECT view_name, sql FROM duckdb_views() "
        "WHERE NOT internal AND database_name = 'memory' AND schema_name = 'main'"
    ).fetchall()
    return {folded(name): text for name, text in rows}


def _create_view(name: str, select: str) -> str:
    return f"CREATE OR REPLACE VIEW {identifier(name)} AS {select}"


def _single_select(sql: str) -> str:
    """The text of the one SELECT in ``sql``, without a semicolon."""
    statements = split(sql)
    if len(statements) == 1:
        parsed = duckdb.extract_statements(statements[0])
        if [statement.type for statement in parsed] == [duckdb.StatementType.SELECT]:
            return statements[0]
    raise ArgumentError(f"a view needs exactly one SELECT, got {len(statements)} statements: {sql.strip()[:60]!r}")
