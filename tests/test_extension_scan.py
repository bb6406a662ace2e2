"""engram_scan, engram_embeddings, FROM name: ranges, projection, optional arguments."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from extension_support import FP8, FP8_ROWS, GOLDEN, arrow, bf16, connect, connect_ple, golden, run_python


@pytest.fixture(scope="module")
def con():
    return connect_ple()


def test_a_scan_is_every_row_once(con):
    got = con.execute("SELECT rowid FROM engram_scan('ple')").fetchall()
    assert [row for (row,) in got] == list(range(FP8_ROWS))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_parallel_scan_of_many_blocks(tmp_path, threads):
    con = connect(threads=threads)
    rows = 200_000
    (tmp_path / "shard_000.bin").write_bytes(np.arange(rows, dtype="<u4").tobytes())
    con.execute(f"CALL engram_register('t', '{tmp_path}', width := 4)")
    counts = con.execute("SELECT count(*), count(DISTINCT rowid), sum(rowid), min(rowid), max(rowid) FROM t").fetchone()
    assert counts == (rows, rows, rows * (rows - 1) // 2, 0, rows - 1)
    got = con.execute('SELECT rowid, "row" FROM t').fetchnumpy()
    assert np.array_equal(np.frombuffer(b"".join(got["row"]), "<u4"), got["rowid"])
    assert np.array_equal(got["rowid"], np.arange(rows))


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ("'ple', 5, 3", [5, 6, 7]),
        ("'ple', 1405", [1405, 1406, 1407]),
        ("'ple', first := 5, count := 2", [5, 6]),
        ("'ple', count := 1", [0]),
        ("'ple', 1408, 0", []),
        ("'ple', 7, 0", []),
    ],
)
def test_ranges(con, arguments, want):
    got = con.execute(f"SELECT rowid FROM engram_scan({arguments})").fetchall()
    assert [row for (row,) in got] == want


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("-1", "row id -1 is out of range: table 'ple' has 1408 rows"),
        ("1409", "row id 1409 is out of range"),
        ("1400, 9", "row id 1408 is out of range"),
        ("0, -1", "engram_scan: count must not be negative, got -1"),
        ("0, 9223372036854775807", "out of range"),
        ("1.5", r"engram_scan: first must be a 64-bit integer, got DECIMAL\(2,1\) 1.5"),
        ("'a'", "engram_scan: first must be a 64-bit integer, got VARCHAR 'a'"),
    ],
)
def test_ranges_outside_the_table(con, arguments, text):
    with pytest.raises(duckdb.Error, match=text):
        con.execute(f"SELECT rowid FROM engram_scan('ple', {arguments})")


def test_types_and_limit_through_the_macro(con):
    assert con.execute("SELECT typeof(embedding) FROM engram_scan('ple', 0, 9) LIMIT 1").fetchall() == [("FLOAT[160]",)]
    assert con.execute("SELECT rowid FROM engram_scan('ple') LIMIT 2 OFFSET 3").fetchall() == [(3,), (4,)]
    plan = con.execute("EXPLAIN SELECT rowid FROM engram_scan('ple', 0, 9)").fetchall()[0][1]
    assert "embedding" not in plan
    assert "rowid" in plan


def test_a_table_is_a_relation(con):
    assert con.execute("SELECT count(*) FROM ple").fetchall() == [(FP8_ROWS,)]
    assert con.execute("SELECT count(*) FROM PLE").fetchall() == [(FP8_ROWS,)]
    heads = con.execute("SELECT head, count(*) FROM ple GROUP BY head ORDER BY head NULLS LAST").fetchall()
    want = con.execute("SELECT head, rows FROM engram_heads('ple') ORDER BY head").fetchall()
    assert heads == [*want, (None, 16)]


def test_other_names_are_left_alone(con):
    con.execute("CREATE OR REPLACE TABLE mine AS SELECT 1 x")
    assert con.execute("SELECT x FROM mine").fetchall() == [(1,)]
    with pytest.raises(duckdb.CatalogException, match="nothing_here"):
        con.execute("SELECT * FROM nothing_here")
    import pyarrow as pa

    ple_frame = pa.table({"a": [1]})
    assert con.execute("SELECT a FROM ple_frame").fetchall() == [(1,)]
    del ple_frame


def test_embeddings_are_the_golden_ones(con):
    want = golden("ckpt_qwen4_exp_fp8")
    tokens = want["tokens"].tolist()
    table = arrow(con, "SELECT token, token_id, e_t FROM engram_embeddings('ple', ?)", tokens)
    assert table.column("token").to_pylist() == list(range(len(tokens)))
    assert table.column("token_id").to_pylist() == tokens
    values = table.column("e_t").combine_chunks().flatten().to_numpy()
    assert np.array_equal(bf16(values).reshape(want["e_t_bf16"].shape), want["e_t_bf16"])


@pytest.mark.parametrize(
    ("checkpoint", "table", "expected"),
    [
        ("ckpt_qwen4_exp_bf16", "t", "e_t_bf16"),
        ("ckpt_qwen4_exp_nvfp4", "t", "e_t_bf16"),
        ("ckpt_deepseek_v41", "t_l1", "e_t_bf16_layer_1"),
        ("ckpt_deepseek_v41", "t_l3", "e_t_bf16_layer_3"),
    ],
)
def test_embeddings_of_every_family(checkpoint, table, expected):
    con = connect()
    con.execute(f"CALL engram_register('t', '{GOLDEN / checkpoint}')")
    want = golden(checkpoint)
    tokens = want["tokens"].tolist()
    sql = f"SELECT e_t FROM engram_embeddings('{table}', ?)"
    values = arrow(con, sql, tokens).column(0).combine_chunks().flatten().to_numpy()
    assert np.array_equal(bf16(values).reshape(want[expected].shape), want[expected])


def test_embeddings_of_a_long_sequence(con):
    # A chunk holds 819 tokens of this table (8 MB of floats), fewer than DuckDB's 2048 rows.
    got = con.execute(
        "SELECT count(*), count(DISTINCT token), min(token_id), max(token_id), "
        "bool_and(token_id = token % 500 AND e_t::FLOAT[] = engram_e_t('ple', ids[token + 1])) "
        "FROM engram_embeddings('ple', list_transform(range(5000), lambda i: i % 500)), "
        "(SELECT rowids_for_seq('ple', list_transform(range(5000), lambda i: i % 500)) AS ids)"
    ).fetchone()
    assert got == (5000, 5000, 0, 499, True)


def test_embeddings_with_history(con):
    tokens = golden("ckpt_qwen4_exp_fp8")["tokens"].tolist()
    whole = con.execute("SELECT e_t FROM engram_embeddings('ple', ?)", [tokens]).fetchall()
    positional = con.execute("SELECT e_t FROM engram_embeddings('ple', ?, ?)", [tokens[9:], tokens[:9]]).fetchall()
    named = con.execute(
        "SELECT e_t FROM engram_embeddings('ple', ?, history := ?)", [tokens[9:], tokens[:9]]
    ).fetchall()
    assert positional == named == whole[9:]


@pytest.mark.parametrize("none", ["[]", "NULL", "NULL::BIGINT[]"])
def test_embeddings_of_nothing(con, none):
    assert con.execute(f"SELECT * FROM engram_embeddings('ple', {none})").fetchall() == []


def test_bad_tokens_return_nothing(con):
    with pytest.raises(duckdb.Error, match="token id 999999 at position 1"):
        con.execute("SELECT token FROM engram_embeddings('ple', [1, 999999])")
    with pytest.raises(duckdb.Error, match="token id at position 1 is NULL"):
        con.execute("SELECT token FROM engram_embeddings('ple', [1, NULL])")


def test_a_database_file_is_not_written_to(tmp_path):
    path = tmp_path / "user.duckdb"
    with duckdb.connect(str(path)) as plain:
        plain.execute("CREATE TABLE t AS SELECT 1 x")
    con = connect(str(path))
    con.execute(f"CALL engram_register('ple', '{FP8}')")
    assert con.execute("SELECT rowid FROM engram_scan('ple', first := 3, count := 1)").fetchall() == [(3,)]
    assert con.execute("SELECT token FROM engram_embeddings('ple', [1], history := [2])").fetchall() == [(0,)]
    assert con.execute("SELECT count(*) FROM ple").fetchall() == [(FP8_ROWS,)]
    with pytest.raises(duckdb.Error):
        con.execute("SELECT rowid FROM engram_scan('ple', 3, 1)")
    con.close()
    with duckdb.connect(str(path)) as plain:
        names = plain.execute("SELECT function_name FROM duckdb_functions() WHERE NOT internal").fetchall()
        assert names == []


def test_ids_alone_read_no_row():
    code = """
from extension_support import connect_ple
con = connect_ple()
for sql in (
    "SELECT count(*) FROM ple",
    "SELECT sum(rowid), count(head) FROM ple",
    "SELECT ord, token, head, rowid FROM engram_fetch('ple', [[1, 2], [NULL]])",
    "SELECT count(*) FROM engram_fetch('ple', [1])",
    "SELECT token, token_id FROM engram_embeddings('ple', [1])",
):
    con.execute(sql).fetchall()
try:
    con.execute("SELECT embedding FROM ple").fetchall()
except Exception as error:
    assert "fault injected at 'gather'" in str(error), error
else:
    raise SystemExit("a read did not pass the fault point")
print("done")
"""
    done = run_python(code, ENGRAMSQL_FAULT="panic@gather")
    assert (done.stdout.strip(), done.returncode) == ("done", 0), done.stderr
