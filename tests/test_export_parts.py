"""Exports in several files: manifest, resume, replace, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from export_readers import arrow_table, second_reader, vectors_of
from golden_data import GOLDEN
from helpers import assert_same_bits, f32_bits, refuses, run_python

import engramsql
from engramsql.errors import ArgumentError, StorageError
from engramsql.export.files import pipeline, values
from engramsql.export.files import source as sources

ROWS = 1408
# Whoever looks first: who reads a row, or the export in the end.
MODIFIED = ("modified since the table was opened", "changed while it was exported")
FORMATS = ["arrow", "arrows", "feather", "parquet", "npy", "npz", "safetensors", "csv", "jsonl"]


@pytest.fixture
def database(tmp_path: Path) -> Any:
    """A database with the golden table as ``ple``."""
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
        yield db


def manifest_of(directory: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((directory / "manifest.json").read_text())
    return document


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def stopped(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """From now on the table cannot be read after so many reads, by one thread: two might overtake each other."""
    monkeypatch.setattr(pipeline, "WORKERS", 1)
    left = [calls]
    fill = values.Values.fill

    def failing(self: Any, ids: Any, out: Any, *, scanned: bool = False) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise StorageError("the disk is gone")
        fill(self, ids, out, scanned=scanned)

    monkeypatch.setattr(values.Values, "fill", failing)


@pytest.mark.parametrize("format", FORMATS)
def test_files_and_manifest_are_one_export(database: Any, tmp_path: Path, format: str) -> None:
    out = tmp_path / "out"
    found = database.export("ple", out, format=format, rows_per_file=500)
    document = manifest_of(out)
    assert document["complete"] is True
    assert [record["rows"] for record in document["files"]] == [500, 500, 408]
    assert [record["file"] for record in document["files"]] == [path.name for path in found.files]
    assert found.rows == document["rows"] == ROWS
    assert sorted(os.listdir(out)) == sorted(["manifest.json", *(path.name for path in found.files)])
    for record in document["files"]:
        data = (out / record["file"]).read_bytes()
        assert (record["bytes"], record["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert found.bytes == sum(record["bytes"] for record in document["files"])
    vectors = [vector for path in found.files for vector in second_reader(path)["" if format == "npy" else "embedding"]]
    assert_same_bits(vectors_of(vectors, "float32"), f32_bits(database.table("ple").vectors(np.arange(ROWS))))
    assert document["metadata"]["engramsql.table"] == "ple"
    if format == "arrow":
        schema = arrow_table(found.files[0]).schema
        assert [(column["name"], column["type"]) for column in document["schema"]] == [
            (field.name, str(field.type)) for field in schema
        ]


def test_other_programs_check_the_files(database: Any, tmp_path: Path) -> None:
    database.export("ple", tmp_path / "out", format="parquet", rows_per_file=500)
    lines = "".join(f"{record['sha256']}  {record['file']}\n" for record in manifest_of(tmp_path / "out")["files"])
    check = ["sha256sum", "--check", "--strict"]
    done = subprocess.run(check, cwd=tmp_path / "out", input=lines, capture_output=True, text=True, check=True)
    assert done.stdout.count(": OK\n") == 3


@pytest.mark.parametrize("rows_per_file", [1, 7, 1407, 1408, 1409, 10**12])
def test_files_have_the_rows_asked_for(database: Any, tmp_path: Path, rows_per_file: int) -> None:
    ids = list(range(60)) if rows_per_file < 100 else list(range(ROWS))
    found = database.export("ple", tmp_path / "out", format="npy", ids=ids, rows_per_file=rows_per_file)
    lengths = [len(np.load(path)) for path in found.files]
    assert sum(lengths) == len(ids)
    assert all(length == rows_per_file for length in lengths[:-1])
    assert 0 < lengths[-1] <= rows_per_file


def test_no_records_are_one_file_without_records(database: Any, tmp_path: Path) -> None:
    found = database.export("ple", tmp_path / "out", format="parquet", ids=[], rows_per_file=5)
    assert [arrow_table(path).num_rows for path in found.files] == [0]
    assert manifest_of(tmp_path / "out")["rows"] == 0


def tokens_file(directory: Path, count: int = 40) -> Path:
    rng = np.random.default_rng(4)
    sequences = [rng.integers(0, 512, rng.integers(0, 9)).tolist() for _ in range(count)]
    path = directory / "tokens.parquet"
    pq.write_table(pa.table({"tokens": pa.array(sequences, pa.list_(pa.int64()))}), path, row_group_size=7)
    return path


@pytest.mark.parametrize("kind", ["table", "ids", "tokens", "sequences"])
@pytest.mark.parametrize("calls", [0, 1, 3, 6])
def test_resume_ends_in_the_same_bytes(
    database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, calls: int
) -> None:
    # Small batches: the failure comes in the middle of a file.
    monkeypatch.setattr(
        sources, "MOST_VALUES", 2560 * 4 if kind == "tokens" else 2560 * 8 if kind == "sequences" else 160 * 8
    )
    ids = tmp_path / "ids.npy"
    np.save(ids, np.random.default_rng(1).integers(0, ROWS, 200))
    options: dict[str, Any] = {
        "table": {"rows_per_file": 100},
        "ids": {"ids": ids, "rows_per_file": 30},
        "tokens": {"tokens": tokens_file(tmp_path), "rows_per_file": 5},
        "sequences": {"tokens": tokens_file(tmp_path), "per": "sequence", "rows_per_file": 3},
    }[kind] | {"format": "arrow"}
    database.export("ple", tmp_path / "whole", **options)
    out = tmp_path / "out"
    with pytest.MonkeyPatch.context() as patch:
        stopped(patch, calls)
        refuses(lambda: database.export("ple", out, **options), "the disk is gone")
    assert not out.exists()
    database.export("ple", out, **options, resume=True)
    assert content(out) == content(tmp_path / "whole")
    assert not list(tmp_path.glob(".*"))


def unfinished(database: Any, out: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Path:
    """An export of which some files are complete."""
    monkeypatch.setattr(sources, "MOST_VALUES", 160 * 10)
    with pytest.MonkeyPatch.context() as patch:
        stopped(patch, 40)
        refuses(lambda: database.export("ple", out, **{"format": "arrow", "rows_per_file": 100, **options}), "gone")
    left = out.with_name(f".{out.name}.unfinished")
    document = manifest_of(left)
    assert document["complete"] is False
    assert document["files"]
    assert not out.exists()
    return left


def test_an_unfinished_export_is_neither_gone_nor_overwritten(
    database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    left = unfinished(database, out, monkeypatch)
    before = content(left)
    refuses(
        lambda: database.export("ple", out, format="arrow", rows_per_file=100), "unfinished", "--resume", "--restart"
    )
    assert content(left) == before
    # Another kind of export altogether is no continuation, but may begin anew.
    found = database.export("ple", out, format="npy", rows_per_file=1000, restart=True)
    assert [path.name for path in found.files] == ["part-00000.npy", "part-00001.npy"]
    assert sorted(os.listdir(out)) == ["manifest.json", "part-00000.npy", "part-00001.npy"]
    assert not left.exists()


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ({"rows_per_file": 99}, "--rows-per-file"),
        ({"format": "parquet"}, "format"),
        ({"compression": "lz4"}, "compression"),
        ({"values": "row"}, "columns"),
        ({"columns": ["rowid", "embedding"]}, "--columns"),
        ({"ids": "ids.npy"}, "row ids"),
    ],
)
def test_resume_refuses_another_export(
    database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], fragment: str
) -> None:
    out = tmp_path / "out"
    left = unfinished(database, out, monkeypatch)
    before = content(left)
    np.save(tmp_path / "ids.npy", np.arange(5))
    if "ids" in change:
        change = {"ids": tmp_path / change["ids"]}
    options = {"format": "arrow", "rows_per_file": 100, "resume": True, **change}
    refuses(lambda: database.export("ple", out, **options), fragment, "changed", "--restart")
    assert content(left) == before


def test_resume_refuses_other_tokens(database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    tokens = tokens_file(tmp_path, 400)
    options = {"tokens": tokens, "rows_per_file": 20}
    unfinished(database, out, monkeypatch, **options)
    repeat = lambda **more: database.export("ple", out, format="arrow", **{**options, "resume": True, **more})  # noqa: E731
    refuses(lambda: repeat(history=[1]), "--history", "changed")
    refuses(lambda: repeat(per="sequence"), "changed")
    status = tokens.stat()
    os.utime(tokens, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    refuses(repeat, "the files of tokens changed")
    os.utime(tokens, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert repeat().rows == sum(len(s) for s in pq.read_table(tokens).column("tokens").to_pylist())


def test_resume_refuses_another_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store"
    store.mkdir()
    rows = np.random.default_rng(2).integers(0, 256, (2000, 160), dtype=np.uint8)
    rows.tofile(store / "shard_000.bin")
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", store, width=160, format="fp8_e4m3", scale=1.0)
        unfinished(db, tmp_path / "out", monkeypatch)
    rows[0] ^= 1
    os.utime(store / "shard_000.bin", ns=(1, 1))
    with engramsql.connect(tmp_path / "db") as db:
        options: dict[str, Any] = {"format": "arrow", "rows_per_file": 100, "resume": True}
        refuses(lambda: db.export("ple", tmp_path / "out", **options), "the table changed", "--restart")


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_resume_refuses_a_damaged_file(
    database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    out = tmp_path / "out"
    left = unfinished(database, out, monkeypatch)
    part = left / "part-00000.arrow"
    data = bytearray(part.read_bytes())
    if damage == "gone":
        part.unlink()
    else:
        data[len(data) // 2] ^= 1
        part.write_bytes(data if damage == "changed" else data[:-9])
    options: dict[str, Any] = {"format": "arrow", "rows_per_file": 100}
    refuses(lambda: database.export("ple", out, **options, resume=True), "part-00000.arrow", "--restart")
    database.export("ple", out, **options, restart=True)
    database.export("ple", tmp_path / "whole", **options)
    assert content(out) == content(tmp_path / "whole")


def test_a_kill_behind_the_last_file_is_gone_on_with(database: Any, tmp_path: Path) -> None:
    """The last file, which is shorter, is listed before the manifest says that nothing is missing."""
    code = """
        import os, signal, sys
        import engramsql
        from engramsql.export.files import parts
        parts._Parts.complete = lambda self: os.kill(os.getpid(), signal.SIGKILL)
        db = engramsql.connect(sys.argv[1], read_only=True)
        db.export("ple", sys.argv[2], format="arrow", rows_per_file=500)
    """
    run_python(code, expect=-signal.SIGKILL, args=[str(tmp_path / "db"), str(tmp_path / "out")])
    document = manifest_of(tmp_path / ".out.unfinished")
    assert (document["complete"], document["rows"], len(document["files"])) == (False, ROWS, 3)
    options: dict[str, Any] = {"format": "arrow", "rows_per_file": 500}
    assert database.export("ple", tmp_path / "out", **options, resume=True).rows == ROWS
    database.export("ple", tmp_path / "whole", **options)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_resume_of_what_is_complete_is_that(database: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"format": "arrow", "rows_per_file": 500}
    first = database.export("ple", tmp_path / "out", **options, resume=True)
    times = {path: path.stat().st_mtime_ns for path in first.files}
    assert database.export("ple", tmp_path / "out", **options, resume=True) == first
    assert {path: path.stat().st_mtime_ns for path in first.files} == times
    refuses(lambda: database.export("ple", tmp_path / "out", **options), "exists already", "--replace")


def test_only_an_export_is_replaced(database: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"format": "npy", "rows_per_file": 500}
    out = tmp_path / "out"
    database.export("ple", out, **options)
    (out / "notes.txt").write_text("mine")
    before = content(out)
    refuses(lambda: database.export("ple", out, **options, replace=True), "no directory of an export alone")
    assert content(out) == before
    (out / "notes.txt").unlink()
    database.export("ple", out, format="parquet", rows_per_file=1000, replace=True)
    assert sorted(os.listdir(out)) == ["manifest.json", "part-00000.parquet", "part-00001.parquet"]
    shutil.rmtree(out)
    out.write_text("a file")
    refuses(lambda: database.export("ple", out, **options, replace=True), "no directory of an export")
    assert out.read_text() == "a file"
    assert not list(tmp_path.glob(".*"))


def test_a_failed_replacement_leaves_the_old_export(
    database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {"format": "npy", "rows_per_file": 500}
    database.export("ple", out, **options)
    before = content(out)
    with pytest.MonkeyPatch.context() as patch:
        stopped(patch, 0)
        refuses(lambda: database.export("ple", out, **options, replace=True), "the disk is gone")
    assert content(out) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["db", "out"]


def test_two_processes_do_not_write_one_export(database: Any, tmp_path: Path) -> None:
    import fcntl

    left = tmp_path / ".out.unfinished"
    left.mkdir()
    with open(left / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refuses(lambda: database.export("ple", tmp_path / "out", format="npy", rows_per_file=5), "another process")
    # What was killed before its first manifest is nothing to go on with.
    assert database.export("ple", tmp_path / "out", format="npy", rows_per_file=500).rows == ROWS


@pytest.mark.parametrize(
    "damage",
    [
        lambda document: document.pop("files"),
        lambda document: document["files"].append(5),
        lambda document: document["files"][0].pop("sha256"),
        lambda document: document["files"][0].update(rows="500"),
        lambda document: document["files"][0].update(rows=499),
        lambda document: document["files"][0].update(file="../part-00000.arrow"),
        lambda document: document.update(rows=999),
        lambda document: document["files"].reverse(),
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_a_manifest_that_was_edited_is_refused(database: Any, tmp_path: Path, damage: Any, complete: bool) -> None:
    options: dict[str, Any] = {"format": "arrow", "rows_per_file": 500}
    out = tmp_path / "out"
    database.export("ple", out, **options)
    (tmp_path / "part-00000.arrow").write_text("mine")
    document = manifest_of(out)
    if not complete:
        document["complete"] = False
        document["rows"] -= document["files"].pop()["rows"]
        os.rename(out, tmp_path / ".out.unfinished")
    damage(document)
    manifest = (out if complete else tmp_path / ".out.unfinished") / "manifest.json"
    manifest.write_text(json.dumps(document))
    refuses(lambda: database.export("ple", out, **options, resume=True), str(manifest), "not what an export wrote")
    # Nor is it taken for an export that may be replaced, nor anything removed that it names.
    if complete:
        refuses(lambda: database.export("ple", out, **options, replace=True), "no directory of an export alone")
    assert (tmp_path / "part-00000.arrow").read_text() == "mine"


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_resume_of_what_is_complete_looks_at_it(database: Any, tmp_path: Path, damage: str) -> None:
    options: dict[str, Any] = {"format": "arrow", "rows_per_file": 500}
    part = database.export("ple", tmp_path / "out", **options).files[1]
    if damage == "gone":
        part.unlink()
    else:
        data = bytearray(part.read_bytes())
        data[1000] ^= 1
        part.write_bytes(data)
    refuses(lambda: database.export("ple", tmp_path / "out", **options, resume=True), part.name, "--replace")
    database.export("ple", tmp_path / "out", **options, replace=True)
    assert database.export("ple", tmp_path / "out", **options, resume=True).rows == ROWS


def test_resume_refuses_files_of_another_version(
    database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their metadata have it, so the files would not be those of an export that was never broken."""
    unfinished(database, tmp_path / "out", monkeypatch)
    monkeypatch.setattr(engramsql, "__version__", "999.0")
    refuses(
        lambda: database.export("ple", tmp_path / "out", format="arrow", rows_per_file=100, resume=True),
        "version of the programs changed",
    )


