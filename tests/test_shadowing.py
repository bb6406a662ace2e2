"""Which relation a name means: a registered table is a view in the schema main, and DuckDB's rules decide the rest.

What the rules are is told by DuckDB itself, on a connection where a view over a copy has the table's name.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from golden_data import GOLDEN
from helpers import refuses
from program import run

import engramsql
from engramsql.errors import EngramError, EngramWarning
from engramsql.quoting import folded, identifier

CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"
ROWS = 1408

# Of the same columns as a table, but not its rows.
MINE = "SELECT 5::BIGINT AS rowid, -1 AS head, 'mine' AS note"

# Made elsewhere under the same name.
IN_SCHEMA = ("CREATE SCHEMA s", f"CREATE TABLE s.ple AS {MINE}")
IN_OTHER = ("ATTACH ':memory:' AS other", f"CREATE TABLE other.ple AS {MINE}")
IN_NAMESAKE = ("CREATE SCHEMA ple", f"CREATE TABLE ple.ple AS {MINE}")
UNITED = f"CREATE VIEW seen AS SELECT rowid, head FROM ple UNION ALL SELECT rowid, head FROM ({MINE})"
SHIFTED = "CREATE VIEW s.ple AS SELECT rowid - 1 AS rowid, head FROM main.ple"


@dataclass(frozen=True)
class Sides:
    """A database with the table ``ple``, and DuckDB with a view of that name over a copy."""

    ours: engramsql.Database
    judge: duckdb.DuckDBPyConnection

    def both(self, statement: str) -> None:
        self.ours.execute(statement)
        self.judge.execute(statement)


@pytest.fixture(scope="module")
def copy() -> pa.Table:
    """The rows of the table; no test here looks at vectors."""
    with engramsql.connect(CHECKPOINT) as db:
        return db.sql("SELECT rowid, head, row FROM ple").to_arrow_table()


@pytest.fixture
def sides(db: engramsql.Database, copy: pa.Table) -> Iterator[Sides]:
    db.register("ple", CHECKPOINT)
    with duckdb.connect(config={"python_scan_all_frames": "true"}) as judge:
        judge.register("arrow_of_ple", copy)
        judge.execute('CREATE TABLE "rows of ple" AS FROM arrow_of_ple')
        judge.unregister("arrow_of_ple")
        judge.execute('CREATE VIEW ple AS FROM "rows of ple"')
        for side in (db, judge):
            side.execute("CREATE TABLE keys AS SELECT unnest([5, 7, 7, NULL, 5000]) AS id")
        yield Sides(db, judge)


# Statements before, and words that name a relation after them.
HIDING = {
    "nothing": ((), "ple"),
    "nothing, in capitals": ((), "PLE"),
    "nothing, quoted": ((), '"Ple"'),
    "nothing, with its schema": ((), "main.ple"),
    "nothing, with its database": ((), "memory.main.ple"),
    "nothing, with its database for a schema": ((), "memory.ple"),
    "temporary table": ((f"CREATE TEMP TABLE ple AS {MINE}",), "ple"),
    "temporary table in capitals": ((f'CREATE TEMP TABLE "PLE" AS {MINE}',), "ple"),
    "temporary table, by its schema": ((f"CREATE TEMP TABLE ple AS {MINE}",), "temp.ple"),
    "temporary table, passed over": ((f"CREATE TEMP TABLE ple AS {MINE}",), "main.ple"),
    "temporary view": ((f"CREATE TEMP VIEW ple AS {MINE}",), "ple"),
    "temporary view over it": (("CREATE TEMP VIEW ple AS SELECT rowid + 1 AS rowid, head FROM main.ple",), "ple"),
    "table in a schema": (IN_SCHEMA, "s.ple"),
    "table in a schema, not asked for": (IN_SCHEMA, "ple"),
    "schema in use": ((*IN_SCHEMA, "USE s"), "ple"),
    "schema in use, passed over": ((*IN_SCHEMA, "USE s"), "main.ple"),
    "schema in use without such a table": (("CREATE SCHEMA s", "USE s"), "ple"),
    "search path": ((*IN_SCHEMA, "SET search_path = 's,main'"), "ple"),
    "search path the other way": ((*IN_SCHEMA, "SET search_path = 'main,s'"), "ple"),
    "schema called like the table": (IN_NAMESAKE, "ple.ple"),
    "schema called like the table, not meant": (IN_NAMESAKE, "ple"),
    "attached database": (IN_OTHER, "other.ple"),
    "attached database, whole name": (IN_OTHER, "other.main.ple"),
    "attached database, not asked for": (IN_OTHER, "ple"),
    "attached database in use": ((*IN_OTHER, "USE other"), "ple"),
    "attached database without it": (("ATTACH ':memory:' AS other", "USE other"), "memory.main.ple"),
    "attached database of the name": (("ATTACH ':memory:' AS ple", f"CREATE TABLE ple.keys2 AS {MINE}"), "ple"),
    "replaced view": ((f"CREATE OR REPLACE VIEW ple AS {MINE}",), "ple"),
    "another view": (("CREATE VIEW seen AS FROM ple",), "seen"),
    "another view, then hidden": (("CREATE VIEW seen AS FROM ple", f"CREATE TEMP TABLE ple AS {MINE}"), "seen"),
    "view over columns by other names": (("CREATE VIEW seen(head, rowid) AS SELECT rowid, head FROM ple",), "seen"),
    "view with rows of its own": ((UNITED,), "seen"),
    "view called like the table, elsewhere": (("CREATE SCHEMA s", SHIFTED), "s.ple"),
    "macro of the name": (("CREATE MACRO ple(x) AS TABLE SELECT x AS rowid, 0 AS head",), "ple"),
    "macro of the name, called": (("CREATE MACRO ple(x) AS TABLE SELECT x AS rowid, 0 AS head",), "ple(5)"),
}  # fmt: skip

# `@` is such a name.
READING = (
    "SELECT rowid, head FROM @ ORDER BY ALL",
    "SELECT rowid, head FROM @ WHERE rowid = 5",
    "SELECT p.rowid, p.head FROM @ AS p WHERE p.rowid IN (5, 6, 7) ORDER BY ALL",
    "SELECT rowid, head FROM @ WHERE rowid BETWEEN 4 AND 6 ORDER BY ALL",
    "SELECT rowid, head FROM @ WHERE rowid IN (SELECT id FROM memory.main.keys) ORDER BY ALL",
    "SELECT k.id, p.rowid, p.head FROM memory.main.keys k LEFT JOIN @ p ON p.rowid = k.id ORDER BY ALL",
    "SELECT p.rowid, q.rowid FROM @ p JOIN memory.main.ple q ON p.rowid = q.rowid WHERE q.rowid IN (5, 7) ORDER BY ALL",
)


@pytest.mark.parametrize("before, name", HIDING.values(), ids=HIDING)
def test_a_name_means_what_it_means_to_duckdb(sides: Sides, before: tuple[str, ...], name: str) -> None:
    for statement in before:
        sides.both(statement)
    for reading in READING:
        statement = reading.replace("@", name)
        expected = answer(sides.judge, statement, "execute")
        for method in ("sql", "execute"):
            assert answer(sides.ours, statement, method) == expected, statement


def answer(connection: Any, statement: str, method: str) -> Any:
    """The rows, or the class of the error."""
    try:
        return getattr(connection, method)(statement).fetchall()
    except duckdb.Error as error:
        return type(error).__name__


# The name inside one statement.
SCOPES = (
    f"WITH ple AS ({MINE}) SELECT * FROM ple WHERE rowid = 5",
    f"WITH PLE AS ({MINE}) SELECT * FROM ple WHERE rowid IN (5, 6)",
    f"WITH ple AS ({MINE}) SELECT a.rowid, a.note, b.head FROM ple a JOIN main.ple b ON a.rowid = b.rowid",
    f"WITH ple AS ({MINE}) SELECT k.id, p.note FROM keys k JOIN ple p ON p.rowid = k.id",
    f"SELECT (WITH ple AS ({MINE}) SELECT note FROM ple WHERE rowid = 5), head FROM ple WHERE rowid = 7",
    f"SELECT note, head FROM (WITH ple AS ({MINE}) SELECT note FROM ple WHERE rowid = 5), ple p WHERE p.rowid = 7",
    f"WITH a AS (SELECT rowid FROM ple WHERE rowid = 5), ple AS ({MINE}) SELECT note FROM a JOIN ple USING (rowid)",
    f"WITH ple AS ({MINE}), a AS (SELECT rowid, note FROM ple WHERE rowid = 5) SELECT * FROM a",
    f"WITH ple AS ({MINE}) SELECT head FROM ple WHERE rowid IN (SELECT rowid FROM ple)",
    f"WITH ple AS ({MINE}) SELECT id FROM keys WHERE id NOT IN (SELECT rowid FROM ple)",
    "WITH ple AS (SELECT rowid, head FROM ple WHERE rowid < 3) SELECT * FROM ple WHERE rowid = 2",
    "WITH ple AS (SELECT rowid, head FROM main.ple WHERE rowid < 3) SELECT * FROM ple WHERE rowid = 2",
    "WITH RECURSIVE ple(rowid) AS (SELECT 5 UNION SELECT rowid + 1 FROM ple WHERE rowid < 9) FROM ple WHERE rowid = 6",
    "WITH keys AS (SELECT 1400 AS id) SELECT rowid, head FROM ple WHERE rowid IN (SELECT id FROM keys)",
    "SELECT p.id FROM keys AS p JOIN ple AS keys ON keys.rowid = p.id",
    "SELECT ple.id FROM keys AS ple WHERE ple.id = 5",
    "SELECT keys.head FROM ple AS keys WHERE keys.rowid = 5",
    "SELECT ple.rowid FROM keys AS ple JOIN main.ple AS p ON ple.id = p.rowid",
    "SELECT main.ple.rowid FROM ple WHERE main.ple.rowid = 5",
    "SELECT ple.rowid, ple.head FROM ple WHERE ple.rowid = 5",
    "SELECT ple FROM (SELECT 5 AS ple) t WHERE ple = 5",
    "SELECT ple.rowid FROM (SELECT {'rowid': 5} AS ple) t WHERE ple.rowid = 5",
    "SELECT p.rowid FROM (SELECT rowid + 1 AS rowid, head FROM ple) p WHERE p.rowid = 5",
    "SELECT rowid FROM (SELECT head AS rowid, rowid AS head FROM ple) WHERE rowid = 5 AND head < 320",
    "SELECT id FROM keys WHERE EXISTS (SELECT 1 FROM ple WHERE rowid = id AND head = 0)",
    "SELECT id FROM (SELECT 5 AS id, 99 AS rowid) k WHERE EXISTS (SELECT 1 FROM ple WHERE rowid = k.id)",
    "SELECT id, (SELECT head FROM ple WHERE ple.rowid = k.rowid) FROM (SELECT 5 AS id, 99 AS rowid) k",
    "SELECT rowid FROM ple, (SELECT 5 AS id) k WHERE rowid = id",
    "SELECT rowid FROM ple JOIN keys ON rowid = id",
    "SELECT x.rowid, y.rowid FROM ple x, ple y WHERE x.rowid = 5 AND y.rowid = x.rowid + 1",
    "SELECT 'FROM ple WHERE rowid = 5' AS said FROM keys WHERE id = 5",
    "SELECT rowid FROM ple -- WHERE rowid = 6\n WHERE rowid = 5",
    "SELECT rowid /* FROM ple WHERE rowid = 3 */ FROM ple WHERE rowid = 5",
)  # fmt: skip


def test_names_have_the_scopes_of_duckdb(sides: Sides) -> None:
    for statement in SCOPES:
        expected = answer(sides.judge, statement, "execute")
        for method in ("sql", "execute"):
            found = answer(sides.ours, statement, method)
            assert (sorted(found, key=repr), type(found)) == (sorted(expected, key=repr), type(expected)), statement


@pytest.mark.parametrize("method", ["sql", "execute"])
@pytest.mark.parametrize(
    "variable", [pa.table({"rowid": [5], "head": [-1]}), {"rowid": np.array([5])}], ids=["arrow", "numpy"]
)
def test_a_registered_table_comes_before_a_variable(sides: Sides, variable: Any, method: str) -> None:
    ple = variable
    assert len(ple["rowid"]) == 1
    for name in ("ple", "PLE", "main.ple"):
        assert answer(sides.ours, f"SELECT count(*) FROM {name}", method) == [(ROWS,)]
        assert answer(sides.ours, f"SELECT rowid, head, octet_length(row) FROM {name} WHERE rowid = 5", method) == [
            (5, 0, 160)
        ]


mine_of_the_module = pa.table({"id": [5, 7, 9000]})


@pytest.mark.parametrize("method", ["sql", "execute"])
def test_variables_are_found_where_a_table_is_looked_up_by_them(sides: Sides, method: str) -> None:
    """Also by names that a library may use for its own: the caller's are meant."""
    keys_of_numpy = {"id": np.array([5, 6])}
    query = sql = self = plan = tree = text = name = table = pa.table({"id": [7, 7]})
    params = error = node = expression = statement = rewritten = result = pa.table({"id": [1400]})
    assert len({id(one) for one in (query, sql, self, plan, tree, text, name, table)}) == 1
    assert len({id(one) for one in (params, error, node, expression, statement, rewritten, result)}) == 1
    assert len(keys_of_numpy["id"]) == 2
    expected = {"keys_of_numpy": [5, 6], "mine_of_the_module": [5, 7]}
    for one in ("query", "sql", "self", "plan", "tree", "text", "name", '"table"'):
        expected[one] = [7, 7]
    for one in ("params", "error", "node", "expression", "statement", "rewritten", "result"):
        expected[one] = [1400]
    for relation, ids in expected.items():
        joined = f"SELECT p.rowid FROM {relation} k JOIN ple p ON p.rowid = k.id ORDER BY ALL"
        among = f"SELECT rowid FROM ple WHERE rowid IN (SELECT id FROM {relation}) ORDER BY ALL"
        # Called from here, so that these variables are the nearest.
        assert getattr(sides.ours, method)(joined).fetchall() == [(i,) for i in ids], relation
        assert getattr(sides.ours, method)(among).fetchall() == [(i,) for i in dict.fromkeys(ids)], relation


