"""SQL that names its rows by key, as users write it: lookups, ranges, joins, lateral fetches."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.bench import sql
from engramsql.bench.arrays import aligned
from engramsql.bench.hot import bring_in, warm, window_note
from engramsql.bench.measure import Contender, Result, Section, a_b_b_a, in_memory, plural, timed
from engramsql.bench.paths import Paths
from engramsql.bench.progress import progress
from engramsql.bench.target import describe, paths_since_now
from engramsql.quoting import identifier, literal

if TYPE_CHECKING:
    from engramsql.bench.target import Target
    from engramsql.database import Database

__all__ = ["run"]

JOINED = 100_000
_IN = 10
_BETWEEN = 1000
_FIRST = 10
_LIST = 1000
"""Row ids in one list of the lateral fetch of lists."""
_SECONDS = 6.0
"""What the rounds of one comparison may take: a plan that goes through all rows takes seconds for each query."""
_LARGE = 50_000_000
"""Rows of a table that is scanned just once."""


def run(target: Target, threads: int, repeats: int, directory: Path) -> Section:
    """Small queries with what the planner takes of them, joins beside the same over a scan, fetches beside the gather.

    With the own table, a sparse one of released size too: the geometry decides how an id is found.
    """
    title = f"keyed: rows named by key in SQL, through Database.sql, DuckDB on {plural(threads, 'thread')}"
    section = Section("keyed", title)
    if target.own:
        released = _released(directory)
        section.notes.append(
            f"the table of {released.rows} rows is sparse: its rows are holes, read without touching the disk, so its "
            "figures say what planning and finding cost, and nothing about a disk"
        )
        _measure(section, released, threads, repeats, in_full=False)
    window_note(section, target)
    bring_in(target)
    _measure(section, target, threads, repeats, in_full=True)
    return section


def _released(directory: Path) -> Target:
    """The demo's PLE table, of released size and a few MB on the disk; made on first use."""
    from engramsql import demo

    progress("keyed: a sparse checkpoint of released size")
    root = directory / "demo"
    demo.prepare(root)
    found = describe(str(root), "ple", f"the demo's PLE table in '{root}'")
    # Random ids of the whole range: holes take no memory that would have to be there first.
    return replace(found, hot_rows=found.rows)


@dataclass
class _Bench:
    """One table with its connection, and what every statement over it says."""

    target: Target
    database: Database
    section: Section
    repeats: int

    def __post_init__(self) -> None:
        self.table = self.database.table(self.target.name)
        self.paths = Paths(self.database)
        self.name = identifier(self.target.name)
        self.text = literal(self.target.name)
        decoded = self.target.dim is not None
        self.column = "embedding" if decoded else "row"
        self.scalar = f"{'engram_vector' if decoded else 'engram_row'}({self.text}, ?)"

    def sum(self, relation: str) -> str:
        """The aggregate that needs every row of the relation."""
        return f"sum({relation}.embedding[1])" if self.column == "embedding" else f"sum(octet_length({relation}.row))"

    def id(self, below: int | None = None) -> int:
        """A random row id, ``below`` rows before the end at least."""
        return int(np.random.default_rng().integers(0, self.target.hot_rows - (below or 0)))

    def result(self, name: str, unit: str, units: int, role: str = "engramsql") -> Result:
        label = f"{plural(self.target.rows, 'row')}: {name}"
        return Result(f"limit: {label}" if role == "limit" else label, role, unit, units)

    def query(self, result: Result, statement: Callable[[], tuple[str, list[Any]]]) -> Contender:
        """A small query with fresh input, rows to Python."""
        return self.paths.contender(result, lambda: _fetched(self.database, *statement()))

    def filled(self, result: Result, statement: str, rows: int, to_arrow: bool = False) -> Contender:
        """A query over fresh ids in ``bench_ids``."""

        def prepare() -> Callable[[], object]:
            _fill(self.database, self.target, rows)
            if to_arrow:
                return lambda: self.database.sql(statement).to_arrow_table()
            return _fetched(self.database, statement, [])

        return self.paths.contender(result, prepare)

    def gather(self, rows: int) -> Contender:
        """The native gather of as many rows as a query reads."""
        decoded = self.column == "embedding"
        read: Any = self.table.vectors if decoded else self.table.fetch
        out: Any = (
            aligned((rows, self.target.dim or 0), np.float32)
            if decoded
            else aligned((rows, self.target.row_bytes), np.uint8)
        )

        def prepare() -> Callable[[], object]:
            ids = np.random.default_rng().integers(0, self.target.hot_rows, rows)
            return lambda: read(ids, out=out)

        name = f"native gather of {rows} random rows"
        return Contender(self.result(name, "row", rows, "limit"), prepare, paths_since_now(self.table))

    def compare(self, contenders: Sequence[Contender], rounds: int) -> list[Result]:
        """A B B A of as many of the rounds as the time allows, after one call each; the results go to the section."""
        start = time.perf_counter()
        for contender in contenders:
            contender.prepare()()
        once = time.perf_counter() - start
        results = a_b_b_a(contenders, max(1, min(rounds, int(_SECONDS / (2 * once)))), first=0)
        self.section.results += results
        return results


