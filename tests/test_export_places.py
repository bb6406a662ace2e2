"""Places that an export must not take, and arguments that are none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from export_readers import arrow_table, second_reader
from golden_data import GOLDEN
from helpers import refuses

import engramsql
from engramsql.errors import ArgumentError, RowIdError, TokenIdError


@pytest.fixture
def store(tmp_path: Path) -> Path:
    directory = tmp_path / "store"
    directory.mkdir()
    np.random.default_rng(3).integers(0, 256, (50, 160), dtype=np.uint8).tofile(directory / "shard_000.bin")
    return directory


@pytest.fixture
def database(tmp_path: Path, store: Path) -> Any:
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
        db.register("rows", store, width=160, format="fp8_e4m3", scale=1.0)
        db.build("built", store, width=160, format="fp8_e4m3", scale=1.0)
        yield db


def test_no_export_takes_the_place_of_a_file_of_the_database(database: Any, tmp_path: Path) -> None:
    shard = Path(database.table("built").shards()[0].file)
    for path in ("engram.json", "engram.lock", "engram.json.bak", shard, "tables/new", "tables/built/new", "views/new"):
        place = tmp_path / "db" / path
        before = place.read_bytes() if place.is_file() else None
        refuses(
            lambda place=place: database.export("ple", place, format="csv", ids=[1], replace=True),
            str(place),
            "among the files of database",
        )
        assert (place.read_bytes() if place.is_file() else None) == before
        refuses(lambda place=place: database.export("ple", place, format="csv", rows_per_file=5), "among the files")
    # Beside them there is room.
    assert database.export("ple", tmp_path / "db" / "exports" / "a.csv", ids=[1]).rows == 1


@pytest.mark.parametrize("name", ["rows", "ple"])
def test_no_export_takes_the_place_of_a_file_of_a_table(database: Any, store: Path, tmp_path: Path, name: str) -> None:
    shard = store / "shard_000.bin"
    before = shard.read_bytes()
    (tmp_path / "link").symlink_to(shard)
    for place in (shard, tmp_path / "link"):
        # Of any table, not only the one that is exported; and a query may read each of them.
        for what in (name, database.sql("SELECT 1 AS a")):
            refuses(
                lambda what=what, place=place: database.export(what, place, format="csv", replace=True),
                "a file of table 'rows'",
            )
        assert shard.read_bytes() == before
    assert database.export(name, store / "new.csv", ids=[1]).rows == 1


@pytest.mark.parametrize("kind", ["tokens", "ids"])
def test_no_export_takes_the_place_of_what_it_reads(database: Any, tmp_path: Path, kind: str) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    for path in (first, second):
        path.write_text("t\n5\n")
    os.link(second, tmp_path / "same.csv")
    for place in (first, tmp_path / "same.csv"):
        refuses(
            lambda place=place: database.export("ple", place, **{kind: [first, second]}, replace=True),
            "is read by this export",
        )
    assert first.read_text() == second.read_text() == "t\n5\n"


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"format": ["csv"]}, "format must be a text"),
        ({"format": b"csv"}, "format must be a text"),
        ({"compression": 5}, "compression must be a text"),
        ({"values": ["row"]}, "values must be a text"),
        ({"columns": 5}, "columns must be a list"),
        ({"columns": {"rowid"}}, "columns must be a list"),
        ({"columns": "rowid"}, "columns must be a list"),
        ({"progress": 5}, "progress must be a function"),
        ({"replace": "yes"}, "replace must be True or False"),
        ({"resume": 1, "rows_per_file": 5}, "resume must be True or False"),
        ({"round": "yes"}, "round must be True or False"),
        ({"rows_per_file": "5"}, "rows_per_file"),
        ({"rows_per_file": 1 << 63}, "rows_per_file"),
        ({"tokens": [1], "per": None}, "per must be a text"),
        ({"tokens": [1], "column": 5}, "column must be a text"),
        ({"tokens": [1], "history": 5}, "history must have one dimension"),
        ({"tokens": [1], "history": [True, 2]}, "truth value"),
        ({"ids": np.array(5)}, "one dimension or two"),
        ({"ids": np.zeros((1, 1, 1), int)}, "one dimension or two"),
        ({"ids": np.array([5], "M8[ns]")}, "datetime64"),
    ],
)
def test_arguments_of_wrong_types_are_refused(
    database: Any, tmp_path: Path, options: dict[str, Any], fragment: str
) -> None:
    refuses(lambda: database.export("ple", tmp_path / "out" / "a.npz", **options), fragment)
    with pytest.raises((ArgumentError, TokenIdError, RowIdError)):
        database.export("ple", tmp_path / "out" / "a.npz", **options)
    # But for what the ids are, not even the directory for it.
    assert not (tmp_path / "out").exists() or ("ids" in options and not list((tmp_path / "out").iterdir()))


@pytest.mark.parametrize("path", [5, None, b"a.npy", "", "a\0b.npy"])
def test_paths_that_are_none_are_refused(database: Any, path: Any) -> None:
    with pytest.raises(ArgumentError):
        database.export("ple", path, format="npy")


def test_a_directory_is_no_file(database: Any, tmp_path: Path) -> None:
    refuses(lambda: database.export("ple", f"{tmp_path}/new/", format="csv"), "names a directory", "--rows-per-file")
    assert database.export("ple", f"{tmp_path}/new/", format="csv", rows_per_file=1000).files[0].parent.name == "new"


def test_ids_may_come_one_by_one(database: Any, tmp_path: Path) -> None:
    found = database.export("ple", tmp_path / "a.npz", ids=(number for number in (3, 1)), rows_per_file=np.int64(5))
    with np.load(found.files[0]) as archive:
        assert archive["rowid"].tolist() == [3, 1]
    codes = pa.array([7, 7, 8]).dictionary_encode()
    database.export("ple", tmp_path / "b.arrow", ids=codes)
    assert arrow_table(tmp_path / "b.arrow").column("rowid").to_pylist() == [7, 7, 8]


def test_names_of_files_that_are_no_utf8(database: Any, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.txt"))
    for path in (odd, tmp_path / "b.txt"):
        path.write_text("5 6\n")
    # One of them twice: its name is there once.
    out = Path(os.fsdecode(os.fsencode(tmp_path) + b"/e\xff.arrow"))
    database.export("ple", out, tokens=[odd, tmp_path / "b.txt", odd])
    os.rename(out, tmp_path / "e.arrow")
    names = arrow_table(tmp_path / "e.arrow").column("file").combine_chunks()
    assert [Path(name).name for name in names.dictionary.to_pylist()] == ["a\\xff.txt", "b.txt"]
    assert names.indices.to_pylist() == [0, 0, 1, 1, 0, 0]
    assert [Path(name).name for name in second_reader(tmp_path / "e.arrow")["file"]][2:4] == ["b.txt", "b.txt"]
    found = database.export("ple", tmp_path / "several", tokens=[odd, odd], format="arrow", rows_per_file=3)
    assert (
        database.export("ple", tmp_path / "several", tokens=[odd, odd], format="arrow", rows_per_file=3, resume=True)
        == found
    )


def test_a_view_is_exported_by_a_query(database: Any, tmp_path: Path) -> None:
    database.create_view("few", "SELECT rowid FROM ple LIMIT 3")
    refuses(lambda: database.export("FEW", tmp_path / "a.csv"), "SQL view and no table", """--sql 'FROM "few"'""")
    assert database.export(database.sql("FROM few"), tmp_path / "a.csv").rows == 3
