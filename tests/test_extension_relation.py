"""FROM name: the relation of a table, which reads only the rows and columns that a query uses."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from extension_support import FP8, FP8_DIM, FP8_ROWS, arrow, connect, golden, run_python, small_store

import engramsql

ROWS = 40_000
WIDTH = 8


def store_of_floats(directory: Path, dim: int, rows: int) -> np.ndarray:
    """A store of float32 rows in two shards; the values it holds."""
    directory.mkdir()
    values = np.arange(rows * dim, dtype=np.float32).reshape(rows, dim)
    for shard, part in enumerate(np.split(values, 2)):
        (directory / f"shard_{shard:03}.bin").write_bytes(part.tobytes())
    return values


@pytest.fixture(scope="module", params=["view", "replacement"])
def con(request):
    """A connection on which ``ple`` is the small FP8 checkpoint: by the view of Database, or by the extension alone."""
    if request.param == "view":
        database = engramsql.connect()
        database.register("ple", FP8)
        yield database.connection
        database.close()
    else:
        con = connect()
        con.execute(f"CALL engram_register('ple', '{FP8}')")
        yield con


@pytest.fixture
def big(tmp_path):
    """A connection with table ``t``: 40000 float32 rows of 2 values; and what it holds."""
    values = store_of_floats(tmp_path / "s", 2, ROWS)
    con = connect()
    con.execute(f"CALL engram_register('t', '{tmp_path / 's'}', width := 8, format := 'f32')")
    return con, values


def rows_read(con: duckdb.DuckDBPyConnection, sql: str) -> int:
    """Rows of table ``t`` that running ``sql`` read."""
    count = "SELECT coalesce(sum(rows), 0) FROM engram_stats() WHERE table_name = 't'"
    before = con.execute(count).fetchone()[0]
    con.execute(sql).fetchall()
    return int(con.execute(count).fetchone()[0] - before)


def test_columns_and_rows_are_those_of_the_scan(con):
    described = con.execute("DESCRIBE FROM ple").fetchall()
    assert described == con.execute("DESCRIBE FROM engram_scan('ple')").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [
        ("rowid", "BIGINT"),
        ("head", "INTEGER"),
        ("embedding", f"FLOAT[{FP8_DIM}]"),
        ("row", "BLOB"),
    ]
    ordered = "SELECT * FROM {} ORDER BY rowid"
    got, want = arrow(con, ordered.format("ple")), arrow(con, ordered.format("engram_scan('ple')"))
    assert got.num_rows == FP8_ROWS
    assert got.equals(want)


def test_rows_are_the_golden_ones(con):
    want = golden("ckpt_qwen4_exp_fp8")
    ids = want["rowids"].reshape(-1)
    rows = dict(con.execute("SELECT rowid, row FROM ple").fetchall())
    got = np.frombuffer(b"".join(rows[i] for i in ids.tolist()), np.uint8)
    assert np.array_equal(got, want["rows"].reshape(-1))


def test_filters_on_every_column(con):
    want = con.execute("SELECT rowid, head, row, embedding FROM engram_scan('ple') ORDER BY rowid").fetchall()
    cases = {
        "rowid = 700": lambda r: r[0] == 700,
        "rowid IN (3, 1, 1407, 9999)": lambda r: r[0] in (3, 1, 1407),
        "rowid BETWEEN 1390 AND 2000": lambda r: r[0] >= 1390,
        "rowid = 5.5": lambda r: False,
        "head = 3": lambda r: r[1] == 3,
        "head IS NULL": lambda r: r[1] is None,
        "row = (SELECT row FROM ple WHERE rowid = 8)": lambda r: r[2] == want[8][2],
        "embedding[1] > 0.01 AND head < 2": lambda r: r[3][0] > np.float32(0.01) and r[1] is not None and r[1] < 2,
    }
    for where, passes in cases.items():
        got = con.execute(f"SELECT rowid, head, row, embedding FROM ple WHERE {where} ORDER BY rowid").fetchall()
        assert got == [r for r in want if passes(r)], where


def test_a_join_drops_keys_without_a_row(con):
    got = con.execute(
        "SELECT k, head FROM (VALUES (5), (-1), (99999), (NULL)) t(k) JOIN ple ON ple.rowid = k"
    ).fetchall()
    assert got == [(5, 0)]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM t", 0),
        ("SELECT sum(rowid), max(head) FROM t", 0),
        ("SELECT embedding FROM t WHERE rowid * 1000 = 3000", 1),
        ("SELECT row FROM t WHERE rowid IN (7, 39999)", 2),
        ("SELECT embedding, row FROM t WHERE rowid BETWEEN 5 AND 14", 20),
        ("SELECT embedding FROM t WHERE head = 3", 0),
        ("SELECT sum(embedding[1]) FROM t", ROWS),
        ("SELECT embedding FROM t LIMIT 0", 0),
    ],
)
def test_only_what_passes_is_read(big, sql, rows):
    con, _ = big
    assert rows_read(con, sql) == rows


def test_a_head_reads_its_rows_alone():
    database = engramsql.connect()
    database.register("t", FP8)
    (size,) = database.connection.execute("SELECT rows FROM engram_heads('t') WHERE head = 3").fetchone()
    assert rows_read(database.connection, "SELECT embedding FROM t WHERE head = 3") == size
    database.close()


def test_many_chunks_by_several_threads(big):
    con, values = big
    con.execute("SET threads = 3")
    table = arrow(con, "SELECT rowid, embedding, row FROM t ORDER BY rowid")
    assert table.column("rowid").to_pylist() == list(range(ROWS))
    assert np.array_equal(table.column("embedding").combine_chunks().flatten().to_numpy(), values.reshape(-1))
    assert b"".join(table.column("row").to_pylist()) == values.tobytes()


def test_stretches_with_gaps_give_each_row_its_own_values(big):
    # Full chunks of ids that follow each other are read as a scan reads; others, and ends of stretches, are gathered.
    con, values = big
    for where in ("rowid >= 3000", "rowid < 2048 OR rowid > 9000", "rowid != 5000", "rowid % 4096 < 2048"):
        got = arrow(con, f"SELECT rowid, embedding FROM t WHERE {where} ORDER BY rowid")
        ids = np.array(got.column("rowid").to_pylist())
        assert 0 < len(ids) < ROWS
        assert np.array_equal(got.column("embedding").combine_chunks().flatten().to_numpy(), values[ids].reshape(-1))


@pytest.mark.parametrize("dim", [1, 7, 160, 161, 4097])
def test_widths_with_and_without_a_signature_of_their_own(tmp_path, dim):
    values = store_of_floats(tmp_path / "s", dim, 20)
    con = connect()
    con.execute(f"CALL engram_register('t', '{tmp_path / 's'}', width := {4 * dim}, format := 'f32')")
    fetched = "engram_fetch('t', [19, 3])"
    for relation, ids in (("t", list(range(20))), (fetched, [19, 3])):
        column = arrow(con, f"SELECT embedding FROM {relation}").column(0).combine_chunks()
        assert column.type.list_size == dim
        assert np.array_equal(column.flatten().to_numpy().reshape(-1, dim), values[ids])


def test_a_table_without_a_format_has_rows_but_no_values(tmp_path):
    con = connect()
    con.execute(f"CALL engram_register('s', '{small_store(tmp_path / 's')}', width := 8)")
    assert con.execute("SELECT rowid, row FROM s WHERE rowid = 12").fetchall() == [(12, b"\x01" * 8)]
    assert con.execute("DESCRIBE SELECT embedding FROM s").fetchall()[0][1] == "FLOAT[]"
    with pytest.raises(duckdb.Error, match="'s' has no value format"):
        con.execute("SELECT embedding FROM s").fetchall()


def test_python_and_other_clients_have_the_same_relation(con):
    # Python makes a view of the text that the replacement scan of other clients uses.
    database = engramsql.connect()
    database.register("ple", FP8)
    ((text,),) = con.execute("SELECT _engram_relation('ple')").fetchall()
    con.execute(f"CREATE OR REPLACE TEMP VIEW made AS {text}")
    ((kept,),) = con.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'made'").fetchall()
    ((of_python,),) = database.connection.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'ple'").fetchall()
    assert of_python.split(" AS ", 1)[1] == kept.split(" AS ", 1)[1]
    database.close()


def test_the_relation_of_a_name_with_quotes(tmp_path):
    con = connect()
    con.execute(f"CALL engram_register('it''s', '{small_store(tmp_path / 's')}', width := 8)")
    ((text, embedding),) = con.execute("SELECT _engram_relation('it''s'), _engram_relation('it''s', 'k.i')").fetchall()
    assert embedding == "system.main._engram_vector('it''s', k.i, 0)"
    assert con.execute(f"SELECT count(*) FROM ({text})").fetchall() == [(30,)]
    with pytest.raises(duckdb.Error, match="NULL"):
        con.execute("SELECT _engram_relation('it''s', NULL)")


def test_a_macro_of_the_user_does_not_take_the_place_of_a_function(con):
    macros = {
        "MACRO engram_row": "(a, b) AS 'taken'::BLOB",
        "MACRO _engram_vector": "(a, b, c) AS 'taken'",
        "MACRO TABLE _engram_ids_native": "(a) AS TABLE (SELECT 1 AS rowid, 2 AS head)",
    }
    select = "SELECT rowid, row, embedding FROM {} WHERE rowid = 700"
    want = con.execute(select.format("engram_scan('ple')")).fetchall()
    for name, body in macros.items():
        con.execute(f"CREATE {name.replace(' TABLE', '')}{body}")
    try:
        assert con.execute(select.format("ple")).fetchall() == want
    finally:
        for name in macros:
            con.execute(f"DROP {name}")
    assert len(want) == 1


def test_a_name_with_quotes_is_a_relation(tmp_path):
    con = connect()
    con.execute(f"CALL engram_register('it''s \"odd\"', '{small_store(tmp_path / 's')}', width := 8)")
    assert con.execute('SELECT row FROM "it\'s ""odd""" WHERE rowid = 29').fetchall() == [(b"\x02" * 8,)]


def test_a_relation_of_a_database_file(tmp_path):
    con = connect(str(tmp_path / "file.db"))
    con.execute(f"CALL engram_register('ple', '{FP8}')")
    got = con.execute("SELECT rowid, head, typeof(embedding) FROM ple WHERE rowid > 1405 ORDER BY rowid").fetchall()
    assert got == [(1406, None, "FLOAT[160]"), (1407, None, "FLOAT[160]")]


def test_a_table_whose_files_are_gone_says_so(tmp_path):
    code = f"""
import shutil, duckdb
from extension_support import connect, small_store
store = small_store(__import__("pathlib").Path({str(tmp_path / "s")!r}))
con = connect()
con.execute(f"CALL engram_attach('{tmp_path / "db"}')")
con.execute(f"CALL engram_register('s', '{{store}}', width := 8)")
con.close()
shutil.rmtree(store)
con = connect()
con.execute(f"CALL engram_attach('{tmp_path / "db"}')")
try:
    con.execute("SELECT rowid FROM s")
except duckdb.Error as error:
    print(error)
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "s") in done.stdout
