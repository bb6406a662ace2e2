"""Readers of a table that other processes build and replace: whole rows of one build, or an error that says so."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checkpoints import make_store
from helpers import q

import engramsql
from engramsql.errors import CatalogLockedError

ROWS, WIDTH = 4000, 64

BUILDER = """
import sys, engramsql
database, sources, rounds = sys.argv[1], sys.argv[2:4], int(sys.argv[4])
with engramsql.connect(database) as db:
    for count in range(rounds):
        db.build("t", sources[count % 2], width=64, shard_size=60_000, jobs=2, replace=True)
        print(count, flush=True)
"""


def source(directory: Path, value: int) -> Path:
    directory.mkdir()
    (directory / "shard_000.bin").write_bytes(bytes([value]) * (ROWS * WIDTH))
    return directory


def test_rows_are_of_one_build(tmp_path: Path) -> None:
    database, sources = tmp_path / "db", [source(tmp_path / name, value) for name, value in (("a", 1), ("b", 2))]
    with engramsql.connect(database) as db:
        db.build("t", sources[0], width=WIDTH)
    command = [sys.executable, "-c", BUILDER, str(database), *map(str, sources), "40"]
    ids = np.random.default_rng(5).integers(0, ROWS, 500)
    seen, refused = set(), []
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as builder,
        engramsql.connect(database, read_only=True) as db,
    ):
        while builder.poll() is None:
            try:
                rows = db.table("t").fetch(ids)
                scanned = q(db, "SELECT row FROM engram_scan('t') WHERE rowid % 97 = 0")
            except Exception as error:
                # DuckDB's own class, or ours; never anything else than what the files became.
                refused.append(str(error))
                continue
            assert len(np.unique(rows)) == 1, "rows of two builds"
            assert len({bytes(row) for (row,) in scanned}) == 1, "rows of two builds"
            seen.add(int(rows[0, 0]))
        assert builder.returncode == 0
        # What the name means now is read again.
        assert db.table("t").fetch(ids)[0, 0] == 2
    assert seen == {1, 2}
    for message in refused:
        assert "has disappeared" in message or "was replaced" in message or "No such file" in message, message
    with engramsql.connect(database) as db:
        assert db.orphans() == []
        assert db.verify("t").good


def test_a_second_builder_of_a_name_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    database, store = tmp_path / "db", tmp_path / "rows"
    make_store(store, shards=3, rows=10, width=8)
    words = ["build", "t", str(store), "--width", "8", "--db", str(database)]
    program = [sys.executable, "-m", "engramsql", *words]
    killed = subprocess.run(program, env={**os.environ, "ENGRAMSQL_FAULT": "kill@build.manifest"}, check=False)
    assert killed.returncode == -signal.SIGKILL
    with open(database / "tables" / ".t.building" / "lock", "r+") as lock, engramsql.connect(database) as db:
        # As the first builder held it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write("4242")
        lock.flush()
        for how in ({"resume": True}, {"restart": True}, {}):
            with pytest.raises(CatalogLockedError, match=r"another process \(process 4242\)"):
                db.build("t", store, width=8, **how)
        assert [orphan.in_use for orphan in db.remove_orphans()] == []
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert db.build("t", store, width=8, resume=True)[0].rows == 30
