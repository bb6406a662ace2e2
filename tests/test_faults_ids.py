"""Row ids, tokens and table names that must be refused, and NULLs that must not disturb their neighbours.

The small table has 3 shards of 10 rows of 8 bytes, byte value = shard number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import make_qwen, make_store, make_v41
from helpers import one, outcome, q, refuses, sql_refuses

BAD_IDS = [-1, 30, 31, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]


@pytest.fixture
def small(db: Any, tmp_path: Path) -> Any:
    make_store(tmp_path / "small")
    db.register("small", tmp_path / "small", width=8, format="f32")
    return db


@pytest.fixture
def tiny(db: Any, tmp_path: Path) -> Any:
    """A tiny PLE checkpoint as ple."""
    make_qwen(tmp_path / "q")
    db.register("ple", tmp_path / "q")
    return db


def row(shard: int) -> bytes:
    return bytes([shard] * 8)


# --- ids in range ---------------------------------------------------------------------------------------------------


def test_n_ids_in_n_rows_out_in_order(small: Any) -> None:
    ids = [29, 0, 10, 10, 9, 20, 0, 19]
    rows = q(small, "SELECT ord, rowid, row FROM engram_fetch('small', ?::BIGINT[])", ids)
    assert rows == [(k, i, row(i // 10)) for k, i in enumerate(ids)]
    assert one(small, "SELECT count(*) FROM engram_fetch('small', ?::BIGINT[])", ids) == len(ids)


@pytest.mark.parametrize(
    "type_",
    ["TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"],
)
def test_any_integer_type_binds(small: Any, type_: str) -> None:
    assert one(small, f"SELECT engram_row('small', 11::{type_})") == row(1)
    assert q(small, f"SELECT row FROM engram_fetch('small', [11, 29]::{type_}[])") == [(row(1),), (row(2),)]
    assert q(small, f"SELECT row FROM engram_fetch('small', [[11], [29]]::{type_}[][])") == [(row(1),), (row(2),)]
    column = f"SELECT engram_row('small', i) FROM (SELECT unnest([11, 29])::{type_} AS i)"
    assert q(small, column) == [(row(1),), (row(2),)]
    assert one(small, f"SELECT len(engram_e_t('small', [1, 2]::{type_}[]))") == 4


def test_literals_and_range_bind(small: Any) -> None:
    assert one(small, "SELECT count(*) FROM engram_fetch('small', [1, 2])") == 2
    assert one(small, "SELECT count(*) FROM engram_fetch('small', range(3))") == 3
    assert one(small, "SELECT count(*) FROM engram_fetch('small', [])") == 0


# --- ids out of range -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", BAD_IDS)
def test_out_of_range_by_every_route(small: Any, bad: int) -> None:
    """The message names the id, the table and its row count; nothing is returned."""
    need = (bad, "small", "30")
    sql_refuses(small, f"SELECT engram_row('small', ({bad})::BIGINT)", *need)
    sql_refuses(small, f"SELECT engram_vector('small', ({bad})::BIGINT)", *need)
    sql_refuses(small, f"SELECT engram_e_t('small', [0, ({bad})::BIGINT])", *need)
    sql_refuses(small, f"SELECT * FROM engram_fetch('small', [0, {bad}, 1]::BIGINT[])", *need)
    sql_refuses(small, f"SELECT * FROM engram_fetch('small', [[0], [{bad}]]::BIGINT[][])", *need)
    sql_refuses(small, "SELECT * FROM engram_fetch('small', ?::BIGINT[])", *need, params=[[5, bad]])
    sql_refuses(small, "SELECT engram_row('small', ?::BIGINT)", *need, params=[bad])
    sql_refuses(small, f"SELECT engram_row('small', i) FROM (SELECT unnest([0, {bad}]::BIGINT[]) AS i)", *need)
    sql_refuses(
        small,
        "SELECT sum(octet_length(engram_row('small', i))) FROM"
        f" (SELECT CASE WHEN i = 4321 THEN {bad} ELSE i % 30 END AS i FROM range(5000) t(i))",
        *need,
    )


@pytest.mark.parametrize("bad", BAD_IDS)
def test_out_of_range_in_python(small: Any, bad: int) -> None:
    t = small.table("small")
    for call in (t.fetch, t.vectors):
        refuses(lambda call=call: call([0, bad]), bad, "small", "30")
        refuses(lambda call=call: call(np.array([0, bad], dtype=np.int64)), bad, "small", "30")
    assert t.fetch([0]).tobytes() == row(0)


@pytest.mark.parametrize("bad", [2**63, 2**64 - 1])
def test_wider_than_bigint(small: Any, bad: int) -> None:
    for type_ in ("UBIGINT", "HUGEINT", "UHUGEINT"):
        sql_refuses(small, f"SELECT engram_row('small', {bad}::{type_})", bad)
        sql_refuses(small, f"SELECT * FROM engram_fetch('small', [{bad}]::{type_}[])", bad)
    sql_refuses(small, "SELECT engram_row('small', ?)", bad, params=[bad])
    t = small.table("small")
    refuses(lambda: t.fetch([bad]), bad)
    refuses(lambda: t.fetch(np.array([bad], dtype=np.uint64)), bad)


def test_head_offset_added_twice(tiny: Any) -> None:
    """Row ids from rowids_for_seq are global; adding the last head's offset again runs past the end and is refused."""
    ids = one(tiny, "SELECT rowids_for_seq('ple', [5, 6, 7])")
    offset = one(tiny, "SELECT max(first_row) FROM engram_heads('ple')")
    assert one(tiny, "SELECT count(*) FROM engram_fetch('ple', ?::BIGINT[][])", ids) == 12
    wrong = [[i + offset for i in token] for token in ids]
    first_bad = next(i for token in wrong for i in token if i >= 256)
    sql_refuses(tiny, "SELECT * FROM engram_fetch('ple', ?::BIGINT[][])", "ple", "256", params=[wrong])
    sql_refuses(tiny, "SELECT * FROM engram_fetch('ple', ?::BIGINT[])", first_bad, params=[[first_bad]])


