"""``Database.verify`` and ``Database.diff``: what was changed is told, with its place."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import make_store
from golden_data import GOLDEN
from reading import random_store

import engramsql
from engramsql.errors import ArgumentError, EngramError, UnknownTableError

LEVELS = ("headers", "sample", "full")


@pytest.fixture
def database(tmp_path: Path) -> Any:
    """A database with a built table ``t`` of 2000 random rows in 4 shards or more, and a view ``v`` of golden ple."""
    random_store(tmp_path / "s", rows=1000)
    with engramsql.connect(tmp_path / "db") as db:
        db.build("t", tmp_path / "s", width=160, shard_size="80KB")
        db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
        db.build_view("v", "ple", [[1, 2, 3], [4, 5]])
        yield db


def flip(path: Path, at: int, bit: int = 0) -> None:
    """Flips one bit of a file, and keeps its times."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["t", "ple", "v"])
def test_what_is_whole_is_good(database: Any, name: str, level: str) -> None:
    found = database.verify(name, level)
    assert found.good
    assert found.name == name
    assert found.comparison is None
    assert all(finding.ok for finding in found.findings)
    assert found.findings


def test_a_full_verification_is_remembered(database: Any) -> None:
    before = time.time() * 1e6
    entry = next(entry for entry in database.tables() if entry.name == "t")
    assert entry.verified_at is None
    assert database.verify("t", "headers").good
    assert next(entry for entry in database.tables() if entry.name == "t").verified_at is None
    assert database.verify("t").good
    verified_at = next(entry for entry in database.tables() if entry.name == "t").verified_at
    assert before <= verified_at <= time.time() * 1e6


@pytest.mark.parametrize("at, bit", [(0, 0), (12_345, 3), (79_999, 7)])
def test_a_flipped_bit_is_found_in_its_shard(database: Any, tmp_path: Path, at: int, bit: int) -> None:
    flip(tmp_path / "db" / "tables" / "t" / "shard_002.bin", at, bit)
    found = database.verify("t", "full")
    assert not found.good
    bad = [finding for finding in found.findings if not finding.ok]
    assert {finding.shard for finding in bad} == {2}
    assert any(finding.check == "block" and finding.expected != finding.found for finding in bad)
    assert all(finding.detail and "\n" not in finding.detail for finding in bad)


def test_a_short_and_a_missing_file_are_found_by_headers(database: Any, tmp_path: Path) -> None:
    directory = tmp_path / "db" / "tables" / "t"
    os.truncate(directory / "shard_001.bin", 160)
    (directory / "shard_003.bin").unlink()
    (directory / "shard_999.bin").write_bytes(b"stray")
    found = database.verify("t", "headers")
    assert not found.good
    text = " ".join(finding.detail for finding in found.findings if not finding.ok)
    assert "shard_001" in text or "shard_003" in text


def test_a_damaged_view_is_found(database: Any, tmp_path: Path) -> None:
    directory = tmp_path / "db" / "views" / "v"
    (index,) = (directory / "index").glob("*.bin")
    for file, at in {"shard_000.bin": 1000, "keys.bin": 9, index.relative_to(directory): 5}.items():
        flip(directory / file, at)
        assert not database.verify("v", "full").good, file
        flip(directory / file, at)
        assert database.verify("v", "full").good


def test_a_path_is_verified_without_a_catalog(database: Any, tmp_path: Path) -> None:
    path = tmp_path / "db" / "tables" / "t"
    with engramsql.connect() as other:
        assert other.verify(path).good
        assert other.verify(str(path), "sample").good
        flip(path / "shard_000.bin", 77)
        assert not other.verify(path).good


def test_a_copy_equals_its_source_row_by_row(database: Any, tmp_path: Path) -> None:
    make_store(tmp_path / "x", rows=10, width=8)
    data = make_store(tmp_path / "y", rows=10, width=8)
    data[[3, 17], [5, 0]] ^= 255
    make_store(tmp_path / "y", rows=10, width=8, data=data)
    database.register("x", tmp_path / "x", width=8)
    database.register("y", tmp_path / "y", width=8)
    comparison = database.diff("x", "y")
    assert (comparison.rows, comparison.equal, comparison.different) == (30, 28, 2)
    assert [(d.rowid, d.byte, d.a, d.b) for d in comparison.first] == [(3, 5, 0, 255), (17, 0, 1, 254)]
    assert len(database.diff("x", "y", keep=1).first) == 1
    found = database.verify("x", against="y")
    assert not found.good
    assert found.comparison == comparison
    assert found.findings == []
    assert database.verify("t", against="t").good
    database.build("copy", "x")
    assert database.verify("copy", against="x").comparison.equal == 30


def test_what_cannot_be_verified_is_refused(database: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="level"):
        database.verify("t", "deep")
    with pytest.raises(UnknownTableError):
        database.verify("nope")
    with pytest.raises(EngramError):
        database.verify(tmp_path / "nope")
    with pytest.raises(ArgumentError, match="resume"):
        database.verify("t", against="t", resume=True)
    with pytest.raises(EngramError, match="rows"):
        database.diff("t", "ple")


def test_progress_is_told_and_ends_it(database: Any) -> None:
    told: list[tuple[str, int, int]] = []
    database.verify("t", progress=lambda *step: told.append(step))
    assert told
    assert all(0 <= done <= total for _, done, total in told)

    def stop(*_: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        database.verify("t", progress=stop)
    with pytest.raises(RuntimeError, match="enough"):
        database.diff("t", "t", progress=stop)


def test_findings_are_a_table(database: Any) -> None:
    from engramsql.verification import difference_table, finding_table

    found = database.verify("t")
    table = finding_table([("t", found.findings)])
    assert table.column_names == ["ok", "check", "shard", "detail", "expected", "found"]
    several = finding_table([("t", found.findings), ("u", found.findings)])
    assert several.column_names == ["name", *table.column_names]
    assert set(several["name"].to_pylist()) == {"t", "u"}
    assert table.num_rows == len(found.findings)
    differences = difference_table("t", database.diff("t", "t"))
    assert differences.column_names == ["name", "rowid", "byte", "a", "b"]
    assert differences.num_rows == 0


def test_a_read_only_database_is_verified(database: Any, tmp_path: Path) -> None:
    with engramsql.connect(tmp_path / "db", read_only=True) as db:
        assert db.verify("t").good
    assert next(entry for entry in database.tables() if entry.name == "t").verified_at is None


def test_rows_in_memory_are_not_trusted(database: Any, tmp_path: Path) -> None:
    """The table is open, and its rows were read: verification still looks at the files."""
    ids = np.arange(2000)
    database.table("t").fetch(ids)
    flip(tmp_path / "db" / "tables" / "t" / "shard_000.bin", 100)
    assert not database.verify("t").good
