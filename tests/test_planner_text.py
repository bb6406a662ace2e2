"""The planner and the text of statements: what it looks at, what it leaves alone, and long lists."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import duckdb
import program
import pytest
from planning import CHECKPOINT, Both, both, rows_read

import engramsql
from engramsql.planner.gate import Gate
from engramsql.planner.literals import fold, unfold


@pytest.fixture(scope="module")
def shared() -> Iterator[Both]:
    with both() as made:
        yield made


LONG = ",".join(map(str, range(40)))
SPACED = " ,\n\t".join(f"-{i}" for i in range(40))


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT rowid FROM t WHERE rowid IN ({LONG})",
        f"SELECT '{LONG}', [{SPACED}]",
        f"SELECT 1 -- {LONG}\n + 2 /* {LONG} */",
        f"SELECT $${LONG}$$, $x${LONG}$x$",
        f'SELECT "{LONG}"',
        f"SELECT a{LONG}, b",
        f"SELECT x.{LONG}",
        f"SELECT {LONG}.5, {LONG}e5, {LONG}x",
        f"SELECT {LONG},{'9' * 30},{LONG}",
        f"SELECT ${LONG}",
        f"SELECT {LONG}, _engram_fold_0_, '{LONG}'",
        f"({LONG}), ({LONG})",
        "",
    ],
)
def test_lists_are_put_back_letter_by_letter(text: str):
    short, lists = fold(text)
    assert unfold(short, lists) == text


def test_what_is_folded():
    short, lists = fold(f"IN ({LONG}) {'x' * 200}")
    assert short.startswith("IN (_engram_fold_0_)")
    assert lists == [LONG]
    # A number that is more than digits is no part of a list.
    for text in (f"a{LONG}", f"{LONG}.5", f"{LONG}e5"):
        short, lists = fold(text + " " * 200)
        assert all(part.startswith(("1,", "0,")) and part[-1].isdigit() for part in lists)
        assert "39.5" not in lists
    assert fold("IN (1, 2, 3)") == ("IN (1, 2, 3)", [])


def test_long_lists_are_found_and_texts_that_look_like_them_stay(shared: Both):
    ids = ", ".join(str(i) for i in [*range(0, 400, 4), 5000, 4, 4, 1407])
    assert shared.check(f"SELECT rowid, row FROM {{t}} WHERE rowid IN ({ids})") == 101
    assert shared.check(f"SELECT rowid, row FROM {{t}} WHERE rowid = ANY([{ids}])") == 101
    assert shared.check(f"SELECT rowid, row FROM {{t}} WHERE rowid IN ({ids}, 77) OR rowid = 78") == 103
    text = f"SELECT rowid, '{ids}' AS a, $$ {ids} $$ AS b /* {ids} */ FROM {{t}} WHERE rowid IN ({ids}) -- {ids}"
    assert shared.check(text) == 101
    assert shared.check(f"SELECT k.tag, p.row FROM keys k LEFT JOIN {{t}} p ON p.rowid IN ({ids}) AND p.rowid = 5") > 60
    statement = f"SELECT k.tag, p.rowid FROM keys k LEFT JOIN {{t}} p ON p.rowid = k.id WHERE p.rowid IN ({ids})"
    shared.check(statement, read=10**6)
    lines = shared.db.sql(f"EXPLAIN SELECT * FROM ple WHERE rowid IN ({ids})").fetchall()[0][1]
    assert lines.startswith("ple: row ids of a list by lookup")


def test_ten_thousand_ids(shared: Both):
    ids = ",".join(str(i % 2000) for i in range(10_000))
    before = rows_read(shared.db)
    found = shared.db.sql(f"SELECT count(*), count(row) FROM ple WHERE rowid IN ({ids})").fetchall()
    assert found == [(1408, 1408)]
    assert rows_read(shared.db) - before <= 1408


def test_the_gate():
    gate = Gate(["ple", "größe", 'quo"te'])
    assert gate.opens("SELECT * FROM PLE WHERE rowid = 5")
    assert gate.opens('SELECT * FROM "quo""te" JOIN keys ON rowid = id')
    assert gate.opens("EXPLAIN SELECT * FROM größe")
    assert not gate.opens("SELECT * FROM ple")
    assert not gate.opens("SELECT * FROM keys WHERE id = 5")
    assert not Gate([]).opens("SELECT * FROM ple WHERE rowid = 5")
    many = Gate([f"table{i}" for i in range(100)])
    assert many.opens("SELECT * FROM Table99 WHERE rowid = 5")


def test_the_parser_is_not_imported_for_what_cannot_gain():
    code = f"""