# Functions that the relation of a table, or a statement planned for its keys, is made of.
MACROS = (
    "CREATE MACRO engram_head(a, b) AS 77",
    "CREATE MACRO engram_row(a, b) AS '77'::BLOB",
    "CREATE MACRO engram_vector(a, b) AS [77]",
    "CREATE MACRO list_sort(a) AS [77]",
    "CREATE MACRO list_distinct(a) AS [77]",
    "CREATE MACRO list_concat(a, b) AS [77]",
    "CREATE TEMP MACRO greatest(a, b) AS 77",
)


@pytest.mark.parametrize("macro", MACROS)
def test_a_macro_of_the_user_is_only_what_the_user_calls(sides: Sides, macro: str) -> None:
    sides.both(macro)
    for statement in (
        "SELECT rowid, head, octet_length(row) FROM ple WHERE rowid = 60",
        "SELECT rowid, head, octet_length(row) FROM ple WHERE rowid IN (60, 7) ORDER BY rowid",
        "SELECT rowid, head, octet_length(row) FROM ple WHERE rowid = ANY([60, 7]) ORDER BY rowid",
        "SELECT rowid, head, octet_length(row) FROM ple WHERE rowid = ANY([60, 7]) OR rowid = 100 ORDER BY rowid",
        "SELECT rowid, head, octet_length(row) FROM ple WHERE rowid BETWEEN 59 AND 61 ORDER BY rowid",
        "SELECT id, head, octet_length(row) FROM keys JOIN ple p ON p.rowid = id ORDER BY ALL",
        "SELECT rowid, head, octet_length(row) FROM ple WHERE rowid IN (SELECT id FROM keys) ORDER BY rowid",
        "SELECT max(head), max(octet_length(row)) FROM ple",
    ):
        expected = answer(sides.judge, statement, "execute")
        for method in ("sql", "execute"):
            assert answer(sides.ours, statement, method) == expected, statement


