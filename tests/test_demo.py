"""The demo builds what it says, runs twice, and refuses a directory that is something else."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import q

import engramsql
import engramsql.demo
from engramsql.demo import checkpoints, sparse
from engramsql.errors import ArgumentError


def test_demo_runs_and_runs_again(tmp_path: Path) -> None:
    first, second = io.StringIO(), io.StringIO()
    engramsql.demo.run(tmp_path / "demo", out=first)
    engramsql.demo.run(tmp_path / "demo", out=second)
    for text in (first.getvalue(), second.getvalue()):
        assert "254.3 GB apparent" in text
        assert "MB on disk" in text
        assert "engram_fetch('ple', rowids_for_seq('ple', [248044, 1000, 99999, 42]))" in text
        assert "64 rows" in text
        assert "v41_l14" in text
    assert "registered" in first.getvalue()
    assert "registered" not in second.getvalue()
    apparent, taken = sparse.apparent_and_taken_bytes(tmp_path / "demo")
    assert apparent > 250e9
    assert taken < 50e6
    with engramsql.connect(tmp_path / "demo") as db:
        assert {n for (n,) in q(db, "SELECT name FROM engram_tables()")} == {"ple", "v41_l1", "v41_l14"}
        sql = "SELECT row, embedding FROM engram_fetch('ple', rowids_for_seq('ple', [248044, 1000, 99999, 42]))"
        rows = q(db, sql)
        assert all(any(row) for row, _ in rows)
        assert all(np.isfinite(np.array(v, np.float32)).all() for _, v in rows)


def test_the_demo_goes_on_where_no_path_has_the_program(tmp_path: Path) -> None:
    demo = [sys.executable, "-m", "engramsql", "demo", str(tmp_path / "demo")]
    done = subprocess.run(demo, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    shown = re.search(r"Go on with: (.*)", done.stdout)
    assert shown
    again = subprocess.run(
        shlex.split(shown.group(1)), env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert again.stdout.startswith("ord,token,head,rowid,")


def test_demo_in_a_directory_that_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ArgumentError, match="not empty"):
        engramsql.demo.run(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArgumentError, match="is a file"):
        engramsql.demo.run(tmp_path / "file")


def test_an_interrupted_build_is_built_again(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "checkpoints" / "qwen3.8-flash-next"
    folder.mkdir(parents=True)
    (folder.parent / ".unfinished").touch()
    (tmp_path / "demo" / "engram.json").write_text("{")
    assert engramsql.demo.prepare(tmp_path / "demo")
    assert not engramsql.demo.prepare(tmp_path / "demo")


def test_demo_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text(json.dumps({"version": 999}))
    with pytest.raises(ArgumentError, match="999"):
        engramsql.demo.run(tmp_path)


def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("usage", (), {"free": 1 << 20}))
    with pytest.raises(sparse.SparseError, match="needs 64 MB"):
        engramsql.demo.run(tmp_path / "demo")


def test_no_sparse_files(tmp_path: Path) -> None:
    with pytest.raises(sparse.SparseError, match=r"sparse file .*choose a directory"), open(tmp_path / "f", "wb") as f:
        sparse.set_length(f.fileno(), 1 << 62, tmp_path / "f")


def test_synthetic_tokenizer_counts_what_the_release_counts() -> None:
    vocab = checkpoints.synthetic_tokenizer()["model"]["vocab"]
    assert sorted(vocab.values()) == list(range(checkpoints.V41_VOCAB))
    seen: dict[str, int] = {}
    by_id = sorted(vocab, key=lambda w: vocab[w])
    token_map = [seen.setdefault(word.lower(), len(seen)) for word in by_id]
    assert len(seen) == checkpoints.V41_COMPRESSED
    assert np.array_equal(token_map, checkpoints.synthetic_token_map())
    assert by_id[checkpoints.V41_IMAGE_TOKEN] == "<image>"


def test_pseudo_rows_depend_on_the_id_alone() -> None:
    a = sparse.pseudo_rows(1, range(1000), 160)
    assert np.array_equal(a[500:510], sparse.pseudo_rows(1, range(500, 510), 160))
    assert not ((a & 0x7F) == 0x7F).any()
    assert not np.array_equal(a, sparse.pseudo_rows(2, range(1000), 160))
    assert len(np.unique(a, axis=0)) == 1000
