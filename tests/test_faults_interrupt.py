"""A running query stops within a second of an interrupt, and the connection answers the next one."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from helpers import one

# Each would run for many seconds on any machine, in chunks that take a few milliseconds each.
LONG = [
    "SELECT sum(octet_length(row)) FROM engram_scan('ple')",
    "SELECT sum(embedding[1]) FROM engram_scan('ple')",
    "SELECT sum(octet_length(engram_row('ple', i))) FROM range(320000000) t(i)",
    "SELECT sum(list_sum(list_sort(embedding))) FROM engram_fetch('ple', range(1000000))",
    "SELECT sum(len(rowids_for_seq('ple', range(i % 100)))) FROM range(100000000) t(i)",
    "SELECT sum(len(e_t)) FROM engram_embeddings('ple', list_transform(range(300000), lambda i: i % 248320))",
]


@pytest.mark.parametrize("sql", LONG)
def test_interrupt(ple: Any, sql: str) -> None:
    """One interrupt, then another at once: the session is kept."""
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
        pytest.fail(f"ran to its end {'in spite of' if asked else 'before'} the interrupt")
    timer.join()
    assert "interrupt" in message.lower(), message
    assert ended - asked[0] < 1.0
    assert one(ple, "SELECT 42") == 42


def test_ctrl_c_in_the_command_line(full_size: Any) -> None:
    """DuckDB's Python client looks for signals only between tasks, so the command line waits beside the query."""
    # Whoever runs the tests may ignore Ctrl-C, which a child inherits.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from engramsql.cli import main; sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(full_size.qwen), "-c", f"SELECT 1 AS ready; {LONG[0]}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "1\n"]
            asked = time.perf_counter()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
            # The query stops within a second; the rest is the end of a Python process on a busy machine.
            assert time.perf_counter() - asked < 5
            assert process.stdout.read() == ""
            assert process.stderr.read() == ""
        finally:
            process.kill()
