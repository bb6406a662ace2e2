"""What names of relations mean: common table expressions, DuckDB's catalog, registered tables and views over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engramsql.planner.meaning import ASCENDING, USUAL
from engramsql.quoting import folded, literal

if TYPE_CHECKING:
    import duckdb
    from sqlglot import exp

    from engramsql.planner.ids import Relation
    from engramsql.planner.meaning import Meaning

__all__ = ["Catalog", "Expression", "Scope", "View", "table_name", "view_of"]


@dataclass
class Expression:
    """A common table expression: its text is read again where it is looked through."""

    name: str
    columns: tuple[str, ...]
    text: str
    scope: Scope
    #: What its own text reads where it is defined, and the expressions that it reads by name.
    reads: list[Any] = field(default_factory=list, kw_only=True)
    names: list[Expression] = field(default_factory=list, kw_only=True)
    #: Neither recursive, nor MATERIALIZED, nor something other than a query.
    plain: bool


@dataclass
class View:
    """A view of DuckDB's catalog: its column names, if it renames, and its SELECT."""

    name: str
    columns: tuple[str, ...]
    text: str


@dataclass
class Scope:
    """The common table expressions that are visible at a place."""

    parent: Scope | None = None
    names: dict[str, Expression] = field(default_factory=dict)

    def find(self, name: str) -> Expression | None:
        """The expression of a folded name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


@dataclass
class Catalog:
    """The relations in DuckDB's catalog that matter, under their folded names."""

    tables: dict[str, Relation]
    #: Other views of ``memory.main``, as the statements that DuckDB keeps of them.
    views: dict[str, str]
    meaning: Meaning
    connection: duckdb.DuckDBPyConnection
    #: Functions that give the same for the same arguments.
    steady: set[str]
    #: Questions and whether DuckDB bound them: a plan holds as long as the answers are the same.
    asked: dict[str, bool] = field(default_factory=dict)
    #: Whether something else was looked up that may be otherwise the next time.
    looked_up: bool = False
    _base: set[str] | None = None

    def is_ascending(self) -> bool:
        """Whether an order without a direction is an ascending one."""
        return self._binds(ASCENDING)

    def _binds(self, question: str) -> bool:
        if question not in self.asked:
            self.asked[question] = self.meaning.binds(question)
        return self.asked[question]

    def are_scalars(self, names: set[str]) -> bool:
        """Whether functions give one value for each row: neither aggregates nor macros, which can be anything."""
        if not names:
            return True
        self.looked_up = True
        listed = ", ".join(literal(name) for name in sorted(names))
        rows = self.connection.sql(
            "SELECT lower(function_name), bool_and(function_type = 'scalar') FROM duckdb_functions() "
            f"WHERE lower(function_name) IN ({listed}) GROUP BY 1"
        ).fetchall()
        return {name for name, scalar in rows if scalar} == names

    def resolve(self, table: exp.Table, scope: Scope) -> Relation | Expression | View | str | None:
        """What a reference in FROM means; a text is a table of DuckDB, None is anything else."""
        parts = table_name(table)
        if parts is None:
            return None
        if len(parts) == 1 and (expression := scope.find(parts[0])) is not None:
            return expression
        name = parts[-1]
        if name in self.tables:
            return self.tables[name] if self._is_main(parts, name) else None
        if name in self.views:
            # The text of a view is written into the statement, where names must mean what they mean in the view.
            return view_of(name, self.views[name]) if self._is_main(parts, name) and self._binds(USUAL) else None
        if parts[:-1] not in ((), ("main",), ("memory", "main")):
            return None
        return name if name in self._tables_of_duckdb() else None

    def _is_main(self, parts: tuple[str, ...], name: str) -> bool:
        """Whether a reference means the view of ``memory.main`` of its name."""
        return parts == ("memory", "main", name) or self._binds(self.meaning.reference(parts, name))

    def _tables_of_duckdb(self) -> set[str]:
        """Tables in DuckDB's own storage, by the names that mean them: read twice, they are the same."""
        if self._base is None:
            self.looked_up = True
            rows = self.connection.sql(
                "SELECT table_name FROM duckdb_tables() "
                "WHERE database_name IN ('memory', 'temp') AND schema_name = 'main'"
            ).fetchall()
            self._base = {folded(name) for (name,) in rows} if self._binds(USUAL) else set()
        return self._base


def table_name(table: exp.Table) -> tuple[str, ...] | None:
    """The folded parts of a plain name; None if the reference is anything but a name."""
    from sqlglot import exp

    parts = [table.args.get(key) for key in ("catalog", "db", "this")]
    present = [part for part in parts if part is not None]
    if not all(isinstance(part, exp.Identifier) for part in present):
        return None
    # Samples, versions, hints, partitions: what changes which rows come.
    if any(value for key, value in table.args.items() if key not in {"this", "db", "catalog", "alias", "joins"}):
        return None
    return tuple(folded(part.name) for part in present)


def view_of(name: str, text: str) -> View | None:
    """A view from the statement that DuckDB keeps of it."""
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
