"""engram_row, engram_vector, engram_e_t, engram_decode: one chunk at a time, NULLs included."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from extension_support import FP8_ROWS, bf16, connect, connect_ple, golden, small_store


@pytest.fixture(scope="module")
def con():
    return connect_ple()


def scan(con):
    return con.execute("SELECT rowid, \"row\", embedding::FLOAT[] FROM engram_scan('ple') ORDER BY rowid").fetchall()


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_and_vectors_over_a_column_with_nulls(con, threads):
    con.execute(f"SET threads = {threads}")
    rows = scan(con)
    con.execute(
        "CREATE OR REPLACE TABLE ids AS "
        "SELECT CASE WHEN i % 5 = 2 THEN NULL ELSE (i * 7919) % 1408 END id, i FROM range(9000) t(i)"
    )
    got = con.execute("SELECT id, engram_row('ple', id), engram_vector('ple', id) FROM ids ORDER BY i").fetchall()
    assert len(got) == 9000
    for rowid, row, vector in got:
        assert (row, vector) == ((None, None) if rowid is None else rows[rowid][1:])


@pytest.mark.parametrize(
    "kind", ["TINYINT", "UTINYINT", "SMALLINT", "UINTEGER", "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"]
)
def test_any_integer_column(con, kind):
    got = con.execute(f"SELECT engram_row('ple', i::{kind}) FROM range(100) t(i)").fetchall()
    assert [row for (row,) in got] == [row[1] for row in scan(con)[:100]]


def test_null_constants(con):
    got = con.execute("SELECT engram_row('ple', NULL), engram_vector('ple', NULL), engram_e_t('ple', NULL)").fetchall()
    assert got == [(None, None, None)]


def test_ids_out_of_range(con):
    for bad in ("-1", "1408", "9223372036854775807", "9223372036854775808", "18446744073709551615::UBIGINT"):
        with pytest.raises(duckdb.Error, match=r"row id -?\d+ is out of range: table 'ple' has 1408 rows"):
            con.execute(f"SELECT engram_row('ple', {bad})")
    with pytest.raises(duckdb.Error, match="row id 1408 is out of range"):
        con.execute("SELECT sum(octet_length(engram_row('ple', i))) FROM range(5000) t(i)")
    assert con.execute("SELECT octet_length(engram_row('ple', 1))").fetchall() == [(160,)]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("engram_row('ple', 1.5)", r"engram_row: row ids must be integers, got DECIMAL\(2,1\) 1\.5"),
        (
            "engram_row('ple', 12345678901.25)",
            r"engram_row: row ids must be integers, got DECIMAL\(13,2\) 12345678901\.25",
        ),
        ("engram_row('ple', -0.5::FLOAT)", r"engram_row: row ids must be integers, got FLOAT -0\.5"),
        ("engram_row('ple', true)", r"engram_row: row ids must be integers, got BOOLEAN true"),
        ("engram_row('ple', DATE '2020-01-01')", r"engram_row: row ids must be integers, got DATE$"),
        ("engram_row('ple', '7')", r"engram_row: row ids must be integers, got VARCHAR '7'"),
        ("engram_vector('ple', [7])", r"engram_vector: row ids must be integers, got INTEGER\[\] \[7\]"),
        ("engram_vector('ple', range(99))", r"got BIGINT\[\] \[0, 1, 2, 3, [0-9, ]{47}\.\.\.$"),
        ("engram_e_t('ple', 7)", r"engram_e_t: row ids must be a list of integers, got INTEGER 7"),
        ("engram_e_t('ple', [0.5])", r"engram_e_t: row ids must be integers, got DECIMAL\(2,1\) in \[0\.5\]"),
        ("engram_e_t('ple', ['a', NULL])", r"engram_e_t: row ids must be integers, got VARCHAR in \['a', NULL\]"),
    ],
)
def test_bad_ids_are_named_with_their_type(con, call, text):
    with pytest.raises(duckdb.Error, match=text):
        con.execute(f"SELECT {call}")


@pytest.mark.parametrize(
    "call", ["engram_row('nowhere', i)", "engram_vector('nowhere', i)", "engram_e_t('nowhere', [i])"]
)
def test_an_unknown_table_fails_when_prepared(con, call):
    with pytest.raises(duckdb.Error, match="no table named 'nowhere'"):
        con.execute(f"PREPARE bad AS SELECT {call} FROM range(3) t(i)")


SUBQUERIES = [
    ("engram_row('ple', {0})", "(SELECT 5)", "5"),
    ("engram_row('ple', {0})", "(SELECT max(n) FROM range(i + 1) s(n))", "i"),
    ("engram_vector('ple', {0})", "(SELECT 5)", "5"),
    ("engram_vector('ple', {0})", "(SELECT max(n) FROM range(i + 1) s(n))", "i"),
    ("engram_e_t('ple', {0})", "(SELECT [5, 6])", "[5, 6]"),
    ("engram_e_t('ple', {0})", "(SELECT list(n ORDER BY n) FROM range(i, i + 2) s(n))", "[i, i + 1]"),
    ("rowids_for_seq({0})", "(SELECT [5, 6])", "[5, 6]"),
    ("rowids_for_seq({0})", "(SELECT list(n ORDER BY n) FROM range(i, i + 2) s(n))", "[i, i + 1]"),
    ("rowids_for_seq('ple', {0})", "(SELECT [5, 6])", "[5, 6]"),
    ("rowids_for_seq('ple', {0})", "(SELECT list(n ORDER BY n) FROM range(i, i + 2) s(n))", "[i, i + 1]"),
    ("rowids_for_seq('ple', {0}, {0})", "(SELECT [5, 6])", "[5, 6]"),
    ("rowids_for_seq_with_history('ple', {0}, {0})", "(SELECT [5, 6])", "[5, 6]"),
    (
        "rowids_for_seq_with_history('ple', {0}, {0})",
        "(SELECT list(n ORDER BY n) FROM range(i, i + 2) s(n))",
        "[i, i + 1]",
    ),
    ("engram_decode({0}, 'bf16')", r"(SELECT '\x80\x3F'::BLOB)", r"'\x80\x3F'::BLOB"),
    (
        "engram_decode({0}, 'bf16')",
        "(SELECT encode(chr((60 + i)::INT)) || '@'::BLOB)",
        "encode(chr((60 + i)::INT)) || '@'::BLOB",
    ),
    (r"engram_decode('\x80\x3F'::BLOB, {0})", "(SELECT 'bf16')", "'bf16'"),
    (r"engram_decode('\x38'::BLOB, 'fp8_e4m3', {0})", "(SELECT 0.5)", "0.5"),
    (r"engram_decode('\x38'::BLOB, 'fp8_e4m3', {0})", "(SELECT 0.5 + i)", "0.5 + i"),
]


@pytest.mark.parametrize(("call", "subquery", "plain"), SUBQUERIES)
def test_scalar_subqueries_are_arguments_like_any_other(con, call, subquery, plain):
    sql = "SELECT {} FROM range(3) t(i) ORDER BY i"
    want = con.execute(sql.format(call.format(plain))).fetchall()
    assert con.execute(sql.format(call.format(subquery))).fetchall() == want
    assert len(want) == 3


def test_a_table_from_a_subquery_is_refused_with_the_way_out(con):
    calls = (
        "engram_row({}, 5)",
        "engram_vector({}, 5)",
        "engram_e_t({}, [5])",
        "rowids_for_seq({}, [5])",
        "rowids_for_seq_with_history({}, [5], [6])",
    )
    for call in calls:
        name = call.split("(", 1)[0]
        with pytest.raises(duckdb.Error, match=f"{name}: argument 1 must not be a subquery; make it a column first"):
            con.execute(f"SELECT {call.format('(SELECT name FROM engram_tables())')}")
        want = con.execute(f"SELECT {call.format(chr(39) + 'ple' + chr(39))}").fetchall()
        got = con.execute(f"SELECT {call.format('t')} FROM (SELECT (SELECT name FROM engram_tables()) AS t)").fetchall()
        assert got == want


def test_fractional_columns_are_refused(con):
    with pytest.raises(duckdb.Error, match="row ids must be integers, got DOUBLE"):
        con.execute("SELECT engram_row('ple', i / 2) FROM range(10) t(i)")


def test_prepared_parameters_of_unknown_type(con):
    con.execute("PREPARE one AS SELECT octet_length(engram_row($1, $2))")
    assert con.execute("EXECUTE one('ple', 3)").fetchall() == [(160,)]
    assert con.execute("EXECUTE one('ple', NULL)").fetchall() == [(None,)]
    assert con.execute("SELECT len(engram_e_t(?, ?))", ["ple", [1, 2]]).fetchall() == [(320,)]


def test_table_names_from_a_column(con, tmp_path):
    con.execute(f"CALL engram_register('other', '{small_store(tmp_path / 's')}', width := 8, format := 'f32')")
    got = con.execute(
        "SELECT t, i, octet_length(engram_row(t, i)), len(engram_vector(t, i)), len(engram_e_t(t, [i, i])) "
        "FROM (SELECT CASE WHEN i % 3 = 0 THEN 'ple' ELSE 'other' END t, "
        "CASE WHEN i % 10 = 1 THEN NULL ELSE i % 30 END i FROM range(5000) r(i))"
    ).fetchall()
    assert len(got) == 5000
    for table, rowid, row, vector, e_t in got:
        sizes = (160, 160, 320) if table == "ple" else (8, 2, 4)
        if rowid is None:
            assert (row, vector, e_t) == (None, None, None)
        else:
            assert (row, vector, e_t) == sizes
    with pytest.raises(duckdb.Error, match="engram_row: the table name is NULL"):
        con.execute("SELECT engram_row(CASE WHEN i > 3 THEN NULL ELSE 'ple' END, i) FROM range(5) r(i)").fetchall()
    with pytest.raises(duckdb.Error, match="no table named 'nowhere'"):
        con.execute("SELECT engram_row(CASE WHEN i > 3 THEN 'nowhere' ELSE 'ple' END, i) FROM range(5) r(i)").fetchall()
    con.execute("CALL engram_drop('other')")


def test_mixed_tables_keep_their_values(con, tmp_path):
    con.execute(f"CALL engram_register('mixed', '{small_store(tmp_path / 's')}', width := 8)")
    rows = scan(con)
    got = con.execute(
        "SELECT i, t, engram_row(t, i % 30) FROM (SELECT i, ['ple', 'mixed'][i % 2 + 1] t FROM range(3000) r(i))"
    ).fetchall()
    for i, table, row in got:
        assert row == (rows[i % 30][1] if table == "ple" else bytes([i % 30 // 10]) * 8)
    con.execute("CALL engram_drop('mixed')")


def test_e_t_is_the_golden_one(con):
    want = golden("ckpt_qwen4_exp_fp8")
    con.execute("CREATE OR REPLACE TABLE seq AS SELECT unnest(rowids_for_seq('ple', ?)) ids", [want["tokens"].tolist()])
    got = con.execute("SELECT engram_e_t('ple', ids) FROM seq").fetchall()
    values = np.array([row[0] for row in got], np.float32)
    assert np.array_equal(bf16(values), want["e_t_bf16"])


def test_e_t_of_null_ids_is_null(con):
    got = con.execute(
        "SELECT len(engram_e_t('ple', ids)) FROM (VALUES ([1, 2]), (NULL), ([3, NULL]), ([]), ([4])) t(ids)"
    ).fetchall()
    assert got == [(320,), (None,), (None,), (0,), (160,)]


@pytest.mark.parametrize(
    "lists",
    [
        "list_transform(ids, lambda x: x + 1)",
        "list_filter(ids, lambda x: x > 2)",
        "list_reverse(ids)",
        "list_sort(ids)",
        "ids[2:3]",
        "list_distinct(ids)",
        "list_concat(ids, ids)",
        "list_append(ids, 5)",
        "list_select(ids, [2, 1])",
        "list_resize(ids, 5, 0)",
        "CASE WHEN k % 2 = 0 THEN ids ELSE [9] END",
        "ids::BIGINT[3]",
        "map_values(map([1, 2], [k % 100, 3]))",
        "[k % 1408, 1]",
        "struct_extract({'a': ids}, 'a')",
        "flatten([ids, ids])",
        "list_zip(ids, ids).list_transform(lambda x: x[1])",
    ],
)
def test_lists_made_by_other_functions(con, lists):
    con.execute(
        "CREATE OR REPLACE TABLE l AS SELECT i k, [i % 1000, (i * 31) % 1000, (i * 7) % 1000] ids FROM range(5000) t(i)"
    )
    got = con.execute(f"SELECT l, engram_e_t('ple', l) FROM (SELECT {lists} l FROM l WHERE k % 3 <> 1)").fetchall()
    vectors = [row[2][0] for row in scan(con)]
    for ids, e_t in got:
        assert e_t[::160] == [vectors[i] for i in ids]


def test_e_t_through_joins(con):
    con.execute("CREATE OR REPLACE TABLE l AS SELECT i k, [i % 1000, (i * 31) % 1000] ids FROM range(3000) t(i)")
    got = con.execute(
        "SELECT ids, engram_e_t('ple', ids) FROM l JOIN (SELECT (i * 13) % 3000 k FROM range(6000) t(i)) USING (k)"
    ).fetchall()
    vectors = [row[2][0] for row in scan(con)]
    assert len(got) == 6000
    for ids, e_t in got:
        assert e_t[::160] == [vectors[i] for i in ids]


def test_decode(con):
    fp8 = r"'\x38\xC0\x00'::BLOB"
    assert con.execute(f"SELECT engram_decode({fp8}, 'fp8_e4m3', 0.5)").fetchone()[0] == [0.5, -1.0, 0.0]
    assert con.execute(r"SELECT engram_decode('\x80\x3F\x00\xC0'::BLOB, 'bf16')").fetchone()[0] == [1.0, -2.0]
    assert con.execute(
        f"SELECT engram_decode(NULL, 'bf16'), engram_decode({fp8}, NULL), engram_decode({fp8}, 'fp8_e4m3', NULL)"
    ).fetchall() == [(None, None, None)]
    with pytest.raises(duckdb.Error, match="needs a scale and none was given"):
        con.execute(f"SELECT engram_decode({fp8}, 'fp8_e4m3')")
    with pytest.raises(duckdb.Error, match="3 bytes are no whole row of value format 'bf16'"):
        con.execute(f"SELECT engram_decode({fp8}, 'bf16')")
    with pytest.raises(duckdb.Error, match="unknown value format 'fp6'"):
        con.execute(f"SELECT engram_decode({fp8}, 'fp6')")


def test_decode_with_a_scale_and_a_format_per_row(con):
    got = con.execute(
        "SELECT i, engram_decode('\\x38\\xC0'::BLOB, 'fp8_e4m3', 1 + i % 300), "
        "engram_decode('\\x80\\x3F'::BLOB, ['bf16', 'f16', 'e8m0'][i % 3 + 1]) FROM range(5000) t(i)"
    ).fetchall()
    other = con.execute(
        "SELECT engram_decode('\\x80\\x3F'::BLOB, 'bf16'), engram_decode('\\x80\\x3F'::BLOB, 'f16'), "
        "engram_decode('\\x80\\x3F'::BLOB, 'e8m0')"
    ).fetchone()
    assert len(got) == 5000
    for i, scaled, named in got:
        scale = 1 + i % 300
        assert scaled == [scale, -2.0 * scale]
        assert named == other[i % 3]


def test_decode_over_a_column_equals_the_table(con):
    scale = (
        2.0
        * con.execute("SELECT engram_vector('ple', 3)[2]").fetchone()[0]
        / con.execute("SELECT engram_decode(engram_row('ple', 3), 'fp8_e4m3', 2.0)[2]").fetchone()[0]
    )
    wrong = con.execute(
        "SELECT count(*) FROM engram_scan('ple') WHERE engram_decode(\"row\", 'fp8_e4m3', ?) <> embedding::FLOAT[]",
        [scale],
    ).fetchone()
    assert wrong == (0,)


def test_chunk_sizes_do_not_matter(con):
    for n in (1, 2047, 2048, 2049, 4096, 10_000):
        got = con.execute(
            f"SELECT count(*), sum(octet_length(engram_row('ple', i % {FP8_ROWS}))) FROM range({n}) t(i)"
        ).fetchone()
        assert got == (n, 160 * n)


def test_short_rows_are_kept_inline(tmp_path):
    con = connect()
    for width in (1, 4, 12, 13):
        folder = tmp_path / str(width)
        folder.mkdir()
        (folder / "shard_000.bin").write_bytes(bytes(range(width * 10)))
        con.execute(f"CALL engram_register('w{width}', '{folder}', width := {width})")
        got = con.execute(f"SELECT i, engram_row('w{width}', i % 10) FROM range(3000) t(i)").fetchall()
        for i, row in got:
            assert row == bytes(range(width * 10))[i % 10 * width :][:width]
        one = con.execute(f"SELECT \"row\" FROM engram_fetch('w{width}', [9, NULL, 1])").fetchall()
        assert [row for (row,) in one] == [
            bytes(range(width * 10))[9 * width :][:width],
            None,
            bytes(range(width, 2 * width)),
        ]


def test_decode_nulls_between_values(con):
    got = con.execute(
        "SELECT engram_decode(CASE WHEN i % 2 = 0 THEN '\\x80\\x3F'::BLOB END, 'bf16') FROM range(5000) t(i)"
    ).fetchall()
    assert [row for (row,) in got] == [[1.0] if i % 2 == 0 else None for i in range(5000)]
