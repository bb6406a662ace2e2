"""engram_fetch: n ids in, n rows out, in order, and nothing else."""

from __future__ import annotations

import gc
import hashlib
import json
import shutil

import duckdb
import numpy as np
import pytest
from extension_support import (
    FP8,
    FP8_DIM,
    FP8_REACHABLE,
    FP8_ROWS,
    GOLDEN,
    arrow,
    bf16,
    connect,
    connect_ple,
    golden,
    small_store,
)

INTEGER_TYPES = [
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
]  # fmt: skip


@pytest.fixture(scope="module")
def con():
    return connect_ple()


def test_rows_are_the_golden_ones(con):
    want = golden("ckpt_qwen4_exp_fp8")
    tokens = want["tokens"].tolist()
    got = con.execute(
        "SELECT token, rowid, \"row\" FROM engram_fetch('ple', rowids_for_seq('ple', ?))", [tokens]
    ).fetchnumpy()
    assert got["rowid"].tolist() == want["rowids"].reshape(-1).tolist()
    assert got["token"].tolist() == np.repeat(np.arange(len(tokens)), 16).tolist()
    rows = np.frombuffer(b"".join(got["row"]), np.uint8).reshape(want["rows"].shape)
    assert np.array_equal(rows, want["rows"])


def test_embeddings_are_the_golden_ones(con):
    want = golden("ckpt_qwen4_exp_fp8")
    table = arrow(con, "SELECT embedding FROM engram_fetch('ple', rowids_for_seq('ple', ?))", want["tokens"].tolist())
    column = table.column("embedding").combine_chunks()
    assert str(column.type).startswith("fixed_size_list<")
    assert column.type.list_size == FP8_DIM
    values = column.flatten().to_numpy()
    digest = hashlib.sha256(values.astype("<f4").tobytes()).digest()
    assert digest == want["e_t_f32_sha256"].tobytes()
    assert np.array_equal(bf16(values).reshape(want["e_t_bf16"].shape), want["e_t_bf16"])


def test_order_and_duplicates_are_kept(con):
    ids = [1407, 0, 352, 0, 1407]
    got = con.execute("SELECT ord, rowid FROM engram_fetch('ple', ?)", [ids]).fetchall()
    assert got == list(enumerate(ids))