import sys, engramsql
db = engramsql.connect()
db.register("ple", {str(CHECKPOINT)!r})
db.sql("SELECT count(*) FROM ple").fetchall()
db.execute("CREATE TABLE keys AS SELECT 5 AS id")
db.sql("SELECT * FROM keys WHERE id = 5").fetchall()
assert "sqlglot" not in sys.modules
db.sql("SELECT rowid FROM ple WHERE rowid = 5").fetchall()
assert "sqlglot" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_compiled_parser_does():
    """Nothing can be derived from the classes of a compiled parser; it is not always installed."""
    code = f"""
import logging, sys, engramsql
from sqlglot.dialects.duckdb import DuckDB
class Compiled(type(DuckDB.Parser)):
    def __new__(cls, name, bases, members):
        raise TypeError("interpreted classes cannot inherit from compiled")
DuckDB.Parser.__init_subclass__ = classmethod(lambda cls: Compiled("", (), {{}}))
db = engramsql.connect()
db.register("ple", {str(CHECKPOINT)!r})
assert "lookup" in db.sql("EXPLAIN SELECT rowid FROM ple WHERE rowid = 5").fetchall()[0][1]
# What the parser does not know, it says to those who ask it themselves only.
assert db._planner.plan("CREATE TABLE a AS SUMMARIZE SELECT * FROM ple WHERE rowid = 5") is None
logging.basicConfig(stream=sys.stdout, format="%(name)s")
import sqlglot
sqlglot.parse("ALTER SESSION whatever ple", read="duckdb")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "sqlglot\n", "")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT rowid FROM ple WHERE rowid = ",
        "SELECT nothing FROM ple WHERE rowid = 5",
        "SELECT rowid FROM ple WHERE rowid = 5 AND nothing = 3",
        "SELECT rowid FROM ple p JOIN ple q ON p.rowid = q.rowid WHERE rowid = 5",
        "SELECT ple.rowid FROM ple p WHERE p.rowid = 5",
        "SELECT rowid FROM ple WHERE rowid IN (SELECT id, tag FROM keys)",
        "SELECT rowid FROM ple WHERE rowid IN (SELECT nothing FROM keys)",
        "SELECT rowid FROM ple WHERE rowid = 'x'",
        "SELECT rowid FROM ple WHERE rowid IN ('x', 5)",
        "SELECT k.id FROM keys k SEMI JOIN ple p ON p.rowid = k.id WHERE p.head = 3",
        "SELECT rowid FROM ple WHERE rowid = k.id",
        "SELECT p.rowid FROM text k JOIN ple p ON p.rowid = k.id::BIGINT + 'x'::BIGINT",
    ],
)
def test_errors_are_those_of_duckdb(shared: Both, statement: str):
    with pytest.raises(duckdb.Error) as expected:
        shared.db.connection.cursor().execute(statement).fetchall()
    for run in (lambda: shared.db.sql(statement).fetchall(), lambda: shared.db.execute(statement).fetchall()):
        with pytest.raises(type(expected.value)) as found:
            run()
        assert str(found.value).split("\n")[0] == str(expected.value).split("\n")[0]
        assert "_engram_" not in str(found.value).split("\n")[0]
    assert shared.db.sql("SELECT 42").fetchall() == [(42,)]


def test_missing_parameters_are_told_as_by_duckdb(shared: Both):
    statement = "SELECT rowid FROM ple WHERE rowid = ? OR rowid = ?"
    for params in ([5], [5, 6, 7]):
        with pytest.raises(duckdb.Error) as expected:
            shared.db.connection.cursor().execute(statement, params)
        with pytest.raises(type(expected.value)):
            shared.db.execute(statement, params)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1; SELECT rowid FROM ple WHERE rowid = 5",
        "SELECT rowid FROM ple WHERE rowid = 5;",
        " ; SELECT rowid FROM ple WHERE rowid = 5 ; ;",
        "-- first\nSELECT rowid FROM ple WHERE rowid = 5 -- ; last",
        "/* ; */ SELECT rowid FROM ple WHERE rowid = 5 AND ';' = ';'",
        "(SELECT rowid FROM ple WHERE rowid = 5)",
        "(SELECT rowid FROM ple WHERE rowid = 5) UNION ALL (SELECT rowid FROM ple WHERE rowid = -1)",
        "SELECT rowid FROM ple WHERE rowid = 1_0 - 5",
        "SELECT rowid FROM ple WHERE rowid = 5 AND e'\\'' = ''''",
        "SELECT rowid FROM ple WHERE rowid == 5",
        "SELECT rowid FROM ple WHERE rowid = 5 GROUP BY ALL ORDER BY ALL LIMIT 10 OFFSET 0",
        "SELECT rowid FROM ple WHERE rowid = 5 AND [x + 1 for x in [1, 2] if x > 1] = [3]",
        "SELECT rowid FROM ple WHERE rowid = 5 AND list_filter([1, 2], lambda x: x > 1) = [2]",
        "SELECT rowid FROM ple WHERE rowid = 5 AND {'ple': 5}.ple = 5",
        "SELECT rowid FROM ple WHERE rowid = 5 AND row IS NOT NULL AND head::VARCHAR LIKE '0'",
        "SELECT first(rowid ORDER BY rowid) FROM ple WHERE rowid = 5",
        "SELECT rowid FROM ple WHERE (rowid, head) IN ((5, 0))",
        "SELECT rowid FROM ple WHERE rowid = 5 WINDOW w AS (ORDER BY rowid) QUALIFY count(*) OVER w = 1",
        "SELECT rowid FROM ple WHERE rowid = 5 AND rowid = 5 IS NOT NULL",
        "SELECT rowid FROM ple WHERE (rowid = 5) = true",
        "SELECT rowid FROM ple WHERE rowid = 5 AND NOT rowid = 6 AND NOT rowid IN (7)",
    ],
)
def test_texts_of_all_kinds(shared: Both, statement: str):
    assert shared.db.sql(statement).fetchall() == [(5,)]
    assert shared.db.execute(statement).fetchall() == [(5,)]


def test_what_a_parser_may_read_otherwise(shared: Both):
    """Operators whose precedence differs between dialects: the answer is DuckDB's."""
    for predicate in (
        "rowid = 5 IS NULL",
        "rowid = 5 IN (true, false)",
        "NOT rowid = 5 AND rowid < 8",
        "NOT (rowid = 5) = false",
        "rowid = 5 BETWEEN false AND true",
        "rowid = 4 | 1",
        "rowid = 5 & 7",
        "rowid = 2 ** 2 + 1",
        "rowid = 1 << 2",
        "rowid = 10 / 2",
        "rowid = 11 // 2",
        "rowid = -5 % 3 + 7",
        "rowid = - -5",
        "rowid < 8 = true AND rowid > 2",
        "rowid = 5 OR rowid = 6 AND rowid = 7",
        "rowid BETWEEN 3 AND 5 OR rowid = 9",
        "rowid NOT BETWEEN 3 AND 1400",
        "rowid BETWEEN 3 AND 5 AND head = 0 OR rowid BETWEEN 700 AND 702",
        "rowid = CASE WHEN head = 0 THEN 5 ELSE 700 END",
        "rowid IN (5, 6) = (head = 0)",
        "rowid = 5::BIGINT",
        "rowid = '5'::BIGINT",
        "rowid = 5.7::BIGINT",
        "rowid = 5.5",
        "rowid < 5.000000001",
        "rowid = 500e-2",
        "rowid = 123456789012345678901234567890",
        "rowid > -123456789012345678901234567890 AND rowid < 4",
        "rowid <= 9223372036854775807 AND rowid >= 1400",
        "rowid >= '1400'",
        "rowid::VARCHAR = '5'",
        "rowid::TINYINT = 5",
        "rowid::DOUBLE = 5",
        "rowid + 0 = 5",
        "-rowid = -5",
        "abs(rowid) = 5",
        "rowid = abs(-5)",
        "rowid = ANY(SELECT 5)",
        "rowid <> ALL(SELECT id FROM keys WHERE id IS NOT NULL)",
        "rowid = ALL([5])",
        "rowid < ANY([3, 5])",
        "rowid IN (VALUES (5), (6))",
        "rowid = (SELECT 5)",
        "rowid = (SELECT max(id) FROM small)",
        "rowid IS 5",
        "rowid IN (5) AND false",
        "rowid IN (5) OR true",
        "rowid = NULL OR rowid = 5",
        "rowid IN (NULL)",
        "rowid BETWEEN NULL AND 5",
        "rowid BETWEEN 1 AND NULL OR rowid = 3",
    ):
        statement = f"SELECT rowid FROM {{t}} WHERE {predicate}"
        try:
            expected = sorted(shared.expected(statement).fetchall())
        except duckdb.Error:
            with pytest.raises(duckdb.Error):
                shared.planned(statement).fetchall()
            continue
        assert sorted(shared.planned(statement).fetchall()) == expected, predicate