SETTINGS = ("default_order = 'DESC'", "default_null_order = 'NULLS FIRST'", "integer_division = true")


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_duckdb_count(sides: Sides, setting: str) -> None:
    sides.both(f"SET {setting}")
    for statement in (
        "SELECT rowid FROM ple ORDER BY rowid LIMIT 3",
        "SELECT rowid FROM ple WHERE rowid < 100 ORDER BY rowid LIMIT 3 OFFSET 1",
        "SELECT rowid, head FROM ple WHERE rowid > 1380 ORDER BY head, rowid LIMIT 3",
        "SELECT rowid FROM ple WHERE rowid = 11 / 2",
        "SELECT rowid FROM ple WHERE rowid IN (11 / 2, 7) ORDER BY rowid DESC",
        "SELECT id FROM keys JOIN ple p ON p.rowid = id / 2 ORDER BY id",
    ):
        expected = answer(sides.judge, statement, "execute")
        for method in ("sql", "execute"):
            assert answer(sides.ours, statement, method) == expected, statement


# What changes the meaning of a name, done where the database cannot see it.
BEHIND = {
    "connection": lambda db: db.connection.execute(f"CREATE TEMP TABLE ple AS {MINE}"),
    "lazily": lambda db: db.connection.sql(f"CREATE TEMP VIEW ple AS {MINE}"),
    "registered": lambda db: db.connection.register("ple", pa.table({"rowid": [5], "head": [-1]})),
    "relation": lambda db: db.sql(MINE).create_view("ple", replace=True),
    "cursor": lambda db: db.connection.cursor().execute(f"CREATE OR REPLACE VIEW ple AS {MINE}"),
    "several": lambda db: db.execute(f"SELECT 1; CREATE TEMP TABLE ple AS {MINE}; SELECT 2").fetchall(),
    "schema": lambda db: db.connection.execute(
        f"CREATE SCHEMA s; CREATE TABLE s.ple AS {MINE}; SET\nsearch_path = 's'"
    ),
}


