"""Handles, threads, lifetimes, Arrow, lateral calls and panics: the connection survives and answers are right."""

from __future__ import annotations

import gc
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from checkpoints import make_qwen, make_store
from helpers import TESTS, assert_mentions, one, outcome, q, run_python
from readers import READERS, forced

import engramsql

REPOSITORY = TESTS.parent


@pytest.fixture
def small(db: Any, tmp_path: Path) -> Any:
    make_store(tmp_path / "small")
    db.register("small", tmp_path / "small", width=8, format="f32")
    return db


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
def test_three_hundred_shards_with_64_handles(tmp_path: Path, reader: str) -> None:
    make_store(tmp_path, shards=300, manifest=True)
    done = run_python(
        """
import resource, sys, threading
import numpy as np
import engramsql
import pyarrow  # loads its libraries before the limit
engramsql.connect().sql("SELECT 1").fetchall()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
db = engramsql.connect()
db.register("t", sys.argv[1])
errors = []
def work(seed):
    try:
        ids = np.random.default_rng(seed).integers(0, 3000, 2000)
        want = ((ids // 10) % 251).astype(np.uint8)
        t = db.table("t")
        cursor = db.connection.cursor()
        for _ in range(5):
            assert (t.fetch(ids) == want[:, None]).all()
            got = cursor.execute("SELECT row FROM engram_fetch('t', ?::BIGINT[])", [ids.tolist()]).fetchall()
            assert [r[0] for (r,) in got] == want.tolist()
    except BaseException as e:
        errors.append(repr(e))
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(errors)
""",
        args=[str(tmp_path)],
        env=forced(reader),
    )
    assert done.stdout == "[]\n"


