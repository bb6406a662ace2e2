"""What the tests of the planner share: a table with its copy in DuckDB, and statements run over both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engramsql
from engramsql.planner import Planner

Planner.strict = True
GOLDEN = Path(__file__).parent / "golden"
CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"
ROWS = 1408
#: So many rows are no limit.
MANY = 10**6

__all__ = ["CHECKPOINT", "GOLDEN", "ROWS", "Both", "both", "rows_read"]

TABLES = """
CREATE TABLE copy AS FROM ple;
CREATE TABLE keys AS SELECT i AS tag, (i * 37) % 1500 AS id, i % 3 AS kind FROM range(60) t(i);
INSERT INTO keys VALUES (100, NULL, 0), (101, -1, 1), (102, 1407, 2), (103, 1408, 0), (104, 7, 1), (105, 7, 2);
CREATE TABLE small AS SELECT id::INTEGER AS id, tag FROM keys WHERE tag < 10;
CREATE TABLE wide AS SELECT id::HUGEINT AS id, tag FROM keys WHERE tag < 10;
CREATE TABLE real AS SELECT id::DOUBLE AS id, tag FROM keys WHERE tag < 10;
CREATE TABLE text AS SELECT id::VARCHAR AS id, tag FROM keys WHERE tag < 10;
CREATE TABLE same AS SELECT id AS rowid, tag FROM keys WHERE id IS NOT NULL;
CREATE VIEW named AS SELECT rowid AS id, head, row AS bytes FROM ple;
CREATE VIEW copied AS SELECT rowid AS id, head, row AS bytes FROM copy;
CREATE VIEW late(a, b, c) AS SELECT id, head, bytes FROM named WHERE head >= 2;
CREATE VIEW late_copied(a, b, c) AS SELECT id, head, bytes FROM copied WHERE head >= 2;
"""


def rows_read(db: Any) -> int:
    """Rows of the table that were read so far, by whatever way."""
    ((rows,),) = db._connection.execute("SELECT coalesce(sum(rows), 0)::BIGINT FROM engram_stats()").fetchall()
    return int(rows)


class Both:
    """A database with the table ``ple`` and the same rows in DuckDB's table ``copy``."""

    def __init__(self, db: Any) -> None:
        self.db = db
        db.connection.execute(TABLES)

    def expected(self, statement: str, params: object = None) -> Any:
        """DuckDB's own relation, with ``{t}`` as the copy, ``{v}`` and ``{w}`` as the views over it."""
        text = statement.format(t="copy", v="copied", w="late_copied")
        return self.db.connection.cursor().sql(text, params=params)

    def planned(self, statement: str, params: object = None) -> Any:
        """The relation that the database gives, over the registered table."""
        return self.db.sql(self.text(statement), params)

    def accesses(self, statement: str, params: object = None) -> str:
        """What EXPLAIN says of the tables that are read, a line each."""
        (key, lines), *_ = self.db.sql(f"EXPLAIN {self.text(statement)}", params).fetchall()
        assert key == "engramsql", f"not planned: {statement}"
        return str(lines)

    @staticmethod
    def text(statement: str) -> str:
        return statement.format(t="ple", v="named", w="late")

    def check(self, statement: str, params: object = None, *, read: int | None = None, ordered: bool = False) -> int:
        """Runs a statement over both; names, types and rows must be the same.

        Args:
            statement: With ``{t}`` for the table.
            params: Its parameters.
            read: How many rows may be read at most; by default not more than are returned.
            ordered: Whether the order counts.

        Returns:
            How many rows came.
        """
        expected = self.expected(statement, params)
        rows = expected.fetchall()
        before = rows_read(self.db)
        found = self.planned(statement, params)
        assert [name.replace("ple", "copy") for name in found.columns] == expected.columns
        assert found.types == expected.types
        got = found.fetchall()
        # A relation with parameters runs when it is made, others when they are fetched.
        used = rows_read(self.db) - before
        if ordered:
            assert got == rows
        else:
            assert sorted(map(repr, got)) == sorted(map(repr, rows))
        limit = len(rows) if read is None else read
        if limit < MANY:
            assert "all rows" not in self.accesses(statement, params), statement
        assert used <= limit, f"{used} rows read for {len(rows)} returned"
        again = self.db.execute(self.text(statement), params).fetchall()
        assert sorted(map(repr, again)) == sorted(map(repr, rows))
        return len(rows)


@contextlib.contextmanager
def both() -> Iterator[Both]:
    """A database in memory with everything in it."""
    with engramsql.connect() as db:
        db.register("ple", CHECKPOINT)
        yield Both(db)
