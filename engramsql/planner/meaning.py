"""What names mean to DuckDB now, asked as cheaply as it can be answered.

Whoever has the connection can have made a view or a temporary table of a name, or put another schema first, so all of
this is asked anew for each statement. A result that the caller is still reading from the connection stays as it is.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from engramsql.quoting import identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation, Statement

__all__ = ["ASCENDING", "USUAL", "Meaning", "NamedView"]

# DuckDB writes the texts of all views, also of its own, for whoever asks for one, which takes most of a millisecond. An
# id is never given twice, and a view that is replaced gets another one; one that is renamed keeps it.
_ID = "_engram_view_id"
_IDS = f"SELECT view_oid AS {_ID}, view_name FROM system.main.duckdb_views()"
_TEXTS = (
    "SELECT view_name, sql FROM system.main.duckdb_views() "
    "WHERE NOT internal AND database_name = 'memory' AND schema_name = 'main' ORDER BY view_oid"
)
_PREPARED = "_engram_view_ids"

# Binding is enough to know a setting: a field that a struct does not have is an error.
_IS_SET = "SELECT system.main.struct_extract({{{}}}, system.main.concat('_', system.main.current_setting('{}')))"
#: Binds if the tables of the catalog are where DuckDB looks names up first, but for temporary relations.
USUAL = _IS_SET.format("'_': 1, '_main': 1, '_memory.main': 1", "search_path")
#: Binds if an order without a direction is an ascending one.
ASCENDING = _IS_SET.format("'_asc': 1, '_ascending': 1", "default_order")

# So many questions are kept parsed.
_QUESTIONS = 256


class NamedView(NamedTuple):
    """A view of the schema where the tables of the catalog are, with the statement that DuckDB keeps of it."""

    name: str
    text: str


class Meaning:
    """Asks one connection what names mean. Not safe to share between threads.

    Made before anybody else has the connection.
    """

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        connection.execute(f"PREPARE {_PREPARED} AS {_IDS}")
        connection.execute(f"SELECT 0 AS {_ID}").fetchall()
        self._ids: list[tuple[int, str]] | None = None
        self._views: tuple[NamedView, ...] = ()
        self._columns: dict[str, str] = {}
        self._relation: DuckDBPyRelation | None = None
        (self._execute,) = duckdb.extract_statements(f"EXECUTE {_PREPARED}")
        self._questions: OrderedDict[str, Statement] = OrderedDict()

    def views(self, *, at_once: bool) -> tuple[NamedView, ...]:
        """The views of ``memory.main`` in the order in which they were made; the same object while they are the same.

        Args:
            at_once: Whether the connection is about to run a statement itself, so that nobody reads a result of it.
        """
        ids = self._ids_at_once() if at_once or self._is_free() else self._ids_beside()
        if ids != self._ids:
            # Should they change in between, the texts are the newer ones, and the next question finds other ids.
            rows = self._connection.sql(_TEXTS).fetchall()
            self._views = tuple(NamedView(name, text) for name, text in rows)
            self._columns.clear()
            self._ids = ids
        return self._views

    def _is_free(self) -> bool:
        """Whether the connection has no result of its own, or only one that was read to its end here."""
        description = self._connection.description
        return description is None or description[0][0] == _ID

    def _ids_at_once(self) -> list[tuple[int, str]]:
        """By a prepared statement, which DuckDB binds again only if a catalog changed."""
        try:
            return self._connection.execute(self._execute).fetchall()
        except (duckdb.InterruptException, duckdb.FatalException):
            raise
        except duckdb.Error:
            # Not made yet, or deallocated.
            self._connection.execute(f"PREPARE {_PREPARED} AS {_IDS}")
            return self._connection.execute(self._execute).fetchall()

    def _ids_beside(self) -> list[tuple[int, str]]:
        if self._relation is None:
            self._relation = self._connection.sql(_IDS)
        return self._relation.fetchall()

    def reference(self, parts: tuple[str, ...], name: str) -> str:
        """A question that binds if a reference, given by its parts, means the view ``name`` of ``memory.main``.

        DuckDB itself looks the reference up, for a column qualified by the whole name of the view. So temporary
        relations, the schema in use and attached databases count as they do in the statement.
        """
        view = f"memory.main.{identifier(name)}"
        return f"SELECT {view}.{identifier(self._column(view))} FROM {'.'.join(map(identifier, parts))}"

    def _column(self, view: str) -> str:
        """The first column of a view; any will do."""
        if view not in self._columns:
            self._columns[view] = self._connection.sql(f"FROM {view}").columns[0]
        return self._columns[view]

    def binds(self, question: str) -> bool:
        """Whether DuckDB binds a query; it is not run."""
        parsed = self._questions.get(question)
        if parsed is None:
            (parsed,) = duckdb.extract_statements(question)
            self._questions[question] = parsed
            if len(self._questions) > _QUESTIONS:
                self._questions.popitem(last=False)
        try:
            self._connection.sql(parsed)
        except (duckdb.InterruptException, duckdb.FatalException):
            raise
        except duckdb.Error:
            return False
        return True