def _measure(section: Section, target: Target, threads: int, repeats: int, in_full: bool) -> None:
    from engramsql.database import connect

    # Holes come from the disk, in the kernel's counting.
    watched = in_memory(section, plural(target.rows, "row")) if in_full else contextlib.nullcontext()
    with connect(target.database, read_only=True, threads=threads) as database, watched:
        bench = _Bench(target, database, section, repeats)
        if in_full:
            warm(bench.table, target)
        progress(f"keyed: {plural(target.rows, 'row')}, small queries")
        _small(bench)
        progress(f"keyed: {plural(target.rows, 'row')}, join")
        _join(bench)
        progress(f"keyed: {plural(target.rows, 'row')}, lateral fetch")
        _lateral(bench)
        progress(f"keyed: {plural(target.rows, 'row')}, Arrow")
        arrow, statement = _arrow(bench)
    arrow.extra |= sql.peak_memory(target, statement, threads)


def _small(bench: _Bench) -> None:
    """Queries of a few rows, each with literals and ids of its own."""
    select = f"SELECT {bench.column} FROM {bench.name}"
    between = min(_BETWEEN, bench.target.hot_rows // 2)

    def listed() -> tuple[str, list[Any]]:
        return f"{select} WHERE rowid IN ({', '.join(str(bench.id()) for _ in range(_IN))})", []

    def ranged() -> tuple[str, list[Any]]:
        low = bench.id(between)
        where = f"WHERE rowid BETWEEN {low} AND {low + between - 1}"
        return f"SELECT {bench.sum('t')} FROM {bench.name} AS t {where}", []

    statements: list[tuple[str, Callable[[], tuple[str, list[Any]]]]] = [
        ("WHERE rowid = ?", lambda: (f"{select} WHERE rowid = ?", [bench.id()])),
        (f"WHERE rowid IN ({_IN} ids)", listed),
        (f"WHERE rowid BETWEEN, {between} rows, summed", ranged),
        (
            f"ORDER BY rowid LIMIT {_FIRST}",
            lambda: (f"SELECT rowid, {bench.column} FROM {bench.name} ORDER BY rowid LIMIT {_FIRST}", []),
        ),
    ]
    limits = [
        bench.query(bench.result("SELECT 42", "query", 1, "limit"), lambda: ("SELECT 42", [])),
        bench.query(
            bench.result(f"SELECT {bench.scalar}", "query", 1, "limit"),
            lambda: (f"SELECT {bench.scalar}", [bench.id()]),
        ),
    ]
    contenders = [bench.query(bench.result(name, "query", 1), statement) for name, statement in statements]
    results = bench.compare([*limits, *contenders], bench.repeats * 10)
    results[0].code_path = "DuckDB"
    for result in results:
        result.extra["p90_us"] = float(np.percentile(result.seconds, 90)) * 1e6
    results[2].ratios["the scalar"] = results[1].median_us / results[2].median_us
    for result, (_, statement) in zip(results[2:], statements, strict=True):
        result.extra["fixed_us_over_duckdb"] = result.median_us - results[0].median_us
        result.extra["planner_us"] = _planning(bench.database, statement, bench.repeats * 10)


def _planning(database: Database, statement: Callable[[], tuple[str, list[Any]]], calls: int) -> float:
    """Median microseconds that the planner takes for a statement with fresh literals, as a part of each query."""
    planner, seconds = database._planner, []
    for _ in range(calls):
        text, _ = statement()
        start = time.perf_counter()
        planner.plan(text)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) * 1e6


