"""The planner takes a name for what DuckDB takes it for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from planning import CHECKPOINT, GOLDEN, Both, both, rows_read

import engramsql


@pytest.fixture
def made() -> Iterator[Both]:
    with both() as one:
        yield one


@pytest.fixture
def db() -> Iterator[engramsql.Database]:
    with engramsql.connect() as database:
        database.register("ple", CHECKPOINT)
        yield database


def access(database: engramsql.Database, statement: str) -> str:
    """What EXPLAIN says of the tables that are read; empty if the planner left the statement alone."""
    rows = database.sql(f"EXPLAIN {statement}").fetchall()
    return rows[0][1] if rows[0][0] == "engramsql" else ""


def is_keyed(database: engramsql.Database, statement: str) -> bool:
    lines = access(database, statement)
    return bool(lines) and "all rows" not in lines


@pytest.mark.parametrize(
    "statement",
    [
        "WITH ple AS (SELECT 5 AS rowid, 'mine' AS x) SELECT x FROM ple WHERE rowid = 5",
        "WITH PLE AS (SELECT 5 AS rowid, 'mine' AS x) SELECT x FROM ple WHERE rowid = 5",
        "WITH RECURSIVE ple AS (SELECT 5 AS rowid, 'mine' AS x) SELECT x FROM ple WHERE rowid = 5",
        "SELECT x FROM (WITH ple AS (SELECT 5 AS rowid, 'mine' AS x) SELECT * FROM ple) WHERE rowid = 5",
        "WITH ple AS (SELECT 5 AS rowid, 'mine' AS x) SELECT x FROM (SELECT * FROM ple WHERE rowid = 5)",
        "WITH a AS (SELECT 5 AS rowid, 'mine' AS x), ple AS (FROM a) SELECT x FROM ple WHERE rowid = 5",
        "SELECT ple.x FROM (SELECT 5 AS rowid, 'mine' AS x) AS ple WHERE ple.rowid = 5",
        "SELECT ple.x FROM (VALUES (5, 'mine')) AS ple(rowid, x) WHERE ple.rowid = 5",
        "SELECT mine.x FROM (VALUES (5, 'mine')) AS mine(rowid, x) WHERE rowid = 5 -- ple",
    ],
)
def test_names_within_a_statement(db: engramsql.Database, statement: str):
    assert db.sql(statement).fetchall() == [("mine",)]
    assert not access(db, statement)


def test_an_expression_is_hidden_from_those_before_it(db: engramsql.Database):
    statement = "WITH a AS (SELECT rowid FROM ple WHERE rowid = 5), ple AS (SELECT 7 AS rowid) SELECT * FROM a, ple"
    assert db.sql(statement).fetchall() == [(5, 7)]
    assert is_keyed(db, statement)
    statement = "WITH ple AS (SELECT rowid AS r FROM ple WHERE rowid IN (5, 6)) SELECT r FROM ple WHERE r = 6"
    assert db.sql(statement).fetchall() == [(6,)]
    assert is_keyed(db, statement)


def test_a_name_in_another_statement_is_looked_at_anew(db: engramsql.Database):
    statement = "SELECT count(*) FROM ple WHERE rowid IN (5, 6)"
    assert db.sql(statement).fetchall() == [(2,)]
    db.execute("CREATE TEMP TABLE ple AS SELECT 5 AS rowid")
    assert db.sql(statement).fetchall() == [(1,)]
    assert db.execute(statement).fetchall() == [(1,)]
    assert not access(db, statement)
    assert db.sql(statement.replace("FROM ple", "FROM main.ple")).fetchall() == [(1,)]
    assert db.sql(statement.replace("FROM ple", "FROM memory.main.ple")).fetchall() == [(2,)]
    assert is_keyed(db, statement.replace("FROM ple", "FROM memory.main.ple"))
    db.execute("DROP TABLE temp.ple")
    assert db.sql(statement).fetchall() == [(2,)]
    assert is_keyed(db, statement)


@pytest.mark.parametrize(
    "hide",
    [
        lambda con: con.execute('CREATE TEMP TABLE "PLE" AS SELECT 5 AS rowid'),
        lambda con: con.execute("CREATE TEMP VIEW ple AS SELECT 5 AS rowid"),
        lambda con: con.execute("CREATE OR REPLACE VIEW ple AS SELECT 5 AS rowid"),
        lambda con: con.execute("CREATE OR REPLACE VIEW ple AS SELECT * FROM engram_scan('ple') WHERE rowid = 5"),
        lambda con: con.execute("DROP VIEW ple; CREATE TABLE ple AS SELECT 5 AS rowid"),
        lambda con: con.execute("CREATE SCHEMA s; CREATE TABLE s.ple AS SELECT 5 AS rowid; USE s"),
        lambda con: con.execute("CREATE SCHEMA s; CREATE TABLE s.ple AS SELECT 5 AS rowid; SET search_path = 's,main'"),
        lambda con: con.execute("ATTACH ':memory:' AS o; CREATE TABLE o.ple AS SELECT 5 AS rowid; USE o"),
        lambda con: con.sql("SELECT 5 AS rowid").create_view("ple", replace=True),
    ],
)
@pytest.mark.parametrize("cached", [True, False])
def test_other_relations_of_the_name(db: engramsql.Database, hide, cached: bool):
    statement = "SELECT count(*) FROM ple WHERE rowid IN (5, 6)"
    connection = db.connection
    if cached:
        assert db.sql(statement).fetchall() == [(2,)]
    hide(connection)
    assert db.sql(statement).fetchall() == [(1,)]
    assert db.execute(statement).fetchall() == [(1,)]
    assert not is_keyed(db, statement)


def test_a_view_replaced_within_a_transaction(db: engramsql.Database):
    statement = "SELECT count(*) FROM ple WHERE rowid IN (5, 6)"
    db.execute("BEGIN")
    db.execute("CREATE OR REPLACE VIEW ple AS SELECT 5 AS rowid")
    assert db.sql(statement).fetchall() == [(1,)]
    db.execute("ROLLBACK")
    assert db.sql(statement).fetchall() == [(2,)]


def test_other_schemas_and_databases(db: engramsql.Database):
    db.execute("CREATE SCHEMA s; CREATE TABLE s.ple AS SELECT 5 AS rowid")
    assert db.sql("SELECT count(*) FROM s.ple WHERE rowid IN (5, 6)").fetchall() == [(1,)]
    assert db.sql("SELECT count(*) FROM memory.s.ple WHERE rowid IN (5, 6)").fetchall() == [(1,)]
    assert not access(db, "SELECT count(*) FROM s.ple WHERE rowid IN (5, 6)")
    assert is_keyed(db, "SELECT count(*) FROM memory.main.ple WHERE rowid IN (5, 6)")
    statement = "SELECT main.ple.rowid FROM main.ple WHERE main.ple.rowid = 5"
    assert db.sql(statement).fetchall() == [(5,)]


# Statements before, and names that mean the table after them.
ELSEWHERE = {
    "schema in use": (("CREATE SCHEMA s", "USE s"), ("ple", "main.ple", "memory.main.ple")),
    "schema in use with the name": (
        ("CREATE SCHEMA s", "CREATE TABLE s.ple AS SELECT 5 AS rowid", "USE s"),
        ("main.ple", "memory.main.ple"),
    ),
    "search path": (
        ("CREATE SCHEMA s", "CREATE TABLE s.ple AS SELECT 5 AS rowid", "SET search_path = 's,main'"),
        ("main.ple", "memory.main.ple"),
    ),
    "database in use": (("ATTACH ':memory:' AS o", "USE o"), ("memory.main.ple", "memory.ple")),
    "database in use with the name": (
        ("ATTACH ':memory:' AS o", "CREATE TABLE o.ple AS SELECT 5 AS rowid", "USE o"),
        ("memory.main.ple", "memory.ple"),
    ),
    "temporary table": (("CREATE TEMP TABLE ple AS SELECT 5 AS rowid",), ("memory.main.ple", "memory.ple")),
}


@pytest.mark.parametrize("before, names", ELSEWHERE.values(), ids=ELSEWHERE)
def test_names_that_mean_the_table_wherever_one_is(db: engramsql.Database, before: tuple[str, ...], names):
    for statement in before:
        db.execute(statement)
    for name in names:
        for restriction, count in (("rowid IN (5, 6)", 2), ("rowid BETWEEN 3 AND 5", 3)):
            statement = f"SELECT count(DISTINCT embedding) FROM {name} WHERE {restriction}"
            for method in (db.sql, db.execute):
                before_ = rows_read(db)
                assert method(statement).fetchall() == [(count,)], name
                assert rows_read(db) - before_ == count, name
            assert is_keyed(db, statement)
    db.execute("USE memory.main")
    statement = "SELECT count(*) FROM ple p SEMI JOIN (VALUES (5), (6)) k(i) ON p.rowid = k.i"
    expected = [(1,)] if "TEMP" in before[0] else [(2,)]
    assert db.sql(statement).fetchall() == expected


def test_what_a_view_reads_is_not_looked_up_where_one_is(db: engramsql.Database):
    db.execute("CREATE TABLE tags AS SELECT 5 AS id, 'main' AS tag")
    db.execute("CREATE VIEW tagged AS SELECT rowid AS r, 'ple' AS tag FROM ple UNION ALL SELECT id, tag FROM tags")
    db.execute("CREATE SCHEMA s; CREATE TABLE s.tags AS SELECT 5 AS id, 's' AS tag")
    statement = "SELECT tag FROM memory.main.tagged WHERE r = 5"
    assert db.sql(statement).fetchall() == [("ple",), ("main",)]
    assert is_keyed(db, statement)
    db.execute("USE s")
    for method in (db.sql, db.execute):
        assert method(statement).fetchall() == [("ple",), ("main",)]


def test_a_plan_is_made_again_when_a_name_means_something_else(db: engramsql.Database):
    statement = "SELECT count(*) FROM ple WHERE rowid IN (5, 6)"
    connection = db.connection
    for _ in range(2):
        for method in (db.sql, db.execute):
            assert method(statement).fetchall() == [(2,)]
            connection.execute("CREATE TEMP TABLE ple AS SELECT 5 AS rowid")
            assert method(statement).fetchall() == [(1,)]
            connection.execute("DROP TABLE temp.ple")
            assert method(statement).fetchall() == [(2,)]
            connection.execute("ALTER VIEW ple RENAME TO other; CREATE VIEW ple AS SELECT 5 AS rowid")
            assert method(statement).fetchall() == [(1,)]
            connection.execute("DROP VIEW ple; ALTER VIEW other RENAME TO ple")
            assert method(statement).fetchall() == [(2,)]
            cursor = connection.cursor()
            cursor.execute("BEGIN; CREATE OR REPLACE VIEW ple AS SELECT 5 AS rowid")
            assert method(statement).fetchall() == [(2,)]
            cursor.execute("COMMIT")
            assert method(statement).fetchall() == [(1,)]
            connection.execute("CREATE OR REPLACE VIEW ple AS " + str(relation_of(db)))
            assert method(statement).fetchall() == [(2,)]
            assert is_keyed(db, statement)
            connection.execute("DEALLOCATE _engram_view_ids")
            assert method(statement).fetchall() == [(2,)]
            assert is_keyed(db, statement)


def relation_of(database: engramsql.Database) -> str:
    """The SELECT of the view of the table."""
    ((text,),) = database.connection.execute("SELECT _engram_relation('ple')").fetchall()
    return str(text)


def test_the_result_of_the_connection_is_not_taken(db: engramsql.Database):
    db.sql("SELECT rowid FROM ple WHERE rowid = 5").fetchall()
    connection = db.connection
    connection.execute("FROM range(3)")
    assert connection.fetchone() == (0,)
    db.sql("SELECT rowid FROM ple WHERE rowid = 5")
    assert connection.fetchall() == [(1,), (2,)]
    for _ in range(2):
        assert db.sql("SELECT rowid FROM ple WHERE rowid = 5").fetchall() == [(5,)]
        assert connection.fetchall() == []


def test_letters_of_names(tmp_path: Path):
    with engramsql.connect() as db:
        for name in ("Rows", "größe", 'quo"te', "A b", "数据"):
            db.register(name, CHECKPOINT)
            quoted = '"' + name.replace('"', '""') + '"'
            for written in (quoted, quoted.upper() if name.isascii() else quoted):
                statement = f"SELECT rowid FROM {written} WHERE rowid IN (5, 6)"
                assert sorted(db.sql(statement).fetchall()) == [(5,), (6,)]
                assert is_keyed(db, statement)
        with pytest.raises(duckdb.CatalogException):
            db.sql('SELECT rowid FROM "GRÖSSE" WHERE rowid = 5')
        statement = "SELECT '🦆 ü', rowid /* 数据 */ FROM rOWS WHERE rowid = 5 AND '🦆' = '🦆'"
        assert db.sql(statement).fetchall() == [("🦆 ü", 5)]
        assert is_keyed(db, statement)


def test_tables_come_and_go(db: engramsql.Database):
    db.register("other", CHECKPOINT)
    assert is_keyed(db, "SELECT rowid FROM other WHERE rowid = 5")
    db.drop("other")
    with pytest.raises(duckdb.CatalogException):
        db.sql("SELECT rowid FROM other WHERE rowid = 5")
    db.register("other", GOLDEN / "ckpt_qwen4_exp_bf16")
    statement = "SELECT embedding FROM other WHERE rowid = 5"
    (row,) = db.sql(statement).fetchall()
    assert row[0] == tuple(db.table("other").vectors([5])[0].tolist())
    assert is_keyed(db, statement)


def test_views_of_the_catalog_and_of_the_connection(made: Both):
    db = made.db
    db.create_view("kept", "SELECT rowid AS id, head AS h FROM ple WHERE head < 4")
    db.execute("CREATE TEMP VIEW brief AS SELECT id FROM kept WHERE h > 0")
    assert db.sql("SELECT id FROM kept WHERE id = 5").fetchall() == [(5,)]
    assert is_keyed(db, "SELECT id FROM kept WHERE id = 5")
    assert db.sql("SELECT id FROM brief WHERE id = 100").fetchall() == [(100,)]
    db.create_view("kept", "SELECT rowid + 1 AS id, head AS h FROM ple", replace=True)
    assert db.sql("SELECT id FROM kept WHERE id = 1408").fetchall() == [(1408,)]
    db.execute("CREATE OR REPLACE VIEW named AS SELECT 7 AS id")
    assert db.sql("SELECT id FROM named WHERE id IN (5, 7)").fetchall() == [(7,)]


def test_a_statement_does_not_reach_into_a_view(made: Both):
    db = made.db
    statement = "WITH ple AS (SELECT 1 AS rowid) SELECT named.id FROM named, ple WHERE named.id = 5"
    assert db.sql(statement).fetchall() == [(5,)]
    db.execute("CREATE VIEW over AS WITH keys AS (SELECT rowid AS r FROM ple) SELECT r FROM keys")
    statement = "WITH keys AS (SELECT 6 AS i) SELECT r FROM over, keys WHERE r = 5"
    assert db.sql(statement).fetchall() == [(5,)]
    statement = (
        "WITH k AS (SELECT rowid AS r FROM ple) SELECT * FROM (WITH ple AS (SELECT 1) SELECT r FROM k WHERE r = 5)"
    )
    assert db.sql(statement).fetchall() == [(5,)]


def test_python_variables_are_keys_and_are_read_once(made: Both):
    db = made.db
    keys_here = pa.table({"id": [5, 6, 6, 3000, None]})
    for statement in (
        "SELECT p.rowid FROM {} k JOIN ple p ON p.rowid = k.id",
        "SELECT p.rowid FROM ple p JOIN {} k ON p.rowid = k.id",
        "SELECT * FROM (SELECT p.rowid FROM ple p SEMI JOIN {} k ON p.rowid = k.id) UNION ALL SELECT 6",
        "SELECT rowid FROM ple WHERE rowid IN (SELECT id FROM {}) UNION ALL SELECT 6",
        "SELECT rowid FROM (FROM ple) p WHERE rowid IN (SELECT id FROM {}) UNION ALL SELECT 6",
        "SELECT p.rowid FROM ple p RIGHT JOIN {} k ON p.rowid = k.id WHERE p.rowid IS NOT NULL",
        "WITH q AS (FROM {}) SELECT p.rowid FROM q JOIN ple p ON p.rowid = q.id",
        "WITH q AS (SELECT p.rowid FROM ple p, {} k WHERE p.rowid = k.id) SELECT rowid FROM q WHERE rowid IN (5, 6)",
    ):
        assert sorted(db.sql(statement.format("keys_here")).fetchall()) == [(5,), (6,), (6,)], statement
        before = rows_read(db)
        reader = keys_here.to_reader()
        found = db.execute(statement.format("reader")).fetchall()
        assert sorted(found) == [(5,), (6,), (6,)], statement
        assert rows_read(db) == before
        del reader
    reader = keys_here.to_reader()
    twice = (
        "WITH q AS (SELECT p.rowid FROM ple p, reader k WHERE p.rowid = k.id) "
        "SELECT a.rowid FROM q a, q b WHERE a.rowid = 5 AND b.rowid = 5"
    )
    assert db.execute(twice).fetchall() == [(5,)]
    del reader


def test_aliases_of_the_select_list(made: Both):
    for statement in (
        "SELECT 5 AS id FROM {t} WHERE {t}.rowid = id",
        "SELECT rowid + 1 AS r FROM {t} WHERE r = 6",
        "SELECT head AS rowid FROM {t} WHERE rowid = 100",
        "SELECT k.tag, (SELECT 5 AS id FROM {t} WHERE rowid = id) AS x FROM keys k",
        "SELECT tag, (SELECT head FROM {t} WHERE rowid = id) AS x FROM keys",
    ):
        made.check(statement, read=10**6)


def test_columns_that_are_named_by_their_text_keep_their_names(made: Both):
    for statement in (
        "SELECT (SELECT head FROM {t} WHERE rowid = 5)",
        "SELECT tag, EXISTS (SELECT 1 FROM {t} WHERE {t}.rowid = keys.id) FROM keys",
        "SELECT (SELECT head FROM {t} WHERE rowid = 5), (SELECT head FROM {t} WHERE rowid = 100) AS x",
        "SELECT *, (SELECT head FROM {t} WHERE {t}.rowid = keys.id) FROM keys",
        "SELECT 1 + (SELECT head FROM {t} WHERE rowid = 5)",
        "SELECT sum((SELECT octet_length(row) FROM {t} WHERE {t}.rowid = k.id)), k.kind FROM keys k GROUP BY k.kind",
        "WITH q AS (SELECT 5 AS i) SELECT *, (SELECT head FROM {t} WHERE rowid = q.i) + 1 FROM q",
        "FROM keys SELECT DISTINCT (SELECT head FROM {t} WHERE {t}.rowid = keys.id), kind",
        "SELECT * FROM (SELECT (SELECT head FROM {t} WHERE rowid = 5))",
        "SELECT [(SELECT head FROM {t} WHERE rowid = 5)]",
        "SELECT (SELECT (SELECT head FROM {t} WHERE rowid = 5) + 1)",
    ):
        expected = made.expected(statement)
        found = made.planned(statement)
        assert [name.replace("ple", "copy") for name in found.columns] == [
            name.replace('"copy"', "copy") for name in expected.columns
        ], statement
        assert sorted(found.fetchall(), key=repr) == sorted(expected.fetchall(), key=repr)
    made.db.execute("CREATE TABLE made AS SELECT (SELECT head FROM ple WHERE rowid = 5)")
    assert made.db.sql("FROM made").columns == made.db.sql("SELECT (SELECT head FROM ple WHERE rowid = 5)").columns