@pytest.mark.parametrize("change", BEHIND.values(), ids=BEHIND)
def test_a_name_may_come_to_mean_something_else(sides: Sides, change: Callable[[engramsql.Database], object]) -> None:
    db = sides.ours
    db.execute("CREATE VIEW seen AS FROM main.ple")
    key = "SELECT head FROM ple WHERE rowid = 5"
    assert db.sql(key).fetchall() == [(0,)]
    change(db)
    for method in (db.sql, db.execute):
        assert method(key).fetchall() == [(-1,)]
        assert method("SELECT head FROM ple p JOIN (VALUES (5)) k(id) ON p.rowid = k.id").fetchall() == [(-1,)]


def test_what_is_rolled_back_hides_nothing(sides: Sides) -> None:
    db = sides.ours
    key = "SELECT head FROM ple WHERE rowid = 5"
    by_sql = (lambda: db.execute("BEGIN"), lambda: db.execute("ROLLBACK"))
    for begin, rollback in (by_sql, (db.connection.begin, db.connection.rollback)):
        begin()
        db.execute(f"CREATE TEMP TABLE ple AS {MINE}")
        assert db.sql(key).fetchall() == [(-1,)]
        rollback()
        assert db.sql(key).fetchall() == db.execute(key).fetchall() == [(0,)]