# --- not integers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "1.5",
        "1.0::DOUBLE",
        "2.5::FLOAT",
        "1.5::DECIMAL(4,1)",
        "'1'",
        "'abc'",
        "true",
        "DATE '2024-01-01'",
        "'\\x01'::BLOB",
    ],
)
def test_not_an_integer(small: Any, value: str) -> None:
    """Never rounded, never cast: [1.5] silently becoming 2 would be a wrong row."""
    sql_refuses(small, f"SELECT engram_row('small', {value})")
    sql_refuses(small, f"SELECT engram_vector('small', {value})")
    sql_refuses(small, f"SELECT engram_e_t('small', [{value}])")
    sql_refuses(small, f"SELECT * FROM engram_fetch('small', [{value}])")
    sql_refuses(small, f"SELECT * FROM engram_fetch('small', [[{value}]])")
    sql_refuses(small, f"SELECT engram_row('small', i) FROM (SELECT {value} AS i)")
    sql_refuses(small, f"SELECT rowids_for_seq([{value}])")


@pytest.mark.parametrize("value", [1.5, "1", "abc", b"x", 2.0])
def test_not_an_integer_as_parameter(small: Any, value: object) -> None:
    sql_refuses(small, "SELECT engram_row('small', ?)", params=[value])
    sql_refuses(small, "SELECT * FROM engram_fetch('small', ?)", params=[[value]])
    sql_refuses(small, "SELECT rowids_for_seq(?)", params=[[value]])


@pytest.mark.parametrize(
    "value", [[1.5], ["1"], [None], 3.0, "abc", np.array([1.5]), np.array(["a"]), [[0], [1, 2]], object()]
)
def test_not_an_integer_in_python(small: Any, value: object) -> None:
    t = small.table("small")
    refuses(lambda: t.fetch(value))
    refuses(lambda: t.vectors(value))


def test_scalar_where_a_list_is_due(small: Any) -> None:
    sql_refuses(small, "SELECT * FROM engram_fetch('small', 5)", ("list", "BIGINT[]"))
    sql_refuses(small, "SELECT * FROM engram_fetch('small', 'abc')", ("list", "BIGINT[]"))
    sql_refuses(small, "SELECT engram_row('small', [1, 2])")


# --- NULL -----------------------------------------------------------------------------------------------------------


def test_null_id_gives_a_null_row_in_place(small: Any) -> None:
    want = [(0, 0, row(0)), (1, None, None), (2, 25, row(2)), (3, None, None)]
    assert q(small, "SELECT ord, rowid, row FROM engram_fetch('small', [0, NULL, 25, NULL])") == want
    assert q(small, "SELECT ord, rowid, row FROM engram_fetch('small', ?::BIGINT[])", [0, None, 25, None]) == want
    got = q(small, "SELECT token, head, rowid, embedding, row FROM engram_fetch('small', [[0, NULL], [25, 1]])")
    assert [r[2] for r in got] == [0, None, 25, 1]
    assert [r[4] for r in got] == [row(0), None, row(2), row(0)]
    assert got[1][3] is None
    assert list(got[2][3]) == one(small, "SELECT engram_vector('small', 25)")