def test_threads_share_one_table(small: Any) -> None:
    errors: list[str] = []

    def work(seed: int) -> None:
        try:
            ids = np.random.default_rng(seed).integers(0, 30, 500)
            cursor = small.connection.cursor()
            for _ in range(20):
                assert (small.table("small").fetch(ids)[:, 0] == ids // 10).all()
                got = cursor.execute(
                    "SELECT octet_length(engram_row('small', i)) FROM (SELECT unnest(?::BIGINT[]) AS i)", [ids.tolist()]
                )
                assert len(got.fetchall()) == 500
        except Exception as e:
            errors.append(repr(e))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []


def test_cursors_share_tables(small: Any) -> None:
    cursor = small.connection.cursor()
    assert cursor.execute("SELECT count(*) FROM engram_fetch('small', range(30))").fetchall() == [(30,)]
    assert cursor.execute("SELECT count(*) FROM small").fetchall() == [(30,)]


# --- lifetimes ------------------------------------------------------------------------------------------------------


def test_results_outlive_everything(tmp_path: Path) -> None:
    data = make_store(tmp_path, rows=4000)
    db = engramsql.connect()
    db.register("t", tmp_path, width=8)
    t = db.table("t")
    rows = t.fetch(np.arange(12000))
    view = rows[100:200]
    table = db.sql("SELECT row FROM (SELECT * FROM engram_fetch('t', range(12000)))").to_arrow_table()
    db.drop("t")
    db.close()
    del t, db, rows
    for path in tmp_path.iterdir():
        path.unlink()
    gc.collect()
    for _ in range(2):
        assert np.array_equal(view, data[100:200])
        assert b"".join(table.column("row").to_pylist()) == data.tobytes()
    table.validate(full=True)


def test_a_table_outlives_its_database(tmp_path: Path) -> None:
    data = make_store(tmp_path)
    db = engramsql.connect()
    db.register("t", tmp_path, width=8)
    t = db.table("t")
    db.close()
    del db
    gc.collect()
    rows, said = outcome(lambda: t.fetch([0, 29]))
    if said is not None:
        assert "closed" in said
    else:
        assert np.array_equal(rows, data[[0, 29]])


def test_use_after_close(tmp_path: Path) -> None:
    make_store(tmp_path)
    db = engramsql.connect()
    db.register("t", tmp_path, width=8)
    db.close()
    db.close()
    with pytest.raises(Exception, match=r"(?i)clos"):
        db.sql("SELECT 1").fetchall()


def test_dropped_and_registered_again(small: Any, tmp_path: Path) -> None:
    """The name now means other files: the old handle is not served from a cache."""
    make_store(tmp_path / "other", data=np.full((30, 8), 9, np.uint8))
    assert one(small, "SELECT row FROM engram_fetch('small', [0])") == b"\0" * 8
    small.drop("small")
    small.register("small", tmp_path / "other", width=8)
    assert one(small, "SELECT row FROM engram_fetch('small', [0])") == b"\x09" * 8
    assert one(small, "SELECT engram_row('small', 0)") == b"\x09" * 8
    assert small.table("small").fetch([0]).tobytes() == b"\x09" * 8


def test_prepared_statement_after_a_drop(small: Any) -> None:
    small.connection.execute("PREPARE p AS SELECT row FROM engram_fetch('small', $1::BIGINT[])")
    assert q(small, "EXECUTE p([12])") == [(b"\1" * 8,)]
    small.drop("small")
    with pytest.raises(Exception, match="small"):
        q(small, "EXECUTE p([12])")
    assert one(small, "SELECT 42") == 42


# --- Arrow ----------------------------------------------------------------------------------------------------------


def test_undrained_reader_then_another_statement(tmp_path: Path) -> None:
    """In a process of its own, with a time limit: the fault elsewhere was a hang."""
    make_store(tmp_path, rows=20000)
    done = run_python(
        """
import sys
import engramsql
db = engramsql.connect()
db.register("t", sys.argv[1], width=8)
reader = db.sql("SELECT rowid, row FROM engram_scan('t')").to_arrow_reader(1000)
first = reader.read_next_batch()
assert first.num_rows > 0
try:
    assert db.sql("SELECT 42").fetchall() == [(42,)]
except Exception as e:
    print("said:", str(e).splitlines()[0])
rest = 0
try:
    rest = sum(b.num_rows for b in reader)
except Exception as e:
    print("said:", str(e).splitlines()[0])
assert db.connection.execute("SELECT 43").fetchall() == [(43,)]
print("done")
""",
        args=[str(tmp_path)],
        timeout=60,
    )
    assert done.stdout.endswith("done\n")


@pytest.mark.parametrize("want", [[0, None, 29], [0, None], [None, 29], [None]], ids=str)
def test_null_vectors_keep_their_neighbours_in_arrow(small: Any, tmp_path: Path, want: list[int | None]) -> None:
    literal = ", ".join("NULL" if i is None else str(i) for i in want)
    table = small.sql(f"SELECT * FROM engram_fetch('small', [{literal}]::BIGINT[])").to_arrow_table()
    table.validate(full=True)
    for back in (
        table,
        through(table, tmp_path / "f", pa.ipc.new_file),
        through(table, tmp_path / "s", pa.ipc.new_stream),
    ):
        back.validate(full=True)
        assert back.column("rowid").to_pylist() == want
        assert back.column("row").to_pylist() == [None if i is None else bytes([i // 10] * 8) for i in want]
        vectors = back.column("embedding").to_pylist()
        for i, vector in zip(want, vectors, strict=True):
            if i is None:
                assert vector is None
            else:
                assert np.asarray(vector, "<f4").tobytes() == bytes([i // 10] * 8)


def through(table: pa.Table, path: Path, writer: Any) -> pa.Table:
    with writer(str(path), table.schema) as sink:
        sink.write_table(table)
    reader = pa.ipc.open_file if writer is pa.ipc.new_file else pa.ipc.open_stream
    return reader(pa.memory_map(str(path))).read_all()


def test_embedding_is_a_fixed_size_list(small: Any) -> None:
    schema = small.sql("SELECT embedding, row FROM engram_fetch('small', [1])").to_arrow_table().schema
    assert schema.field("embedding").type == pa.list_(pa.float32(), 2)
    assert pa.types.is_binary(schema.field("row").type) or pa.types.is_binary_view(schema.field("row").type)


# --- forms of the list argument -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s.name, f.rowid, f.row FROM seqs s, engram_fetch('small', s.ids) f ORDER BY ALL",
        "SELECT s.name, f.rowid, f.row FROM seqs s JOIN LATERAL engram_fetch('small', s.ids) f ON true ORDER BY ALL",
        "SELECT 'all', f.rowid, f.row FROM engram_fetch('small', (SELECT flatten(list(ids)) FROM seqs)) f ORDER BY ALL",
        "SELECT 'all', f.rowid, f.row FROM engram_fetch('small', (SELECT ids FROM seqs WHERE name = 'b')) f",
        "WITH w AS (SELECT ids FROM seqs) SELECT 'all', f.rowid, f.row FROM w, engram_fetch('small', w.ids) f",
    ],
)
def test_lists_from_columns_and_subqueries(small: Any, sql: str) -> None:
    """They work, or the message says what to write instead."""
    small.connection.execute(
        "CREATE TABLE seqs AS SELECT * FROM (VALUES ('a', [0, 10]), ('b', [29]), ('n', NULL::BIGINT[])) v(name, ids)"
    )
    try:
        rows = small.sql(sql).fetchall()
    except Exception as e:
        assert_mentions(str(e), "instead", "unnest", "engram_row")
    else:
        assert all(row == bytes([rowid // 10] * 8) for _, rowid, row in rows)
        assert len(rows) in (1, 3)
    assert one(small, "SELECT 42") == 42


def test_scalars_over_columns(small: Any) -> None:
    small.connection.execute("CREATE TABLE seqs AS SELECT * FROM (VALUES ('a', [0, 10]), ('b', [29])) v(name, ids)")
    got = q(small, "SELECT name, i, engram_row('small', i) FROM (SELECT name, unnest(ids) AS i FROM seqs) ORDER BY ALL")
    assert got == [("a", 0, b"\0" * 8), ("a", 10, b"\1" * 8), ("b", 29, b"\2" * 8)]


def test_list_from_a_variable_and_a_prepared_statement(small: Any) -> None:
    small.connection.execute("SET VARIABLE ids = [12, 3]")
    assert q(small, "SELECT rowid FROM engram_fetch('small', getvariable('ids'))") == [(12,), (3,)]
    small.connection.execute("PREPARE p AS SELECT rowid FROM engram_fetch('small', $1)")
    assert q(small, "EXECUTE p([5, 6])") == [(5,), (6,)]


def test_table_name_from_a_column(small: Any) -> None:
    got = q(small, "SELECT engram_row(n, 12) FROM (VALUES ('small'), ('SMALL')) v(n)")
    assert got == [(b"\1" * 8,)] * 2


def test_keyed_access_to_the_relation(small: Any) -> None:
    small.connection.execute("CREATE TABLE keys AS SELECT * FROM (VALUES (3), (12), (12), (99), (-1), (NULL)) v(k)")
    assert small.sql("SELECT rowid, row FROM small WHERE rowid = 12").fetchall() == [(12, b"\1" * 8)]
    assert small.sql("SELECT count(*) FROM small WHERE rowid IN (1, 5, 99, -7)").fetchall() == [(2,)]
    assert small.sql("SELECT count(*) FROM small WHERE rowid BETWEEN 8 AND 11").fetchall() == [(4,)]
    assert small.sql("SELECT count(*) FROM small WHERE rowid = 1000").fetchall() == [(0,)]
    joined = small.sql("SELECT k, row FROM keys JOIN small ON small.rowid = keys.k ORDER BY k").fetchall()
    assert joined == [(3, b"\0" * 8), (12, b"\1" * 8), (12, b"\1" * 8)]
    assert small.sql("SELECT count(*) FROM keys LEFT JOIN small ON small.rowid = keys.k").fetchall() == [(6,)]
    assert small.sql("SELECT count(*) FROM small").fetchall() == [(30,)]
    assert [r for (r,) in small.sql("SELECT rowid FROM small LIMIT 5").fetchall()] == [0, 1, 2, 3, 4]


def test_scan(small: Any) -> None:
    assert q(small, "SELECT count(*), min(rowid), max(rowid) FROM engram_scan('small')") == [(30, 0, 29)]
    got = q(small, "SELECT rowid, row FROM engram_scan('small', 8, 5) ORDER BY rowid")
    assert got == [(i, bytes([i // 10] * 8)) for i in range(8, 13)]
    for first, count in ((-1, 5), (0, -1), (31, 1), (25, 10), (2**62, 2**62)):
        try:
            rows = q(small, f"SELECT rowid FROM engram_scan('small', {first}, {count})")
        except Exception as e:
            assert_mentions(str(e), ("count", "first", "30"))
        else:
            raise AssertionError(f"scan of {first}, {count} returned {rows}")


# --- panics ---------------------------------------------------------------------------------------------------------


def fault_points() -> list[str]:
    """Every point at which the native code can be told to panic."""
    found: set[str] = set()
    for path in (REPOSITORY / "engramsql").rglob("*.rs"):
        found.update(re.findall(r'fault::point\("([^"]+)"\)', path.read_text(encoding="utf-8")))
    return sorted(found)


def test_there_are_fault_points() -> None:
    assert fault_points(), "no fault::point(...) in the native sources: the boundary cannot be tested"


@pytest.mark.parametrize("point", fault_points())
def test_a_panic_becomes_an_error(tmp_path: Path, point: str) -> None:
    make_qwen(tmp_path)
    done = run_python(
        """
import sys
import engramsql
from helpers import q
hits = []
def attempt(name, call):
    try:
        call()
    except Exception as e:
        if "fault" in str(e) or "panic" in str(e).lower() or "internal" in str(e).lower():
            hits.append(name)
        else:
            hits.append(f"{name}: {e}")
try:
    db = engramsql.connect()
except Exception as e:
    # The point is on the way to a connection: an error, and a process that goes on.
    assert "fault" in str(e), e
    print("ok")
    raise SystemExit(0)
attempt("register", lambda: db.register("t", sys.argv[1]))
for sql in (
    "SELECT * FROM no_such_table",
    f"SELECT * FROM '{sys.argv[1]}'",
    "SELECT * FROM engram_fetch('t', [1, 2])",
    "SELECT engram_row('t', 1)",
    "SELECT engram_vector('t', i) FROM range(5) r(i)",
    "SELECT engram_e_t('t', [1, 2])",
    "SELECT * FROM engram_embeddings('t', [1, 2])",
    "SELECT rowids_for_seq('t', [1, 2])",
    "SELECT rowids_for_seq([1, 2])",
    "SELECT sum(rowid), count(row) FROM engram_scan('t')",
    "SELECT * FROM engram_tables()",
    "SELECT engram_decode('\\\\x00\\\\x00'::BLOB, 'bf16')",
):
    attempt(sql, lambda: q(db, sql))
    assert q(db, "SELECT 42") == [(42,)]
for name, call in (
    ("fetch", lambda: db.table("t").fetch([1, 2])),
    ("vectors", lambda: db.table("t").vectors([1, 2])),
    ("rowids", lambda: db.table("t").rowids([1, 2])),
    ("e_t", lambda: db.table("t").e_t([1, 2])),
):
    attempt(name, call)
    assert q(db, "SELECT 42") == [(42,)]
assert hits, "the fault was never reached"
print("ok")
""",
        env={"ENGRAMSQL_FAULT": f"panic@{point}"},
        args=[str(tmp_path)],
    )
    assert done.stdout == "ok\n"
