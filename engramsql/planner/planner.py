"""The planner of one database: it knows the catalog, remembers plans, and says what a statement becomes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import duckdb

from engramsql.planner.gate import Gate, declares
from engramsql.planner.ids import Relation
from engramsql.planner.literals import fold, unfold
from engramsql.planner.names import Catalog, View
from engramsql.quoting import folded

if TYPE_CHECKING:
    from engramsql._views import CatalogViews
    from engramsql.engine import Session
    from engramsql.planner.statements import Planned

__all__ = ["Planner"]

_PLANS = 256
# Longer statements are not worth the parser's time, whatever they gain.
_LONGEST = 50_000


class Planner:
    """Plans the statements of one database connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, session: Session, views: CatalogViews) -> None:
        self._connection = connection
        self._session = session
        self._views = views
        self._version: object = None
        self._stale = True
        self._gate = Gate(())
        self._relations: dict[str, Relation] = {}
        self._steady: set[str] | None = None
        self._plans: OrderedDict[tuple[object, ...], Planned | None] = OrderedDict()
        self._lock = threading.RLock()

    def plan(self, text: object) -> str | None:
        """The statement to run instead, or None if it should run as it is."""
        planned = self.planned(text)
        return planned.text if planned is not None and planned.changed else None

    def forget(self) -> None:
        """Says that names may mean something else now."""
        self._stale = True

    def planned(self, text: object) -> Planned | None:
        """The plan of a statement; None if it is not understood or cannot gain."""
        if not isinstance(text, str):
            return None
        with self._lock:
            self._refresh()
            if declares(text):
                self._stale = True
            if not self._gate.opens(text):
                return None
            try:
                return self._planned(text)
            except duckdb.Error:
                return None

    def _planned(self, text: str) -> Planned | None:
        from engramsql.planner.source import NotUnderstood
        from engramsql.planner.statements import plan

        state = self._state()
        if state is None:
            return None
        key = (text, self._version, state)
        if key in self._plans:
            self._plans.move_to_end(key)
            return self._plans[key]
        short, lists = fold(text)
        planned: Planned | None = None
        if len(short) <= _LONGEST:
            try:
                planned = plan(short, self._catalog(state), lists)
                planned.text = unfold(planned.text, lists)
            except NotUnderstood:
                planned = None
        if not lists:
            self._plans[key] = planned
            if len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        return planned

    # What names mean

    def _refresh(self) -> None:
        if self._version == self._views.version and not self._stale:
            return
        if self._version != self._views.version:
            self._relations = {
                folded(entry.name): Relation(
                    entry.name, entry.rows, entry.row_bytes, f"FLOAT[{entry.dim}]" if entry.format else "FLOAT[]"
                )
                for entry in self._session.tables()
                if self._views.made(entry.name) is not None
            }
        self._version = self._views.version
        names = set(self._relations)
        try:
            rows = self._connection.sql(
                "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY view_oid"
            ).fetchall()
        except duckdb.Error:
            return
        views = {name: sql for name, sql in rows if folded(name) not in self._relations}
        gate = Gate([*names, *views])
        # Only views that lead to a table, perhaps through others.
        reached: set[str] = set(names)
        while True:
            inner = Gate(reached)
            more = {folded(name) for name, sql in views.items() if inner.mentions(sql)} - reached
            if not more:
                break
            reached |= more
        gate = Gate(reached)
        self._gate = gate
        self._stale = False

    def _state(self) -> tuple[tuple[str, ...], ...] | None:
        """All that decides what names mean now; None if it cannot be asked."""
        found = self._connection.sql(_STATE).fetchall()
        return tuple(tuple(str(value) for value in row) for row in found)

    def _catalog(self, state: tuple[tuple[str, ...], ...]) -> Catalog:
        tables, views, base = {}, {}, set()
        hidden = set()
        main: dict[str, tuple[str, str]] = {}
        path = ""
        for kind, database, schema, name, text in state:
            key = folded(name)
            if kind == "path":
                path = text
            elif database == "temp":
                hidden.add(key)
            elif (database, schema) == ("memory", "main"):
                main[key] = (kind, text)
        for key, (kind, text) in main.items():
            if key in hidden:
                continue
            if kind == "table":
                base.add(key)
            elif key in self._relations and text == self._views.made(self._relations[key].name):
                tables[key] = self._relations[key]
            else:
                view = _view(key, text)
                if view is not None:
                    views[key] = view
        if path not in ("", "main", "memory.main"):
            return Catalog({}, {}, set(), set())
        return Catalog(tables, views, base, self._steady_functions())

    def _steady_functions(self) -> set[str]:
        if self._steady is None:
            rows = self._connection.sql(
                "SELECT DISTINCT lower(function_name) FROM duckdb_functions() "
                "WHERE internal AND function_type IN ('scalar', 'aggregate') "
                "AND coalesce(stability, '') <> 'VOLATILE'"
            ).fetchall()
            self._steady = {name for (name,) in rows}
        return self._steady


_STATE = """
SELECT 'path', '', '', '', current_setting('search_path')
UNION ALL
SELECT 'view', database_name, schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal
UNION ALL
SELECT 'table', database_name, schema_name, table_name, '' FROM duckdb_tables() WHERE NOT internal
"""


def _view(name: str, text: str) -> View | None:
    """A view from the text that DuckDB keeps of it."""
    from engramsql.planner.source import NotUnderstood, Source

    try:
        source = Source(text)
    except NotUnderstood:
        return None
    index = 0
    while source.word(index) != "VIEW":
        index += 1
        if index > 4:
            return None
    index += 1
    while source.kind(index + 1) == "DOT":
        index += 2
    columns: tuple[str, ...] = ()
    index += 1
    if source.kind(index) == "L_PAREN":
        closing = source.closing[index]
        columns = tuple(
            source.text[source.start(i) : source.end(i)].strip('"').replace('""', '"')
            for i in range(index + 1, closing)
            if source.kind(i) != "COMMA"
        )
        index = closing + 1
    if source.word(index) != "AS":
        return None
    return View(name, columns, text[source.end(index) :].strip().rstrip(";"))
