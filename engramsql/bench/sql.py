"""SQL: the functions over a column of ids, each beside the native gather of as many rows in the same run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.bench.arrays import aligned
from engramsql.bench.hot import bring_in, warm, window_note
from engramsql.bench.measure import Contender, Result, Section, a_b_b_a, in_memory, plural
from engramsql.bench.memory import own_bytes
from engramsql.bench.paths import rows_by_path
from engramsql.bench.progress import progress
from engramsql.bench.target import paths_since_now
from engramsql.engine import set_threads
from engramsql.errors import ReadError
from engramsql.quoting import literal

if TYPE_CHECKING:
    import duckdb

    from engramsql.bench.target import Target

__all__ = ["ROWS", "fill_ids", "peak_memory", "run", "statements"]

ROWS = 1_000_000
_PARAMETER_ROWS = 1000


def run(target: Target, threads: int, repeats: int) -> Section:
    """Aggregated lookups, Arrow results with their peak memory, and what a small query costs."""
    from engramsql.database import connect

    title = f"sql: {ROWS} random row ids from a column, DuckDB on {plural(threads, 'thread')}"
    section = Section("sql", title)
    window_note(section, target)
    bring_in(target)
    with connect(target.database, read_only=True) as database:
        connection = database.connection
        connection.execute(f"SET threads = {threads}")
        set_threads(threads)
        table = database.table(target.name)
        warm(table, target)
        native: dict[str, tuple[Any, Any]] = {"row": (table.fetch, aligned((ROWS, target.row_bytes), np.uint8))}
        if target.dim is not None:
            native["vector"] = (table.vectors, aligned((ROWS, target.dim), np.float32))
        for name, statement, kind in statements(target):
            progress(f"sql: {name}")
            read, out = native[kind]

            def gather(read: Any = read, out: Any = out) -> Callable[[], object]:
                ids = np.random.default_rng().integers(0, target.hot_rows, ROWS)
                return lambda: read(ids, out=out)

            beside = Result(f"native gather for: {name}", "limit", "row", ROWS)
            ours = Result(name, "engramsql", "row", ROWS)
            to_arrow = name.startswith("Arrow")
            query = _column(connection, target, statement, to_arrow)
            contenders = [
                Contender(beside, gather, paths_since_now(table)),
                Contender(ours, query, _paths_since_now(connection)),
            ]
            with in_memory(section, name):
                results = a_b_b_a(contenders, max(1, repeats // 2))
            ours.ratios["native gather"] = beside.median_us / ours.median_us
            section.results += results
        section.results += _small(connection, target, repeats)
    for result in section.results:
        if result.name.startswith("Arrow"):
            statement = next(text for name, text, _ in statements(target) if name == result.name)
            result.extra |= peak_memory(target, statement, threads)
    return section


def statements(target: Target) -> list[tuple[str, str, str]]:
    """(name, SQL over ``bench_ids`` or ``bench_list``, see ``fill_ids``, native twin) of what is measured."""
    name = literal(target.name)
    listed = f"engram_fetch({name}, getvariable('bench_list'))"
    found = [
        ("engram_row, counted", f"SELECT count(engram_row({name}, i)) FROM bench_ids", "row"),
        ("engram_fetch of a list, rows counted", f"SELECT count(row) FROM {listed}", "row"),
    ]
    if target.dim is not None:
        found += [
            ("engram_vector, summed", f"SELECT sum(engram_vector({name}, i)[1]) FROM bench_ids", "vector"),
            ("Arrow: i, engram_vector", f"SELECT i, engram_vector({name}, i) AS v FROM bench_ids", "vector"),
            ("Arrow: rowid, embedding of engram_fetch", f"SELECT rowid, embedding FROM {listed}", "vector"),
        ]
    return found


def fill_ids(connection: duckdb.DuckDBPyConnection, target: Target, rows: int) -> None:
    """Fresh random ids in the temporary table ``bench_ids``, and the same as a list in the variable ``bench_list``."""
    ids = np.random.default_rng().integers(0, target.hot_rows, rows)
    connection.register("bench_ids_in", {"i": ids})
    connection.execute("CREATE OR REPLACE TEMP TABLE bench_ids AS SELECT i FROM bench_ids_in")
    connection.unregister("bench_ids_in")
    # A table function takes a list as a constant, a parameter or a variable.
    connection.execute("SET VARIABLE bench_list = (SELECT list(i) FROM bench_ids)")


def _column(
    connection: duckdb.DuckDBPyConnection, target: Target, statement: str, to_arrow: bool
) -> Callable[[], Callable[[], object]]:
    def prepare() -> Callable[[], object]:
        fill_ids(connection, target, ROWS)
        return lambda: connection.sql(statement).to_arrow_table() if to_arrow else connection.sql(statement).fetchall()

    return prepare


def _small(connection: duckdb.DuckDBPyConnection, target: Target, repeats: int) -> list[Result]:
    """What a query costs before its first row, and a list given as a parameter."""
    name = literal(target.name)

    def query(statement: str, rows: int) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            ids = np.random.default_rng().integers(0, target.hot_rows, rows).tolist()
            parameters = [ids] if "?" in statement else []
            return lambda: connection.execute(statement, parameters).fetchall()

        return prepare

    fetch = f"SELECT * FROM engram_fetch({name}, ?)"
    counted = f"SELECT count(row) FROM engram_fetch({name}, ?)"
    progress("sql: small queries")
    path = _paths_since_now(connection)
    results = a_b_b_a(
        [
            Contender(Result("SELECT 42", "limit", "query", 1, code_path="DuckDB"), query("SELECT 42", 1)),
            Contender(Result("engram_fetch of 1 row, list parameter", "engramsql", "query", 1), query(fetch, 1), path),
            Contender(
                Result("engram_fetch of 16 rows, list parameter", "engramsql", "query", 1), query(fetch, 16), path
            ),
            Contender(
                Result(f"engram_fetch of {_PARAMETER_ROWS} rows, list parameter", "engramsql", "row", _PARAMETER_ROWS),
                query(counted, _PARAMETER_ROWS),
                path,
            ),
        ],
        repeats * 10,
    )
    for result in results[1:3]:
        result.extra["fixed_us_over_duckdb"] = result.median_us - results[0].median_us
    return results


def _paths_since_now(connection: duckdb.DuckDBPyConnection) -> Callable[[], str]:
    """Says, when called, by which code paths rows have come in SQL since now."""
    before = rows_by_path(connection)

    def paths() -> str:
        now = rows_by_path(connection)
        return ", ".join(sorted(path for path, rows in now.items() if rows > before.get(path, 0)))

    return paths


def peak_memory(target: Target, statement: str, threads: int) -> dict[str, Any]:
    """Peak memory of one Arrow result over its size, of a process of its own. Pages of mapped files do not count.

    Returns:
        peak_bytes (above what the process held before), result_bytes, and peak_over_result.
    """
    progress("sql: peak memory of an Arrow result")
    command = [sys.executable, "-m", "engramsql.bench.arrow_child"]
    question = json.dumps({"target": asdict(target), "statement": statement, "threads": threads, "rows": ROWS})
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write(question + "\n")
        child.stdin.flush()
        if child.stdout.readline().strip() != "ready":
            raise ReadError(
                f"measuring memory failed: {(child.stderr.read().strip().splitlines() or ['no answer'])[-1]}"
            )
        before = peak = own_bytes(child.pid)
        child.stdin.write("go\n")
        child.stdin.flush()
        while child.poll() is None and not _readable(child.stdout):
            peak = max(peak, own_bytes(child.pid))
            time.sleep(0.001)
        # The result is still held: the child waits for its end.
        peak = max(peak, own_bytes(child.pid))
        line = child.stdout.readline()
        if not line:
            raise ReadError(
                f"measuring memory failed: {(child.stderr.read().strip().splitlines() or ['no answer'])[-1]}"
            )
        child.stdin.close()
    result_bytes = int(line)
    return {
        "peak_bytes": peak - before,
        "result_bytes": result_bytes,
        "peak_over_result": (peak - before) / result_bytes,
    }


def _readable(stream: Any) -> bool:
    import select

    return bool(select.select([stream], [], [], 0)[0])
