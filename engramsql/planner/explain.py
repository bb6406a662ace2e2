"""EXPLAIN: first what is read of the tables, then DuckDB's plan of the statement as it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engramsql.planner.constraints import Both, Constraint, Listed, Points, Range, Scalar
from engramsql.planner.rerun import may_run_as_written
from engramsql.quoting import literal

if TYPE_CHECKING:
    import duckdb

    from engramsql.planner.rewrite import Access
    from engramsql.planner.statements import Planned

__all__ = ["Explanation", "line"]


class Explanation:
    """The answer to EXPLAIN of a planned statement."""

    def __init__(self, planned: Planned, text: str) -> None:
        self._planned = planned
        self._text = text

    def execute(self, connection: duckdb.DuckDBPyConnection, params: object) -> duckdb.DuckDBPyConnection:
        """The connection with the answer as its result."""
        return connection.execute(self._answer(connection, params))

    def relation(self, connection: duckdb.DuckDBPyConnection, params: object) -> duckdb.DuckDBPyRelation:
        """A relation with DuckDB's columns, whose first row says what is read.

        Raises:
            duckdb.Error: If the statement does not bind.
        """
        return connection.sql(self._answer(connection, params))

    def _answer(self, connection: duckdb.DuckDBPyConnection, params: object) -> str:
        """A statement that returns the answer."""
        import duckdb

        accesses = self._planned.accesses
        try:
            rows = connection.sql(self._planned.text, params=params).fetchall()
        except duckdb.Error as error:
            if not may_run_as_written(self._text, "ANALYZE" not in self._planned.explain.upper(), error):
                raise
            # As the statement itself: it runs as it is written.
            rows = connection.sql(self._text, params=params).fetchall()
            accesses = [as_written(access) for access in accesses]
        lines = "\n".join(line(access) for access in accesses)
        if lines and "FORMAT" not in self._planned.explain.upper():
            rows.insert(0, ("engramsql", lines + "\n"))
        values = ", ".join(f"({literal(key)}, {literal(value)})" for key, value in rows)
        return f"SELECT * FROM (VALUES {values}) AS plan(explain_key, explain_value)"


def as_written(access: Access) -> Access:
    """The access of a statement that runs as it is written."""
    return replace(access, relation=replace(access.relation, filter=None), by=None)


def line(access: Access) -> str:
    """What is read for one reference to a table."""
    relation, by = access.relation, access.by
    width = relation.row_bytes
    if by is None:
        return f"{relation.name}: all rows ({relation.rows} x {width} bytes)"
    if isinstance(by, Scalar):
        return f"{relation.name}: the row of {by.text.replace(chr(34), '')} by lookup, one for each"
    passing = f", those that pass {' '.join(relation.filter.written.split())}" if relation.filter is not None else ""
    if isinstance(by, str):
        return f"{relation.name}: row ids of the subquery by lookup, as many as it returns{passing}"
    return f"{relation.name}: {_set(by, relation.rows, width)}{passing}"


def _set(by: Constraint, rows: int, width: int) -> str:
    if isinstance(by, Points):
        count = len(by.ids)
        ids = "1 row id" if count == 1 else f"{count} row ids"
        return f"{ids} by lookup, at most {count * width} bytes"
    if isinstance(by, Listed):
        lists = "a list" if len(by.lists) == 1 else f"{len(by.lists)} lists"
        return f"row ids of {lists} by lookup, as many as it has"
    if isinstance(by, Range):
        low = "0" if by.low is None else by.low.text
        high = str(rows - 1) if by.high is None else by.high.text
        known = all(bound is None or bound.value is not None for bound in (by.low, by.high))
        size = ""
        if known:
            first = max(0, by.low.value if by.low is not None and by.low.value is not None else 0)
            last = min(rows - 1, by.high.value if by.high is not None and by.high.value is not None else rows)
            size = f", at most {max(0, last - first + 1) * width} bytes"
            low, high = str(first), str(last)
        return f"row ids {low} to {high} in order{size}"
    if isinstance(by, Both):
        return "; and ".join(_set(part, rows, width) for part in by.parts)
    return "row ids by lookup"
