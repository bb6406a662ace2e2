"""A disk that becomes full, really full: one clear error, nothing wrong left behind, and resume completes."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engramsql
from engramsql.errors import StorageError

MIB = 1 << 20


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A store of 16 MiB."""
    directory = tmp_path / "rows"
    data = np.random.default_rng(3).integers(0, 256, (1 << 14, 1024), dtype=np.uint8)
    directory.mkdir()
    data.tofile(directory / "shard_000.bin")
    return directory


def build(database: Path, rows: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = ["build", "rows", str(rows), "--width", "1024", "--shard-size", "1MB", "--db", str(database), *more]
    return subprocess.run(
        [sys.executable, "-m", "engramsql", *words], capture_output=True, text=True, check=False, timeout=120
    )


def test_a_build_that_does_not_fit_is_refused_before_anything_is_written(small_disk: Path, rows: Path) -> None:
    (small_disk / "other").write_bytes(bytes(12 * MIB))
    done = build(small_disk / "db", rows)
    assert done.returncode == 1
    assert re.search(r"needs \d+ bytes and its disk has \d+ free", done.stderr), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(small_disk.glob("db/tables/*")), "something was written"


def test_a_disk_that_becomes_full_ends_in_one_error_and_resume_completes(small_disk: Path, rows: Path) -> None:
    database = small_disk / "db"
    # The check beforehand passes, so the disk is said to be full while the build writes.
    taken = small_disk / "other"
    environment = {**os.environ, "ENGRAMSQL_FAULT": "enospc@write:9"}
    words = ["build", "rows", str(rows), "--width", "1024", "--shard-size", "1MB", "--db", str(database)]
    done = subprocess.run(
        [sys.executable, "-m", "engramsql", *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "no space is left" in done.stderr
    with engramsql.connect(database) as db:
        assert db.tables() == []
    # Now the disk is full indeed.
    taken.write_bytes(bytes(12 * MIB))
    done = build(database, rows, "--resume")
    assert done.returncode == 1, done.stdout
    assert "free" in done.stderr
    with engramsql.connect(database, read_only=True) as db:
        assert db.tables() == []
    taken.unlink()
    assert build(database, rows, "--resume").returncode == 0
    with engramsql.connect(database, read_only=True) as db:
        assert db.table("rows").fetch(np.arange(1 << 14)).tobytes() == (rows / "shard_000.bin").read_bytes()


def test_the_catalog_on_a_full_disk_stays_what_it_was(small_disk: Path) -> None:
    database = small_disk / "db"
    with engramsql.connect(database) as db:
        db.create_view("kept", "SELECT 1 AS one")
        free = os.statvfs(small_disk)
        with open(small_disk / "other", "wb") as file, contextlib.suppress(OSError):
            file.write(bytes(free.f_bavail * free.f_frsize))
        with pytest.raises((StorageError, engramsql.errors.CatalogError), match="engram.json"):
            db.create_view("lost", "SELECT 2 AS two")
        assert [view.name for view in db.views()] == ["kept"]
    with engramsql.connect(database, read_only=True) as db:
        assert db.sql("SELECT one FROM kept").fetchall() == [(1,)]
