"""``Database.build``: rows of any source, copied bit by bit into a store of the database."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import make_store
from golden_data import GOLDEN
from helpers import q, refuses, run_python
from reading import random_store

import engramsql
from engramsql.errors import ArgumentError, CatalogError, EngramError, SourceError, StorageError

CHECKPOINTS = ["ckpt_qwen4_exp_fp8", "ckpt_qwen4_exp_bf16", "ckpt_qwen4_exp_nvfp4", "ckpt_deepseek_v41"]


@pytest.fixture
def database(tmp_path: Path) -> Any:
    with engramsql.connect(tmp_path / "db") as db:
        yield db


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_a_built_table_is_the_checkpoint(database: Any, tmp_path: Path, checkpoint: str) -> None:
    database.register("there", GOLDEN / checkpoint)
    entries = database.build("built", GOLDEN / checkpoint, shard_size="4KB")
    names = {entry.name.replace("built", "there"): entry for entry in entries}
    assert [entry.name for entry in database.tables()] == [*names, *(entry.name for entry in entries)]
    for name, entry in names.items():
        source, built = database.table(name), database.table(entry.name)
        ids = np.arange(source.rows)
        assert np.array_equal(built.fetch(ids), source.fetch(ids))
        assert (built.format, built.scale, built.layer) == (source.format, source.scale, source.layer)
        assert built.vectors(ids).tobytes() == source.vectors(ids).tobytes()
        tokens = [1, 2, 3, 1, 2, 50]
        assert np.array_equal(built.rowids(tokens), source.rowids(tokens))
        assert not entry.in_place
        assert entry.shards > 1
        assert Path(built.source) == tmp_path / "db" / "tables" / entry.name
    # In the relation of its name too, and in another process.
    shown = q(database, f'SELECT count(*) FROM "{entries[0].name}"')
    with engramsql.connect(tmp_path / "db", read_only=True) as again:
        assert q(again, f'SELECT count(*) FROM "{entries[0].name}"') == shown == [(entries[0].rows,)]


@pytest.mark.parametrize("source", [*CHECKPOINTS, "peer_store/rows"])
def test_every_golden_source_is_built_verified_and_read(database: Any, source: str) -> None:
    database.register("there", GOLDEN / source)
    originals = [database.table(entry.name) for entry in database.tables()]
    entries = database.build("built", GOLDEN / source, shard_size="5KB")
    assert len(entries) == len(originals)
    for entry, original in zip(entries, originals, strict=True):
        for level in ("headers", "sample", "full"):
            assert database.verify(entry.name, level).good, level
        assert database.verify(entry.name, against=original.name).good
        ids = np.arange(original.rows)
        assert np.array_equal(database.table(entry.name).fetch(ids), original.fetch(ids))


def test_a_table_of_the_database_is_a_source(database: Any, tmp_path: Path) -> None:
    data = random_store(tmp_path / "s", rows=1000)
    database.register("s", tmp_path / "s", width=160, format="fp8_e4m3", scale=0.5)
    (entry,) = database.build("copy", "s")
    assert np.array_equal(database.table("copy").fetch(np.arange(2000)), data)
    assert (entry.format, entry.scale) == ("fp8_e4m3", 0.5)
    with pytest.raises(ArgumentError, match="'s' knows what it is"):
        database.build("copy2", "s", width=160)


def test_a_built_store_describes_itself(database: Any, tmp_path: Path) -> None:
    database.build("t", GOLDEN / "ckpt_qwen4_exp_fp8")
    moved = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "db" / "tables" / "t", moved)
    with engramsql.connect(moved) as db:
        (entry,) = db.tables()
        assert entry.spec is not None
        assert entry.format == "fp8_e4m3"
        assert np.array_equal(db.table(entry.name).rowids([1, 2, 3]), database.table("t").rowids([1, 2, 3]))
        assert db.table(entry.name).vectors([0, 5]).tobytes() == database.table("t").vectors([0, 5]).tobytes()


def test_progress_is_told(database: Any, tmp_path: Path) -> None:
    random_store(tmp_path / "s", rows=1000)
    told: list[tuple[str, int, int]] = []
    database.build("t", tmp_path / "s", width=160, progress=lambda *step: told.append(step))
    assert told
    for stage, done, total in told:
        assert isinstance(stage, str)
        assert 0 <= done <= total


def test_a_progress_that_raises_ends_it(database: Any, tmp_path: Path) -> None:
    random_store(tmp_path / "s", rows=1000)

    def stop(*_: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        database.build("t", tmp_path / "s", width=160, progress=stop)


def test_an_unfinished_build_is_completed_or_thrown_away(tmp_path: Path) -> None:
    data = random_store(tmp_path / "s", rows=1000)
    code = """
    import sys, engramsql
    with engramsql.connect(sys.argv[1]) as db:
        db.build("t", sys.argv[2], width=160, shard_size="16KB")
    """
    killed = run_python(
        code,
        args=[str(tmp_path / "db"), str(tmp_path / "s")],
        env={"ENGRAMSQL_FAULT": "kill@build.shard:3"},
        expect=None,
    )
    assert killed.returncode == -signal.SIGKILL
    with engramsql.connect(tmp_path / "db") as db:
        assert db.tables() == []
        message = refuses(lambda: db.build("t", tmp_path / "s", width=160, shard_size="16KB"), "'t'", "resume")
        assert "\n" not in message
        db.build("t", tmp_path / "s", width=160, shard_size="16KB", resume=True)
        assert np.array_equal(db.table("t").fetch(np.arange(2000)), data)
        assert db.verify("t", "full").good


def test_replace(database: Any, tmp_path: Path) -> None:
    make_store(tmp_path / "a", shards=1, rows=10, width=8)
    data = make_store(tmp_path / "b", shards=1, rows=20, width=8, data=np.full((20, 8), 7, np.uint8))
    database.build("t", tmp_path / "a", width=8)
    with pytest.raises(CatalogError, match="'t'"):
        database.build("t", tmp_path / "b", width=8)
    database.build("t", tmp_path / "b", width=8, replace=True)
    assert np.array_equal(database.table("t").fetch(np.arange(20)), data)
    assert q(database, "SELECT count(*) FROM t") == [(20,)]
    assert database.orphans() == []


def test_what_cannot_be_built_is_refused(database: Any, tmp_path: Path) -> None:
    make_store(tmp_path / "s", rows=10, width=8)
    with pytest.raises(ArgumentError, match="resume .* restart"):
        database.build("t", tmp_path / "s", width=8, resume=True, restart=True)
    with pytest.raises(SourceError):
        database.build("t", tmp_path / "missing")
    with pytest.raises(ArgumentError, match="'8G' is not a size"):
        database.build("t", tmp_path / "s", width=8, shard_size="8G")
    with pytest.raises(EngramError):
        database.build("t", tmp_path / "s", width=7)
    with pytest.raises(EngramError):
        database.build("t", tmp_path / "s", width=8, jobs=0)
    database.register("s", tmp_path / "s", width=8)
    database.drop("s")
    with engramsql.connect(tmp_path / "db", read_only=True) as db, pytest.raises(CatalogError):
        db.build("t", tmp_path / "s", width=8)
    assert database.tables() == []
    assert not (tmp_path / "db" / "tables").exists() or not any((tmp_path / "db" / "tables").iterdir())


def test_ctrl_c_ends_it_and_resume_completes_it(tmp_path: Path) -> None:
    data = random_store(tmp_path / "s", rows=200_000, shards=2)
    code = """
    import signal, sys, engramsql
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with engramsql.connect(sys.argv[1]) as db:
        def show(stage, done, total):
            print(stage, done, flush=True)
        try:
            db.build("t", sys.argv[2], width=160, shard_size="1MB", progress=show)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            sys.exit(7)
    """
    words = [sys.executable, "-c", "import textwrap, sys; exec(textwrap.dedent(sys.argv.pop(1)))", code]
    with subprocess.Popen([*words, str(tmp_path / "db"), str(tmp_path / "s")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            # It is working.
            assert process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read().decode().splitlines()
            code_ = process.wait(60)
        finally:
            process.kill()
    with engramsql.connect(tmp_path / "db") as db:
        if code_ == 7:
            assert rest[-1] == "interrupted"
            if not db.tables():
                db.build("t", tmp_path / "s", width=160, shard_size="1MB", resume=True)
        else:  # it was done before the signal came
            assert code_ == 0
        assert np.array_equal(db.table("t").fetch(np.arange(len(data))), data)


def test_a_full_disk_leaves_what_can_be_resumed(tmp_path: Path) -> None:
    random_store(tmp_path / "s", rows=1000)
    code = """
    import sys, engramsql
    with engramsql.connect(sys.argv[1]) as db:
        try:
            db.build("t", sys.argv[2], width=160, shard_size="16KB")
        except engramsql.errors.StorageError as error:
            print(error)
        print([entry.name for entry in db.tables()])
    """
    done = run_python(code, args=[str(tmp_path / "db"), str(tmp_path / "s")], env={"ENGRAMSQL_FAULT": "enospc@write:5"})
    message, tables = done.stdout.splitlines()
    assert "space" in message
    assert "resume" in message
    assert tables == "[]"
    with engramsql.connect(tmp_path / "db") as db:
        db.build("t", tmp_path / "s", width=160, shard_size="16KB", resume=True)
        assert db.verify("t", "full").good


def test_engramdb_opens_what_is_built(database: Any, tmp_path: Path) -> None:
    engramdb = pytest.importorskip("engramdb")
    data = random_store(tmp_path / "s", rows=1000)
    database.build("t", tmp_path / "s", width=160, shard_size="50KB")
    directory = tmp_path / "db" / "tables" / "t"
    layout = json.loads((directory / "manifest.json").read_text())["layout"]
    store = engramdb.Store(
        str(directory), shards=layout["shards"], rows_per_shard=layout["rows_per_shard"], width=layout["width"]
    )
    ids = np.random.default_rng(1).integers(0, 2000, 500)
    theirs = np.frombuffer(store.fetch(ids.tolist()), np.uint8).reshape(500, 160)
    assert np.array_equal(theirs, data[ids])
    store.close()


def test_storage_errors_are_os_errors() -> None:
    assert issubclass(StorageError, OSError)
