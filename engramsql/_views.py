"""The catalog's tables and views as DuckDB views of one connection.

A registered table is a view that computes its columns from the row ids, so that neither a Python variable nor a file of
its name is taken for it. The views follow the catalog file, whoever changes it.
"""

from __future__ import annotations

import os
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

from engramsql._directory import CATALOG_FILE
from engramsql.errors import ArgumentError, EngramWarning
from engramsql.planner.ids import ROW
from engramsql.quoting import folded, identifier, literal
from engramsql.script import split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engramsql.engine import Session

__all__ = ["CatalogViews", "without_variables"]

# What of the catalog file changes when its content does: it is replaced, never written in place.
_Version = tuple[int, int, int]


class CatalogViews:
    """Keeps the views of one connection in step with the catalog. Safe to share between threads."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, session: Session) -> None:
        self._connection = connection
        self._session = session
        self._version: _Version | None = None
        # Folded name to name and SELECT: `V` replaces `v`.
        self._made: dict[str, tuple[str, str]] = {}
        # Folded name to the statement as DuckDB keeps it.
        self._kept: dict[str, str] = {}
        # Folded name of a table to the expression of its embedding.
        self._embeddings: dict[str, str] = {}
        # Two threads that make one view at a time would refuse each other. Reentrant: a warning can run any code.
        self._lock = threading.RLock()

    def refresh(self) -> None:
        """Makes, replaces and drops views until they are what the catalog says; free if the catalog did not change."""
        with self._lock:
            version = self._catalog_version()
            if version != self._version:
                self._follow()
                self._version = version

    @property
    def version(self) -> object:
        """Changes when the catalog does, after :meth:`refresh`."""
        return self._version

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
        for key in self._made.keys() - {folded(name) for name in (*tables, *views)}:
            cursor.execute(f"DROP VIEW IF EXISTS {identifier(key)}")
            del self._made[key]
        for name in tables:
            # A table whose files are gone has no view; the extension names the reason when the table is used.
            reason = self._make_relation(cursor, name)
            if reason is not None and "Existing object" in reason:
                hidden = f"table '{name}' is hidden by another relation of that name on this connection; drop that one"
                warnings.warn(hidden, EngramWarning, stacklevel=5)
        for name, select in views.items():
            reason = self._make_view(cursor, name, select)
            if reason is not None:
                warnings.warn(f"view '{name}' was left out: {reason}", EngramWarning, stacklevel=5)
        self._kept = {
            folded(name): text
            for name, text in cursor.execute(
                "SELECT view_name, sql FROM duckdb_views() "
                "WHERE NOT internal AND database_name = 'memory' AND schema_name = 'main'"
            ).fetchall()
        }
        cursor.close()

    def create(self, name: str, sql: str, *, replace: bool) -> None:
        """Makes a view and keeps it in the catalog, or does neither."""
        select = _single_select(sql)
        with self._lock:
            self._create(name, select, replace=replace)
            self._made[folded(name)] = (name, select)
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
        """Makes one view; the reason if DuckDB refuses it."""
        if self._made.get(folded(name)) == (name, select):
            return None
        try:
            cursor.execute(_create_view(name, select))
        except duckdb.Error as error:
            return str(error).split("\n", 1)[0]
        self._made[folded(name)] = (name, select)
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
