"""What reading cost: exact counts, ordered percentiles, one set of counters for SQL and Python on one engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from helpers import q
from readers import READERS, forced
from reading import MIB, WIDTH, random_store

import engramsql
from engramsql.engine import cache_usage, set_reader

pytestmark = pytest.mark.usefixtures("settings")

STATIC = int(duckdb.__version__.split(".")[0]) >= 2
COLUMNS = ["batches", "rows", "reads", "bytes_read", "bytes_used", "seconds", "p50_us", "p90_us", "p99_us"]


@pytest.fixture
def store(db: Any, tmp_path: Path) -> Any:
    """(table, its rows) of a table that nobody has read."""
    data = random_store(tmp_path, rows=10_000)
    db.register("t", tmp_path, width=WIDTH)
    return db.table("t"), data


def test_a_table_that_nobody_read_has_no_stats(store: Any, db: Any) -> None:
    assert store[0].stats() == []
    assert q(db, "SELECT * FROM engram_stats()") == []


@pytest.mark.parametrize("reader", READERS)
def test_counts_are_exact(store: Any, db: Any, reader: str) -> None:
    """Every row handed over counts, duplicates too; an empty batch is none."""
    forced(reader)
    set_reader(reader)
    table, _ = store
    sizes = [1, 3, 1000, 0, 17]
    for size in sizes:
        table.fetch(np.arange(size) // 2 * 3)
    (stats,) = table.stats()
    assert stats.path == reader
    assert stats.batches == 4
    assert stats.rows == sum(sizes)
    assert stats.bytes_used == sum(sizes) * WIDTH
    assert stats.reads >= 4
    # A block is as long as it is; single rows come with what shares their sectors.
    assert stats.bytes_read >= len(set((np.arange(1000) // 2).tolist())) * WIDTH
    assert stats.seconds > 0
    assert 0 < stats.p50_us <= stats.p90_us <= stats.p99_us
    # Buckets are wide by a quarter at most.
    assert stats.p99_us <= stats.seconds * 1e6 * 1.25


def test_a_refused_batch_does_not_count(store: Any) -> None:
    table, _ = store
    table.fetch([1])
    before = [stats.rows for stats in table.stats()]
    with pytest.raises(IndexError):
        table.fetch([1, 20_000])
    assert [stats.rows for stats in table.stats()] == before


@pytest.mark.skipif(not STATIC, reason="this DuckDB has the functions from the extension's file, an engine of its own")
def test_sql_and_python_share_the_counters(store: Any, db: Any) -> None:
    table, _ = store
    table.fetch(np.arange(1000))
    q(db, "SELECT count(row) FROM engram_fetch('t', range(500))")
    columns = ", ".join(COLUMNS)
    told = {path: tuple(rest) for path, *rest in q(db, f"SELECT path, {columns} FROM engram_stats()")}
    assert told == {stats.path: tuple(getattr(stats, name) for name in COLUMNS) for stats in table.stats()}
    assert sum(stats.rows for stats in table.stats()) == 1500


@pytest.mark.chooses_reader
def test_hits_and_misses_are_those_of_the_cache(store: Any, db: Any) -> None:
    table, _ = store
    db.set_ram_budget(16 * MIB)
    before = cache_usage()
    for _ in range(3):
        table.fetch(np.arange(1000))
    usage = cache_usage()
    assert (usage.hits - before.hits, usage.misses - before.misses, usage.rows - before.rows) == (2000, 1000, 1000)
    if STATIC:
        assert q(db, "SELECT cache_hits, cache_misses FROM engram_stats() WHERE path = 'cache'") == [(2000, 1000)]
        assert q(db, "SELECT cache_hits, cache_misses FROM engram_stats() WHERE path <> 'cache'") == [(None, None)]
        cache = q(db, "SELECT budget, bytes, rows, hits, misses FROM engram_cache()")
        assert cache == [(usage.budget, usage.bytes, usage.rows, usage.hits, usage.misses)]


def test_databases_that_open_the_same_files_share_the_counters(store: Any, tmp_path: Path) -> None:
    table, _ = store
    with engramsql.connect() as other:
        other.register("another_name", tmp_path, width=WIDTH)
        other.table("another_name").fetch(np.arange(100))
        assert sum(stats.rows for stats in table.stats()) == 100


def test_what_a_scan_reads_counts(store: Any, db: Any) -> None:
    assert q(db, "SELECT count(row) FROM engram_scan('t')") == [(20_000,)]
    assert q(db, "SELECT sum(rows), sum(bytes_used) FROM engram_stats()") == [(20_000, 20_000 * WIDTH)]
