"""The process of one question: asks it first alone, for its memory, then beside another statement, for its time."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from engramsql.bench.inspecting import CORPUS, IDS, Question
from engramsql.bench.measure import Contender, Result, a_b_b_a
from engramsql.bench.memory import own_peak, peak_bytes
from engramsql.bench.paths import Paths
from engramsql.database import Database, connect

__all__ = ["work"]

_SEQUENCE = 1000
"""Tokens of one line of the corpus."""
_VOCABULARY = 200_000
_SKEW = 3.0
"""Power of a uniform number: some tokens are much more frequent than others, as in a text."""


def work(
    database: str,
    question: dict[str, Any],
    rows: int,
    threads: int,
    memory_limit: str,
    scratch: str,
    rounds: int,
    seconds: float,
) -> dict[str, Any]:
    """The answer, seconds and code paths of both statements, and the most memory while the question was asked first.

    Args:
        database: The database directory.
        question: The fields of a Question.
        rows: Rows of the table that a list of ids is drawn from.
        threads: Threads of DuckDB and of the engine.
        memory_limit: DuckDB's.
        scratch: Directory for what exceeds it.
        rounds: Rounds of A B B A.
        seconds: What they may take; one round runs at least.
    """
    asked = Question(**question)
    with connect(database, read_only=True, threads=threads) as opened:
        connection = opened.connection
        connection.execute(f"SET memory_limit = '{memory_limit}'")
        connection.execute("SET temp_directory = '" + scratch.replace("'", "''") + "'")
        _fill(opened, asked, rows)
        start = time.perf_counter()
        with own_peak() as peak:
            (answer,) = opened.sql(asked.statement).fetchall()
        first = time.perf_counter() - start
        most = peak_bytes()
        # Reads what the first answer has not; from here on the two take turns.
        opened.sql(asked.beside).fetchall()
        paths = Paths(opened)
        contenders = [_contender(opened, paths, statement) for statement in (asked.statement, asked.beside)]
        ours, beside = a_b_b_a(contenders, max(1, min(rounds, int(seconds / (2 * first)))), first=0)
    return {
        "answer": [str(cell) for cell in answer],
        "peak_bytes": most,
        "own_peak_bytes": peak.bytes,
        "seconds": ours.seconds,
        "path": ours.code_path,
        "beside_seconds": beside.seconds,
        "beside_path": beside.code_path,
    }


def _contender(database: Database, paths: Paths, statement: str) -> Contender:
    # Neither reads a row but hashes: then no reading path is counted.
    result = Result(statement, "", "", 1, code_path="DuckDB")
    return paths.contender(result, lambda: lambda: database.sql(statement).fetchall())


def _fill(database: Database, asked: Question, rows: int) -> None:
    """The corpus, the same in every process, or the list of ids that the question is about."""
    connection = database.connection
    if asked.tokens:
        drawn = np.random.default_rng(0).random(asked.tokens)
        places = np.arange(asked.tokens)
        tokens = (drawn**_SKEW * _VOCABULARY).astype(np.int64)
        connection.register("bench_tokens_in", {"line": places // _SEQUENCE, "place": places, "token": tokens})
        connection.execute(
            f"CREATE TEMP TABLE {CORPUS} AS "
            "SELECT list(token ORDER BY place) AS tokens FROM bench_tokens_in GROUP BY line ORDER BY line"
        )
        connection.unregister("bench_tokens_in")
    if asked.ids:
        ids = np.random.default_rng().integers(0, rows, asked.ids)
        connection.register("bench_ids_in", {"i": ids})
        connection.execute(f"SET VARIABLE {IDS} = (SELECT list(i) FROM bench_ids_in)")
        connection.unregister("bench_ids_in")


if __name__ == "__main__":
    print(json.dumps(work(**json.load(sys.stdin))))
