"""``engramsql export`` as a process: kills, a full disk, Ctrl-C, memory, and what a terminal sees."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from export_readers import arrow_table
from helpers import refuses, run_python
from program import PROGRAM, Killer, in_terminal, moments, run

import engramsql
from engramsql.bench import own_table

SHAPE = own_table.Shape(16, 160, 160, "fp8_e4m3", own_table.PLE.scale, shards=2, shard_rows=60_000)
KILLS = 12
MIB = 1 << 20


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a table ``rows`` of 19 MB with a spec."""
    directory = tmp_path_factory.mktemp("source")
    own_table.own_database(directory, SHAPE)
    store = directory / f"store-{SHAPE.label}"
    path = directory / "db"
    with engramsql.connect(path) as db:
        db.register("rows", store, spec=str(store / "spec.toml"), format=SHAPE.format, scale=SHAPE.scale)
    return path


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "tokens.npy"
    np.save(path, np.random.default_rng(7).integers(0, 100_000, (40, 200)))
    return path


@pytest.mark.parametrize("format", ["arrow", "arrows", "parquet", "npz", "safetensors"])
def test_a_killed_export_leaves_no_file(database: Path, tokens: Path, tmp_path: Path, format: str) -> None:
    out = tmp_path / "out" / f"e.{format}"
    words = ["export", "rows", "--db", database, "--tokens", tokens, "--output", out]
    started = time.perf_counter()
    assert run(*words).returncode == 0
    killer = Killer(words, time.perf_counter() - started)
    expected = out.read_bytes()
    out.unlink()
    for moment in moments(3, 11, start=0.3):
        killer.kill(moment)
        # Whole, or not there; what is left has a name that says so, and the next export removes it.
        names = os.listdir(out.parent)
        assert all(re.fullmatch(rf"\.e\.{format}\.\d+-\d+\.unfinished", name) for name in names if name != out.name), (
            names
        )
        if out.exists():
            assert out.read_bytes() == expected
            out.unlink()
    assert killer.hits
    assert run(*words).returncode == 0
    assert os.listdir(out.parent) == [out.name]
    assert out.read_bytes() == expected


