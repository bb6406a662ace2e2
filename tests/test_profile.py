"""``Database.profile`` and ``engramsql profile``: the lines of ``engram_profile``, with progress and Ctrl-C."""

from __future__ import annotations

import csv
import io
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from extension_support import FP8, GOLDEN
from helpers import refuses
from program import PROGRAM, in_terminal, interrupted, on_terminal, run
from reading import WIDTH, sparse_store

import engramsql
from engramsql.errors import FormatError, ReadError, UnknownTableError


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", FP8)
    return tmp_path / "db"


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A database with a table ``t`` that takes a minute to read: 64 GB of zeros in sparse files."""
    sparse_store(tmp_path / "store", 64)
    with engramsql.connect(tmp_path / "endless") as db:
        db.register("t", tmp_path / "store", width=WIDTH, format="fp8_e4m3", scale=1.0)
    return tmp_path / "endless"


def test_python_has_the_lines_of_sql(database: Path) -> None:
    with engramsql.connect(database, read_only=True) as db:
        seen: list[tuple[str, int, int]] = []
        found = db.profile("PLE", progress=lambda *told: seen.append(told))
        assert found.equals(db.sql("FROM engram_profile('ple')").to_arrow_table())
        assert found["rows"].to_pylist()[-1] == 16
        size = db.table("ple").bytes
        assert seen[-1] == ("profile", size, size)
        # A path, as a text and as a Path.
        assert db.profile(str(FP8)).equals(found)
        assert db.profile(FP8).equals(found)
        scaled = db.profile(f"{GOLDEN / 'ckpt_deepseek_v41'}#l1")
        assert scaled["scale_min"].null_count == 0
        record = db.table("ple").profile()[3]
        assert (record.head, record.norm_mean) == (3, found["norm_mean"][3].as_py())
        assert repr(record).startswith("HeadProfile(head=3, ngram_order=2, rows=67, dead=0,")


def test_python_refuses(database: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "shard_000.bin").write_bytes(bytes(320))
    with engramsql.connect(database) as db:
        db.register("bare", tmp_path / "bare", width=160)
        with pytest.raises(UnknownTableError, match="no table named 'nobody'"):
            db.profile("nobody")
        with pytest.raises(FormatError, match="table 'bare' has no value format"):
            db.profile("bare")
        # What progress raises ends it.
        refuses(lambda: db.profile("ple", progress=lambda *_: 1 // 0), "division")
        db.register("opened", tmp_path / "bare", width=160, format="fp8_e4m3", scale=1.0)
        opened = db.table("opened")
        assert [head.dead for head in opened.profile()] == [2]
        (tmp_path / "bare" / "shard_000.bin").unlink()
        with pytest.raises(ReadError, match=r"shard_000\.bin' has disappeared"):
            opened.profile()


def test_an_exception_of_progress_ends_it(endless: Path) -> None:
    class EnoughError(Exception):
        pass

    def enough(stage: str, done: int, total: int) -> None:
        if done > 0:
            raise EnoughError(stage, total)

    with engramsql.connect(endless, read_only=True) as db:
        with pytest.raises(EnoughError) as raised:
            db.profile("t", progress=enough)
        assert raised.value.args == ("profile", db.table("t").bytes)


def test_the_command_line(database: Path) -> None:
    done = run("profile", "ple", "--db", database)
    assert (done.returncode, done.stderr) == (0, "")
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [line["head"] for line in lines] == [*map(str, range(16)), ""]
    assert sum(int(line["rows"]) for line in lines) == 1408
    assert run("profile", FP8).stdout == done.stdout
    assert run("profile", "ple", "--db", FP8, "--format", "csv").stdout == done.stdout
    code, text = on_terminal("profile", "ple", "--db", database)
    assert code == 0
    assert "ngram_order" in text
    arrow = subprocess.run(
        [*PROGRAM, "profile", "ple", "--db", str(database), "--format", "arrow"], stdout=subprocess.PIPE, check=True
    )
    with engramsql.connect(database, read_only=True) as db:
        assert pa.ipc.open_stream(arrow.stdout).read_all().equals(db.profile("ple"))


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["profile", "nope", "--db", "DB"], 1, "no table named 'nope'"),
        (["profile", "ple", "--db", "missing"], 1, "'missing' does not exist"),
        (["profile", "ple"], 2, "'ple' is a name: give its database with --db DB"),
        (["profile", "./missing"], 1, "missing"),
        (["profile", "--db", "DB"], 2, "NAME"),
        (["profile", "ple", "--db", "DB", "--format", "xml"], 2, "xml"),
    ],
)
def test_what_the_command_line_refuses(database: Path, words: list[str], code: int, part: str) -> None:
    done = run(*[str(database) if word == "DB" else word for word in words])
    assert (done.returncode, done.stdout) == (code, "")
    assert part in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_terminal_sees_how_far_it_is(tmp_path: Path) -> None:
    sparse_store(tmp_path / "store", 2)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "store", width=WIDTH, format="fp8_e4m3", scale=1.0)
        rows = db.table("t").rows
    out, seen = in_terminal("profile", "t", "--db", tmp_path / "db")
    assert re.search(r"t: profile: [\d.]+ .B of [\d.]+ GB, [\d.]+ .B/s, ", seen)
    # The line is gone at the end.
    assert seen.endswith("\r\x1b[K")
    (line,) = csv.DictReader(io.StringIO(out))
    assert (line["rows"], line["dead"], line["norm_max"]) == (str(rows), str(rows), "0")


def test_ctrl_c_ends_it(endless: Path) -> None:
    # To its end it would read for much longer.
    assert interrupted("profile", "t", "--db", endless) == (130, "")
