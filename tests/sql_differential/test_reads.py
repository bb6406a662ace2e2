"""Keyed access reads as many rows as there are keys, never the table, and answers like a copy of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import engramsql
from sql_differential.nodes import Param, Part, Text
from sql_differential.oracle import Case, difference
from sql_differential.world import SCAN, World

ROWS = 200_000

# No key outside of the table, no NULL and no repeat makes a read; a few rows may be read twice, where a condition on
# the vector and the SELECT list both compute it.
SPARE = 8


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A store of many small rows as ``big``, and a copy of it."""
    store = tmp_path_factory.mktemp("reads") / "store"
    with engramsql.connect() as ours:
        rows = f"SELECT unhex(md5(i::VARCHAR)) AS row FROM range({ROWS}) r(i)"
        ours.execute(f"COPY ({rows}) TO '{store}' (FORMAT engram, VALUE_FORMAT fp8_e4m3, SCALE 0.5)")
        ours.register("big", store)
        ours.register("small", Path(__file__).parents[1] / "golden" / "ckpt_qwen4_exp_fp8")
        with duckdb.connect(config=SCAN) as judge:
            for name in ("big", "small"):
                judge.register("copy", ours.sql(f"FROM {name}").to_arrow_table())
                judge.execute(f"CREATE TABLE {name} AS FROM copy")
                judge.unregister("copy")
            for side in (ours, judge):
                side.execute("CREATE VIEW seen AS SELECT rowid AS id, embedding AS e, row AS bytes FROM big")
                side.execute("CREATE VIEW part AS SELECT * FROM big WHERE rowid % 2 = 0")
                side.execute("CREATE TABLE k (id BIGINT, w INTEGER)")
                side.execute("CREATE TABLE lists (ids BIGINT[], w INTEGER)")
            yield World(ours, judge, judge)


@dataclass(frozen=True)
class Keys:
    """Ids as a user may give them: with repeats, some outside of the table, some NULL."""

    ids: list[int | None]

    @property
    def inside(self) -> int:
        """Keys that name a row, repeats too: a join gives a row for each."""
        return sum(i is not None and 0 <= i < ROWS for i in self.ids)

    def text(self) -> str:
        return ", ".join("NULL" if i is None else str(i) for i in self.ids)


def drawn(rng: random.Random) -> Keys:
    ids: list[int | None] = [rng.randrange(ROWS) for _ in range(rng.choice([1, 3, 10, 50, 300]))]
    ids += rng.sample([*ids[:3], None, -1, ROWS, ROWS - 1, 0, 1 << 40], 3)
    rng.shuffle(ids)
    return Keys(ids)


# How a value is asked for: reading the embedding and the row of one id may be two reads.
VALUES = {"embedding": 1, "row": 1, "embedding, row": 2, "embedding[1], octet_length(row)": 2, "*": 2}

