"""The planner of one database: it knows the catalog, remembers plans, and says what a statement becomes."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING

import duckdb

from engramsql.messages import warn
from engramsql.planner.gate import Gate, declares
from engramsql.planner.ids import Relation
from engramsql.planner.literals import fold, unfold
from engramsql.planner.meaning import Meaning
from engramsql.planner.names import Catalog
from engramsql.quoting import folded, identifier

if TYPE_CHECKING:
    from engramsql._views import CatalogViews
    from engramsql.engine import Session
    from engramsql.planner.explain import Explanation
    from engramsql.planner.meaning import NamedView
    from engramsql.planner.statements import Planned

__all__ = ["Planner"]

_PLANS = 256
# Longer statements are not worth the parser's time, whatever they gain.
_LONGEST = 50_000


@dataclass(frozen=True)
class _Known:
    """A plan, or that there is none, and what was asked for it: questions and whether they were bound."""

    planned: Planned | None
    asked: dict[str, bool]


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
        self._meaning = Meaning(connection)
        # The views that the gate was made for.
        self._seen: tuple[NamedView, ...] | None = None
        self._relations: dict[str, Relation] = {}
        self._steady: set[str] | None = None
        self._warned = False
        self._plans: OrderedDict[tuple[object, ...], _Known] = OrderedDict()
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
            try:
                views = self._refresh(at_once)
                short, lists = fold(text)
                if declares(short):
                    self._stale = True
                if len(short) > _LONGEST or not self._gate.opens(short):
                    return None
                return self._planned(short, lists, self._asked(at_once) if views is None else views)
            except (duckdb.InterruptException, duckdb.FatalException):
                raise
            except duckdb.Error:
                return None

    def _planned(self, text: str, lists: list[str], views: tuple[NamedView, ...]) -> Planned | None:
        key = (text, self._version, views)
        known = self._plans.get(key)
        if known is not None and all(self._meaning.binds(question) == was for question, was in known.asked.items()):
            self._plans.move_to_end(key)
            planned = known.planned
        else:
            catalog = self._catalog(views)
            planned = self._made(text, lists, catalog)
            # What is looked up in DuckDB's tables may be otherwise the next time.
            if not catalog.looked_up:
                self._plans[key] = _Known(planned, catalog.asked)
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
                warn(f"not planned: {parser} reads a statement otherwise: {error!r}")
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

    def _refresh(self, at_once: bool) -> tuple[NamedView, ...] | None:
        """Follows the catalog and, if names may mean something else, the connection; the views, if they were asked."""
        if self._version == self._views.version and not self._stale:
            return None
        if self._version != self._views.version:
            self._relations = {
                folded(entry.name): Relation(entry.name, entry.rows, entry.row_bytes, self._views.embedding(entry.name))
                for entry in self._session.tables()
                if self._views.made(entry.name) is not None
            }
            self._version, self._seen = self._views.version, None
        if not self._relations:
            self._gate, self._stale = Gate(()), False
            return None
        views = self._asked(at_once)
        self._stale = False
        return views

    def _asked(self, at_once: bool) -> tuple[NamedView, ...]:
        """The views as they are now; the gate knows those that lead to a table, perhaps through others."""
        views = self._meaning.views(at_once=at_once)
        if views is not self._seen:
            others = {folded(name): text for name, text in views if folded(name) not in self._relations}
            reached = set(self._relations)
            while True:
                inner = Gate(reached)
                more = {name for name, text in others.items() if inner.mentions(text)} - reached
                if not more:
                    break
                reached |= more
            self._gate, self._seen = Gate(reached), views
        return views

    def _catalog(self, views: tuple[NamedView, ...]) -> Catalog:
        tables: dict[str, Relation] = {}
        others: dict[str, str] = {}
        for name, text in views:
            key = folded(name)
            if key in self._relations and text == self._views.made(self._relations[key].name):
                tables[key] = self._relations[key]
            else:
                others[key] = text
        return Catalog(tables, others, self._meaning, self._connection, self._steady_functions())

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