def test_null_scalar(small: Any) -> None:
    for null in ("NULL", "NULL::BIGINT", "NULL::INTEGER"):
        assert one(small, f"SELECT engram_row('small', {null})") is None
        assert one(small, f"SELECT engram_vector('small', {null})") is None
    assert one(small, "SELECT engram_row('small', ?::BIGINT)", None) is None
    assert one(small, "SELECT engram_e_t('small', NULL::BIGINT[])") is None


def test_null_list_gives_no_rows(small: Any) -> None:
    assert q(small, "SELECT * FROM engram_fetch('small', NULL::BIGINT[])") == []
    assert q(small, "SELECT * FROM engram_fetch('small', NULL)") == []
    assert q(small, "SELECT * FROM engram_fetch('small', ?::BIGINT[])", None) == []
    assert q(small, "SELECT * FROM engram_fetch('small', NULL::BIGINT[][])") == []


def test_null_inner_list_of_a_nested_list(small: Any) -> None:
    got = q(small, "SELECT token, rowid FROM engram_fetch('small', [[3], NULL, [4]]::BIGINT[][])")
    assert got == [(0, 3), (2, 4)]


def test_null_mixed_in_a_column_longer_than_one_vector(small: Any) -> None:
    got = q(
        small,
        "SELECT i, engram_row('small', CASE WHEN i % 7 = 3 THEN NULL ELSE i % 30 END),"
        " engram_vector('small', CASE WHEN i % 5 = 0 THEN NULL ELSE i % 30 END) FROM range(7000) t(i) ORDER BY i",
    )
    for i, blob, vector in got:
        assert blob == (None if i % 7 == 3 else row(i % 30 // 10))
        assert (vector is None) == (i % 5 == 0)
        if vector is not None:
            assert np.asarray(vector, dtype="<f4").tobytes() == row(i % 30 // 10)
    lists = q(
        small,
        "SELECT engram_e_t('small', CASE WHEN i % 4 = 1 THEN NULL ELSE [i % 30, (i + 10) % 30] END)"
        " FROM range(5000) t(i)",
    )
    assert [v is None for (v,) in lists] == [i % 4 == 1 for i in range(5000)]


def test_null_in_e_t_list_is_never_zeros(small: Any) -> None:
    """e_t of a key with an unknown row is unknown: NULL or an error, never a vector with zeros in it."""
    value, said = outcome(lambda: one(small, "SELECT engram_e_t('small', [1, NULL])"))
    assert value is None
    assert said is None or "NULL" in said


# --- tokens ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [-1, 248320, 2**31, 2**40, 2**62, -(2**63)])
def test_token_outside_the_vocabulary(db: Any, token: int) -> None:
    for sql in (
        "SELECT rowids_for_seq([7, 8, {}]::BIGINT[])",
        "SELECT rowids_for_seq(t) FROM (SELECT [7, 8, {}]::BIGINT[] AS t)",
    ):
        sql_refuses(db, sql.format(token), token, "position 2")
    sql_refuses(db, "SELECT rowids_for_seq(?::BIGINT[])", token, "position 1", params=[[3, token]])


def test_token_outside_the_vocabulary_of_a_table(tiny: Any) -> None:
    for token in (-1, 512, 2**31):
        sql_refuses(tiny, f"SELECT rowids_for_seq('ple', [5, {token}])", token, "position 1")
        sql_refuses(tiny, f"SELECT rowids_for_seq('ple', [5], [{token}])", token)
        sql_refuses(tiny, f"SELECT * FROM engram_embeddings('ple', [5, {token}])", token)
        refuses(lambda token=token: tiny.table("ple").rowids([5, token]), token, "position 1")
        refuses(lambda token=token: tiny.table("ple").e_t([5, token]), token)
        refuses(lambda token=token: tiny.table("ple").rowids([5], history=[token]), token)


def test_null_token(tiny: Any) -> None:
    sql_refuses(tiny, "SELECT rowids_for_seq([1, NULL, 3])", "NULL", ("position 1", "1"))
    sql_refuses(tiny, "SELECT rowids_for_seq('ple', [1, NULL, 3])", "NULL")
    sql_refuses(tiny, "SELECT rowids_for_seq('ple', [1], [NULL, 2]::BIGINT[])", "NULL")
    sql_refuses(tiny, "SELECT * FROM engram_embeddings('ple', [1, NULL])", "NULL")
    assert one(tiny, "SELECT rowids_for_seq('ple', NULL::BIGINT[])") is None
    assert q(tiny, "SELECT * FROM engram_embeddings('ple', NULL::BIGINT[])") == []


def test_null_token_list_in_a_column(tiny: Any) -> None:
    got = q(
        tiny,
        "SELECT i, rowids_for_seq('ple', CASE WHEN i % 3 = 0 THEN NULL ELSE [i % 512, 5] END)"
        " FROM range(5000) t(i) ORDER BY i",
    )
    assert all((v is None) == (i % 3 == 0) for i, v in got)
    assert got[1][1] == one(tiny, "SELECT rowids_for_seq('ple', [1, 5])")
    assert got[4999][1] == one(tiny, "SELECT rowids_for_seq('ple', [4999 % 512, 5])")


def test_v41_vocabulary(db: Any, tmp_path: Path) -> None:
    make_v41(tmp_path / "v")
    db.register("v41", tmp_path / "v")
    for token in (-1, 40, 2**33):
        sql_refuses(db, f"SELECT rowids_for_seq('v41_l1', [5, {token}])", token, "position 1")


# --- names ----------------------------------------------------------------------------------------------------------


def test_unknown_table_names_the_nearest(tiny: Any) -> None:
    for sql in (
        "SELECT * FROM engram_fetch('pel', [0])",
        "SELECT rowids_for_seq('pel', [0])",
        "SELECT engram_row('pel', 0)",
        "SELECT engram_vector('pel', 0)",
        "SELECT * FROM engram_shards('pel')",
        "SELECT * FROM engram_heads('pel')",
        "SELECT * FROM engram_scan('pel')",
        "SELECT * FROM engram_embeddings('pel', [1])",
    ):
        sql_refuses(tiny, sql, "pel", "'ple'")
    refuses(lambda: tiny.table("pel"), "pel", "'ple'")


def test_unknown_table_in_an_empty_database(db: Any) -> None:
    sql_refuses(db, "SELECT * FROM engram_fetch('ple', [0])", "ple", ("register", "no table"))


def test_null_table_name(tiny: Any) -> None:
    for sql in ("SELECT engram_row(NULL, 0)", "SELECT rowids_for_seq(NULL::VARCHAR, [1])"):
        value, said = outcome(lambda sql=sql: one(tiny, sql))
        assert value is None
        assert said is None or "NULL" in said or "table" in said


def test_table_without_spec_has_no_rowids(small: Any) -> None:
    sql_refuses(small, "SELECT rowids_for_seq('small', [1])", "small", "spec")
    sql_refuses(small, "SELECT * FROM engram_embeddings('small', [1])", "small", "spec")
    refuses(lambda: small.table("small").rowids([1]), "small", "spec")


def test_store_without_format_serves_rows_only(db: Any, tmp_path: Path) -> None:
    make_store(tmp_path / "s")
    db.register("s", tmp_path / "s", width=8)
    assert one(db, "SELECT row FROM engram_fetch('s', [12])") == row(1)
    assert one(db, "SELECT engram_row('s', 12)") == row(1)
    for sql in (
        "SELECT embedding FROM engram_fetch('s', [12])",
        "SELECT engram_vector('s', 12)",
        "SELECT engram_e_t('s', [12])",
    ):
        sql_refuses(db, sql, "'s'", "format", "fp8_e4m3")
    refuses(lambda: db.table("s").vectors([1]), "'s'", "format")


def test_same_tokens_on_two_families_of_equal_size(db: Any, tmp_path: Path) -> None:
    make_qwen(tmp_path / "q")
    make_v41(tmp_path / "v", layers=(1,), base=50, rows_per_layer=256)
    db.register("ple", tmp_path / "q")
    db.register("eng", tmp_path / "v")
    assert q(db, "SELECT rows, heads FROM engram_tables() ORDER BY name") == [(256, 4), (256, 4)]
    a, b = (one(db, f"SELECT rowids_for_seq('{t}', [5, 9, 11, 20])") for t in ("ple", "eng"))
    assert a != b
    specs = [s for (s,) in q(db, "SELECT spec FROM engram_tables()")]
    assert len(set(specs)) == 2


def test_spec_of_another_family_is_refused(db: Any, tmp_path: Path) -> None:
    make_v41(tmp_path / "v", layers=(1,), base=50, rows_per_layer=256)
    refuses(lambda: db.register("x", tmp_path / "v", spec="qwen3.8-flash-next"), ("qwen", "spec"))