def test_what_came_to_be_there_meanwhile_stays(database: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def theirs(*_: object) -> None:
        out.mkdir(exist_ok=True)
        (out / "notes.txt").write_text("theirs")

    options: dict[str, Any] = {"format": "arrow", "rows_per_file": 500}
    refuses(lambda: database.export("ple", out, **options, progress=theirs), "exists already")
    assert content(out) == {"notes.txt": b"theirs"}
    refuses(lambda: database.export("ple", out, **options, resume=True, replace=True), "no directory of an export")
    shutil.rmtree(out)
    # Nothing is lost: what was exported is there.
    database.export("ple", out, **options, resume=True)
    assert manifest_of(out)["rows"] == ROWS

    def added(*_: object) -> None:
        (out / "notes.txt").write_text("theirs")

    refuses(lambda: database.export("ple", out, **options, replace=True, progress=added), "no directory of an export")
    assert content(out)["notes.txt"] == b"theirs"


def test_an_export_that_was_moved_away_to_be_replaced_is_back(database: Any, tmp_path: Path) -> None:
    """A kill between the two renames."""
    options: dict[str, Any] = {"format": "arrow", "rows_per_file": 500}
    out = tmp_path / "out"
    database.export("ple", out, **options)
    before = content(out)
    os.rename(out, tmp_path / ".out.replaced")
    refuses(lambda: database.export("ple", out, **options), "exists already")
    assert content(out) == before
    assert not list(tmp_path.glob(".*"))


def test_who_waited_for_the_lock_does_not_write_into_what_is_complete(database: Any, tmp_path: Path) -> None:
    """Two at once: one export is there, whole, and the other says why it is none."""
    from concurrent.futures import ThreadPoolExecutor

    options: dict[str, Any] = {"format": "arrow", "rows_per_file": 100}
    database.export("ple", tmp_path / "whole", **options)

    def one(_: int) -> str:
        try:
            database.export("ple", tmp_path / "out", **options)
        except (ArgumentError, StorageError) as error:
            return str(error)
        return "whole"

    for _ in range(5):
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(one, range(4)))
        assert found.count("whole") == 1
        assert all("exists already" in text or "another process" in text for text in found if text != "whole"), found
        assert content(tmp_path / "out") == content(tmp_path / "whole")
        assert not list(tmp_path.glob(".*"))
        shutil.rmtree(tmp_path / "out")