def test_a_table_of_the_name_is_refused_by_duckdb(sides: Sides) -> None:
    """The registered table is there already, as a view."""
    refuses(lambda: sides.ours.execute(f"CREATE TABLE ple AS {MINE}"), "ple", "view")
    refuses(lambda: sides.ours.execute(f"CREATE VIEW ple AS {MINE}"), "ple", "exists")
    assert sides.ours.execute("SELECT count(*) FROM ple").fetchall() == [(ROWS,)]


def test_a_table_of_the_user_hides_one_registered_later(db: engramsql.Database) -> None:
    db.execute(f"CREATE TABLE ple AS {MINE}")
    with pytest.warns(EngramWarning, match="ple"):
        db.register("ple", CHECKPOINT)
    for method in (db.sql, db.execute):
        assert method("SELECT note FROM ple WHERE rowid = 5").fetchall() == [("mine",)]
        assert method("SELECT note FROM ple WHERE rowid IN (5, 6)").fetchall() == [("mine",)]
        assert method("SELECT count(*) FROM engram_scan('ple')").fetchall() == [(ROWS,)]


def test_a_view_of_the_user_stays_whoever_takes_its_name(tmp_path: Path) -> None:
    """By another process a table, and a view of the catalog: the user's are read, and it is said."""
    path = tmp_path / "db"
    with engramsql.connect(path) as db:
        db.register("first", CHECKPOINT)
        for name in ("ple", "Seen"):
            db.execute(f"CREATE VIEW {name} AS {MINE}")
        with engramsql.connect(path) as other:
            other.register("PLE", CHECKPOINT)
            other.create_view("seen", "SELECT rowid, head, 'theirs' AS note FROM first")
        with pytest.warns(EngramWarning) as told:
            assert db.sql("SELECT note FROM ple WHERE rowid = 5").fetchall() == [("mine",)]
        assert [str(one.message) for one in told] == [
            "table 'PLE' is hidden by another relation of that name on this connection; drop that one",
            "view 'seen' was left out: another view of that name is on this connection; drop that one",
        ]
        for method in (db.sql, db.execute):
            for name in ("ple", "seen"):
                assert method(f"SELECT note FROM {name} WHERE rowid IN (5, 6)").fetchall() == [("mine",)]
            assert method("SELECT count(*) FROM engram_scan('ple')").fetchall() == [(ROWS,)]
        # Said once; whatever else happens in the catalog.
        with engramsql.connect(path) as other:
            other.register("more", CHECKPOINT)
        assert db.sql("SELECT count(*) FROM more WHERE rowid IN (5, 6)").fetchall() == [(2,)]
        assert db.sql("SELECT note FROM ple WHERE rowid = 5").fetchall() == [("mine",)]
        # As it says: dropped, it makes room.
        db.execute("DROP VIEW ple")
        assert db.sql("SELECT head FROM ple WHERE rowid = 5").fetchall() == [(0,)]
        assert "lookup" in db.sql("EXPLAIN SELECT head FROM ple WHERE rowid = 5").fetchall()[0][1]
        db.execute("DROP VIEW seen")
        assert db.sql("SELECT note FROM seen WHERE rowid = 5").fetchall() == [("theirs",)]
        # And one that is the user's by now is not dropped with the table.
        db.execute(f"CREATE OR REPLACE VIEW ple AS {MINE}")
        with engramsql.connect(path) as other:
            other.drop("ple")
        assert db.sql("SELECT note FROM ple WHERE rowid = 5").fetchall() == [("mine",)]


