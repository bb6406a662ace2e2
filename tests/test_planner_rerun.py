"""A planned statement that fails runs once, and planning itself stays cheap."""

from __future__ import annotations

import subprocess
import sys
import threading

import duckdb
import pytest
from helpers import q

import engramsql

CHECKPOINT = "tests/golden/ckpt_qwen4_exp_fp8"


@pytest.fixture
def db():
    with engramsql.connect(CHECKPOINT) as database:
        database.execute("CREATE SEQUENCE steps; CREATE TABLE kept (id BIGINT CHECK (id < 9), step BIGINT)")
        yield database


INSERT = "INSERT INTO kept SELECT rowid, nextval('steps') FROM ple WHERE rowid IN (3, 9)"


@pytest.mark.parametrize("method", ["sql", "execute"])
def test_a_failing_insert_runs_once(db, method):
    with pytest.raises(duckdb.ConstraintException):
        getattr(db, method)(INSERT)
    # Two rows took a number each; a second run would have taken two more.
    assert q(db, "SELECT nextval('steps')") == [(3,)]
    assert q(db, "SELECT count(*) FROM kept") == [(0,)]


@pytest.mark.parametrize("method", ["sql", "execute"])
def test_explain_analyze_of_a_failing_statement_runs_once(db, method):
    with pytest.raises(duckdb.Error):
        getattr(db, method)(
            "EXPLAIN ANALYZE SELECT nextval('steps'), error('no') FROM ple WHERE rowid IN (3, 9)"
        ).fetchall()
    (before,) = q(db, "SELECT nextval('steps')")[0]
    assert before <= 3


def test_an_interrupt_ends_a_planned_statement_for_good(db):
    statement = (
        "CREATE TABLE long AS SELECT count(*) AS n FROM ple AS p, range(100000) AS a(i), range(100000) AS b(j) "
        "WHERE p.rowid = 5 AND (a.i * b.j) % 7 = 6"
    )
    assert db._planner.plan(statement) is not None
    started = threading.Event()

    def stop() -> None:
        started.wait(60)
        while not ended.wait(0.05):
            db._connection.interrupt()

    ended = threading.Event()
    watcher = threading.Thread(target=stop)
    watcher.start()
    started.set()
    try:
        with pytest.raises(duckdb.InterruptException):
            db.sql(statement)
    finally:
        ended.set()
        watcher.join()
    assert q(db, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'long'") == [(0,)]


def test_names_that_stand_for_many_queries_are_left_alone(db):
    chain = ", ".join(f"c{i} AS (SELECT rowid FROM c{i - 1} UNION SELECT rowid FROM c{i - 1})" for i in range(1, 14))
    statement = f"WITH c0 AS (SELECT rowid FROM ple), {chain} SELECT * FROM c13 WHERE rowid = 5"
    assert db._planner.plan(statement) is None
    assert db.sql(statement).fetchall() == [(5,)]


def test_explain_as_json_is_json(db):
    import json

    rows = db.sql("EXPLAIN (FORMAT json) SELECT row FROM ple WHERE rowid = 5").fetchall()
    assert [json.loads(text) for _, text in rows]


def test_functions_given_a_table_need_no_parser():
    script = (
        "import sys, engramsql\n"
        f"db = engramsql.connect({CHECKPOINT!r})\n"
        "db.sql(\"SELECT rowid FROM engram_fetch('ple', [1, 2]) WHERE head = 0 LIMIT 1\").fetchall()\n"
        "db.sql(\"SELECT e_t FROM engram_embeddings('ple', [17, 4]) LIMIT 1\").fetchall()\n"
        "assert 'sqlglot' not in sys.modules\n"
        "db.sql('SELECT rowid FROM ple WHERE rowid = 1').fetchall()\n"
        "assert 'sqlglot' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_what_the_parser_reads_otherwise_is_told_once(db, monkeypatch):
    from engramsql.planner import Planner, statements

    def broken(*_: object) -> None:
        raise KeyError("start")

    monkeypatch.setattr(statements, "plan", broken)
    monkeypatch.setattr(Planner, "strict", False)
    with pytest.warns(engramsql.errors.EngramWarning, match="not planned: sqlglot"):
        assert db.sql("SELECT rowid FROM ple WHERE rowid = 5").fetchall() == [(5,)]
    assert db.sql("SELECT rowid FROM ple WHERE rowid = 6").fetchall() == [(6,)]