def test_what_a_killed_export_leaves_does_not_open(database: Path, tokens: Path, tmp_path: Path) -> None:
    """Cut anywhere: an IPC file has no footer, a stream no marker, Parquet no footer, arrays no header."""
    code = """
        import os, signal, sys
        import engramsql
        from engramsql.export.files import single
        db = engramsql.connect(sys.argv[1], read_only=True)
        seen = [0]
        def progress(stage, done, total):
            seen[0] += 1
            if seen[0] == 5:
                os.kill(os.getpid(), signal.SIGKILL)
        db.export("rows", sys.argv[2], tokens=sys.argv[3], progress=progress)
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from safetensors import SafetensorError, safe_open

    def stream(path: Path) -> None:
        data = path.read_bytes()
        assert data[-8:] != b"\xff\xff\xff\xff\x00\x00\x00\x00"
        raise ValueError("no marker")

    def tensors(path: Path) -> None:
        with safe_open(path, "np"):
            pass

    readers = {
        "arrow": pa.ipc.open_file,
        "arrows": stream,
        "parquet": pq.ParquetFile,
        "npy": np.load,
        "safetensors": tensors,
    }
    for format, read in readers.items():
        out = tmp_path / f"e.{format}"
        done = run_python(code, expect=None, args=[str(database), str(out), str(tokens)])
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not out.exists()
        (left,) = tmp_path.glob(f".e.{format}.*.unfinished")
        assert left.stat().st_size > MIB
        with pytest.raises((ValueError, OSError, pa.ArrowInvalid, SafetensorError)):
            read(left)
        left.unlink()


def test_kills_and_resume_end_in_the_same_bytes(database: Path, tokens: Path, tmp_path: Path) -> None:
    words: list[Any] = [
        "export",
        "rows",
        "--db",
        database,
        "--tokens",
        tokens,
        "--format",
        "arrow",
        "--rows-per-file",
        700,
    ]
    started = time.perf_counter()
    assert run(*words, "--output", tmp_path / "whole").returncode == 0
    killer = Killer([*words, "--output", tmp_path / "out", "--resume"], time.perf_counter() - started)
    expected = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    out = tmp_path / "out"
    for moment in moments(KILLS, 5, start=0.3):
        # Each goes on where the one before was killed, or begins.
        killer.kill(moment)
        assert not out.exists() or json.loads((out / "manifest.json").read_text())["complete"]
    assert killer.hits
    done = run(*words, "--output", out, "--resume")
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == expected
    assert sorted(os.listdir(tmp_path)) == ["out", "whole"]


@pytest.mark.parametrize("format", ["arrow", "parquet", "npy", "npz", "safetensors", "csv"])
def test_a_full_disk_is_one_error_and_leaves_nothing(
    database: Path, tokens: Path, small_disk: Path, format: str
) -> None:
    done = run("export", "rows", "--db", database, "--tokens", tokens, "--output", small_disk / f"e.{format}")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert str(small_disk / f"e.{format}") in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert os.listdir(small_disk) == []


@pytest.fixture
def failing_disk(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A file system on a disk of 200 MiB, and where that lies: the disk fails as long as there is no room."""
    below, mount = tmp_path / "below", tmp_path / "disk"
    below.mkdir()
    mount.mkdir()
    image = below / "image"
    mounted: list[Path] = []
    steps: list[tuple[list[Any], Path | None]] = [
        (["mount", "-t", "tmpfs", "-o", "size=220m", "engramsql-test", below], below),
        (["truncate", "-s", "200M", image], None),
        (["mkfs.ext2", "-q", "-F", image], None),
        (["mount", "-o", "loop", image, mount], mount),
    ]
    try:
        for words, place in steps:
            try:
                done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
            except FileNotFoundError:
                pytest.skip(f"there is no {words[0]} command")
            if done.returncode != 0:
                pytest.skip(f"a disk cannot be made here: {done.stderr.strip()}")
            if place is not None:
                mounted.append(place)
        yield mount, below
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("several", [False, True])
def test_a_disk_that_fails_for_a_while_is_an_error(
    tmp_path: Path, failing_disk: tuple[Path, Path], several: bool
) -> None:
    """The system tells a failure once: whoever has pages written early and does not listen loses them for good."""
    disk, below = failing_disk
    store = tmp_path / "store"
    store.mkdir()
    np.random.default_rng(0).integers(0, 256, (1_000_000, 160), dtype=np.uint8).tofile(store / "shard_000.bin")
    filled = [0]

    def progress(_: str, done: int, __: int) -> None:
        if filled[0] == 0 and done > 20e6:
            filled[0] = 1
            with open(below / "other", "wb", buffering=0) as other, contextlib.suppress(OSError):
                while True:
                    other.write(bytes(MIB))
        elif filled[0] == 1 and done > 100e6:
            filled[0] = 2
            (below / "other").unlink()

    options: dict[str, Any] = {"format": "npy", "columns": ["row"], "progress": progress}
    if several:
        options["rows_per_file"] = 900_000
    with engramsql.connect() as db:
        db.register("rows", store, width=160)
        refuses(lambda: db.export("rows", disk / "out", **options), "cannot write", str(disk / "out"))
    assert filled[0]
    assert not (disk / "out").exists()


def test_resume_completes_what_a_full_disk_stopped(database: Path, tokens: Path, small_disk: Path) -> None:
    words = ["export", "rows", "--db", database, "--ids", tokens, "--values", "row", "--output", small_disk / "out"]
    words += ["--format", "arrows", "--rows-per-file", 1000]
    (small_disk / "other").write_bytes(bytes(23 * MIB))
    done = run(*words)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert not (small_disk / "out").exists()
    assert (small_disk / ".out.unfinished" / "manifest.json").exists()
    (small_disk / "other").unlink()
    assert "unfinished" in run(*words).stderr
    done = run(*words, "--resume")
    assert done.returncode == 0, done.stderr
    read = [arrow_table(path) for path in sorted((small_disk / "out").glob("*.arrows"))]
    with engramsql.connect(database, read_only=True) as db:
        expected = db.table("rows").fetch(np.load(tokens).reshape(-1))
    assert b"".join(row for table in read for row in table.column("row").to_pylist()) == expected.tobytes()


STOPPED = """
    import os, signal, sys, threading, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from engramsql.cli import main
    from engramsql.progress import ProgressLine
    sent = []
    def interrupt(*_):
        if not sent:
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
    ProgressLine.show_stage = interrupt
    ProgressLine.show_count = interrupt
    code = main(sys.argv[1:])
    assert sent
    print("stopped after", time.perf_counter() - sent[0])
    sys.exit(code)
"""


