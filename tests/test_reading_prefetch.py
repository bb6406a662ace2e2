"""Rows that are read ahead: the handle, what it may be asked for, and its end."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import one, q, refuses, run_python, sql_refuses
from reading import MIB, WIDTH, added, random_store, sparse_store

import engramsql
from engramsql.errors import EngramError, ReadError, RowIdError

pytestmark = pytest.mark.usefixtures("settings")


@pytest.fixture
def store(db: Any, tmp_path: Path) -> Any:
    """(table, its rows) with room for them in the row cache."""
    data = random_store(tmp_path)
    db.set_ram_budget(64 * MIB)
    db.register("t", tmp_path, width=WIDTH)
    return db.table("t"), data


@pytest.fixture
def endless(db: Any, tmp_path: Path) -> tuple[Any, Any]:
    """(table, ids) whose prefetch takes many seconds on any machine."""
    db.register("big", sparse_store(tmp_path, 64), width=WIDTH)
    table = db.table("big")
    return table, np.random.default_rng(0).integers(0, table.rows, 20_000_000)


@pytest.mark.chooses_reader
def test_what_was_prefetched_comes_from_the_cache(store: Any) -> None:
    table, data = store
    ids = np.random.default_rng(1).choice(len(data), 5000, replace=False)
    handle = table.prefetch(ids)
    assert (handle.rows, handle.bytes) == (5000, 5000 * WIDTH)
    assert handle.wait(60) is True
    assert handle.wait() is True
    assert (handle.done, handle.cancelled, repr(handle)) == (True, False, "<Prefetch of 5000 rows, done>")
    before = table.stats()
    assert np.array_equal(table.fetch(ids), data[ids])
    assert added(before, table.stats()) == {"cache": 5000}
    # Cancelling what has ended changes nothing.
    handle.cancel()
    assert not handle.cancelled


@pytest.mark.chooses_reader
def test_sql_prefetches_too(db: Any, store: Any) -> None:
    _, data = store
    assert q(db, "SELECT rows, bytes FROM engram_prefetch('t', [[1, 2], [3, 3]])") == [(4, 4 * WIDTH)]
    assert q(db, "SELECT rows FROM engram_prefetch('t', []::BIGINT[])") == [(0,)]
    deadline = time.monotonic() + 60
    while one(db, "SELECT rows FROM engram_cache()") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    before = q(db, "SELECT path, rows FROM engram_stats() WHERE path = 'cache'")
    assert q(db, "SELECT row FROM engram_fetch('t', [3, 1])") == [(data[3].tobytes(),), (data[1].tobytes(),)]
    after = q(db, "SELECT path, rows FROM engram_stats() WHERE path = 'cache'")
    assert after != before


@pytest.mark.parametrize(
    "ids",
    [
        [0, 5, 5],
        range(7),
        (1, 2),
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.array([3], np.uint64),
        np.arange(10)[::3],
        np.array([], np.int64),
        [],
        [[1, 2], [3, 4]],
    ],
    ids=repr,
)
def test_ids_of_every_kind(store: Any, ids: Any) -> None:
    table, data = store
    handle = table.prefetch(ids)
    flat = np.asarray(ids, np.int64).ravel()
    assert (handle.rows, handle.bytes) == (len(flat), len(flat) * WIDTH)
    assert handle.wait(60)
    assert np.array_equal(table.fetch(flat), data[flat])


@pytest.mark.parametrize(
    "ids, parts",
    [
        ([100_000], ("100000", "'t'", "100000 rows")),
        ([5, -1], ("-1", "'t'")),
        ([1 << 63], (1 << 63,)),
        ([1.5], ("1.5", "float")),
        (["1"], ("str",)),
        (7, ("int",)),
    ],
)
def test_bad_ids_are_refused_at_once(store: Any, ids: Any, parts: tuple[object, ...]) -> None:
    table, _ = store
    same = refuses(lambda: table.fetch(ids))
    with pytest.raises(RowIdError if "int" not in parts else EngramError):
        table.prefetch(ids)
    assert refuses(lambda: table.prefetch(ids), parts) == same


def test_sql_refuses_bad_ids_at_once(db: Any, store: Any) -> None:
    sql_refuses(db, "SELECT * FROM engram_prefetch('t', [1, 100000])", "100000", "'t'")
    sql_refuses(db, "SELECT * FROM engram_prefetch('t', [1.5])", "1.5")
    sql_refuses(db, "SELECT * FROM engram_prefetch('nope', [1])", "nope")


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf")])
def test_a_timeout_is_a_number_of_seconds(store: Any, timeout: float) -> None:
    handle = store[0].prefetch([1])
    refuses(lambda: handle.wait(timeout), "timeout must be a number of seconds, 0 or more")
    assert handle.wait(60)


def test_a_wait_ends_at_its_timeout_and_a_cancel_at_once(endless: Any) -> None:
    table, ids = endless
    handle = table.prefetch(ids)
    started = time.perf_counter()
    assert handle.wait(0) is False
    assert handle.wait(0.25) is False
    assert 0.25 <= time.perf_counter() - started < 2
    assert (handle.done, handle.cancelled, repr(handle)) == (False, False, "<Prefetch of 20000000 rows, reading>")
    handle.cancel()
    assert (handle.cancelled, repr(handle)) == (True, "<Prefetch of 20000000 rows, cancelled>")
    started = time.perf_counter()
    assert handle.wait(60) is True
    assert time.perf_counter() - started < 2
    assert handle.done


def test_a_prefetch_waits_for_those_before_it_and_not_for_cancelled_ones(endless: Any) -> None:
    table, ids = endless
    first, second = table.prefetch(ids), table.prefetch([1, 2])
    assert second.wait(0.2) is False
    first.cancel()
    assert second.wait(2) is True
    assert not second.cancelled


@pytest.mark.parametrize("close", ["close", "with"])
def test_closing_the_database_cancels(tmp_path: Path, close: str) -> None:
    with engramsql.connect() as db:
        db.register("big", sparse_store(tmp_path, 64), width=WIDTH)
        table = db.table("big")
        handle = table.prefetch(np.random.default_rng(0).integers(0, table.rows, 20_000_000))
        assert not handle.done
        if close == "close":
            db.close()
    assert handle.cancelled
    assert handle.wait(2) is True


def test_a_truncated_file_is_told_by_the_wait_once(store: Any, tmp_path: Path) -> None:
    table, data = store
    os.truncate(tmp_path / "shard_001.bin", 40_000 * WIDTH)
    handle = table.prefetch([99_999])
    with pytest.raises(ReadError, match=r"shard_001\.bin.*truncated"):
        handle.wait(60)
    assert handle.wait(60) is True
    assert (handle.done, handle.cancelled) == (True, False)
    # The thread that prefetches goes on.
    assert table.prefetch([5]).wait(60)
    assert np.array_equal(table.fetch([5]), data[[5]])


def test_a_panic_ends_its_prefetch_and_not_the_thread(tmp_path: Path) -> None:
    random_store(tmp_path, rows=100)
    code = """
