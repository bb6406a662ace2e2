"""Catalog functions: what they list, and changes that happen once."""

from __future__ import annotations

import itertools
import json

import duckdb
import pytest
from extension_support import FP8, GOLDEN, connect, connect_ple, small_store

OWN_NAMES = "function_name LIKE 'engram%' OR function_name LIKE 'rowids\\_for\\_seq%' ESCAPE '\\'"


def test_the_registry_lists_exactly_what_is_registered():
    con = connect()
    registered = {
        row[0]
        for row in con.execute(f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE {OWN_NAMES}").fetchall()
    }
    listed = con.execute("SELECT name, kind, signature, description, example FROM engram_functions()").fetchall()
    # A format of COPY is no function.
    assert {row[0] for row in listed if row[1] != "copy"} == registered
    assert len({row[0] for row in listed}) == len(listed)
    for name, kind, signature, description, example in listed:
        assert kind in ("scalar", "table", "macro", "copy")
        shown = "FORMAT engram" if kind == "copy" else name
        assert shown in signature
        assert shown in example
        assert description.endswith(".")


def test_tables_shards_heads():
    con = connect_ple()
    got = con.execute("SELECT * FROM engram_tables()").fetchall()
    assert len(got) == 1
    row = dict(zip([column[0] for column in con.description], got[0], strict=True))
    assert row == {
        "name": "ple", "spec": row["spec"], "layer": row["layer"], "rows": 1408, "dim": 160, "format": "fp8_e4m3",
        "row_bytes": 160, "heads": 16, "shards": 4, "bytes": 225280, "source": str(FP8),
        "in_place": True, "verified_at": None,
    }  # fmt: skip
    shards = con.execute(
        "SELECT shard, first_row, rows, bytes, present FROM engram_shards('ple') ORDER BY shard"
    ).fetchall()
    assert shards == [(i, i * 352, 352, 56320, True) for i in range(4)]
    heads = con.execute("SELECT head, ngram_order, first_row, size FROM engram_heads('ple') ORDER BY head").fetchall()
    assert len(heads) == 16
    for (_, _, first, size), (_, _, second, _) in itertools.pairwise(heads):
        assert first + size == second


def test_register_and_drop_return_what_they_touched(tmp_path):
    con = connect()
    store = small_store(tmp_path / "store")
    added = con.execute(
        f"CALL engram_register('s', '{store}', width := 8, format := 'fp8_e4m3', scale := 0.5)"
    ).fetchall()
    assert [row[:4] for row in added] == [("s", None, None, 30)]
    assert con.execute("SELECT name, format, dim FROM engram_tables()").fetchall() == [("s", "fp8_e4m3", 8)]
    with pytest.raises(duckdb.Error, match="'s'"):
        con.execute(f"CALL engram_register('s', '{store}', width := 8)")
    dropped = con.execute("CALL engram_drop('S')").fetchall()
    assert [row[0] for row in dropped] == ["s"]
    with pytest.raises(duckdb.Error, match="no table named 's'"):
        con.execute("CALL engram_drop('s')")
    layers = con.execute(f"CALL engram_register('v', '{GOLDEN / 'ckpt_deepseek_v41'}')").fetchall()
    assert [row[0] for row in layers] == ["v_l1", "v_l3"]


def test_prepare_and_explain_change_nothing(tmp_path):
    con = connect()
    store = small_store(tmp_path / "store")
    con.execute(f"PREPARE r AS SELECT name FROM engram_register('s', '{store}', width := 8)")
    con.execute(f"EXPLAIN SELECT name FROM engram_register('s', '{store}', width := 8)").fetchall()
    assert con.execute("SELECT count(*) FROM engram_tables()").fetchall() == [(0,)]
    assert con.execute("EXECUTE r").fetchall() == [("s",)]
    assert con.execute("SELECT count(*) FROM engram_tables()").fetchall() == [(1,)]


def test_contradicting_declarations_are_refused(tmp_path):
    con = connect()
    store = small_store(tmp_path / "store")
    for arguments in (
        "width := 7",
        "width := 8, rows_per_shard := 5",
        "width := -8",
        "width := 8, format := 'fp6'",
        "width := 8, layer := -1",
    ):
        with pytest.raises(duckdb.Error):
            con.execute(f"CALL engram_register('s', '{store}', {arguments})")
    assert con.execute("SELECT count(*) FROM engram_tables()").fetchall() == [(0,)]
    with pytest.raises(duckdb.Error, match="engram_register: width must be a 64-bit integer, got VARCHAR 'a'"):
        con.execute(f"CALL engram_register('s', '{store}', width := 'a')")


def test_attach_a_database_directory(tmp_path):
    store = small_store(tmp_path / "store")
    first = connect()
    first.execute(f"CALL engram_attach('{tmp_path / 'db'}')")
    first.execute(f"CALL engram_register('s', '{store}', width := 8)")
    second = connect()
    tables = second.execute(f"CALL engram_attach('{tmp_path / 'db'}', read_only := true)").fetchall()
    assert [row[0] for row in tables] == ["s"]
    assert second.execute("SELECT count(*) FROM s").fetchall() == [(30,)]
    with pytest.raises(duckdb.Error):
        second.execute("CALL engram_drop('s')")


def test_databases_do_not_share_tables():
    con, other = connect_ple(), connect()
    assert con.execute("SELECT count(*) FROM engram_tables()").fetchall() == [(1,)]
    assert other.execute("SELECT count(*) FROM engram_tables()").fetchall() == [(0,)]
    assert con.cursor().execute("SELECT count(*) FROM ple").fetchall() == [(1408,)]


def test_odd_paths(tmp_path):
    con = connect()
    store = small_store(tmp_path / "a b \u00fc \u8868 o'clock")
    con.execute("CALL engram_register('odd', ?, width := 8)", [str(store)])
    assert con.execute("SELECT source FROM engram_tables()").fetchall() == [(str(store),)]
    assert con.execute("SELECT \"row\" FROM engram_fetch('odd', [25])").fetchall() == [(b"\x02" * 8,)]


def test_views_of_the_catalog_are_relations(tmp_path):
    con = connect()
    assert con.execute("SELECT name, kind, sql FROM engram_views()").fetchall() == []
    con.execute(f"CALL engram_attach('{tmp_path / 'db'}')")
    con.execute(f"CALL engram_register('ple', '{FP8}')")
    catalog = tmp_path / "db" / "engram.json"
    document = json.loads(catalog.read_text())
    sql = "SELECT rowid, head FROM ple WHERE rowid < 5"
    document["sql_views"] = [{"name": "few", "sql": sql}]
    catalog.write_text(json.dumps(document))
    assert con.execute("SELECT name, kind, sql FROM engram_views()").fetchall() == [("few", "sql", sql)]
    assert con.execute("SELECT max(rowid) FROM few").fetchall() == [(4,)]
    assert con.execute("SELECT FEW.rowid FROM FEW JOIN ple USING (rowid) WHERE FEW.rowid = 3").fetchall() == [(3,)]