@pytest.mark.parametrize("several", [False, True])
def test_a_source_that_changes_meanwhile_is_no_export(tmp_path: Path, several: bool) -> None:
    store = tmp_path / "store"
    store.mkdir()
    rows = np.random.default_rng(2).integers(0, 256, (2000, 160), dtype=np.uint8)
    rows.tofile(store / "shard_000.bin")
    ids = tmp_path / "ids.txt"
    ids.write_text("1\n2\n3\n")
    out = tmp_path / "out"
    options: dict[str, Any] = {"format": "arrow", **({"rows_per_file": 700} if several else {})}
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", store, width=160, format="fp8_e4m3", scale=1.0)
        grown = lambda *_: ids.write_text("1\n2\n3\n4\n")  # noqa: E731
        refuses(lambda: db.export("ple", out, ids=ids, progress=grown, **options), "the files of row ids changed")
        assert not out.exists()
        touched = lambda *_: os.utime(store / "shard_000.bin", ns=(1, 1))  # noqa: E731
        restart = {"restart": True} if several else {}
        refuses(lambda: db.export("ple", out, progress=touched, **options, **restart), MODIFIED)
        assert not out.exists()


def test_hashing_ends_when_it_is_told_to(tmp_path: Path) -> None:
    """What Ctrl-C waits for is one block."""
    from concurrent.futures import CancelledError

    from engramsql.export.files.manifest import sha256_of

    data = bytes(range(256)) * 50_000
    (tmp_path / "a").write_bytes(data)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(data).hexdigest()
    looked: list[int] = []
    with pytest.raises(CancelledError):
        sha256_of(tmp_path / "a", lambda: looked.append(1) or len(looked) > 1)  # type: ignore[func-returns-value]
    assert len(looked) == 2
