"""``engramsql warm`` and the settings on the command line, as a user runs them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from program import in_terminal, interrupted, run
from reading import MIB, WIDTH, make_cold, random_store, require_cold, sparse_store

import engramsql
from engramsql.progress import ProgressLine, duration, size


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with a table ``t`` of 100000 rows, none of them in the page cache."""
    random_store(tmp_path / "store")
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "store", width=WIDTH)
    make_cold(tmp_path / "store")
    return tmp_path / "db"


def test_warm_fills_the_page_cache(database: Path) -> None:
    with engramsql.connect(database) as db:
        require_cold(db.table("t"))
    make_cold(database.parent / "store")
    done = run("warm", "t", "--db", database)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        r"t: 16000000 bytes of rows read in \d+\.\d s; 16000000 of 16000000 bytes in the page cache\n", done.stdout
    )
    with engramsql.connect(database) as db:
        assert sum(shard.resident_bytes for shard in db.table("t").shards()) == 16_000_000


def test_warm_stops_at_its_budget(database: Path) -> None:
    done = run("warm", "t", "--db", database, "--budget", "1MB")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("t: 1000000 bytes of rows read in ")


def test_warm_leaves_the_row_cache_alone(database: Path) -> None:
    """It would be gone with the process: what the environment asks for is for others."""
    done = run("warm", "t", "--db", database, ENGRAMSQL_RAM_BUDGET="1GB", ENGRAMSQL_READER="sequential")
    assert done.stdout.startswith("t: 16000000 bytes of rows read in ")
    assert "16000000 of 16000000 bytes in the page cache" in done.stdout


@pytest.mark.parametrize(
    "words, code, parts",
    [
        (["warm", "nope", "--db", "DB"], 1, ["nope"]),
        (["warm", "t", "--db", "DB", "--budget", "8G"], 1, ["'8G' is not a size", "write it like 8GB"]),
        (["warm", "t", "--db", "missing"], 1, ["'missing' does not exist"]),
        (["warm", "t"], 2, ["--db"]),
        (["warm", "--db", "DB"], 2, ["NAME"]),
        (["DB", "-c", "SELECT 1", "--ram-budget", "8G"], 1, ["'8G' is not a size"]),
        (["DB", "-c", "SELECT 1", "--threads", "0"], 2, ["'0' is no number of at least 1"]),
        (["DB", "-c", "SELECT 1", "--threads", "-1"], 2, ["--threads"]),
        (["DB", "-c", "SELECT 1", "--threads", "two"], 2, ["'two' is no number of at least 1"]),
        (["DB", "-c", "SELECT 1", "--threads", "65537"], 1, ["threads must be"]),
    ],
)
def test_what_cannot_be_is_refused(database: Path, words: list[str], code: int, parts: list[str]) -> None:
    done = run(*[str(database) if word == "DB" else word for word in words])
    assert (done.returncode, done.stdout) == (code, "")
    message = done.stderr.splitlines()[-1]
    assert message.startswith("engramsql")
    for part in parts:
        assert part in message
    assert "Traceback" not in done.stderr


def test_a_source_that_has_changed_is_told(database: Path) -> None:
    os.truncate(database.parent / "store" / "shard_001.bin", WIDTH)
    done = run("warm", "t", "--db", database)
    assert (done.returncode, done.stdout) == (1, "")
    assert "'t'" in done.stderr
    assert "has changed" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help_says_what_it_cannot_do() -> None:
    text = " ".join(run("warm", "--help").stdout.split())
    assert "The row cache ends with its process" in text


def test_a_terminal_sees_how_far_it_is(tmp_path: Path) -> None:
    sparse_store(tmp_path / "store", 1)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "store", width=WIDTH)
    out, seen = in_terminal("warm", "t", "--db", tmp_path / "db", "--budget", "500MB")
    assert re.search(r"t: [\d.]+ MB of 500\.0 MB, [\d.]+ .B/s, \d+ s left", seen)
    # The line is gone at the end.
    assert seen.endswith("\r\x1b[K")
    assert out.startswith("t: 500000000 bytes of rows read in ")


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    sparse_store(tmp_path / "store", 64)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "store", width=WIDTH)
    # To its end it would read for a minute.
    assert interrupted("warm", "t", "--db", tmp_path / "db", "--budget", "64GB") == (130, "")


def test_a_script_takes_a_budget_and_threads(database: Path) -> None:
    sql = "SELECT (SELECT budget FROM engram_cache()) AS budget, current_setting('threads') AS threads"
    # Where the functions come from the extension's file, each of the two engines gets half of it.
    shared = int(__import__("duckdb").__version__.split(".")[0]) >= 2
    done = run(database, "-c", sql, "--ram-budget", "8MiB", "--threads", 3)
    assert (done.stdout, done.stderr) == (f"budget,threads\n{8 * MIB if shared else 4 * MIB},3\n", "")
    done = run("-c", "SELECT budget FROM engram_cache()", "--ram-budget", "0")
    assert done.stdout == "budget\n0\n"


@pytest.mark.parametrize(
    "count, text",
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 KB"),
        (999_960, "1.0 MB"),
        (1_250_000_000, "1.2 GB"),
        (2e18, "2000.0 PB"),
    ],
)
def test_sizes_are_for_people(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    "seconds, text", [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3600, "1 h 0 min"), (7384, "2 h 3 min")]
)
def test_times_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_line_is_written_now_and_then() -> None:
    class Terminal:
        text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None:
            pass

    now = [100.0]
    terminal = Terminal()
    with ProgressLine("t", terminal, clock=lambda: now[0]) as line:  # type: ignore[arg-type]
        for step in range(1, 101):
            now[0] = 100 + step / 50
            line.show(step * 10**7, 10**9)
    shown = terminal.text.split("\r")[1:-1]
    assert 15 <= len(shown) <= 21
    assert shown[-1].startswith("t: ")
    assert "of 1.0 GB, 500.0 MB/s, 0 s left" in shown[-1]
