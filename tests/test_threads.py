"""Threads that share the gathering of rows in memory: as many as may be used, started when there is a share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

_ROWS = 200_000

# Each is a process of its own: workers start once.
_PREPARATION = """
import glob
import sys
import threading

import numpy as np

import engramsql


def workers():
    names = [open(path).read() for path in glob.glob("/proc/self/task/*/comm")]
    return sum(name.startswith("engramsql-") for name in names)


database = engramsql.connect(sys.argv[1])
table = database.table("rows")
ids = np.random.default_rng(1).integers(0, table.rows, 70_000)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("rows")
    rows = np.random.default_rng(0).integers(0, 256, (_ROWS, 16), np.uint8)
    rows.tofile(directory / "shard_000.bin")
    return directory


def answers(store: Path, database: Path, code: str) -> list[str]:
    """What a new process prints that has the store as table ``rows``."""
    import engramsql

    with engramsql.connect(database) as new:
        new.register("rows", store, width=16)
    child = [sys.executable, "-c", _PREPARATION + code, str(database)]
    done = subprocess.run(child, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor shares nothing")
def test_callers_that_come_first_at_once_start_the_workers_once(store: Path, tmp_path: Path) -> None:
    # The first batch shows that the rows are in memory, the others are shared.
    code = """
database.set_threads(1)
table.fetch(np.arange(table.rows))
database.set_threads(None)
barrier = threading.Barrier(8)
found = []


def fetch():
    barrier.wait()
    found.append(table.fetch(ids))


threads = [threading.Thread(target=fetch) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
database.set_threads(1)
print(all((rows == table.fetch(ids)).all() for rows in found), workers())
"""
    same, workers = answers(store, tmp_path / "db", code)
    assert same == "True"
    assert int(workers) <= len(os.sched_getaffinity(0)) - 1


def test_a_query_keeps_to_the_threads_that_duckdb_has(store: Path, tmp_path: Path) -> None:
    code = """
database.sql("SET threads = 1")
lists = "(SELECT list(range * 7 % 200000) AS ids FROM range(100000)) AS s"
query = f"SELECT count(f.row) FROM {lists}, engram_fetch('rows', s.ids) AS f"
print(database.sql(query).fetchall()[0][0], table.fetch(np.arange(table.rows)).shape[0], workers())
"""
    assert answers(store, tmp_path / "db", code) == ["100000", "200000", "0"]
