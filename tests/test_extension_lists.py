"""What macros and rewritten queries are made of: keys, typed vectors, and row ids without rows."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from extension_support import FP8_DIM, FP8_REACHABLE, FP8_ROWS, GOLDEN, arrow, connect, connect_ple, golden, small_store

INTEGER_TYPES = [
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
]  # fmt: skip
VECTOR = f"NULL::FLOAT[{FP8_DIM}][]"


@pytest.fixture(scope="module")
def con():
    return connect_ple()


@pytest.fixture(scope="module")
def vectors(con):
    """Every row of the table, as engram_scan gives it."""
    values = arrow(con, "SELECT embedding FROM engram_scan('ple') ORDER BY rowid").column(0).combine_chunks()
    return values.flatten().to_numpy().reshape(FP8_ROWS, FP8_DIM)


@pytest.mark.parametrize("kind", INTEGER_TYPES)
def test_a_key_is_the_id_where_the_table_has_the_row(con, kind):
    got = con.execute(f"SELECT _engram_key('ple', x::{kind}) FROM (VALUES (0), (7), (NULL), (127)) AS t(x)").fetchall()
    assert got == [(0,), (7,), (None,), (127,)]


@pytest.mark.parametrize(
    "outside", ["-1", str(FP8_ROWS), "9223372036854775807", "-9223372036854775808", "(1::HUGEINT << 100)",
                "18446744073709551615::UBIGINT", "340282366920938463463374607431768211455::UHUGEINT"],
)  # fmt: skip
def test_a_key_outside_the_table_is_null(con, outside):
    assert con.execute(f"SELECT _engram_key('ple', {outside})").fetchall() == [(None,)]
    assert con.execute(f"SELECT _engram_key('ple', {FP8_ROWS} - 1)").fetchall() == [(FP8_ROWS - 1,)]


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "VARCHAR", "BOOLEAN", "DECIMAL(18, 2)"])
def test_a_key_that_is_no_integer_does_not_bind(con, kind):
    with pytest.raises(duckdb.BinderException, match="_engram_key"):
        con.execute(f"SELECT _engram_key('ple', x::{kind}) FROM (VALUES (1)) AS t(x)")


def test_a_key_may_be_a_parameter(con):
    assert con.execute("SELECT _engram_key('ple', ?)", [5]).fetchall() == [(5,)]
    con.execute("PREPARE one_key AS SELECT _engram_key('ple', $k)")
    assert con.execute("EXECUTE one_key(k := 6)").fetchall() == [(6,)]


def test_heads_without_reading(con):
    ids = [0, 52, 53, FP8_REACHABLE - 1, FP8_REACHABLE, FP8_ROWS - 1, None]
    got = con.execute("SELECT engram_head('ple', unnest(?))", [ids]).fetchall()
    assert got == [(0,), (0,), (1,), (15,), (None,), (None,), (None,)]
    want = con.execute("SELECT head FROM engram_scan('ple') ORDER BY rowid").fetchall()
    assert con.execute("SELECT engram_head('ple', r) FROM range(1408) AS t(r) ORDER BY r").fetchall() == want
    with pytest.raises(duckdb.Error, match="'ple' has 1408 rows"):
        con.execute("SELECT engram_head('ple', 1408)")


def test_a_witness_types_the_vector(con, vectors):
    sql = f"SELECT _engram_vector('ple', r, {VECTOR}) AS v FROM range(1408) AS t(r) ORDER BY r"
    column = arrow(con, sql).column("v").combine_chunks()
    assert column.type.list_size == FP8_DIM
    assert np.array_equal(column.flatten().to_numpy().reshape(vectors.shape), vectors)


@pytest.mark.parametrize("witness", ["0", "NULL::FLOAT[160]", "NULL::FLOAT[]", "NULL::FLOAT[161][]"])
def test_other_witnesses_give_a_list(con, vectors, witness):
    kind, value = con.execute(
        f"SELECT typeof(v), v FROM (SELECT _engram_vector('ple', 7::BIGINT, {witness}) AS v)"
    ).fetchone()
    assert kind == "FLOAT[]"
    assert np.array_equal(np.array(value, np.float32), vectors[7])


@pytest.mark.parametrize("kind", INTEGER_TYPES)
def test_ids_of_any_integer_type_with_a_typed_witness(con, kind):
    got = con.execute(f"SELECT typeof(_engram_vector('ple', 7::{kind}, {VECTOR}))").fetchone()
    assert got == ("FLOAT[160]",)
    got = con.execute(f"SELECT typeof(_engram_e_t('ple', [7::{kind}], {VECTOR}))").fetchone()
    assert got == ("FLOAT[160]",)


def test_a_witness_of_another_width_is_refused(con):
    with pytest.raises(duckdb.Error, match=r"'ple' gives FLOAT\[160\] here, not FLOAT\[128\]"):
        con.execute("SELECT _engram_vector('ple', 7, NULL::FLOAT[128][])")
    with pytest.raises(duckdb.Error, match=r"'ple' gives FLOAT\[160\] here, not FLOAT\[128\]"):
        con.execute("SELECT _engram_vector(t, 7, NULL::FLOAT[128][]) FROM (VALUES ('ple')) AS t(t)")
    with pytest.raises(duckdb.Error, match=r"'ple' gives FLOAT\[320\] here, not FLOAT\[2560\]"):
        con.execute("SELECT _engram_e_t('ple', [1, 2], NULL::FLOAT[2560][])")


def test_null_ids_between_unchanged_neighbours(con, vectors):
    sql = f"SELECT _engram_vector('ple', r, {VECTOR}) AS v FROM (VALUES (7), (NULL), (8)) AS t(r)"
    table = arrow(con, sql)
    table.validate(full=True)
    got = table.column(0).to_pylist()
    assert got[1] is None
    assert np.array_equal(np.array([got[0], got[2]], np.float32), vectors[[7, 8]])


def test_e_t_is_the_golden_one_and_typed(con):
    want = golden("ckpt_qwen4_exp_fp8")
    sql = (
        "SELECT _engram_e_t('ple', ids, NULL::FLOAT[2560][]) AS e FROM (SELECT unnest(rowids_for_seq('ple', ?)) AS ids)"
    )
    column = arrow(con, sql, want["tokens"].tolist()).column(0).combine_chunks()
    assert column.type.list_size == 2560
    rows = np.stack(
        [
            np.frombuffer(b, np.uint8)
            for (b,) in con.execute("SELECT row FROM engram_scan('ple') ORDER BY rowid").fetchall()
        ]
    )
    assert np.array_equal(rows[want["rowids"]], want["rows"].reshape(*want["rowids"].shape, -1))
    values = arrow(
        con,
        "SELECT engram_e_t('ple', ids) FROM (SELECT unnest(rowids_for_seq('ple', ?)) AS ids)",
        want["tokens"].tolist(),
    )
    assert np.array_equal(column.flatten().to_numpy(), values.column(0).combine_chunks().flatten().to_numpy())


def test_types_of_a_table_fold(con, tmp_path):
    assert con.execute("SELECT _engram_type('ple'), _engram_type('ple', 'e_t')").fetchall() == [
        ('"FLOAT[160]"', '"FLOAT[2560]"')
    ]
    assert con.execute("SELECT _engram_type('ple', 'vector witness')").fetchone() == ('"FLOAT[160][]"',)
    kind = con.execute("SELECT typeof(from_json('null', _engram_type('ple')))").fetchone()
    assert kind == ("FLOAT[160]",)
    con.execute(f"CALL engram_register('bare', '{small_store(tmp_path / 'bare')}', width := 8)")
    assert con.execute("SELECT _engram_type('bare')").fetchall() == [('"FLOAT[]"',)]
    with pytest.raises(duckdb.Error, match="'bare' has no value format"):
        con.execute("SELECT _engram_vector('bare', 1, 0)")
    con.execute("CALL engram_drop('bare')")


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ("'ple'", range(FP8_ROWS)),
        ("'ple', low := 5, high := 7", range(5, 8)),
        ("'ple', 5, 7", range(5, 8)),
        ("'ple', -100, 2::UTINYINT", range(3)),
        ("'ple', 1400, 18446744073709551615::UBIGINT", range(1400, FP8_ROWS)),
        ("'ple', -(1::HUGEINT << 126), 340282366920938463463374607431768211455::UHUGEINT",
         range(FP8_ROWS)),
        ("'ple', 7, 5", ()), ("'ple', NULL, 5", ()), ("'ple', 3, NULL", ()), ("'ple', 5000, 6000", ()),
        ("'ple', -5, -1", ()),
    ],
)  # fmt: skip
def test_row_ids_of_a_range(con, arguments, want):
    got = con.execute(f"SELECT rowid, head FROM _engram_ids({arguments})").fetchall()
    heads = dict(con.execute("SELECT rowid, head FROM engram_scan('ple')").fetchall())
    assert got == [(i, heads[i]) for i in want]


def test_ends_of_a_range_may_be_parameters_and_only_integers(con):
    assert con.execute("SELECT rowid FROM _engram_ids('ple', ?, ? + 1)", [3, 4]).fetchall() == [(3,), (4,), (5,)]
    for end in ("5.5", "'5'", "5::DOUBLE", "true"):
        with pytest.raises(duckdb.Error, match="high must be an integer"):
            con.execute(f"SELECT rowid FROM _engram_ids('ple', 0, {end})")


def test_blocks_work_without_macros_in_a_database_file(tmp_path):
    con = connect(str(tmp_path / "file.db"))
    con.execute(f"CALL engram_register('ple', '{GOLDEN / 'ckpt_qwen4_exp_fp8'}')")
    got = con.execute("SELECT rowid FROM _engram_ids('ple', low := 1406, high := 9999)").fetchall()
    assert got == [(1406,), (1407,)]
    assert con.execute("SELECT count(*) FROM _engram_ids('ple')").fetchone() == (FP8_ROWS,)
