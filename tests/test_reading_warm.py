"""Warming: rows into the row cache or the page cache, as many as asked for, with progress and an end when told so."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import one, q, refuses, run_python, sql_refuses
from reading import MIB, WIDTH, added, make_cold, random_store, require_cold, sparse_store

from engramsql.engine import cache_usage, set_ram_budget

pytestmark = pytest.mark.usefixtures("settings")

ROWS = 100_000


@pytest.fixture
def cold(db: Any, tmp_path: Path) -> Any:
    """(table, its rows), none of them in the page cache, and no row cache."""
    data = random_store(tmp_path)
    make_cold(tmp_path)
    set_ram_budget(0)
    db.register("t", tmp_path, width=WIDTH)
    table = db.table("t")
    require_cold(table)
    return table, data


def resident(table: Any) -> int:
    return sum(shard.resident_bytes for shard in table.shards())


def test_without_a_budget_rows_go_to_the_page_cache(cold: Any) -> None:
    table, _ = cold
    assert table.warm() == table.bytes == resident(table)
    assert cache_usage().rows == 0


@pytest.mark.chooses_reader
def test_with_a_budget_rows_go_to_the_row_cache(cold: Any) -> None:
    table, data = cold
    set_ram_budget(64 * MIB)
    assert table.warm() == table.bytes
    assert cache_usage().rows == ROWS
    before = table.stats()
    ids = np.random.default_rng(1).integers(0, ROWS, 5000)
    assert np.array_equal(table.fetch(ids), data[ids])
    assert added(before, table.stats()) == {"cache": 5000}


@pytest.mark.chooses_reader
def test_what_does_not_fit_the_row_cache_is_not_counted(cold: Any) -> None:
    table, _ = cold
    set_ram_budget(8 * MIB)
    held = table.warm()
    assert 0 < held <= cache_usage().bytes <= 8 * MIB
    assert held == cache_usage().rows * WIDTH
    # Neither is what was asked for beyond.
    assert table.warm("1TB") == held == cache_usage().rows * WIDTH


@pytest.mark.parametrize(
    "budget, rows",
    [
        (0, 0),
        ("0", 0),
        (WIDTH - 1, 0),
        (WIDTH, 1),
        (1_000_000, 6250),
        ("1MB", 6250),
        ("1 MiB", 6553),
        ("16000000", ROWS),
        ("1TB", ROWS),
        ((1 << 64) - 1, ROWS),
    ],
)
def test_a_budget_bounds_the_rows(cold: Any, db: Any, budget: Any, rows: int) -> None:
    table, _ = cold
    assert table.warm(budget) == rows * WIDTH
    assert one(db, f"SELECT coalesce(sum(resident_bytes), 0) FROM engram_warm('t', '{budget}')") == rows * WIDTH
    assert one(db, f"SELECT coalesce(sum(rows), 0) FROM engram_warm('t', '{budget}')") == rows


def test_sql_tells_every_stretch(db: Any, tmp_path: Path) -> None:
    db.register("t", sparse_store(tmp_path, 1), width=WIDTH)
    rows = q(db, "SELECT first_row, rows, bytes, resident_bytes FROM engram_warm('t', '600MB') ORDER BY 1")
    assert len(rows) > 3
    assert [first for first, *_ in rows] == [0, *np.cumsum([rows for _, rows, *_ in rows])[:-1].tolist()]
    assert sum(rows for _, rows, *_ in rows) == 600_000_000 // WIDTH
    assert all(size == count * WIDTH == held for _, count, size, held in rows)


def test_progress_is_told(db: Any, tmp_path: Path) -> None:
    db.register("t", sparse_store(tmp_path, 1), width=WIDTH)
    calls: list[tuple[int, int]] = []
    assert db.table("t").warm("300MB", lambda done, total: calls.append((done, total))) == 300_000_000 // WIDTH * WIDTH
    assert len(calls) > 3
    done = [done for done, _ in calls]
    assert done == sorted(set(done))
    assert {total for _, total in calls} == {done[-1]} == {300_000_000 // WIDTH * WIDTH}


def test_a_progress_that_raises_ends_it(cold: Any) -> None:
    class EnoughError(Exception):
        pass

    def progress(done: int, total: int) -> None:
        raise EnoughError(f"{done} of {total}")

    table, data = cold
    with pytest.raises(EnoughError, match=f"{ROWS * WIDTH} of {ROWS * WIDTH}"):
        table.warm(progress=progress)
    assert np.array_equal(table.fetch([5]), data[[5]])
    refuses(lambda: table.warm(progress=7), "int", "callable")


def test_a_truncated_file_is_an_error(cold: Any, db: Any, tmp_path: Path) -> None:
    table, _ = cold
    os.truncate(tmp_path / "shard_001.bin", 100)
    refuses(table.warm, "shard_001.bin", "truncated")
    sql_refuses(db, "SELECT * FROM engram_warm('t')", "shard_001.bin", "truncated")
    # Rows of the other file alone are rows still.
    assert table.warm(ROWS // 2 * WIDTH) == ROWS // 2 * WIDTH


def test_ctrl_c_ends_it_within_a_second(tmp_path: Path) -> None:
    sparse_store(tmp_path, 64)
    code = """
import os, signal, sys, threading, time
import engramsql
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore Ctrl-C
db = engramsql.connect()
db.register("t", sys.argv[1], width=160)
table = db.table("t")
asked = []
def ask():
    asked.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.3, ask).start()
try:
    table.warm("64GB")
except KeyboardInterrupt:
    print(time.perf_counter() - asked[0] < 1, len(table.fetch([7])))
"""
    assert run_python(code, args=[str(tmp_path)]).stdout == "True 1\n"


def test_an_interrupt_ends_it_in_sql_within_a_second(db: Any, tmp_path: Path) -> None:
    db.register("t", sparse_store(tmp_path, 64), width=WIDTH)
    asked: list[float] = []

    def interrupt() -> None:
        asked.append(time.perf_counter())
        db.connection.interrupt()

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    message = refuses(lambda: q(db, "SELECT sum(resident_bytes) FROM engram_warm('t', '64GB')"), "interrupt")
    ended = time.perf_counter()
    timer.join()
    assert ended - asked[0] < 1, message
    assert one(db, "SELECT 42") == 42
