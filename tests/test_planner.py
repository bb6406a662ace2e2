"""Keyed access: every form gives what DuckDB gives over a copy of the table, and reads the rows that it returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from planning import MANY, ROWS, Both, both, rows_read


@pytest.fixture(scope="module")
def shared() -> Iterator[Both]:
    with both() as made:
        yield made


CONSTANTS = [
    "SELECT rowid, row FROM {t} WHERE rowid = 5",
    "SELECT rowid, row FROM {t} WHERE 5 = rowid",
    "SELECT rowid, row FROM {t} WHERE (((rowid)) = (5))",
    "SELECT rowid, row FROM {t} WHERE rowid = 5.0",
    "SELECT rowid, row FROM {t} WHERE rowid = '5'",
    "SELECT rowid, row FROM {t} WHERE rowid = 2 + 3 * 4 - 1",
    "SELECT rowid, row FROM {t} WHERE rowid = 17 % 5 AND head = 0",
    "SELECT rowid, row FROM {t} WHERE rowid = -1",
    "SELECT rowid, row FROM {t} WHERE rowid = 1408",
    "SELECT rowid, row FROM {t} WHERE rowid = 99999999999999999999999",
    "SELECT rowid, row FROM {t} WHERE rowid IN (5, 3, 5, 1407, 1408, -3)",
    "SELECT rowid, row FROM {t} WHERE rowid IN [5, 3, 5]",
    "SELECT rowid, row FROM {t} WHERE rowid IN (5, NULL)",
    "SELECT rowid, row FROM {t} WHERE rowid = ANY([5, 3, NULL, 5])",
    "SELECT rowid, row FROM {t} WHERE list_contains([5, 3], rowid)",
    "SELECT rowid, row FROM {t} WHERE rowid BETWEEN 5 AND 20",
    "SELECT rowid, row FROM {t} WHERE rowid BETWEEN 20 AND 5",
    "SELECT rowid, row FROM {t} WHERE rowid BETWEEN 4.5 AND 7.5",
    "SELECT rowid, row FROM {t} WHERE rowid >= 1400",
    "SELECT rowid, row FROM {t} WHERE rowid > 1400",
    "SELECT rowid, row FROM {t} WHERE 1400 < rowid",
    "SELECT rowid, row FROM {t} WHERE rowid < 10",
    "SELECT rowid, row FROM {t} WHERE rowid <= 10",
    "SELECT rowid, row FROM {t} WHERE rowid < 9.5 AND rowid > 2.5",
    "SELECT rowid, row FROM {t} WHERE rowid > 10 AND rowid < 20 AND rowid > 12",
    "SELECT rowid, row FROM {t} WHERE rowid > 10 AND rowid < 5",
    "SELECT rowid, row FROM {t} WHERE rowid = 5 OR rowid = 9",
    "SELECT rowid, row FROM {t} WHERE rowid IN (5, 6) OR rowid BETWEEN 6 AND 9 OR rowid < 3",
    "SELECT rowid, row FROM {t} WHERE (rowid = 5 OR rowid = 9) AND rowid IN (9, 11)",
    "SELECT rowid, row FROM {t} WHERE (rowid = 5 AND head = 0) OR (rowid = 700 AND head < 100)",
    "SELECT rowid, row FROM {t} WHERE rowid IN (5, 900) AND rowid < 100",
    "SELECT rowid, row FROM {t} WHERE CAST(rowid AS BIGINT) = 5",
    "SELECT rowid, row FROM {t} WHERE rowid IS NOT DISTINCT FROM 5",
    "SELECT a, d FROM {t} AS p(a, b, c, d) WHERE a = 5",
    "SELECT a, row FROM {t} AS p(a) WHERE p.a = 5",
    "SELECT p.rowid, p.row FROM {t} p WHERE p.rowid = 5",
    "SELECT {t}.rowid, {t}.row FROM {t} WHERE {t}.rowid = 5",
    "SELECT {t}.rowid, row FROM main.{t} WHERE {t}.rowid = 5",
    "SELECT row, head, rowid FROM memory.main.{t} WHERE rowid = 5",
    'SELECT "rowid", "row" FROM "{t}" WHERE "rowid" = 5',
    "SELECT RowId, ROW FROM {t} WHERE ROWID = 5",
    "FROM {t} SELECT rowid, row WHERE rowid = 5",
    "FROM p: {t} SELECT p.rowid, row WHERE p.rowid = 5",
    "SELECT rowid + 1 AS rowid, row FROM {t} WHERE rowid = 5",
    "SELECT count(*), min(octet_length(row)) FROM {t} WHERE rowid IN (5, 6, 7)",
    "SELECT head, count(row) FROM {t} WHERE rowid < 100 GROUP BY head HAVING count(*) > 3",
    "SELECT DISTINCT head, row FROM {t} WHERE rowid IN (5, 6, 7)",
    "SELECT rowid, row, row_number() OVER (ORDER BY rowid DESC) FROM {t} WHERE rowid IN (5, 6, 7)",
    "SELECT rowid, row FROM {t} WHERE rowid < 10 QUALIFY row_number() OVER (ORDER BY rowid) <= 2",
    "SELECT {t} FROM {t} WHERE rowid = -5",
    "SELECT COLUMNS('r.*') FROM {t} WHERE rowid = 5",
    "SELECT * EXCLUDE (embedding, head) FROM {t} WHERE rowid = 5",
    "SELECT rowid, row FROM {t} WHERE rowid = 5 UNION ALL SELECT rowid, row FROM {t} WHERE rowid = 6",
    "SELECT rowid, row FROM {t} WHERE rowid < 9 EXCEPT SELECT rowid, row FROM {t} WHERE rowid < 5",
]


@pytest.mark.parametrize("statement", CONSTANTS)
def test_constants(shared: Both, statement: str):
    # A window, a group or a set operation returns fewer rows than it reads.
    more = {"< 100 ": 100, "QUALIFY": 10, "count(*), min": 3, "EXCEPT": 14, "rowid = 700": 2, "IN (5, 900)": 1}
    read = next((limit for part, limit in more.items() if part in statement), None)
    shared.check(statement, read=read)


def test_all_columns(shared: Both):
    # The embedding and the row are read one after the other.
    assert shared.check("SELECT * FROM {t} WHERE rowid IN (5, 6, 7)", read=6) == 3
    assert shared.check("FROM {t} WHERE rowid BETWEEN 100 AND 140", read=82) == 41
    assert shared.check("SELECT p.* FROM {t} p WHERE p.rowid = 5 AND p.head = 0", read=2) == 1


PARAMETERS = [
    ("SELECT rowid, row FROM {t} WHERE rowid = ?", [5]),
    ("SELECT rowid, row FROM {t} WHERE rowid = $1 OR rowid = $1 + 1", [5]),
    ("SELECT rowid, row FROM {t} WHERE rowid = $id", {"id": 5}),
    ("SELECT rowid, row FROM {t} WHERE rowid = ?", [-5]),
    ("SELECT rowid, row FROM {t} WHERE rowid = ?", [2**70]),
    ("SELECT rowid, row, ? AS x FROM {t} WHERE rowid = ? AND head < ?", ["a", 5, 3]),
    ("SELECT rowid, row FROM {t} WHERE rowid IN (?, ?, 9)", [5, 6]),
    ("SELECT rowid, row FROM {t} WHERE rowid BETWEEN ? AND ?", [5, 9]),
    ("SELECT rowid, row FROM {t} WHERE rowid >= ? AND rowid < ?", [5, 9]),
    ("SELECT rowid, row FROM {t} WHERE rowid = ANY(?)", [[5, 9, 5, None, 2000]]),
    ("SELECT rowid, row FROM {t} WHERE rowid = ANY(?)", [[]]),
    ("SELECT rowid, row FROM {t} WHERE rowid IN ?", [[5, 9]]),
    ("SELECT rowid, row FROM {t} WHERE list_contains(?, rowid)", [[5, 9]]),
    ("SELECT rowid, row FROM {t} WHERE rowid IN (SELECT unnest(?))", [[5, 9, 5]]),
    ("SELECT rowid, row FROM {t} WHERE rowid IN (SELECT unnest(?::BIGINT[]))", [[5, 9, 5]]),
    ("SELECT rowid, row FROM {t} WHERE rowid IN (SELECT unnest($ids)) AND head = $head", {"ids": [5, 900], "head": 0}),
    ("SELECT rowid, row FROM {t} WHERE rowid = getvariable('one')", None),
    ("SELECT rowid, row FROM {t} WHERE rowid = ANY(getvariable('many'))", None),
    ("SELECT rowid, row FROM {t} WHERE list_contains(getvariable('many'), rowid)", None),
]


@pytest.mark.parametrize(("statement", "params"), PARAMETERS)
def test_parameters(shared: Both, statement: str, params: object):
    shared.db.execute("SET VARIABLE one = 7")
    shared.db.execute("SET VARIABLE many = [7, 8, 3000]")
    if "getvariable" in statement:
        # Variables belong to a connection.
        found = sorted(shared.planned(statement).fetchall())
        assert [row[0] for row in found] == ([7] if "one" in statement else [7, 8])
        return
    shared.check(statement, params, read=2 if "$head" in statement else None)


@pytest.mark.parametrize("value", [None, 5.0, 5.5, "5", True])
def test_parameters_of_other_types_are_what_they_are_without_a_planner(shared: Both, value: object):
    statement = "SELECT rowid, row FROM {t} WHERE rowid = ?"
    expected = shared.expected(statement, [value]).fetchall()
    assert shared.planned(statement, [value]).fetchall() == expected


SUBQUERIES = [
    "SELECT rowid, row FROM {t} WHERE rowid IN (SELECT id FROM keys)",
    "SELECT rowid, row FROM {t} WHERE rowid IN (SELECT id FROM keys WHERE tag < 5) -- five",
    "SELECT rowid, row FROM {t} WHERE {t}.rowid IN (SELECT k.id FROM keys k WHERE k.kind = 1)",
    "SELECT rowid, row FROM {t} WHERE rowid IN (FROM range(5, 9))",
    "SELECT rowid, row FROM {t} WHERE rowid IN (VALUES (5), (6))",
    "SELECT rowid, row FROM {t} WHERE rowid IN (SELECT id FROM keys ORDER BY tag LIMIT 3)",
    "SELECT rowid, row FROM {t} WHERE rowid IN (SELECT id FROM keys UNION SELECT 3)",
    "SELECT rowid, row FROM {t} WHERE rowid IN (SELECT rowid FROM {t} WHERE rowid < 5)",
    "SELECT rowid, row FROM {t} WHERE rowid IN (WITH k AS (SELECT 5 AS i FROM range(1)) SELECT i FROM k)",
    "WITH k AS (SELECT id FROM keys WHERE tag < 3) SELECT rowid, row FROM {t} WHERE rowid IN (FROM k)",
    "SELECT rowid, row FROM {t} WHERE rowid IN (SELECT id FROM wide)",
    "SELECT rowid, row FROM {t} WHERE rowid IN (SELECT id FROM keys) AND rowid IN (SELECT id FROM small)",
    "SELECT rowid, row FROM {t} WHERE EXISTS (SELECT 1 FROM keys k WHERE k.id = {t}.rowid AND k.tag < 9)",
    "SELECT rowid, row FROM {t} p WHERE EXISTS (SELECT * FROM keys k WHERE p.rowid = k.id)",
    "SELECT rowid, row FROM (SELECT * FROM {t}) p WHERE rowid IN (SELECT id FROM keys)",
    "SELECT r FROM (SELECT rowid AS r FROM {t} UNION ALL FROM range(9)) p WHERE r IN (SELECT id FROM small)",
    "SELECT k.tag, p.row FROM keys k LEFT JOIN {t} p ON p.rowid = k.id AND p.rowid IN (SELECT id FROM small)",
]


@pytest.mark.parametrize("statement", SUBQUERIES)
def test_subqueries(shared: Both, statement: str):
    # DuckDB reads the row of an id that it knows while it optimises.
    read = (
        2
        if "WITH k AS (SELECT 5" in statement
        else 80
        if "AND rowid IN" in statement
        else 14
        if "UNION ALL" in statement
        else None
    )
    shared.check(statement, read=read)


def test_a_subquery_runs_once(shared: Both):
    shared.db.execute("CREATE OR REPLACE SEQUENCE counter")
    for where in ("FROM ple", "FROM (SELECT * FROM ple) AS ple"):
        shared.db.execute("SELECT nextval('counter')").fetchall()
        ((before,),) = shared.db.execute("SELECT currval('counter')").fetchall()
        text = f"SELECT count(*) {where} WHERE rowid IN (SELECT nextval('counter') FROM range(10))"
        assert shared.db.sql(text).fetchall() == [(10,)]
        ((after,),) = shared.db.execute("SELECT currval('counter')").fetchall()
        assert after - before == 10


JOINS = [
    "SELECT k.tag, p.rowid, p.row FROM keys k JOIN {t} p ON p.rowid = k.id",
    "SELECT k.tag, p.rowid, p.row FROM keys k JOIN {t} p ON k.id = p.rowid AND k.kind = 1",
    "SELECT k.tag, p.rowid, p.row FROM keys k INNER JOIN {t} p ON (p.rowid = k.id) WHERE k.tag < 20",
    "SELECT tag, p.rowid, row FROM keys JOIN {t} p ON p.rowid = id",
    "SELECT tag, {t}.rowid, row FROM {t} JOIN keys ON {t}.rowid = keys.id",
    "SELECT k.*, p.rowid, p.row FROM {t} p JOIN keys k ON p.rowid = k.id",
    "SELECT k.tag, p.rowid, p.row FROM {t} p, keys k WHERE p.rowid = k.id",
    "SELECT k.tag, p.rowid, p.row FROM keys k, {t} p WHERE p.rowid = k.id AND k.tag > 10",
    "SELECT k.tag, p.rowid, p.row FROM keys k CROSS JOIN {t} p WHERE p.rowid = k.id",
    "SELECT k.tag, p.rowid, p.row FROM keys k LEFT JOIN {t} p ON p.rowid = k.id",
    "SELECT k.tag, p.rowid, p.row, p.head FROM keys k LEFT OUTER JOIN {t} p ON k.id = p.rowid ORDER BY k.tag",
    "SELECT k.tag, p.rowid, p.row FROM keys k LEFT JOIN {t} p ON p.rowid = k.id WHERE p.rowid IS NULL",
    "SELECT k.tag, p.rowid, p.row FROM {t} p RIGHT JOIN keys k ON p.rowid = k.id",
    "SELECT k.tag, p.rowid, p.row FROM keys k JOIN {t} p ON p.rowid = k.id + 1",
    "SELECT k.tag, p.rowid, p.row FROM small k JOIN {t} p ON p.rowid = k.id",
    "SELECT k.tag, p.rowid, p.row FROM wide k JOIN {t} p ON p.rowid = k.id",
    "SELECT s.tag, rowid, row FROM same s JOIN {t} USING (rowid)",
    "SELECT * EXCLUDE (embedding) FROM same JOIN {t} USING (rowid)",
    "SELECT tag, rowid, row FROM {t} JOIN same USING (rowid)",
    "SELECT tag, rowid, row FROM same LEFT JOIN {t} USING (rowid)",
    "SELECT k.tag, k.id FROM keys k SEMI JOIN {t} p ON p.rowid = k.id",
    "SELECT k.tag, k.id FROM keys k ANTI JOIN {t} p ON p.rowid = k.id",
    "SELECT p.rowid, p.row FROM {t} p SEMI JOIN keys k ON p.rowid = k.id",
    "SELECT k.tag, a.row, b.row FROM keys k JOIN {t} a ON a.rowid = k.id JOIN {t} b ON b.rowid = a.rowid + 1",
    "SELECT k.tag, a.row, s.tag FROM keys k JOIN {t} a ON a.rowid = k.id JOIN small s ON s.id = a.rowid",
    "SELECT a.row, b.row FROM {t} a JOIN {t} b ON a.rowid = b.rowid WHERE a.rowid IN (5, 6)",
    "SELECT a.row, b.row FROM {t} a JOIN {t} b ON a.rowid = b.rowid WHERE b.rowid IN (5, 6)",
    "SELECT a.row, b.row FROM {t} a, {t} b WHERE a.rowid = 5 AND b.rowid = a.rowid + 1",
    "SELECT v.i, p.row FROM (VALUES (5), (6), (NULL)) v(i) JOIN {t} p ON p.rowid = v.i",
    "SELECT u.i, p.row FROM unnest([5, 6, 5]) u(i), {t} p WHERE p.rowid = u.i",
    "SELECT r.range, p.row FROM range(5, 9) r JOIN {t} p ON p.rowid = r.range",
    "SELECT q.i, p.row FROM (SELECT id AS i FROM keys WHERE tag < 5) q JOIN {t} p ON p.rowid = q.i",
    "WITH q AS (SELECT id AS i FROM keys WHERE tag < 5) SELECT q.i, p.row FROM q JOIN {t} p ON p.rowid = q.i",
    "SELECT k.tag FROM keys k WHERE EXISTS (SELECT 1 FROM {t} p WHERE p.rowid = k.id AND octet_length(p.row) = 160)",
    "SELECT k.tag FROM keys k WHERE NOT EXISTS (SELECT 1 FROM {t} p WHERE p.rowid = k.id)",
    "SELECT k.tag, (SELECT p.row FROM {t} p WHERE p.rowid = k.id) AS r FROM keys k",
    "SELECT k.tag, (SELECT count(row) FROM {t} p WHERE p.rowid = k.id) AS r FROM keys k",
    "SELECT k.tag, l.row FROM keys k, LATERAL (SELECT p.row FROM {t} p WHERE p.rowid = k.id) l",
    "SELECT k.tag, l.row FROM keys k LEFT JOIN LATERAL (SELECT p.row FROM {t} p WHERE p.rowid = k.id) l ON true",
    "SELECT k.id, count(p.row) FROM keys k JOIN {t} p ON p.rowid = k.id GROUP BY k.id",
    "SELECT v.i, p.row FROM {t} p RIGHT JOIN (VALUES (5), (6), (2000)) v(i) ON p.rowid = v.i",
    "SELECT p.rowid, p.row FROM {t} p SEMI JOIN (SELECT id FROM keys WHERE tag < 9) q ON p.rowid = q.id",
    "WITH q AS (SELECT id FROM keys WHERE tag < 9) SELECT p.rowid, p.row FROM {t} p SEMI JOIN q ON p.rowid = q.id",
    "WITH q AS (SELECT id FROM keys LIMIT 3) SELECT p.rowid, p.row FROM {t} p JOIN q ON p.rowid = q.id",
    "SELECT p.rowid, v.bytes FROM {t} p JOIN {v} v ON p.rowid = v.id WHERE v.id IN (5, 6)",
    "WITH z AS (SELECT 1) SELECT p.rowid, p.row FROM {t} p SEMI JOIN (SELECT id FROM small) q ON p.rowid = q.id",
    "SELECT s.tag, p.row FROM same s LEFT JOIN {t} p ON p.rowid = s.rowid AND p.head < 3",
]


@pytest.mark.parametrize("statement", JOINS)
def test_joins(shared: Both, statement: str):
    twice = {
        "b.row": 200,
        "count(p.row)": 70,
        "IS NULL": 0,
        "s.tag FROM keys": 70,
        "octet_length(p.row)": 130,
        "count(row)": 70,
        "p.head < 3": 70,
        "EXISTS (SELECT 1 FROM {t} p WHERE p.rowid = k.id)": 0,
        "a.rowid = 5": 2,
    }
    read = next((limit for part, limit in twice.items() if part in statement), None)
    shared.check(statement, read=read)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {t} p JOIN keys k ON p.rowid = k.id",
        "SELECT * FROM keys k JOIN {t} p ON p.rowid = k.id",
        "SELECT * FROM {t}, keys WHERE {t}.rowid = keys.id",
        "FROM {t} p JOIN keys k ON p.rowid = k.id",
        "SELECT * FROM same JOIN {t} USING (rowid)",
        "SELECT * FROM {t} JOIN same USING (rowid)",
        "SELECT k.tag, * FROM {t} p JOIN keys k ON p.rowid = k.id",
        "SELECT COLUMNS('.*id') FROM {t} p JOIN keys k ON p.rowid = k.id",
        "SELECT COLUMNS(*) FROM {t} p JOIN keys k ON p.rowid = k.id",
        "SELECT COLUMNS(lambda c: c LIKE '%id') FROM {t} p, keys k WHERE p.rowid = k.id",
        "SELECT p.*, k.* FROM {t} p JOIN keys k ON p.rowid = k.id",
        "SELECT * EXCLUDE (tag) FROM {t} p JOIN keys k ON p.rowid = k.id",
        "SELECT * FROM {t} p, keys k JOIN small s ON s.tag = k.tag + 1 - 1 WHERE p.rowid = k.id",
    ],
)
def test_columns_of_a_join_keep_their_order(shared: Both, statement: str):
    rows = shared.check(statement, read=130)
    assert 5 < rows < 65


def test_keys_of_other_types_join_as_without_a_planner(shared: Both):
    for table in ("real", "text"):
        statement = f"SELECT k.tag, p.rowid FROM {table} k JOIN {{t}} p ON p.rowid = k.id"
        assert shared.check(statement, read=MANY) > 3
        # It would not bind, and so runs as it is.
        assert shared.accesses(statement) == "ple: all rows (1408 x 160 bytes)\n"
    statement = "SELECT k.tag, p.row FROM text k JOIN {t} p ON p.rowid = k.id::BIGINT"
    assert shared.check(statement) > 3


THROUGH = [
    "WITH p AS (SELECT rowid AS r, row FROM {t}) SELECT * FROM p WHERE r IN (5, 6)",
    "WITH p AS (SELECT rowid AS r, row FROM {t}) SELECT a.r, b.row FROM p a JOIN p b ON b.r = a.r + 1 WHERE a.r = 5",
    "WITH p(x, y) AS (SELECT rowid, row FROM {t}) SELECT * FROM p WHERE x = 5",
    "WITH p AS (SELECT * FROM {t}), q AS (SELECT rowid, row FROM p WHERE head < 3) SELECT * FROM q WHERE rowid = 5",
    "SELECT x FROM (SELECT row AS x, rowid AS y FROM {t}) q WHERE y = 5",
    "SELECT * FROM (SELECT rowid, row FROM {t}) AS q(a, b) WHERE q.a = 5",
    "SELECT id, bytes FROM {v} WHERE id = 5",
    "SELECT id, bytes FROM {v} n WHERE n.id BETWEEN 5 AND 9",
    "SELECT id, bytes FROM {v} WHERE id IN (SELECT id FROM keys)",
    "SELECT k.tag, n.bytes FROM keys k JOIN {v} n ON n.id = k.id",
    "SELECT a, c FROM {w} WHERE a = 700",
    "SELECT a, c FROM {w} WHERE a IN (5, 700)",
    "SELECT k.tag, n.c FROM keys k JOIN {w} n ON n.a = k.id",
    "SELECT k.tag, n.c FROM keys k LEFT JOIN {w} n ON n.a = k.id",
    "SELECT h, n FROM (SELECT rowid, head AS h, count(row) AS n FROM {t} GROUP BY rowid, head) WHERE rowid = 5",
    "SELECT h, n FROM (SELECT rowid, head AS h, count(row) AS n FROM {t} GROUP BY ALL) WHERE rowid = 5",
    "SELECT * FROM (SELECT DISTINCT rowid, row FROM {t}) WHERE rowid = 5",
    "SELECT x, y FROM (SELECT rowid AS x, row AS y FROM {t} UNION ALL SELECT rowid, row FROM {t}) WHERE x = 5",
    "SELECT x FROM (SELECT rowid AS x, row FROM {t} EXCEPT SELECT rowid, row FROM {t} WHERE rowid > 5) WHERE x = 5",
    "SELECT k.tag, q.row FROM keys k JOIN (SELECT rowid AS r, row FROM {t} WHERE head < 9) q ON q.r = k.id",
]


@pytest.mark.parametrize("statement", THROUGH)
def test_through_views_expressions_and_subqueries(shared: Both, statement: str):
    read = {"JOIN {w}": 70, "EXCEPT": 2, "head < 9": 70, "(5, 700)": 2}
    limit = next((limit for part, limit in read.items() if part in statement), None)
    shared.check(statement, read=limit)


ORDERED = [
    "SELECT rowid, row FROM {t} ORDER BY rowid LIMIT 5",
    "SELECT rowid, row FROM {t} ORDER BY rowid DESC LIMIT 5",
    "SELECT rowid, row FROM {t} ORDER BY rowid LIMIT 5 OFFSET 7",
    "SELECT rowid, row FROM {t} ORDER BY rowid DESC LIMIT 5 OFFSET 1405",
    "SELECT rowid, row FROM {t} ORDER BY rowid LIMIT 0",
    "SELECT rowid, row FROM {t} ORDER BY rowid DESC NULLS LAST, head LIMIT 5",
    "SELECT rowid, row FROM {t} WHERE rowid > 100 ORDER BY rowid LIMIT 5",
    "SELECT rowid, row FROM {t} WHERE rowid < 100 AND rowid > 90 ORDER BY rowid DESC LIMIT 5",
    "SELECT p.rowid AS x, row FROM {t} p ORDER BY p.rowid LIMIT 5",
    "SELECT rowid AS head, row FROM {t} ORDER BY rowid LIMIT 5",
]


@pytest.mark.parametrize("statement", ORDERED)
def test_first_and_last_rows(shared: Both, statement: str):
    shared.check(statement, read=ROWS if "OFFSET 1405" in statement else 12, ordered=True)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT -rowid AS rowid, head FROM {t} ORDER BY rowid LIMIT 5",
        "SELECT rowid, head FROM {t} ORDER BY head DESC NULLS LAST, rowid LIMIT 5",
        "SELECT DISTINCT head FROM {t} ORDER BY head LIMIT 3",
        "SELECT max(rowid) AS m FROM {t} LIMIT 1",
        "SELECT rowid, sum(head) OVER (ORDER BY rowid) AS s FROM {t} ORDER BY rowid LIMIT 5",
        "SELECT unnest([1, 2, 3]) AS u, rowid FROM {t} ORDER BY rowid, u LIMIT 5",
        "SELECT rowid FROM {t} WHERE head = 4 ORDER BY rowid LIMIT 5",
        "SELECT * REPLACE (-rowid AS rowid) FROM {t} ORDER BY rowid LIMIT 5",
    ],
)
def test_other_orders_and_limits(shared: Both, statement: str):
    shared.check(statement, read=MANY, ordered=True)


UNRESTRICTED = [
    "SELECT a.rowid FROM {t} a, small s RIGHT JOIN {t} b ON a.rowid = b.rowid WHERE b.rowid BETWEEN 5 AND 7",
    "SELECT a.rowid, b.rowid, s.tag FROM {t} a, small s LEFT JOIN {t} b ON a.rowid = b.rowid AND b.rowid = s.id",
    "SELECT p.rowid, head FROM {t} p LEFT JOIN keys k ON p.rowid = 5",
    "SELECT p.rowid, k.tag FROM {t} p LEFT JOIN small k ON p.rowid = k.id",
    "SELECT p.rowid, k.tag FROM {t} p FULL JOIN keys k ON p.rowid = k.id AND p.rowid = 5",
    "SELECT p.rowid FROM {t} p ANTI JOIN keys k ON p.rowid = k.id",
    "SELECT k.tag, p.rowid FROM keys k RIGHT JOIN {t} p ON p.rowid = k.id",
    "SELECT rowid FROM {t} WHERE NOT rowid = 5",
    "SELECT rowid FROM {t} WHERE rowid <> 5 OR head = 3",
    "SELECT rowid FROM {t} WHERE rowid = 5 OR head = 3",
    "SELECT rowid FROM {t} WHERE rowid NOT IN (5, 6)",
    "SELECT rowid FROM {t} WHERE rowid NOT IN (SELECT id FROM keys WHERE id IS NOT NULL)",
    "SELECT rowid FROM {t} p WHERE NOT EXISTS (SELECT 1 FROM keys k WHERE k.id = p.rowid)",
    "SELECT rowid FROM {t} p WHERE (rowid = 5) IS NOT TRUE",
    "SELECT count(*) FILTER (rowid = 5), count(*) FROM {t}",
    "SELECT rowid = 5 AS x, count(*) FROM {t} GROUP BY x",
    "SELECT CASE WHEN rowid = 5 THEN 1 END AS x, rowid FROM {t}",
    "SELECT * FROM (SELECT rowid, row_number() OVER (ORDER BY rowid DESC) AS n FROM {t}) WHERE rowid = 5",
    "SELECT * FROM (SELECT rowid, head FROM {t} ORDER BY head DESC, rowid LIMIT 3) WHERE rowid = 5",
    "SELECT * FROM (SELECT max(rowid) AS rowid FROM {t}) WHERE rowid = 5",
    "SELECT * FROM (SELECT DISTINCT ON (head) head, rowid FROM {t} ORDER BY rowid DESC) WHERE rowid = 5",
    "SELECT * FROM (SELECT rowid, head FROM {t} QUALIFY rowid = max(rowid) OVER ()) WHERE rowid = 5",
    "SELECT p.rowid, k.id FROM keys k ASOF JOIN {t} p ON k.id >= p.rowid WHERE p.rowid = 5",
    "SELECT p.rowid, k.id FROM {t} p POSITIONAL JOIN keys k WHERE p.rowid = 5",
    "SELECT head, count(*) FROM {t} GROUP BY ROLLUP (head) HAVING head = 5",
    "SELECT rowid FROM {t} p WHERE rowid IN (SELECT k.id FROM keys k WHERE k.kind = p.head)",
    "SELECT rowid FROM {t} p WHERE EXISTS (SELECT 1 FROM keys k WHERE k.id = p.rowid AND k.kind = p.head)",
    "SELECT k.tag, p.rowid FROM keys k LEFT JOIN {t} p ON p.rowid = k.id OR p.rowid = 5",
]


@pytest.mark.parametrize("statement", UNRESTRICTED)
def test_what_restricts_nothing_loses_nothing(shared: Both, statement: str):
    try:
        shared.expected(statement).fetchall()
    except duckdb.NotImplementedException:
        # Joins on columns from before a comma came with DuckDB 2.0.
        with pytest.raises(duckdb.NotImplementedException):
            shared.planned(statement).fetchall()
        return
    shared.check(statement, read=MANY)


def test_a_nullable_side_is_restricted_by_predicates_that_refuse_null(shared: Both):
    statement = "SELECT k.tag, p.row FROM keys k LEFT JOIN {t} p ON p.head = k.kind WHERE p.rowid = 5"
    assert shared.check(statement, read=2) > 10
    statement = "SELECT k.tag, p.row FROM keys k LEFT JOIN {t} p ON p.rowid = k.id WHERE p.rowid IN (SELECT 7)"
    assert shared.check(statement, read=70) == 2
    statement = "SELECT k.tag, p.row FROM keys k FULL JOIN {t} p ON p.rowid = k.id WHERE p.rowid IN (7, 8)"
    assert shared.check(statement, read=4) == 3


def test_other_statements(shared: Both, tmp_path: Path):
    db = shared.db
    path = tmp_path / "rows.parquet"

    def read(statement: str) -> int:
        before = rows_read(db)
        db.execute(statement)
        return rows_read(db) - before

    assert read("CREATE OR REPLACE TABLE made AS SELECT rowid, row FROM ple WHERE rowid IN (5, 6)") == 2
    assert db.sql("FROM made").types == ["BIGINT", "BLOB"]
    assert read("INSERT INTO made SELECT rowid, row FROM ple WHERE rowid = 7") == 1
    assert read("INSERT INTO made (row, rowid) SELECT p.row, k.id FROM keys k JOIN ple p ON p.rowid = k.id") < 70
    assert read(f"COPY (SELECT rowid, row FROM ple WHERE rowid < 9) TO '{path}' (FORMAT parquet)") == 9
    assert db.sql(f"SELECT count(*), max(rowid) FROM '{path}'").fetchall() == [(9, 8)]
    assert read("CREATE OR REPLACE VIEW kept AS SELECT rowid, row FROM ple WHERE rowid = 9") == 0
    ((text,),) = db.sql("SELECT sql FROM duckdb_views() WHERE view_name = 'kept'").fetchall()
    assert "_engram_" not in text
    before = rows_read(db)
    assert len(db.sql("FROM kept LIMIT 3").fetchall()) == 1
    assert rows_read(db) - before == 1
    assert db.sql("DESCRIBE SELECT * FROM ple WHERE rowid = 5").fetchall() == db.sql("DESCRIBE copy").fetchall()
    assert db.sql("SUMMARIZE SELECT rowid FROM ple WHERE rowid = 5").fetchall()[0][:3] == ("rowid", "BIGINT", "5")
    db.execute("PREPARE one AS SELECT rowid FROM ple WHERE rowid = $1")
    assert db.execute("EXECUTE one(5)").fetchall() == [(5,)]
    pivoted = "PIVOT (SELECT head, rowid FROM {t} WHERE rowid < 9) ON head USING count(*)"
    assert sorted(shared.planned(pivoted).fetchall()) == sorted(shared.expected(pivoted).fetchall())


def test_updates_and_deletes_run(shared: Both):
    db = shared.db
    db.execute("CREATE OR REPLACE TABLE changed AS SELECT i FROM range(10) t(i)")
    db.execute("DELETE FROM changed WHERE i IN (SELECT rowid FROM ple WHERE rowid < 3)")
    db.execute("UPDATE changed SET i = (SELECT rowid FROM ple WHERE rowid = 5) WHERE i = 9")
    assert db.execute("SELECT count(*), max(i), min(i) FROM changed").fetchall() == [(7, 8, 3)]


@pytest.mark.parametrize(
    "statement, read",
    [
        ("SELECT rowid, head FROM {t} WHERE rowid = (SELECT 5)", 0),
        ("SELECT rowid, row FROM {t} WHERE rowid == (SELECT max(id) FROM keys WHERE id < 1000)", 1),
        ("SELECT row FROM {t} WHERE rowid = (SELECT id FROM keys WHERE false)", 0),
        ("SELECT row FROM {t} WHERE rowid = (SELECT id FROM keys WHERE tag = 100)", 0),
        ("SELECT row FROM {t} WHERE rowid = (SELECT id FROM keys WHERE tag = 103)", 0),
        ("SELECT row FROM {t} WHERE rowid = (SELECT max(rowid) FROM {t} WHERE rowid < 10)", 1),
        ("SELECT row FROM {t} WHERE rowid = (SELECT id FROM keys ORDER BY tag LIMIT 1 OFFSET 1) AND head = 0", 1),
        ("SELECT k.tag, p.row FROM keys k LEFT JOIN {t} p ON p.rowid = (SELECT max(tag) FROM keys)", 1),
        ("SELECT id FROM {v} WHERE id = (SELECT min(id) FROM keys WHERE id > 5)", 0),
        ("SELECT row FROM {t} WHERE rowid IN (3, 5) AND rowid = (SELECT 5)", 2),
    ],
)
def test_the_row_of_a_scalar_subquery(shared: Both, statement: str, read: int):
    shared.check(statement, read=read)


def test_a_scalar_subquery_of_several_rows_stays_an_error(shared: Both):
    for query in ("SELECT id FROM keys", "SELECT id FROM keys WHERE id = 7", "SELECT id, tag FROM keys LIMIT 1"):
        statement = f"SELECT row FROM {{t}} WHERE rowid = ({query})"
        for run in (shared.expected, shared.planned):
            with pytest.raises((duckdb.InvalidInputException, duckdb.BinderException), match="row|columns"):
                run(statement).fetchall()