def test_an_open_result_of_the_connection_is_left_alone():
    with engramsql.connect() as db:
        db.register("ple", CHECKPOINT)
        result = db.execute("SELECT * FROM range(100000)")
        assert result.fetchone() == (0,)
        relation = db.sql("SELECT rowid FROM ple WHERE rowid = 5")
        assert result.fetchone() == (1,)
        result.fetchall()
        assert relation.fetchall() == [(5,)]


def test_an_aborted_transaction_is_told_as_by_duckdb():
    with engramsql.connect() as db:
        db.register("ple", CHECKPOINT)
        db.execute("BEGIN")
        with pytest.raises(duckdb.Error):
            db.execute("SELECT error('x')").fetchall()
        with pytest.raises(duckdb.TransactionException):
            db.execute("SELECT rowid FROM ple WHERE rowid = 5")
        db.execute("ROLLBACK")
        assert db.execute("SELECT rowid FROM ple WHERE rowid = 5").fetchall() == [(5,)]


def test_scripts_of_the_command_line_are_planned():
    script = """
        CREATE TEMP TABLE keys AS SELECT i * 5 AS id FROM range(4) t(i);
        SELECT rowid, head FROM ple WHERE rowid IN (5, 3) ORDER BY rowid;
        SELECT k.id, p.head FROM ple p JOIN keys k ON p.rowid = k.id ORDER BY k.id;
        EXPLAIN SELECT * FROM ple WHERE rowid = 5
    """
    done = program.run(CHECKPOINT, "-c", script, "--format", "jsonl")
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[:6] == [
        {"rowid": 3, "head": 0},
        {"rowid": 5, "head": 0},
        *({"id": i, "head": 0} for i in (0, 5, 10, 15)),
    ]
    assert lines[6] == {"explain_key": "engramsql", "explain_value": "ple: 1 row id by lookup, at most 160 bytes\n"}


