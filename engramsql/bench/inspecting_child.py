"""The process of one question: asks it first alone, for its memory, then beside another statement, for its time."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from engramsql.bench.measure import Contender, Result, a_b_b_a
from engramsql.bench.memory import own_peak, peak_bytes
from engramsql.bench.paths import Paths
from engramsql.database import Database, connect

__all__ = ["work"]

_VOCABULARY = 200_000
_SKEW = 3.0
"""Power of a uniform number: frequent tokens are much more frequent, as in a text."""


def work(
    database: str,
    statement: str,
    beside: str,
    tokens: int | None,
    threads: int,
    memory_limit: str,
    scratch: str,
    rounds: int,
    seconds: float,
) -> dict[str, Any]:
    """Answer, seconds and code paths of both statements, and the most memory while the question was asked first.

    Args:
        database: The database directory.
        statement: The question.
        beside: What it is compared with.
        tokens: Tokens of the table ``bench_corpus``, for a question about one.
        threads: Threads of DuckDB and of the engine.
        memory_limit: DuckDB's.
        scratch: Directory for what exceeds it.
        rounds: Rounds of A B B A.
        seconds: What they may take; one round runs at least.
    """
    with connect(database, read_only=True, threads=threads) as opened:
        connection = opened.connection
        connection.execute(f"SET memory_limit = '{memory_limit}'")
        connection.execute("SET temp_directory = $1", [scratch])
        if tokens is not None:
            _fill(opened, tokens)
        start = time.perf_counter()
        with own_peak() as peak:
            answer = opened.sql(statement).fetchall()
        first = time.perf_counter() - start
        most = peak_bytes()
        # Reads what the first answer has not, and the two take turns from here on.
        opened.sql(beside).fetchall()
        paths = Paths(opened)
        results = a_b_b_a(
            [_contender(opened, paths, statement), _contender(opened, paths, beside)],
            max(1, min(rounds, int(seconds / (2 * first)))),
            first=0,
        )
    return {
        "answer": [str(cell) for cell in answer[0]],
        "peak_bytes": most,
        "own_peak_bytes": peak.bytes,
        "seconds": results[0].seconds,
        "path": results[0].code_path,
        "beside_seconds": results[1].seconds,
        "beside_path": results[1].code_path,
    }


def _contender(database: Database, paths: Paths, statement: str) -> Contender:
    return paths.contender(Result(statement, "", "", 1), lambda: lambda: database.sql(statement).fetchall())


def _fill(database: Database, tokens: int) -> None:
    """The same corpus in every process, one token a line in ``bench_corpus``."""
    drawn = np.random.default_rng(0).random(tokens)
    connection = database.connection
    connection.register("bench_corpus_in", {"token": (drawn**_SKEW * _VOCABULARY).astype(np.int64)})
    connection.execute("CREATE TEMP TABLE bench_corpus AS SELECT token FROM bench_corpus_in")
    connection.unregister("bench_corpus_in")


if __name__ == "__main__":
    print(json.dumps(work(**json.load(sys.stdin))))
