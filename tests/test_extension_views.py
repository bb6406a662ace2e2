"""Materialised views from SQL: records by slot, slots by key, and tables that answer from them."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
from extension_support import FP8, FP8_DIM, FP8_HEADS, connect
from helpers import refuses

import engramsql

TOKENS = [5, 17, 300, 5, 17, 300, 5, 17, 300, 1, 2, 3, 4, 511, 17, 300]


@pytest.fixture
def database(tmp_path):
    """A database with the small FP8 checkpoint as ``ple`` and a view of the keys of TOKENS as ``corpus``."""
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", FP8)
        db.build_view("corpus", "ple", [TOKENS])
        yield db


@pytest.fixture
def con(database):
    return database.connection


def keys(con: duckdb.DuckDBPyConnection, tokens: list[int]) -> list[tuple[int, ...]]:
    """The row ids of each token."""
    ((rowids,),) = con.execute("SELECT rowids_for_seq('ple', ?)", [tokens]).fetchall()
    return [tuple(key) for key in rowids]


def slots_of(con: duckdb.DuckDBPyConnection, tokens: list[int]) -> list[int | None]:
    """The slot of each token's key."""
    sql = """
        SELECT engram_view_lookup('corpus', key)
        FROM (SELECT unnest(rowids_for_seq('ple', ?)) AS key, generate_subscripts(?, 1) AS i) ORDER BY i
    """
    return [slot for (slot,) in con.execute(sql, [tokens, tokens]).fetchall()]


def test_every_key_of_the_corpus_has_one_slot(con):
    slots = slots_of(con, TOKENS)
    distinct = dict(zip(keys(con, TOKENS), slots, strict=True))
    assert sorted(distinct.values()) == list(range(len(distinct)))
    assert [distinct[key] for key in keys(con, TOKENS)] == slots
    ((name, kind, count, heads),) = con.execute("SELECT name, kind, slots, heads FROM engram_views()").fetchall()
    assert (name, kind, count, heads) == ("corpus", "materialised", len(distinct), FP8_HEADS)


def test_a_record_is_the_rows_of_its_key(con):
    found = con.execute(
        "SELECT slot, e_t, record FROM engram_view_fetch('corpus', ?)", [slots_of(con, TOKENS)]
    ).fetchall()
    for (slot, e_t, record), key, wanted in zip(found, keys(con, TOKENS), slots_of(con, TOKENS), strict=True):
        rows = con.execute("SELECT row FROM engram_fetch('ple', ?)", [list(key)]).fetchall()
        assert slot == wanted
        assert record == b"".join(row for (row,) in rows)
        ((values,),) = con.execute("SELECT engram_e_t('ple', ?)", [list(key)]).fetchall()
        assert np.array_equal(np.float32(e_t), np.float32(values), equal_nan=True)


def test_slots_keep_their_order_duplicates_and_nulls(con):
    asked = [3, None, 0, 3, None]
    sql = "SELECT slot, record, e_t FROM engram_view_fetch('corpus', ?)"
    found = con.execute(sql, [asked]).fetchall()
    assert [slot for slot, _, _ in found] == asked
    single = {slot: (record, e_t) for slot, record, e_t in con.execute(sql, [[0, 3]]).fetchall()}
    assert [(record, e_t) for _, record, e_t in found] == [single.get(slot, (None, None)) for slot in asked]
    # Only what is selected is computed, and the columns alone give the same.
    assert con.execute("SELECT slot FROM engram_view_fetch('corpus', ?)", [asked]).fetchall() == [
        (slot,) for slot in asked
    ]
    assert con.execute("SELECT count(*) FROM engram_view_fetch('corpus', NULL)").fetchall() == [(0,)]
    assert con.execute("SELECT count(*) FROM engram_view_fetch('corpus', [])").fetchall() == [(0,)]
    assert con.execute("SELECT typeof(e_t) FROM engram_view_fetch('corpus', [0])").fetchall() == [
        (f"FLOAT[{FP8_HEADS * FP8_DIM}]",)
    ]


def test_many_slots(con):
    """More than one chunk of DuckDB's, in an order that no scan has."""
    ((count,),) = con.execute("SELECT slots FROM engram_views()").fetchall()
    asked = [int(slot) for slot in np.random.default_rng(5).integers(0, count, 5000)]
    found = con.execute("SELECT slot, record FROM engram_view_fetch('corpus', ?)", [asked]).fetchall()
    records = dict(
        con.execute("SELECT slot, record FROM engram_view_fetch('corpus', ?)", [list(range(count))]).fetchall()
    )
    assert found == [(slot, records[slot]) for slot in asked]