def test_what_explain_says(shared: Both):
    said = {
        "SELECT * FROM {t} WHERE rowid = 5": "1 row id by lookup, at most 160 bytes",
        "SELECT * FROM {t} WHERE rowid IN (3, 4, 5)": "3 row ids by lookup, at most 480 bytes",
        "SELECT * FROM {t} WHERE rowid BETWEEN 5 AND 1004": "row ids 5 to 1004 in order, at most 160000 bytes",
        "SELECT * FROM {t} WHERE rowid > 1400": "row ids 1401 to 1407 in order, at most 1120 bytes",
        "SELECT * FROM {t} ORDER BY rowid DESC LIMIT 2": "row ids 1406 to 1407 in order, at most 320 bytes",
        "SELECT * FROM keys k JOIN {t} p ON p.rowid = k.id": "the row of k.id by lookup, one for each",
        "SELECT * FROM {t} WHERE rowid IN (FROM range(3))": "row ids of the subquery by lookup, as many as it returns",
        "SELECT * FROM {t} WHERE head = 4 LIMIT 3": "all rows (1408 x 160 bytes)",
    }
    for statement, expected in said.items():
        assert shared.accesses(statement) == f"ple: {expected}\n"
    relation = shared.db.sql("EXPLAIN SELECT * FROM ple WHERE rowid = ?", [5])
    plain = shared.db.sql("EXPLAIN SELECT 1")
    assert (relation.columns, relation.types) == (plain.columns, plain.types)
    for words in ("EXPLAIN ANALYZE", "explain analyze"):
        found = shared.db.execute(f"{words} SELECT p.row, k.id FROM ple p, keys k WHERE p.rowid = k.id").fetchall()
        assert found[0] == ("engramsql", "ple: the row of k.id by lookup, one for each\n")
        assert len(found) == 2
