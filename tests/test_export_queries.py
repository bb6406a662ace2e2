"""Queries as files: names, and results that end before their last row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from export_readers import arrow_table, second_reader
from helpers import refuses
from oldest import run_oldest

import engramsql

# Ends in the middle of a batch, at the end of one, and without rows.
COUNTS = [0, 1, 2048, 65536, 65536 * 3, 65536 * 3 + 1, 500_000]


@pytest.fixture
def database() -> Any:
    with engramsql.connect() as db:
        yield db


@pytest.mark.parametrize("format", ["arrow", "arrows", "parquet", "npz", "safetensors", "jsonl"])
def test_columns_that_differ_in_case_keep_their_names(database: Any, tmp_path: Path, format: str) -> None:
    path = tmp_path / f"q.{format}"
    database.export(database.sql('SELECT 1 AS a, 2 AS "A", 3 AS a, 4 AS "\u00fc ""/.."'), path)
    columns = second_reader(path)
    assert {name: int(values[0]) for name, values in columns.items()} == {"a": 1, "A": 2, "a_1": 3, '\u00fc "/..': 4}


def test_a_name_that_a_format_keeps_for_itself_is_refused(database: Any, tmp_path: Path) -> None:
    query = database.sql("SELECT 1 AS __metadata__, 2 AS b")
    refuses(lambda: database.export(query, tmp_path / "q.safetensors"), "__metadata__", "name it otherwise")
    assert list(tmp_path.iterdir()) == []
    assert list(second_reader(database.export(query, tmp_path / "q.npz").path)) == ["__metadata__", "b"]


STATEMENT = """
    import os, sys
    import duckdb, engramsql
    db = engramsql.connect()
    for count in {counts}:
        query = db.sql(f"SELECT range AS i, [range, 1]::FLOAT[2] AS v FROM range({{count}})")
        found = db.export(query, f"{{sys.argv[1]}}/{{count}}.arrow")
        assert found.rows == count, (found.rows, count)
    db.sql("SET preserve_insertion_order = false")
    found = db.export(db.sql("SELECT range AS i FROM range(500000)"), sys.argv[1] + "/unordered.arrow")
    assert found.rows == 500000
    db.sql("SET preserve_insertion_order = true")
    def another(*_):
        db.connection.execute("SELECT 42").fetchall()
    try:
        found = db.export(db.sql("SELECT range AS i FROM range(3000000)"), sys.argv[1] + "/cut.npy", progress=another)
        print("whole", found.rows)
    except duckdb.Error as error:
        print("refused", os.path.exists(sys.argv[1] + "/cut.npy"))
"""


def _code() -> str:
    import textwrap

    return textwrap.dedent(STATEMENT.format(counts=COUNTS))


def test_another_statement_on_the_connection_does_not_cut_an_export(database: Any, tmp_path: Path) -> None:
    def another(*_: object) -> None:
        database.connection.execute("SELECT 42").fetchall()

    query = database.sql("SELECT range AS i FROM range(3000000)")
    with pytest.raises(duckdb.Error):
        database.export(query, tmp_path / "cut.npy", progress=another)
    assert list(tmp_path.iterdir()) == []
    assert database.export(query, tmp_path / "cut.npy").rows == 3_000_000
    assert np.array_equal(np.load(tmp_path / "cut.npy"), np.arange(3_000_000))


def test_neither_does_it_with_the_oldest_duckdb(tmp_path: Path) -> None:
    """There the result of the first statement just ends: 65,536 rows of three million looked like all of them."""
    assert run_oldest(_code(), str(tmp_path)) == "refused False\n"
    for count in COUNTS:
        read = arrow_table(tmp_path / f"{count}.arrow")
        assert read.schema.names == ["i", "v"]
        assert np.array_equal(read.column("i").to_numpy(), np.arange(count))
    found = arrow_table(tmp_path / "unordered.arrow").column("i").to_numpy()
    assert np.array_equal(np.sort(found), np.arange(500_000))