@pytest.mark.parametrize("method", ["sql", "execute"])
def test_a_replaced_view_is_not_taken_for_the_table_when_the_catalog_changes(tmp_path: Path, method: str) -> None:
    path, key = tmp_path / "db", "SELECT head FROM ple WHERE rowid = 5"
    with engramsql.connect(path) as db:
        db.register("ple", CHECKPOINT)
        db.execute(f"CREATE OR REPLACE VIEW ple AS {MINE}")
        assert getattr(db, method)(key).fetchall() == [(-1,)]
        with engramsql.connect(path) as other:
            other.register("more", CHECKPOINT)
        assert getattr(db, method)(key).fetchall() == [(-1,)]
        db.register("still", CHECKPOINT)
        assert getattr(db, method)(key).fetchall() == [(-1,)]


def test_a_view_of_the_catalog_replaces_one_of_the_user_only_if_asked(db: engramsql.Database) -> None:
    db.execute(f"CREATE VIEW seen AS {MINE}")
    refuses(lambda: db.create_view("Seen", "SELECT 1 AS note"), "'Seen'", "drop it first", "replace=True")
    assert db.views() == []
    assert db.sql("SELECT note FROM seen").fetchall() == [("mine",)]
    db.create_view("Seen", "SELECT 1 AS note", replace=True)
    assert db.sql("SELECT note FROM seen").fetchall() == [(1,)]