@pytest.mark.parametrize("what", ["table", "tokens", "parts", "query"])
def test_ctrl_c_ends_it_and_leaves_nothing_that_looks_whole(
    database: Path, tokens: Path, tmp_path: Path, what: str
) -> None:
    out = tmp_path / "out.arrow"
    words: list[Any] = {
        "table": ["rows"],
        "tokens": ["rows", "--tokens", tokens],
        "parts": ["rows", "--rows-per-file", 5000],
        "query": ["--sql", "SELECT range, range * 2 AS twice FROM range(1000000000)"],
    }[what]
    done = run_python(STOPPED, expect=130, args=["export", *map(str, words), "--db", str(database), "-o", str(out)])
    seconds = float(done.stdout.split()[-1])
    assert seconds < 5, "Ctrl-C waited for the export"
    assert not out.exists()
    (line,) = done.stderr.strip().splitlines()
    if what == "parts" and list(tmp_path.iterdir()):
        assert [path.name for path in tmp_path.iterdir()] == [".out.arrow.unfinished"]
        assert "--resume" in line
    else:
        assert list(tmp_path.iterdir()) == []
        assert line == "engramsql: interrupted; nothing was written"


def test_a_query_that_does_not_end_is_interrupted(tmp_path: Path) -> None:
    """Its first row never comes."""
    code = """
        import os, signal, sys, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import engramsql
        from engramsql.export.files import pipeline
        work = pipeline._Line._work
        started = threading.Event()
        def working(self):
            started.set()
            work(self)
        pipeline._Line._work = working
        def interrupt():
            started.wait()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        with engramsql.connect() as db:
            query = "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = -1"
            try:
                db.export(db.sql(query), sys.argv[1])
            except KeyboardInterrupt:
                assert db.sql("SELECT 42").fetchall() == [(42,)]
                print("interrupted")
    """
    done = run_python(code, args=[str(tmp_path / "n.parquet")], timeout=60)
    assert done.stdout == "interrupted\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("what", "format"),
    [
        ("table", "arrow"),
        ("tokens", "arrow"),
        ("tokens", "parquet"),
        ("sequences", "arrow"),
        ("tokens", "npz"),
        # One record that is as large as a format lets it be.
        ("long", "arrow"),
        ("long", "parquet"),
        ("long", "csv"),
        ("long", "jsonl"),
    ],
)
def test_memory_is_bounded(database: Path, tmp_path: Path, what: str, format: str) -> None:
    """Exports larger than the memory that they may take: 300 MB, of the process itself."""
    tokens = tmp_path / "tokens.npy"
    np.save(tokens, np.random.default_rng(7).integers(0, 100_000, (80, 500)))
    code = """
        import sys
        import engramsql
        from engramsql.bench.memory import own_peak
        db = engramsql.connect(sys.argv[1], read_only=True)
        what, out, tokens = sys.argv[2:]
        if what == "long":
            count = (24 << 20) // 10240 if out.endswith("parquet") else 5000
            ids = {"tokens": list(range(count)), "per": "sequence"}
        elif what == "table":
            ids = {"ids": db.sql("SELECT (range * 7919) % 120000 AS id FROM range(700000)").to_arrow_table().column(0)}
        else:
            ids = {"tokens": tokens, "per": "sequence" if what == "sequences" else "token"}
        with own_peak() as peak:
            found = db.export("rows", out, **ids)
        assert found.rows == {"long": 1, "sequences": 80}.get(what) or found.rows >= 40000, found
        print(peak.bytes)
    """
    done = run_python(code, args=[str(database), what, str(tmp_path / f"e.{format}"), str(tokens)])
    assert int(done.stdout) < 300e6, done.stdout


@pytest.mark.parametrize("corpus", ["tiny.jsonl", "tiny.txt", "tiny.parquet", "long.parquet", "line.txt"])
@pytest.mark.parametrize("per", ["token", "sequence"])
def test_memory_is_bounded_whatever_the_sequences(database: Path, tmp_path: Path, corpus: str, per: str) -> None:
    """Many of one token, and few that are long: 5 million tokens, whose ids alone are 40 MB."""
    count = 5_000_000 if corpus.endswith("parquet") else 1_000_000
    ids = np.random.default_rng(7).integers(0, 100_000, count)
    path = tmp_path / corpus
    if corpus.endswith("parquet"):
        ends = np.arange(0, count + 1, 1 if corpus == "tiny.parquet" else 50_000, dtype=np.int32)
        pq.write_table(pa.table({"tokens": pa.ListArray.from_arrays(pa.array(ends), pa.array(ids))}), path)
    else:
        before, after = ("[", "]\n") if corpus.endswith("jsonl") else ("", "\n" if corpus == "tiny.txt" else " ")
        path.write_text("".join(f"{before}{token}{after}" for token in ids.tolist()))
    code = """
        import sys
        import engramsql
        from engramsql.bench.memory import own_peak
        db = engramsql.connect(sys.argv[1], read_only=True)
        tokens, out, per = sys.argv[2:]
        columns = ["token_id"] if per == "token" else ["sequence", "tokens"]
        with own_peak() as peak:
            db.export("rows", out, tokens=tokens, per=per, columns=columns)
        print(peak.bytes)
    """
    done = run_python(code, args=[str(database), str(path), str(tmp_path / "e.arrow"), per])
    assert int(done.stdout) < 300e6, done.stdout
    read = arrow_table(tmp_path / "e.arrow").column("token_id" if per == "token" else "tokens").combine_chunks()
    assert np.array_equal((read if per == "token" else read.flatten()).to_numpy(), ids)


