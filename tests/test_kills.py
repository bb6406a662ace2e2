"""SIGKILL at random moments: the database opens in the old state or the new one, and resume ends in the same bytes."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from program import Killer, moments

import engramsql
from engramsql.bench import own_table
from engramsql.cli import main

PROGRAM = [sys.executable, "-m", "engramsql"]
# Fifty in all: builds, views, indexes and catalog changes.
BUILDS, VIEWS, INDEXES, CHANGES = 14, 14, 10, 12
SHAPE = own_table.Shape(16, 160, 160, "fp8_e4m3", own_table.PLE.scale, shards=3, shard_rows=100_000)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 48 MB with a spec."""
    directory = tmp_path_factory.mktemp("source")
    own_table.own_database(directory, SHAPE)
    return directory / f"store-{SHAPE.label}"


@pytest.fixture(scope="module")
def registered(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with that store as table ``rows``."""
    database = tmp_path_factory.mktemp("registered") / "db"
    with engramsql.connect(database) as db:
        db.register("rows", source, spec=str(source / "spec.toml"), format=SHAPE.format, scale=SHAPE.scale)
    return database


def tokens(directory: Path) -> Path:
    path = directory / "tokens.npy"
    np.save(path, np.random.default_rng(7).integers(0, 100_000, 15_000))
    return path


def finished(words: list[str]) -> float:
    """Runs a command that must succeed; its seconds."""
    started = time.perf_counter()
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - started


def content(directory: Path) -> dict[str, bytes]:
    """Every file below, but for locks and the manifest, which says when it was begun."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in ("lock", "manifest.json")
    }


def check(database: Path) -> None:
    """``engramsql check`` finds nothing wrong."""
    assert main(["check", str(database)]) == 0


def survives(database: Path, name: str, words: list[str], count: int, seed: int, kind: str) -> None:
    """Kills ``words``, which make ``name`` in ``database``, at ``count`` moments, each time from the same beginning."""
    fresh = database.with_name("fresh")
    shutil.copytree(database, fresh)
    killer = Killer(words, finished(words))
    expected = content(database / kind / name)
    assert expected
    for moment in moments(count, seed, start=0.2):
        shutil.rmtree(database)
        shutil.copytree(fresh, database)
        killer.kill(moment)
        with engramsql.connect(database, read_only=True) as db:
            names = [entry.name for entry in (db.tables() if kind == "tables" else db.record_views())]
        check(database)
        if name not in names:
            # The old state. What was begun goes on, or begins if the kill came before anything was written.
            finished([*words, "--resume"])
        assert content(database / kind / name) == expected
        check(database)
    assert killer.hits >= count // 2, f"only {killer.hits} of {count} were still running when they were killed"


def test_builds(source: Path, registered: Path, tmp_path: Path) -> None:
    database = tmp_path / "db"
    shutil.copytree(registered, database)
    words = ["build", "built", "rows", "--db", str(database), "--shard-size", "4MB", "--jobs", "2"]
    survives(database, "built", words, BUILDS, 1, "tables")


def test_view_builds(registered: Path, tmp_path: Path) -> None:
    database = tmp_path / "db"
    shutil.copytree(registered, database)
    words = ["view", "build", "seen", "--table", "rows", "--tokens", str(tokens(tmp_path)), "--db", str(database)]
    survives(database, "seen", words, VIEWS, 2, "views")


def test_index_builds(registered: Path, tmp_path: Path) -> None:
    """An index that is built anew: the old one or the new one answers, never a half."""
    database = tmp_path / "db"
    shutil.copytree(registered, database)
    finished(["view", "build", "seen", "--table", "rows", "--tokens", str(tokens(tmp_path)), "--db", str(database)])
    words = ["index", "build", "seen", "--db", str(database)]
    killer = Killer(words, finished(words))
    for moment in moments(INDEXES, 3, start=0.2):
        killer.kill(moment)
        with engramsql.connect(database, read_only=True) as db:
            view = db.view("seen")
            slots = np.arange(view.slots)
            assert np.array_equal(view.lookup(view.keys(slots)), slots)
    finished(words)
    finished(["verify", "seen", "--level", "full", "--db", str(database)])


CHANGER = """
import sys, engramsql
db = engramsql.connect(sys.argv[1])
step = 0
while True:
    db.create_view("v", f"SELECT {step} AS n", replace=True)
    db.register(f"t{step % 3}", sys.argv[2])
    print(step, flush=True)
    db.drop(f"t{step % 3}")
    step += 1
"""


@pytest.mark.parametrize("seed", range(CHANGES))
def test_catalog_changes(source: Path, tmp_path: Path, seed: int) -> None:
    database = tmp_path / "db"
    changer = [sys.executable, "-c", CHANGER, str(database), str(source)]
    with subprocess.Popen(changer, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # From the first step on it changes the catalog all the time, so that any moment will do.
        process.stdout.readline()
        for _ in range(random.Random(seed).randrange(200)):
            process.stdout.readline()
        process.kill()
        done = [int(line) for line in process.stdout.read().split() if line.isdigit()]
    document = json.loads((database / "engram.json").read_text())
    with engramsql.connect(database) as db:
        assert [view.name for view in db.views()] == ["v"]
        assert len(db.tables()) <= 1
        ((step,),) = db.sql("SELECT n FROM v").fetchall()
        assert not done or step in (done[-1], done[-1] + 1)
        db.create_view("after", "SELECT 1")
    assert document["version"] == json.loads((database / "engram.json").read_text())["version"]
    assert not [name for name in os.listdir(database) if name.startswith(".engram.json.")]