import sys
import engramsql
from engramsql.errors import EngramError
db = engramsql.connect()
db.register("t", sys.argv[1], width=160)
for _ in range(2):
    handle = db.table("t").prefetch([1])
    try:
        handle.wait(30)
    except EngramError as e:
        print(e)
"""
    done = run_python(code, args=[str(tmp_path)], env={"ENGRAMSQL_FAULT": "panic@prefetch"})
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert "prefetch" in lines[0]
    assert "'t'" in lines[0]


@pytest.mark.chooses_reader
def test_a_forked_child_prefetches_by_itself(tmp_path: Path) -> None:
    """The parent's thread is not there: what the child asks for comes all the same."""
    (tmp_path / "small").mkdir()
    random_store(tmp_path / "small", rows=1000)
    sparse_store(tmp_path / "big", 64)
    code = """
import os, sys, time, warnings
import numpy as np
import engramsql
from engramsql.engine import cache_usage
warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tested
db = engramsql.connect(ram_budget="16MiB")
db.register("big", sys.argv[1] + "/big", width=160)
db.register("small", sys.argv[1] + "/small", width=160)
small, big = db.table("small"), db.table("big")
assert small.prefetch(range(100)).wait(30)
busy = big.prefetch(np.random.default_rng(0).integers(0, big.rows, 20_000_000))
child = os.fork()
if child == 0:
    code = 1
    try:
        assert cache_usage().rows == 0
        handle = small.prefetch(range(500))
        assert handle.wait(30) and cache_usage().rows == 500
        assert busy.wait(0.2) is False
        busy.cancel()
        code = 0
    finally:
        os._exit(code)
deadline = time.monotonic() + 60
while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
    assert time.monotonic() < deadline, "the child hangs"
    time.sleep(0.01)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), busy.cancelled)
db.close()
print(busy.wait(5), busy.cancelled)
"""
    done = run_python(code, args=[str(tmp_path)], timeout=120)
    assert done.stdout == "0 False\nTrue True\n"
