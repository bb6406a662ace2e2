"""Predicates on the row id and the head are tested before any row is read."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from planning import MANY, Both, both, rows_read

NEWEST = not duckdb.__version__.startswith("1.")


@pytest.fixture(scope="module")
def made() -> Iterator[Both]:
    with both() as one:
        yield one


@pytest.mark.parametrize(
    "where",
    [
        "rowid % 7 = 0",
        '"rowid" % 7 IN (0, 3)',
        "rowid % 100 = 3 AND head < 4",
        "hash(rowid) % 50 = 0",
        "mod(rowid, 99) = 5",
        "rowid & 63 = 1",
        "(rowid % 7 = 0 OR rowid < 5) AND rowid < 100",
        "rowid % 70 = 0 OR rowid // 320 = 3 AND head <> 12 OR rowid % 200 = 1",
        "rowid IN (5, 6, 7, 8, 100) AND head = 0",
        "rowid IN (5, 6, 7, 8, 100, 5000) AND rowid % 2 = 0",
        "rowid BETWEEN 1 AND 1000 AND rowid // 320 BETWEEN 3 AND 4",
        "NOT rowid % 7 <> 0 AND rowid BETWEEN 3 AND 500 AND head + 1 > 0",
        "rowid % 100 = 1 -- AND\n AND head = 2",
        "rowid IN (SELECT id FROM keys) AND rowid % 2 = 0",
        "(head, rowid % 4) = (1, 1)",
        "rowid % 7",
        "rowid - head & 63 = 1",
        "head % 3 IS NULL",
    ],
)
def test_only_rows_that_pass_are_read(made: Both, where: str) -> None:
    made.check(f"SELECT rowid, head, row FROM {{t}} WHERE {where}")
    made.check(f"SELECT p.row FROM {{t}} AS p WHERE {where}")
    made.check(f"SELECT row FROM {{t}} WHERE {where} ORDER BY rowid LIMIT 3", ordered=True, read=MANY)
    made.check(f"SELECT kind, (SELECT min(p.row) FROM {{t}} p WHERE {where}) AS m FROM keys WHERE tag = 5", read=MANY)


@pytest.mark.parametrize(
    "statement, read",
    [
        ("SELECT k.id, p.row FROM {t} p LEFT JOIN keys k ON p.rowid = k.id WHERE p.rowid % 200 = 0", 8),
        ("SELECT p.row FROM {t} p, keys k WHERE p.rowid % 200 = 0 AND k.id = p.head", 8),
        ("SELECT p.row FROM {t} p SEMI JOIN keys k ON k.id = p.rowid WHERE p.rowid % 2 = 1", 32),
        ("SELECT head, count(*), min(row) FROM {t} WHERE rowid % 50 = 0 GROUP BY head", 29),
        ("SELECT count(*) FROM {t} WHERE rowid % 50 = 0 AND embedding[1] > 0", 58 if NEWEST else MANY),
        ("FROM {t} WHERE rowid % 50 = 0", 58),
        # Rows that a join did not find have no row id.
        ("SELECT k.tag, p.row FROM keys k LEFT JOIN {t} p ON p.rowid = k.id WHERE p.rowid % 2 IS NULL", MANY),
        ("SELECT k.tag FROM keys k LEFT JOIN {t} p ON p.rowid = k.id WHERE NOT (p.rowid % 2 = 0 AND p.head = 0)", MANY),
        ("SELECT k.tag FROM {t} p RIGHT JOIN keys k ON p.rowid = k.id WHERE p.rowid % 2 IS NULL", MANY),
        ("SELECT k.tag, p.rowid FROM {t} p FULL JOIN keys k ON p.rowid = k.id WHERE p.head % 2 IS NULL", MANY),
        ("SELECT id FROM keys k WHERE EXISTS (SELECT row FROM {t} WHERE rowid % 7 = k.kind AND rowid = k.id)", MANY),
    ],
)
def test_filters_beside_joins(made: Both, statement: str, read: int) -> None:
    made.check(statement, read=read)


@pytest.mark.parametrize(
    "where",
    [
        "rowid % 0 = 0",
        "rowid // 0 IS NULL",
        "mod(rowid, 0) IS NULL",
        "mod(5, rowid) = 0",
        "5 % rowid = 1",
        "rowid % 5 % 0 = 0",
        "rowid + 9223372036854775807 > 0",
        "head + 2147483647 > 0",
        "rowid * rowid * rowid * rowid * rowid * rowid * rowid > 0",
        "hash(rowid) + 1 > 5",
        "rowid % 'x' = 0",
        "rowid::UTINYINT % 7 = 0",
        "rowid % 7 = random()",
        "rowid % 7 = 0 AND error('no') IS NULL",
    ],
)
def test_what_fails_fails_as_before(made: Both, where: str) -> None:
    """What could fail is not moved; whether it does is for DuckDB to say."""
    statement = f"SELECT rowid, octet_length(row) FROM {{t}} WHERE {where}"
    try:
        expected = sorted(made.expected(statement).fetchall())
    except duckdb.Error as error:
        for method in (made.db.sql, made.db.execute):
            with pytest.raises(type(error)):
                method(made.text(statement)).fetchall()
    else:
        assert sorted(made.planned(statement).fetchall()) == expected
    if "error" not in where:
        assert "those that pass" not in str(made.planned(f"EXPLAIN {statement}").fetchall()[0])


def test_a_macro_of_the_name_of_a_function_is_called(made: Both) -> None:
    made.db.execute("CREATE MACRO hash(x) AS x + 1")
    try:
        statement = "SELECT rowid, row FROM {t} WHERE hash(rowid) % 100 = 0"
        assert made.check(statement, read=MANY) == 14
        assert "those that pass" not in str(made.planned(f"EXPLAIN {statement}").fetchall()[0])
    finally:
        made.db.execute("DROP MACRO hash")


def test_explain_says_what_is_tested_first(made: Both) -> None:
    assert made.accesses("SELECT row FROM {t} WHERE rowid < 10 AND\n rowid % 3 = 0") == (
        "ple: row ids 0 to 9 in order, at most 1600 bytes, those that pass rowid % 3 = 0\n"
    )
    # Without columns that are read from rows DuckDB's own plan reads none either.
    before = rows_read(made.db)
    assert made.check("SELECT rowid, head FROM {t} WHERE rowid % 700 = 0", read=MANY) == 3
    assert rows_read(made.db) == before