def test_one_row_per_shard_of_a_store(tmp_path):
    con = connect()
    store = small_store(tmp_path / "store")
    con.execute(f"CALL engram_register('s', '{store}', width := 8)")
    got = con.execute("SELECT rowid, \"row\" FROM engram_fetch('s', [29, 0, 10, 19, 29])").fetchall()
    assert got == [(i, bytes([i // 10]) * 8) for i in (29, 0, 10, 19, 29)]
    with pytest.raises(duckdb.Error, match="'s' has no value format"):
        con.execute("SELECT embedding FROM engram_fetch('s', [1])")


def test_head_is_the_heads_range_and_null_in_padding(con):
    got = con.execute(
        "SELECT rowid, head FROM engram_fetch('ple', ?)", [[0, 52, 53, FP8_REACHABLE - 1, FP8_REACHABLE, FP8_ROWS - 1]]
    ).fetchall()
    assert got == [(0, 0), (52, 0), (53, 1), (1391, 15), (1392, None), (1407, None)]


@pytest.mark.parametrize("kind", INTEGER_TYPES)
def test_any_integer_type_binds(con, kind):
    got = con.execute(f"SELECT rowid FROM engram_fetch('ple', [3::{kind}, NULL, 100::{kind}])").fetchall()
    assert got == [(3,), (None,), (100,)]


@pytest.mark.parametrize(
    "form", ["[1, 2]", "range(1, 3)", "[1, 2]::BIGINT[2]", "list_reverse([2, 1])", "[1, 2, 3][1:2]"]
)
def test_list_forms(con, form):
    got = con.execute(f"SELECT rowid FROM engram_fetch('ple', {form})").fetchall()
    assert got == [(1,), (2,)]


@pytest.mark.parametrize("ids", [[3, 1], (3, 1), np.array([3, 1]), np.array([3, 1], np.uint32)])
def test_python_parameters(con, ids):
    assert con.execute("SELECT rowid FROM engram_fetch('ple', ?)", [ids]).fetchall() == [(3,), (1,)]


def test_prepared_list(con):
    con.execute("PREPARE fetch_list AS SELECT rowid FROM engram_fetch('ple', $1)")
    assert con.execute("EXECUTE fetch_list([5, 6])").fetchall() == [(5,), (6,)]
    assert con.execute("EXECUTE fetch_list([[7], [8]])").fetchall() == [(7,), (8,)]


def test_null_id_gives_a_null_row_between_unchanged_neighbours(con):
    rows = con.execute("SELECT * FROM engram_fetch('ple', [7, NULL, 8, NULL])").fetchall()
    alone = con.execute("SELECT * FROM engram_fetch('ple', [7, 8])").fetchall()
    assert rows[1] == (1, None, None, None, None, None)
    assert rows[3] == (3, None, None, None, None, None)
    assert [rows[0][2:], rows[2][2:]] == [row[2:] for row in alone]


@pytest.mark.parametrize("ids", [[7, None, 8], [7, None], [None, 7]])
def test_null_vectors_keep_their_slots_in_arrow(con, ids):
    table = arrow(con, "SELECT embedding FROM engram_fetch('ple', ?)", ids)
    table.validate(full=True)
    column = table.column(0).combine_chunks()
    want = con.execute("SELECT engram_vector('ple', 7)").fetchone()[0]
    assert list(column[ids.index(7)].as_py()) == want
    assert column[ids.index(None)].as_py() is None


def test_nulls_over_many_chunks(con):
    ids = [None if i % 7 == 3 else i % FP8_ROWS for i in range(10_000)]
    got = con.execute("SELECT ord, rowid, embedding, \"row\" FROM engram_fetch('ple', ?)", [ids]).fetchall()
    rows = dict(con.execute("SELECT rowid, \"row\" FROM engram_scan('ple')").fetchall())
    vectors = dict(con.execute("SELECT rowid, embedding FROM engram_scan('ple')").fetchall())
    assert [row[0] for row in got] == list(range(10_000))
    assert [row[1] for row in got] == ids
    for _, rowid, vector, row in got:
        assert row == rows.get(rowid)
        assert vector == vectors.get(rowid)


@pytest.mark.parametrize("none", ["NULL", "NULL::BIGINT[]", "NULL::INTEGER", "[]", "[NULL]::BIGINT[][]", "[[], []]"])
def test_no_list_no_rows(con, none):
    assert con.execute(f"SELECT * FROM engram_fetch('ple', {none})").fetchall() == []


def test_nested_lists_number_their_tokens(con):
    got = con.execute("SELECT ord, token, rowid FROM engram_fetch('ple', [[5, 6], NULL, [], [7, NULL]])").fetchall()
    assert got == [(0, 0, 5), (1, 0, 6), (2, 3, 7), (3, 3, None)]
    assert con.execute("SELECT token FROM engram_fetch('ple', [5])").fetchall() == [(None,)]


@pytest.mark.parametrize("bad", [-1, FP8_ROWS, 2**31, 2**63 - 1, 2**63, 2**64, -(2**100)])
def test_id_out_of_range_names_id_table_and_rows(con, bad):
    kind = "HUGEINT"
    with pytest.raises(duckdb.Error, match=rf"row id {bad} is out of range: table 'ple' has 1408 rows"):
        con.execute(f"SELECT rowid FROM engram_fetch('ple', [0, '{bad}'::{kind}])")
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_the_largest_sql_integer_is_named_exactly(con):
    with pytest.raises(duckdb.Error, match=f"row id {2**128 - 1} is out of range: table 'ple' has 1408 rows"):
        con.execute(f"SELECT rowid FROM engram_fetch('ple', ['{2**128 - 1}'::UHUGEINT])")


def test_head_offset_added_twice_is_out_of_range(con):
    offset = con.execute("SELECT first_row FROM engram_heads('ple') ORDER BY head DESC LIMIT 1").fetchone()[0]
    ids = con.execute("SELECT rowids_for_seq('ple', [1, 2, 3])[1]").fetchone()[0]
    assert len(con.execute("SELECT rowid FROM engram_fetch('ple', ?)", [ids]).fetchall()) == 16
    with pytest.raises(duckdb.Error, match="out of range: table 'ple' has 1408 rows"):
        con.execute("SELECT rowid FROM engram_fetch('ple', ?)", [[i + offset for i in ids]])


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ("[1.5]", r"row ids must be integers, got DECIMAL\(2,1\) in \[1.5\]"),
        ("[1, 1.5]", r"row ids must be integers, got DECIMAL\(11,1\) in \[1.0, 1.5\]"),
        ("[1e0]", r"row ids must be integers, got DOUBLE in \[1.0\]"),
        ("['7']", r"row ids must be integers, got VARCHAR in \['7'\]"),
        ("[true]", r"row ids must be integers, got BOOLEAN in \[true\]"),
        ("7", r"row ids must be a list of integers, got INTEGER 7"),
        ("'[7]'", r"row ids must be a list of integers, got VARCHAR '\[7\]'"),
        ("[[1.5]]", r"row ids must be integers, got DECIMAL\(2,1\) in \[\[1.5\]\]"),
        ("[[[1]]]", r"row ids must be a list of integers, got INTEGER\[\]\[\]"),
    ],
)
def test_what_is_no_integer_is_refused(con, ids, text):
    with pytest.raises(duckdb.Error, match=f"engram_fetch: {text}"):
        con.execute(f"SELECT rowid FROM engram_fetch('ple', {ids})")


def test_unknown_table_fails_when_prepared(con):
    with pytest.raises(duckdb.Error, match="no table named 'plee'"):
        con.execute("PREPARE nothing AS SELECT rowid FROM engram_fetch('plee', [1])")
    with pytest.raises(duckdb.Error, match="engram_fetch: the table name is NULL"):
        con.execute("SELECT rowid FROM engram_fetch(NULL, [1])")


def test_results_outlive_everything_else():
    con = connect_ple()
    table = arrow(con, "SELECT * FROM (SELECT rowid, embedding, \"row\" FROM engram_fetch('ple', range(0, 1408)))")
    first = table.to_pylist()
    con.close()
    del con
    gc.collect()
    assert table.to_pylist() == first
    table.validate(full=True)


def test_a_prepared_statement_notices_a_changed_table(tmp_path):
    con = connect()
    con.execute(f"CALL engram_register('s', '{small_store(tmp_path / 'a')}', width := 8)")
    con.execute("PREPARE f AS SELECT octet_length(\"row\") FROM engram_fetch('s', [29])")
    assert con.execute("EXECUTE f").fetchall() == [(8,)]
    con.execute("CALL engram_drop('s')")
    with pytest.raises(duckdb.Error, match="no table named 's'"):
        con.execute("EXECUTE f")
    con.execute(f"CALL engram_register('s', '{tmp_path / 'a'}', width := 4)")
    # DuckDB 2 binds again by itself; 1.5 runs the old plan. Either way no byte of another geometry comes back.
    try:
        outcome = con.execute("EXECUTE f").fetchall()
    except duckdb.Error as error:
        outcome = str(error)
    assert outcome == [(4,)] or "table 's' changed since this statement was prepared" in outcome


def again(con, statement: str, sql: str) -> None:
    """Runs a prepared statement after its table changed: what it returns is what ``sql`` returns now, or an error."""
    want = con.execute(sql).fetchall()
    try:
        got = con.execute(statement).fetchall()
    except duckdb.Error as error:
        assert "changed since this statement was prepared; prepare it again" in str(error)
    else:
        assert got == want


def test_a_prepared_statement_notices_another_spec(tmp_path):
    # The same geometry and head sizes, another token that bounds segments: only the row ids differ.
    source = GOLDEN / "ckpt_qwen4_exp_bf16"
    for name, eos in (("one", 1), ("two", 2)):
        shutil.copytree(source, tmp_path / name)
        config = tmp_path / name / "config.json"
        document = json.loads(config.read_text())
        document["text_config"]["eos_token_id"] = eos
        config.write_text(json.dumps(document))
    con = connect()
    con.execute(f"CALL engram_register('t', '{tmp_path / 'one'}')")
    sql = "SELECT e_t FROM engram_embeddings('t', [5, 6, 1, 7, 2, 8, 9])"
    con.execute(f"PREPARE e AS {sql}")
    before = con.execute("EXECUTE e").fetchall()
    con.execute("CALL engram_drop('t')")
    con.execute(f"CALL engram_register('t', '{tmp_path / 'two'}')")
    assert con.execute(sql).fetchall() != before
    again(con, "EXECUTE e", sql)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("format := 'fp8_e4m3', scale := 0.5", "format := 'fp8_e4m3', scale := 2.0"),
        ("format := 'bf16'", "format := 'f16'"),
    ],
)
def test_a_prepared_statement_notices_another_scale_or_format(tmp_path, before, after):
    store = small_store(tmp_path / "s")
    con = connect()
    sql = "SELECT embedding::FLOAT[] FROM engram_fetch('s', [29])"
    con.execute(f"CALL engram_register('s', '{store}', width := 8, {before})")
    con.execute(f"PREPARE f AS {sql}")
    con.execute("CALL engram_drop('s')")
    con.execute(f"CALL engram_register('s', '{store}', width := 8, {after})")
    again(con, "EXECUTE f", sql)


def test_paths_are_tables():
    con = connect()
    assert con.execute(f"SELECT count(*) FROM engram_fetch('{FP8}', [1, 2])").fetchall() == [(2,)]