def _join(bench: _Bench) -> None:
    """Random keys of a DuckDB table joined with the table, beside the same join over a scan."""
    rows = JOINED

    def join(relation: str, name: str) -> Contender:
        statement = f"SELECT {bench.sum('t')} FROM bench_ids AS k JOIN {relation} AS t ON t.rowid = k.i"
        return bench.filled(bench.result(f"join of {rows} random keys with {name}", "row", rows), statement, rows)

    keyed, scanned = join(bench.name, "the table"), join(f"engram_scan({bench.text})", "engram_scan")
    if bench.target.rows > _LARGE:
        # The scan takes a minute: once, between the others.
        bench.section.notes.append(f"{plural(bench.target.rows, 'row')}: the join over engram_scan ran once")
        a_b_b_a([keyed], 1)
        scanned.result.seconds.append(timed(scanned.prepare()))
        scanned.result.code_path = scanned.path()
        a_b_b_a([keyed], 1, first=0)
        bench.section.results += [keyed.result, scanned.result]
    else:
        bench.compare([keyed, scanned], bench.repeats)
    keyed.result.ratios["the scan"] = scanned.result.median_us / keyed.result.median_us


def _lateral(bench: _Bench) -> None:
    """A million rows fetched for the ids of a column, one at a time and by lists.

    Counting the values is the least that a query can do with all of them; a sum also takes them apart.
    """
    rows = sql.ROWS
    aggregates = {"counted": f"count(f.{bench.column})", "summed": bench.sum("f")}
    sources = {"one id a row": ("bench_ids", "[s.i]"), f"lists of {_LIST} ids": ("bench_lists", "s.ids")}

    def fetch(form: str, aggregate: str) -> Contender:
        source, argument = sources[form]
        call = f"engram_fetch({bench.text}, {argument}) AS f"
        statement = f"SELECT {aggregates[aggregate]} FROM {source} AS s, {call}"
        return bench.filled(bench.result(f"lateral engram_fetch, {form}, {aggregate}", "row", rows), statement, rows)

    contenders = [bench.gather(rows), *(fetch(form, aggregate) for form in sources for aggregate in aggregates)]
    results = bench.compare(contenders, max(1, bench.repeats // 2))
    for result in results[1:]:
        result.ratios["native gather"] = results[0].median_us / result.median_us


def _arrow(bench: _Bench) -> tuple[Result, str]:
    """A million random rows to an Arrow table, and the statement for the process whose memory is watched."""
    rows = sql.ROWS
    statement = f"SELECT t.rowid, t.{bench.column} FROM bench_ids AS k JOIN {bench.name} AS t ON t.rowid = k.i"
    name = f"Arrow: rowid, {bench.column} of a join with {rows} random keys"
    contenders = [bench.gather(rows), bench.filled(bench.result(name, "row", rows), statement, rows, to_arrow=True)]
    results = bench.compare(contenders, max(1, bench.repeats // 2))
    results[1].ratios["native gather"] = results[0].median_us / results[1].median_us
    return results[1], statement


def _fill(database: Database, target: Target, rows: int) -> None:
    """Fresh random ids in ``bench_ids``, and the same as lists in ``bench_lists``."""
    sql.fill_ids(database.connection, target, rows)
    database.connection.execute(
        f"CREATE OR REPLACE TEMP TABLE bench_lists AS SELECT list(i) AS ids FROM bench_ids GROUP BY rowid // {_LIST}"
    )


def _fetched(database: Database, statement: str, parameters: list[Any]) -> Callable[[], object]:
    if parameters:
        return lambda: database.sql(statement, parameters).fetchall()
    return lambda: database.sql(statement).fetchall()