def test_keys_that_are_not_there(con):
    absent = keys(con, [400, 401])[1]
    lookup = "SELECT engram_view_lookup('corpus', ?)"
    for key in (list(absent), [-1] * FP8_HEADS, [2**40] * FP8_HEADS, None, [None] * FP8_HEADS):
        assert con.execute(lookup, [key]).fetchall() == [(None,)], key
    # Over a column, with and without a slot in one chunk.
    slots = slots_of(con, [*TOKENS, 400, 401])
    assert slots[-1] is None
    assert None not in slots[: len(TOKENS)]


@pytest.mark.parametrize(
    ("sql", "fragments"),
    [
        ("SELECT engram_view_lookup('corpus', [1, 2])", ["16 row ids", "got 2"]),
        ("SELECT engram_view_lookup('corpus', ['a'])", ["row ids of a key must be integers", "VARCHAR"]),
        ("SELECT engram_view_lookup('corpus', 7)", ["row ids of a key must be a list of integers"]),
        ("SELECT engram_view_lookup('nobody', [1])", ["no view named 'nobody'"]),
        ("SELECT engram_view_lookup(NULL, [1])", ["NULL"]),
        ("FROM engram_view_fetch('corpus', [1000])", ["1000", "corpus"]),
        ("FROM engram_view_fetch('corpus', [-1])", ["-1", "corpus"]),
        ("FROM engram_view_fetch('corpus', [99999999999999999999])", ["99999999999999999999", "corpus"]),
        ("FROM engram_view_fetch('corpus', [1.5])", ["slots must be integers", "DECIMAL"]),
        ("FROM engram_view_fetch('nobody', [1])", ["no view named 'nobody'"]),
        ("FROM engram_view_fetch('ple', [1])", ["no view named 'ple'"]),
    ],
)
def test_refusals(con, sql, fragments):
    refuses(lambda: con.execute(sql).fetchall(), *fragments)
    assert con.execute("SELECT 42").fetchall() == [(42,)]


def test_a_lookup_joins_its_records(con):
    """The way from tokens to records, in one statement."""
    sql = """
        WITH keys AS (SELECT unnest(rowids_for_seq('ple', [5, 17, 300])) AS key),
             found AS (SELECT engram_view_lookup('corpus', key) AS slot, key FROM keys)
        SELECT count(*), count(slot) FROM found
    """
    assert con.execute(sql).fetchall() == [(3, 3)]


def test_embeddings_are_the_same_with_and_without_views(database, tmp_path):
    con = database.connection
    tokens = [*TOKENS, 400, 401, 5, 17]
    sql = "SELECT token, e_t FROM engram_embeddings('ple', ?) ORDER BY token"
    with_view = con.execute(sql, [tokens]).fetchall()
    other = connect()
    other.execute(f"CALL engram_register('ple', '{FP8}')")
    assert with_view == other.execute(sql, [tokens]).fetchall()


def test_embeddings_read_what_a_view_holds(database):
    """Tokens of the corpus cost no row of the table; others do."""
    con = database.connection
    rows = "SELECT coalesce(sum(rows), 0) FROM engram_stats() WHERE table_name = 'ple'"
    embeddings = "SELECT count(e_t) FROM (SELECT e_t FROM engram_embeddings('ple', ?))"
    for tokens, read in ((TOKENS, 0), ([*TOKENS, 400], FP8_HEADS)):
        ((before,),) = con.execute(rows).fetchall()
        assert con.execute(embeddings, [tokens]).fetchall() == [(len(tokens),)]
        ((after,),) = con.execute(rows).fetchall()
        assert after - before == read, tokens


def test_a_view_is_verified(database):
    con = database.connection
    assert con.execute("SELECT count(*) > 1, bool_and(ok) FROM engram_verify('corpus')").fetchall() == [(True, True)]
    verified = "SELECT verified_at IS NOT NULL FROM engram_views()"
    assert con.execute(verified).fetchall() == [(True,)]


def test_a_prepared_fetch_of_a_view_that_was_built_anew(database):
    con = database.connection
    con.execute("PREPARE p AS SELECT slot FROM engram_view_fetch('corpus', [0])")
    assert con.execute("EXECUTE p").fetchall() == [(0,)]
    database.build_view("corpus", "ple", [[9, 8, 7, 6]], replace=True)
    message = outcome(lambda: con.execute("EXECUTE p").fetchall())
    assert message is None or "prepare it again" in message


def outcome(call: Any) -> str | None:
    """The message of a refusal, if it is one: DuckDB may bind a statement anew by itself."""
    try:
        call()
    except duckdb.Error as error:
        return str(error)
    return None


def test_records_of_float32(database):
    database.build_view("floats", "ple", [TOKENS], form="float32")
    con = database.connection
    sql = "SELECT e_t, record FROM engram_view_fetch('floats', [0, 1])"
    for e_t, record in con.execute(sql).fetchall():
        assert np.float32(e_t).astype("<f4").tobytes() == record
