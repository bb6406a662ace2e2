"""The planner of one database: it knows the catalog, remembers plans, and says what a statement becomes."""

from __future__ import annotations

import re
import threading
import warnings
from collections import OrderedDict
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING

import duckdb

from engramsql.errors import EngramWarning
from engramsql.planner.gate import Gate, declares
from engramsql.planner.ids import Relation
from engramsql.planner.literals import fold, unfold
from engramsql.planner.names import Catalog, View
from engramsql.quoting import folded, identifier, literal

if TYPE_CHECKING:
    from engramsql._views import CatalogViews
    from engramsql.engine import Session
    from engramsql.planner.explain import Explanation
    from engramsql.planner.statements import Planned

__all__ = ["Planner"]

#: Folded names of temporary relations, and names and statements of views.
_State = tuple[frozenset[str], tuple[tuple[str, str], ...]]

_PLANS = 256
# Longer statements are not worth the parser's time, whatever they gain.
_LONGEST = 50_000


class Planner:
    """Plans the statements of one database connection."""

    #: Whether an error of the planner itself is raised instead of running the statement as it is; for tests.
    strict = False

    def __init__(self, connection: duckdb.DuckDBPyConnection, session: Session, views: CatalogViews) -> None:
        self._connection = connection
        self._session = session
        self._views = views
        self._version: object = None
        self._stale = True
        self._gate = Gate(())
        self._question = ""
        self._relations: dict[str, Relation] = {}
        self._steady: set[str] | None = None
        self._warned = False
        self._plans: OrderedDict[tuple[object, ...], Planned | None] = OrderedDict()
        self._lock = threading.RLock()

    def plan(self, text: object, *, at_once: bool = False) -> str | Explanation | None:
        """What to run instead of a statement, or None if it should run as it is.

        Args:
            text: The statement.
            at_once: Whether it is executed rather than made a relation, which an explanation cannot be.
        """
        planned = self.planned(text, at_once)
        if planned is None:
            return None
        if planned.explain:
            from engramsql.planner.explain import Explanation

            return Explanation(planned, str(text))
        return planned.text if planned.changed else None

    def forget(self) -> None:
        """Says that names may mean something else now."""
        self._stale = True

    def planned(self, text: object, at_once: bool = False) -> Planned | None:
        """The plan of a statement; None if it is not understood or cannot gain."""
        if not isinstance(text, str):
            return None
        with self._lock:
            self._refresh()
            short, lists = fold(text)
            if declares(short):
                self._stale = True
            if len(short) > _LONGEST or not self._gate.opens(short):
                return None
            try:
                return self._planned(short, lists, at_once)
            except (duckdb.InterruptException, duckdb.FatalException):
                raise
            except duckdb.Error:
                return None

    def _planned(self, text: str, lists: list[str], at_once: bool) -> Planned | None:
        state = self._state(text, at_once)
        if state is None:
            return None
        key = (text, self._version, state)
        if key in self._plans:
            self._plans.move_to_end(key)
            planned = self._plans[key]
        else:
            catalog = self._catalog(state)
            planned = self._made(text, lists, catalog)
            # What was asked of DuckDB's tables may be otherwise the next time.
            if not catalog.asked:
                self._plans[key] = planned
                if len(self._plans) > _PLANS:
                    self._plans.popitem(last=False)
        if planned is None or not lists:
            return planned
        return replace(planned, text=unfold(planned.text, lists))

    def _made(self, text: str, lists: list[str], catalog: Catalog) -> Planned | None:
        from engramsql.planner.source import NotUnderstoodError
        from engramsql.planner.statements import plan

        explain, statement = _explained(text)
        try:
            planned = plan(statement, catalog, lists)
        except NotUnderstoodError:
            return None
        except duckdb.Error:
            raise
        except Exception as error:
            # A statement must not fail for a tree that the parser builds otherwise than its versions seen so far.
            if self.strict:
                raise
            if not self._warned:
                self._warned = True
                parser = f"sqlglot {version('sqlglot')}"
                warnings.warn(
                    f"not planned: {parser} reads a statement otherwise: {error!r}", EngramWarning, stacklevel=7
                )
            return None
        planned.text = explain + planned.text
        planned.explain = explain
        return self._named(planned, unfold(statement, lists), lists) if planned.unnamed else planned

    def _named(self, planned: Planned, text: str, lists: list[str]) -> Planned | None:
        """The plan with the names that DuckDB gives to the columns of the statement as it was written."""
        from engramsql.planner.statements import NAME

        columns = self._connection.sql(text).columns
        found = self._bound(planned, lists)
        for position in planned.unnamed:
            name = NAME.format(position)
            if found.count(name) != 1 or len(found) != len(columns):
                return None
            planned.text = planned.text.replace(name, identifier(columns[found.index(name)]))
        return planned if self._bound(planned, lists) == columns else None

    def _bound(self, planned: Planned, lists: list[str]) -> list[str]:
        return self._connection.sql(unfold(planned.text[len(planned.explain) :], lists)).columns

    # What names mean

    def _refresh(self) -> None:
        if self._version == self._views.version and not self._stale:
            return
        if self._version != self._views.version:
            self._relations = {
                folded(entry.name): Relation(entry.name, entry.rows, entry.row_bytes, self._views.embedding(entry.name))
                for entry in self._session.tables()
                if self._views.made(entry.name) is not None
            }
        self._version = self._views.version
        names = set(self._relations)
        if not names:
            self._gate, self._stale = Gate(()), False
            return
        try:
            rows = self._connection.sql(
                "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY view_oid"
            ).fetchall()
        except duckdb.Error:
            return
        views = {name: sql for name, sql in rows if folded(name) not in self._relations}
        # Only views that lead to a table, perhaps through others.
        reached: set[str] = set(names)
        while True:
            inner = Gate(reached)
            more = {folded(name) for name, sql in views.items() if inner.mentions(sql)} - reached
            if not more:
                break
            reached |= more
        self._gate = Gate(reached)
        known = ", ".join(literal(name) for name in sorted(reached))
        self._question = (
            "SELECT current_setting('search_path'), current_setting('default_order'), database_name, schema_name, "
            "view_name, sql FROM duckdb_views() "
            f"WHERE lower(view_name) IN ({known or 'NULL'})"
        )
        self._stale = False

    def _state(self, text: str, at_once: bool) -> _State | None:
        """All that decides what the names in a text mean now; None if they are not looked up as usual.

        Asked anew for each statement: a relation, a cursor or a script can have made another view or a temporary table
        of a name. The connection's own result is left alone where the caller may still be reading it.
        """
        if at_once:
            rows = self._connection.execute(self._question).fetchall()
        else:
            rows = self._connection.sql(self._question).fetchall()
        if any(path not in ("", "main", "memory.main") for path, *_ in rows):
            return None
        # The planner takes an order without a direction for an ascending one.
        if any(not order.upper().startswith("ASC") for _, order, *_ in rows):
            return None
        views = tuple(
            (name, sql) for _, _, database, schema, name, sql in rows if (database, schema) == ("memory", "main")
        )
        names: set[str] = set()
        found = self._gate.found(text)
        while found - names:
            names |= found
            found = {one for name, sql in views if folded(name) in names for one in self._gate.found(sql)}
        return frozenset(filter(self._is_temporary, names)), views

    def _is_temporary(self, name: str) -> bool:
        """Whether a temporary table or view has the name; only bound, and without what replaces unknown names."""
        try:
            self._connection.sql(f"FROM pragma_table_info({literal('temp.main.' + identifier(name))})")
        except duckdb.CatalogException:
            return False
        return True

    def _catalog(self, state: _State) -> Catalog:
        hidden, rows = state
        tables: dict[str, Relation] = {}
        views: dict[str, View] = {}
        for name, text in rows:
            key = folded(name)
            if key in self._relations and text == self._views.made(self._relations[key].name):
                tables[key] = self._relations[key]
            elif (view := _view(key, text)) is not None:
                views[key] = view
        return Catalog(tables, views, hidden, self._connection, self._steady_functions())

    def _steady_functions(self) -> set[str]:
        if self._steady is None:
            rows = self._connection.sql(
                "SELECT DISTINCT lower(function_name) FROM duckdb_functions() "
                "WHERE internal AND function_type IN ('scalar', 'aggregate', 'table') "
                "AND coalesce(stability, '') <> 'VOLATILE'"
            ).fetchall()
            self._steady = {name for (name,) in rows}
        return self._steady


_EXPLAIN = re.compile(r"\s*EXPLAIN(\s+ANALYZE)?(\s*\([^()']*\))?\s+(?=SELECT|FROM|WITH|\()", re.IGNORECASE)


def _explained(text: str) -> tuple[str, str]:
    """EXPLAIN and its options, if the text begins with it, and the statement."""
    found = _EXPLAIN.match(text)
    end = found.end() if found else 0
    return text[:end], text[end:]


def _view(name: str, text: str) -> View | None:
    """A view from the text that DuckDB keeps of it."""
    from engramsql.planner.source import NotUnderstoodError, Source

    try:
        source = Source(text)
    except NotUnderstoodError:
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