NAMES = (
    "ple", "Mixed_Case", "select", "table", "from", "order", "rowid", "head", "row", "values", "with space", "a\"b",
    "it's", "semi;colon", "gr\u00f6\u00dfe", "\u00c4RGER", "\u8868", "\U0001f642", "e\u0301", "dash-dash -- x", "-- x",
    "1st", "$1", "?", "{t}", "%s", "a.b", "\u0438\u043c\u044f",
)  # fmt: skip


def usable(tmp_path: Path) -> list[str]:
    """Names that a table can have; others are refused at registration, and in one line."""
    found = []
    with engramsql.connect(tmp_path / "named") as db:
        for name in NAMES:
            try:
                db.register(name, CHECKPOINT)
            except EngramError as error:
                assert "\n" not in str(error)
            else:
                found.append(name)
    return found


def test_tables_of_any_name(tmp_path: Path) -> None:
    names = usable(tmp_path)
    assert {"ple", "Mixed_Case", "select", "table", "gr\u00f6\u00dfe", "\u8868", "\U0001f642", "with space"} <= set(
        names
    )
    with engramsql.connect(tmp_path / "named") as db:
        db.execute("CREATE TABLE keys AS SELECT unnest([5, 7, NULL, 5000]) AS id")
        for name in names:
            quoted = identifier(name)
            for method in (db.sql, db.execute):
                assert method(f"SELECT count(*) FROM {quoted}").fetchall() == [(ROWS,)]
                assert method(f"SELECT {quoted}.rowid FROM {quoted} WHERE {quoted}.rowid = 5").fetchall() == [(5,)]
                assert method(f"SELECT rowid FROM main.{quoted} WHERE rowid IN (7, 5) ORDER BY 1").fetchall() == [
                    (5,),
                    (7,),
                ]
                joined = f"SELECT {quoted}.rowid, octet_length(row) FROM keys JOIN {quoted} ON {quoted}.rowid = id"
                assert sorted(method(joined).fetchall()) == [(5, 160), (7, 160)]
                assert method(f"WITH {quoted} AS ({MINE}) SELECT note FROM {quoted} WHERE rowid = 5").fetchall() == [
                    ("mine",)
                ]
            # Letters of ASCII are the same in both cases, no others.
            other = identifier(name.swapcase())
            if folded(other) == folded(quoted):
                assert db.sql(f"SELECT rowid FROM {other} WHERE rowid = 5").fetchall() == [(5,)]
            else:
                refuses(
                    lambda other=other: db.sql(f"SELECT rowid FROM {other} WHERE rowid = 5").fetchall(),
                    "does not exist",
                )


def test_tables_of_any_name_on_the_command_line(tmp_path: Path) -> None:
    """One script: every name, without and with a key, hidden and not."""
    names = usable(tmp_path)
    statements, expected = [], []
    for name in names:
        quoted = identifier(name)
        statements += [
            f"SELECT count(*) AS n FROM {quoted}",
            f"SELECT rowid AS n FROM {quoted} WHERE rowid IN (5, 5000)",
            f"SELECT p.rowid AS n FROM (VALUES (7), (NULL)) k(id) JOIN {quoted} p ON p.rowid = k.id",
            f"WITH {quoted} AS (SELECT -5 AS rowid) SELECT rowid AS n FROM {quoted} WHERE rowid = -5",
            f"CREATE TEMP TABLE {quoted} AS SELECT 5 AS rowid, 99 AS n",
            f"SELECT n FROM {quoted} WHERE rowid = 5",
            f"DROP TABLE temp.{quoted}",
        ]
        expected += ["n", str(ROWS), "n", "5", "n", "7", "n", "-5", "n", "99"]
    done = run(tmp_path / "named", "--format", "csv", "-c", ";\n".join(statements))
    assert (done.returncode, done.stderr) == (0, "")
    assert [line[0] for line in csv.reader(io.StringIO(done.stdout)) if line] == expected
