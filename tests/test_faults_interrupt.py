"""A running query stops within a second of an interrupt, and the connection answers the next one."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from helpers import one, run_python

LONG = [
    "SELECT sum(octet_length(row)) FROM engram_scan('ple')",
    "SELECT sum(embedding[1]) FROM engram_scan('ple')",
    "SELECT sum(octet_length(engram_row('ple', i))) FROM range(320000000) t(i)",
    "SELECT sum(octet_length(row)) FROM engram_fetch('ple', range(30000000))",
    "SELECT sum(len(rowids_for_seq('ple', range(i % 200000)))) FROM range(1000000) t(i)",
    "SELECT sum(len(e_t)) FROM engram_embeddings('ple', (SELECT list(i % 248320) FROM range(5000000) t(i)))",
]


@pytest.mark.parametrize("sql", LONG)
def test_interrupt(ple: Any, sql: str) -> None:
    """One interrupt, then another at once: the session is kept."""
    started = time.perf_counter()
    asked: list[float] = []

    def interrupt() -> None:
        asked.append(time.perf_counter())
        ple.connection.interrupt()

    timer = threading.Timer(0.7, interrupt)
    timer.start()
    try:
        ple.connection.execute(sql).fetchall()
    except Exception as e:
        ended = time.perf_counter()
        message = str(e)
    else:
        timer.cancel()
        if time.perf_counter() - started < 0.7:
            pytest.skip("answered before it could be interrupted")
        pytest.fail("ran to its end in spite of the interrupt")
    timer.join()
    if "cannot contain subqueries" in message:
        pytest.skip("this form needs the planner")
    assert "interrupt" in message.lower(), message
    assert ended - asked[0] < 1.0
    assert one(ple, "SELECT 42") == 42


def test_ctrl_c(full_size: Any) -> None:
    done = run_python(
        """
import os, signal, sys, threading, time
import engramsql
db = engramsql.connect()
db.register("ple", sys.argv[1])
threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.perf_counter()
try:
    db.sql("SELECT sum(octet_length(row)) FROM engram_scan('ple')").fetchall()
except BaseException as e:
    print(type(e).__name__, time.perf_counter() - start < 1.7)
print(db.sql("SELECT 42").fetchall())
""",
        args=[str(full_size.qwen)],
        timeout=60,
    )
    first, second = done.stdout.splitlines()
    assert first in ("KeyboardInterrupt True", "InterruptException True")
    assert second == "[(42,)]"