def test_the_command_says_what_it_wrote(database: Path, tokens: Path, tmp_path: Path) -> None:
    done = run("export", "rows", "--db", database, "--tokens", tokens, "--output", tmp_path / "e.npy")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{tmp_path}/e\.npy: 8000 records, 81\.9 MB, npy; .* m?s, .*/s\n", done.stdout), done.stdout
    sql = "SELECT rowid, head FROM rows WHERE rowid < 3"
    done = run("export", "--sql", sql, "--db", database, "-o", tmp_path / "q.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "q.csv").read_text() == "rowid,head\n0,0\n1,0\n2,0\n"


def test_a_terminal_sees_rate_and_time_left(database: Path, tokens: Path, tmp_path: Path) -> None:
    words = ["export", "rows", "--db", database, "--tokens", tokens, "--output", tmp_path / "e.parquet"]
    out, seen = in_terminal(*words)
    assert "8000 records" in out
    assert re.search(r"rows: [\d,]+ of 8,000 tokens, [\d,]+ tokens/s, \d+ s left", seen), seen
    assert seen.endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("words", "code", "fragment"),
    [
        (["rows", "-o", "a.npy"], 2, "give its database with --db DB"),
        (["-o", "a.npy", "--db", "DB"], 1, "name what to export"),
        (["rows", "--sql", "SELECT 1", "-o", "a.npy", "--db", "DB"], 1, "leave 'rows' out"),
        (["rows", "--table", "rows", "-o", "a.npy", "--db", "DB"], 1, "once"),
        (["rows", "--tokens", "a", "--ids", "b", "-o", "a.npy", "--db", "DB"], 2, "not allowed with"),
        (["rows", "--db", "DB"], 2, "no output; write engramsql export TABLE PATH"),
        (["rows", "--tokens", "a", "b.npy", "--db", "DB"], 2, "'b.npy' was taken as a file of --tokens"),
        (["rows", "b.npy", "-o", "a.npy", "--db", "DB"], 2, "give the output once"),
        (["rows", "-o", "a.npy", "--db", "DB", "--replce"], 2, "--replce; did you mean '--replace'?"),
        (["rows", "a.bin", "--db", "DB"], 1, "names no file format"),
        (["rows", "-o", "a.npy", "--db", "DB", "--history", "1,x"], 2, "'x' is no token id"),
        (["rows", "-o", "a.npy", "--db", "DB", "--rows-per-file", "0"], 2, "no number of at least 1"),
        (["nothing", "-o", "a.npy", "--db", "DB"], 1, "nothing"),
        (["rows", "-o", "a.npy", "--db", "/nonexistent"], 1, "does not exist"),
        (["--sql", "CREATE TABLE a (i INT)", "-o", "a.npy", "--db", "DB"], 1, "one SELECT"),
        (["--sql", "SELECT 1; SELECT 2", "-o", "a.npy", "--db", "DB"], 1, "one SELECT"),
        (["--sql", "SELECT nonsense", "-o", "a.npy", "--db", "DB"], 1, "nonsense"),
        (["--sql", "SELECT 'text' AS t", "-o", "a.npy", "--db", "DB"], 1, "column 't' (string)"),
        (["--sql", "SELECT 1", "--values", "row", "-o", "a.npy", "--db", "DB"], 1, "CAST"),
        (["--sql", "SELECT 1", "--rows-per-file", "5", "--resume", "-o", "a.npy", "--db", "DB"], 1, "a query"),
        (["rows", "--ids", "missing.txt", "-o", "a.npy", "--db", "DB"], 1, "missing.txt"),
    ],
)  # fmt: skip
def test_wrong_words_are_one_line(database: Path, tmp_path: Path, words: list[str], code: int, fragment: str) -> None:
    done = subprocess.run(
        [*PROGRAM, "export", *(str(database) if word == "DB" else word for word in words)],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert fragment in done.stderr
    if code == 1:
        assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
