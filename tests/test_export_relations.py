"""Corpora that are DuckDB relations: cut short, busy, or without end."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from golden_data import GOLDEN
from helpers import run_python
from oldest import run_oldest

import engramsql

PLE = str(GOLDEN / "ckpt_qwen4_exp_fp8")
SETUP = """
import os, signal, sys, threading
import duckdb
import engramsql
db = engramsql.connect()
db.register("ple", sys.argv[1])
corpus = db.sql("SELECT [i % 512, (i + 1) % 512] AS tokens FROM range(100000) t(i)")

def begun():
    return db.arrow_reader("ple", tokens=corpus, columns=["token_id"])
"""

CUT = """
reader = begun()
count = reader.read_next_batch().num_rows
db.connection.execute("SELECT 42").fetchall()
try:
    print("whole", count + reader.read_all().num_rows)
except duckdb.Error as error:
    print("refused")
try:
    db.export("ple", sys.argv[2], tokens=corpus, columns=["token_id"],
              progress=lambda *step: db.connection.execute("SELECT 42").fetchall())
except duckdb.Error as error:
    print("refused", os.path.exists(sys.argv[2]))
db.export("ple", sys.argv[2], tokens=corpus, columns=["token_id"])
print(os.path.getsize(sys.argv[2]) > 8 * 200000)
"""

BUSY = """
reader = begun()
try:
    print(db.connection.sql("SELECT count(*) FROM reader").fetchall())
except duckdb.Error as error:
    print("refused")
    # Before DuckDB 2 either of the two may be the one that is refused.
    assert "cursor()" in str(error) or duckdb.__version__ < "2", error
reader = begun()
print(db.connection.cursor().sql("SELECT count(*), sum(token_id) FROM reader").fetchall())
print(db.connection.sql("SELECT 42").fetchall())
"""
READ = f"[(200000, {int(sum((i % 512) + (i + 1) % 512 for i in range(100000)))})]"


def test_another_statement_does_not_cut_a_corpus(tmp_path: Path) -> None:
    with engramsql.connect() as db:
        db.register("ple", PLE)
        corpus = db.sql("SELECT [i % 512] AS tokens FROM range(1000000) t(i)")

        def another(*step: Any) -> None:
            db.connection.execute("SELECT 42").fetchall()

        with pytest.raises(duckdb.Error):
            db.export("ple", tmp_path / "cut.arrow", tokens=corpus, columns=["token_id"], progress=another)
        assert list(tmp_path.iterdir()) == []
        found = db.arrow_reader("ple", tokens=corpus, columns=["token_id"]).read_all().column("token_id").to_numpy()
        assert np.array_equal(found, np.arange(1_000_000) % 512)


def test_neither_does_it_with_the_oldest_duckdb(tmp_path: Path) -> None:
    """There the result of the first statement just ends: some thousand sequences looked like all of them."""
    out = run_oldest(SETUP + CUT, PLE, str(tmp_path / "cut.arrow"))
    assert out == "refused\nrefused False\nTrue\n"


def test_a_query_that_waits_for_its_own_connection_is_refused() -> None:
    done = run_python(SETUP + BUSY, args=[PLE], timeout=60)
    assert done.stdout == f"refused\n{READ}\n[(42,)]\n"


def test_so_it_is_with_the_oldest_duckdb() -> None:
    """There each would wait for the other."""
    assert run_oldest(SETUP + BUSY, PLE) == f"refused\n{READ}\n[(42,)]\n"


@pytest.mark.parametrize("how", ["read", "export"])
def test_a_corpus_that_does_not_end_is_interrupted(tmp_path: Path, how: str) -> None:
    """Its first row never comes."""
    code = """
        from engramsql.export.files import pipeline
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pairs = "range(1000000) a, range(1000000) b WHERE a.range + b.range = -1"
        endless = db.sql("SELECT [count(*)] AS tokens FROM " + pairs)
        following = pipeline._Line._following
        started = threading.Event()
        def asked(self):
            started.set()
            return following(self)
        pipeline._Line._following = asked
        def interrupt():
            started.wait()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            if sys.argv[2] == "read":
                db.arrow_reader("ple", tokens=endless).read_all()
            else:
                db.export("ple", sys.argv[3], tokens=endless)
        except KeyboardInterrupt:
            # One that was just begun has nothing to do, and may be ending yet.
            for thread in threading.enumerate():
                if thread is not threading.current_thread():
                    thread.join(30)
            print([thread.name for thread in threading.enumerate() if thread.name.startswith("engramsql-export")])
            print(db.sql("SELECT 42").fetchall())
    """
    done = run_python(SETUP + textwrap.dedent(code), args=[PLE, how, str(tmp_path / "e.arrow")], timeout=60)
    assert done.stdout == "[]\n[(42,)]\n"
    assert list(tmp_path.iterdir()) == []
