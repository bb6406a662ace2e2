"""Runs one statement in both worlds and says how the answers differ."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from sql_differential.nodes import Node, Select, SetOperation, Tail, Text, Writer

if TYPE_CHECKING:
    from sql_differential.world import World

__all__ = ["Answer", "Case", "answer", "difference"]

# DuckDB finds them by name, here as in the program of a user.
arrow_keys = pa.table({
    "id": pa.array([5, 5, 60, None, -1, 1407], pa.int64()),
    "w": pa.array([1, 2, 3, 4, 5, None], pa.int32()),
})  # fmt: skip
numpy_keys = {"id": np.array([7, 8, 1408, 0, 111]), "w": np.array([1, 2, 3, 4, 5])}

# Vectors of this many values and more come as Arrow: as Python's floats they would take most of the time.
_LONG = 64


@dataclass
class Case:
    """A statement whose answers are compared.

    ``before`` prepares it, and its outcomes are compared too; ``then`` asks what came of it; ``after`` cleans away.
    """

    query: Node
    style: str = "question"
    before: tuple[str, ...] = ()
    then: str = ""
    after: tuple[str, ...] = ()
    # Which method runs it: sql or execute.
    method: str = "sql"
    # The world that judges: tables or views.
    judge: str = "tables"

    def written(self) -> tuple[str, Any]:
        writer = Writer(self.style)
        sql = writer.write(self.query)
        return sql, writer.parameters


@dataclass
class Answer:
    """What a statement gave: rows, or an error's class."""

    columns: list[str]
    types: list[str]
    rows: list[tuple[Any, ...]]
    error: str = ""
    message: str = ""

    def shown(self) -> str:
        if self.error:
            return f"{self.error}: {self.message}"
        head = ", ".join(f"{name} {kind}" for name, kind in zip(self.columns, self.types, strict=True))
        rows = "\n    ".join(f"{row!r:.200}" for row in self.rows[:6])
        return f"{len(self.rows)} rows of ({head})\n    {rows}"


def answer(connection: Any, sql: str, params: Any, method: str = "sql") -> Answer:
    """Runs a statement on a database or a DuckDB connection."""
    try:
        result = getattr(connection, method)(sql, params=params) if method == "sql" else connection.execute(sql, params)
        return _fetched(result, method)
    except (duckdb.Error, RuntimeError, ValueError, TypeError, OverflowError) as error:
        return Answer([], [], [], type(error).__name__, str(error).split("\n")[0])


def _fetched(result: Any, method: str) -> Answer:
    if result is None or (method == "execute" and result.description is None):
        return Answer([], [], [])
    description = [(name, str(kind)) for name, kind, *_ in result.description]
    names, types = [name for name, _ in description], [kind for _, kind in description]
    if method == "sql" and any(_is_long(kind) for kind in types):
        table = result.to_arrow_table()
        columns = [_values(column.combine_chunks()) for column in table.columns]
        return Answer(names, types, list(zip(*columns, strict=True)))
    return Answer(names, types, [tuple(map(_plain, row)) for row in result.fetchall()])


def _is_long(kind: str) -> bool:
    size = kind[6:-1] if kind.startswith("FLOAT[") else ""
    return size.isdigit() and int(size) >= _LONG


def _values(column: Any) -> list[Any]:
    """The values of an Arrow column, comparable and hashable."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_fixed_size_list(column.type) or not pa.types.is_float32(column.type.value_type):
        return [_plain(value) for value in column.to_pylist()]
    width = column.type.list_size
    first = column.offset * width
    floats = np.asarray(column.values.fill_null(0))[first : first + len(column) * width].reshape(-1, width)
    # One NaN for all, and one zero.
    floats = np.where(np.isnan(floats), np.float32("nan"), floats) + np.float32(0)
    valid = column.is_valid().to_pylist()
    return [row.tobytes() if here else None for row, here in zip(floats, valid, strict=True)]


def _plain(value: Any) -> Any:
    """A value that equals itself, is hashable, and says its kind where Python would not."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((_plain(key), _plain(one)) for key, one in value.items())
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return value


def tail_of(query: Node) -> Tail | None:
    """The ORDER BY and LIMIT of a whole query."""
    return query.tail if isinstance(query, (Select, SetOperation)) else None


def difference(world: World, case: Case) -> tuple[str, Answer, Answer]:
    """What differs ("" if nothing), DuckDB's answer on the copies, and ours."""
    judge = world.tables if case.judge == "tables" else world.views
    sql, params = case.written()
    try:
        for statement in case.before:
            expected, found = (answer(side, statement, None, "execute") for side in (judge, world.ours))
            if expected.error != found.error:
                return f"outcome of {statement}", expected, found
        expected, found = (answer(side, sql, params, case.method) for side in (judge, world.ours))
        what = _compared(world, judge, case, expected, found)
        if case.then and not what and not expected.error and not found.error:
            expected, found = (answer(side, case.then, None) for side in (judge, world.ours))
            what = _compared(world, judge, Case(Text([case.then])), expected, found)
        return what, expected, found
    finally:
        for statement in case.after:
            for side in (judge, world.ours):
                # Most of it is not there.
                answer(side, statement, None, "execute")


def _compared(world: World, judge: Any, case: Case, expected: Answer, found: Answer) -> str:
    if "has no value format" in found.message:
        # DuckDB asked for vectors that it then does not use, and there are none; the planner must not be who does.
        sql, params = case.written()
        return "" if answer(world.ours.connection, sql, params, case.method).message == found.message else "outcome"
    if expected.error or found.error:
        return "" if expected.error == found.error else "outcome"
    if expected.columns != found.columns:
        return "column names"
    if expected.types != found.types:
        return "types"
    if len(expected.rows) != len(found.rows):
        return "row count"
    tail = tail_of(case.query)
    if tail is not None and tail.total:
        return "" if expected.rows == found.rows else "rows or their order"
    if tail is not None and tail.keys:
        places = [i for i, name in enumerate(found.columns) if name in tail.keys]
        named = sorted(found.columns[i] for i in places) == sorted(tail.keys)
        if named and [[row[i] for i in places] for row in expected.rows] != [
            [row[i] for i in places] for row in found.rows
        ]:
            return "order"
    if tail is not None and tail.limit:
        return _among(judge, case, tail, found)
    return "" if Counter(expected.rows) == Counter(found.rows) else "rows"


def _among(judge: Any, case: Case, tail: Tail, found: Answer) -> str:
    """Whether the rows that a LIMIT chose, which only their number is told of, are rows of the query."""
    query = case.query
    assert isinstance(query, (Select, SetOperation))
    query.tail = tail.unlimited()
    try:
        sql, params = case.written()
    finally:
        query.tail = tail
    every = answer(judge, sql, params, case.method)
    return "" if not Counter(found.rows) - Counter(every.rows) else "rows"