# `{v}` are values of big; `{l}` the keys, which are in table k, in a list of table lists and in a Python variable too.
FORMS = (
    "SELECT {v} FROM big WHERE rowid = {n}",
    "SELECT {v} FROM big WHERE {n} = rowid AND head IS NULL",
    "SELECT {v} FROM big WHERE rowid IN ({l})",
    "SELECT {v} FROM big WHERE rowid IN ({l}) ORDER BY rowid DESC LIMIT 5",
    "SELECT {v} FROM big WHERE rowid = {n} OR rowid = {n} + 3 OR rowid IN ({l})",
    "SELECT {v} FROM big WHERE rowid BETWEEN {n} AND {n} + 9",
    "SELECT {v} FROM big WHERE rowid >= {n} AND rowid < {n} + 10",
    "SELECT {v} FROM big WHERE rowid > {n} AND rowid <= {n} + 10 AND rowid % 2 = 0",
    "SELECT {v} FROM big WHERE rowid IN ({l}) AND rowid <> {n}",
    "SELECT {v} FROM big WHERE rowid = ANY([{l}])",
    "SELECT {v} FROM big WHERE rowid IN (SELECT id FROM k)",
    "SELECT {v} FROM big WHERE rowid IN (SELECT id FROM k WHERE w = 1) AND rowid IS NOT NULL",
    "SELECT {v} FROM big WHERE rowid IN (SELECT unnest(ids) FROM lists)",
    "SELECT {v} FROM big b WHERE EXISTS (SELECT 1 FROM k WHERE k.id = b.rowid)",
    "SELECT {v} FROM big b SEMI JOIN k ON k.id = b.rowid",
    "SELECT k.w, {v} FROM k JOIN big b ON b.rowid = k.id",
    "SELECT k.w, {v} FROM big b JOIN k ON b.rowid = k.id",
    "SELECT k.w, {v} FROM big b INNER JOIN k ON k.id = b.rowid AND k.w = 1",
    "SELECT k.w, {v} FROM k LEFT JOIN big b ON b.rowid = k.id",
    "SELECT k.w, {v} FROM big b RIGHT JOIN k ON b.rowid = k.id",
    "SELECT k.w, {v} FROM k, big b WHERE b.rowid = k.id",
    "SELECT {v} FROM (SELECT id AS rowid FROM k) q JOIN big b USING (rowid)",
    "SELECT {v} FROM (SELECT DISTINCT id FROM k) q JOIN big b ON b.rowid = q.id",
    "SELECT {v} FROM (VALUES ({n}), ({n}), (NULL)) v(id) JOIN big b ON b.rowid = v.id",
    "SELECT {v} FROM variable q JOIN big b ON b.rowid = q.id",
    "SELECT {v} FROM big WHERE rowid IN (SELECT id FROM variable)",
    "SELECT {v} FROM numbers q JOIN big b ON b.rowid = q.id",
    "WITH q AS (SELECT id FROM k) SELECT {v} FROM q JOIN big b ON b.rowid = q.id",
    "WITH q AS (SELECT id FROM k) SELECT {v} FROM big WHERE rowid IN (FROM q)",
    "WITH b AS (SELECT * FROM big) SELECT {v} FROM b WHERE rowid IN ({l})",
    "SELECT {v} FROM (SELECT * FROM big) b WHERE rowid IN ({l})",
    "SELECT {v} FROM (SELECT * FROM big WHERE rowid IN ({l})) b",
    "SELECT {v} FROM part b WHERE rowid IN ({l})",
    "SELECT e FROM seen WHERE id IN ({l})",
    "SELECT s.bytes FROM k JOIN seen s ON s.id = k.id",
    "SELECT count(embedding), max(row) FROM big WHERE rowid IN ({l})",
    "SELECT k.w, count(b.row) FROM k JOIN big b ON b.rowid = k.id GROUP BY ALL",
    "SELECT {v} FROM big WHERE rowid IN ({l}) UNION ALL SELECT {v} FROM big WHERE rowid = {n}",
    "SELECT id, (SELECT row FROM big WHERE rowid = k.id) FROM k",
    "SELECT b.row, b.embedding FROM k JOIN small s ON s.rowid = k.w JOIN big b ON b.rowid = k.id",
    "SELECT a.row, b.embedding FROM k JOIN big a ON a.rowid = k.id JOIN big b ON b.rowid = k.id + 1",
    "SELECT {v} FROM big ORDER BY rowid LIMIT 7",
    "SELECT {v} FROM big WHERE rowid > {n} ORDER BY rowid LIMIT 7",
    "SELECT {v} FROM big WHERE rowid = ?",
    "SELECT {v} FROM big WHERE rowid IN (?, ?, 7)",
    "SELECT {v} FROM big WHERE rowid BETWEEN ? AND ? + 5",
    "SELECT {v} FROM big WHERE rowid IN (SELECT unnest(?::BIGINT[]))",
    "SELECT {v} FROM big WHERE rowid = ANY(?::BIGINT[])",
    "CREATE OR REPLACE TABLE made AS SELECT rowid, row FROM big WHERE rowid IN ({l})",
    "CREATE OR REPLACE TABLE made AS SELECT k.w, b.embedding FROM k JOIN big b ON b.rowid = k.id",
)


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=range(3))
def rng(request: pytest.FixtureRequest, form: str) -> random.Random:
    return random.Random(f"{form}{request.param}")


def test_reads_are_those_of_the_keys(world: World, form: str, rng: random.Random) -> None:
    keys = drawn(rng)
    values = rng.choice(list(VALUES))
    if "b." not in form and " b " not in form and values == "*":
        values = "embedding, row"
    for side in (world.ours, world.tables):
        side.execute("DELETE FROM k; DELETE FROM lists")
        side.execute(f"INSERT INTO k SELECT unnest([{keys.text()}]::BIGINT[]), 1")
        side.execute(f"INSERT INTO lists VALUES ([{keys.text()}], 1)")
    case = filled(form, values.replace("*", "b.*"), keys, rng)
    before = rows_read(world.ours)
    what, expected, found = compared(world, case, keys)
    read = rows_read(world.ours) - before
    sql, _ = case.written()
    assert not what, f"{what}\n{sql:.600}\n  DuckDB: {expected.shown():.600}\n  ours: {found.shown():.600}"
    # Nor are the row ids of a great table gone through.
    told = "" if sql.startswith("CREATE") else plan_of(world.ours, case, keys)
    assert "all rows" not in told, f"{told}\n{sql:.600}"
    # Two tables, or two columns of values, are read for each key; `+ 10` covers the ranges and the odd id.
    allowed = (keys.inside + 10) * 2 + SPARE
    assert read <= allowed, f"{read} rows of {ROWS} were read, at most {allowed} were to be\n{sql:.600}"


def filled(form: str, values: str, keys: Keys, rng: random.Random) -> Case:
    """The statement with its values and keys; parameters are given for its question marks."""
    text = form.replace("{v}", values).replace("{l}", keys.text()).replace("{n}", str(rng.randrange(ROWS)))
    parts: list[Part] = []
    for i, piece in enumerate(text.split("?")):
        if i:
            whole: Any = keys.ids if piece.startswith("::") else rng.randrange(ROWS)
            # The ends of a range are near each other.
            parts.append(Param(1000 if "BETWEEN" in form else whole))
        parts.append(piece)
    then = "FROM made" if "TABLE made" in form else ""
    style, method = rng.choice(["question", "number", "name"]), rng.choice(["sql", "execute"])
    return Case(Text(parts), style=style, then=then, method=method)


def compared(world: World, case: Case, keys: Keys) -> tuple[str, Any, Any]:
    # Found by name, in this frame.
    variable = pa.table({"id": pa.array(keys.ids, pa.int64())})
    numbers = {"id": np.array([i for i in keys.ids if i is not None], dtype=np.int64)}
    assert len(variable) >= len(numbers["id"])
    return difference(world, case)


def plan_of(ours: engramsql.Database, case: Case, keys: Keys) -> str:
    """What EXPLAIN says of ``big``."""
    variable = pa.table({"id": pa.array(keys.ids, pa.int64())})
    numbers = {"id": np.array([7])}
    assert len(variable) >= len(numbers["id"])
    sql, params = case.written()
    lines = ours.sql(f"EXPLAIN {sql}", params=params).fetchall()[0][1].splitlines()
    return "\n".join(line for line in lines if line.startswith("big"))


def rows_read(ours: engramsql.Database) -> int:
    """Rows of ``big`` that were handed over so far."""
    found = ours.execute("SELECT sum(rows)::BIGINT FROM engram_stats() WHERE table_name = 'big'").fetchall()
    return int(found[0][0] or 0)
