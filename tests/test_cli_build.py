"""``engramsql build``, ``view``, ``index``, ``verify`` and ``check``, as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from checkpoints import make_store
from golden_data import GOLDEN
from program import PROGRAM, in_terminal, on_terminal, run
from reading import random_store, sparse_store

import engramsql

CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"
PEER = GOLDEN / "peer_store"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with the golden checkpoint as ``ple`` and a built table ``t`` of 30 rows in 3 shards."""
    make_store(tmp_path / "s", rows=10, width=8, manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("ple", CHECKPOINT)
        db.build("t", tmp_path / "s", shard_size=80)
    return tmp_path / "db"


def good(*words: object) -> str:
    """stdout of a command that ends well and says nothing else, but for the closing lines of ``verify``."""
    done = run(*words)
    assert done.returncode == 0, done
    closing = r"(\S+: good\b.* in \d+ files?\n)+" if words[0] == "verify" and "--help" not in words else ""
    assert re.fullmatch(closing, done.stderr), done
    return done.stdout


def test_build(tmp_path: Path) -> None:
    said = good("build", "ple", CHECKPOINT, "--db", tmp_path / "db")
    first, last = said.splitlines()
    with engramsql.connect(tmp_path / "db") as db:
        (entry,) = db.tables()
    assert first == f"ple: {entry.rows} rows x {entry.row_bytes} bytes in 1 shard"
    assert re.fullmatch(r"[\d.]+ KB in \d+ m?s, [\d.]+ .B/s", last)
    shown = good(tmp_path / "db", "-c", "SELECT count(*) AS n FROM ple")
    assert shown == f"n\n{entry.rows}\n"
    done = run("build", "ple", CHECKPOINT, "--db", tmp_path / "db")
    assert (done.returncode, done.stdout) == (1, "")
    assert "'ple'" in done.stderr
    assert "--replace" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    good("build", "ple", CHECKPOINT, "--db", tmp_path / "db", "--replace", "--shard-size", "4KB", "--jobs", 2)
    assert "shards" in good("build", "copy", "PLE", "--db", tmp_path / "db", "--shard-size", "4KB", "--sample-rows", 0)


def test_a_relative_directory_of_a_name_that_is_no_table_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_store(tmp_path / "s", rows=10, width=8)
    assert good("build", "t", "s", "--width", 8, "--db", "db").startswith("t: 30 rows x 8 bytes in 1 shard\n")


def test_a_killed_build_is_told_and_resumed(tmp_path: Path) -> None:
    random_store(tmp_path / "s", rows=1000)
    words = ["build", "t", tmp_path / "s", "--width", 160, "--shard-size", "16KB", "--db", tmp_path / "db"]
    assert run(*words, ENGRAMSQL_FAULT="kill@build.shard:3").returncode == -signal.SIGKILL
    done = run(*words)
    assert done.returncode == 1
    assert "resume" in done.stderr
    assert "orphan" not in done.stderr
    # What was there already was not written in the time of this run.
    assert re.search(r"^320\.0 KB; this run took \d+ m?s$", good(*words, "--resume"), re.MULTILINE)
    good("verify", "t", "--db", tmp_path / "db")
    assert run(*words, ENGRAMSQL_FAULT="kill@build.shard:2").returncode in (1, -signal.SIGKILL)
    good(*words, "--restart", "--replace")


def test_a_terminal_sees_how_far_a_build_is(tmp_path: Path) -> None:
    sparse_store(tmp_path / "store", 1)
    out, seen = in_terminal("build", "t", tmp_path / "store", "--width", 160, "--db", tmp_path / "db")
    assert re.search(r"t: [a-z ]+: [\d.]+ .B of [\d.]+ .B, [\d.]+ .B/s, \d+ s left", seen), seen
    assert seen.endswith("\r\x1b[K")
    assert out.startswith("t: 6250000 rows x 160 bytes in 1 shard\n")


def test_ctrl_c_ends_a_build_and_resume_completes_it(tmp_path: Path) -> None:
    import pty

    sparse_store(tmp_path / "store", 2)
    words = [
        "build",
        "t",
        str(tmp_path / "store"),
        "--width",
        "160",
        "--shard-size",
        "64MB",
        "--db",
        str(tmp_path / "db"),
    ]
    parent, child = pty.openpty()
    with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=child, text=True) as process:
        os.close(child)
        try:
            # The first line of progress: it is working.
            seen = os.read(parent, 4096)
            assert seen
            # Before the first bytes there is no rate, and no guess.
            assert b"?" not in seen
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            seen = os.read(parent, 4096)
            assert (
                seen.splitlines()[-1]
                .decode()
                .endswith("engramsql: interrupted; what is complete is kept, go on with --resume")
            )
        finally:
            process.kill()
    os.close(parent)
    assert "resume" in run(*words).stderr
    good(*words, "--resume")


def test_view_build(database: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2 3\n4 5\n")
    (tmp_path / "b.jsonl").write_text("[1, 2, 3, 9]\n")
    said = good(
        "view", "build", "v", "--table", "ple", "--tokens", tmp_path / "a.txt", tmp_path / "b.jsonl", "--db", database
    )
    with engramsql.connect(database) as db:
        (entry,) = db.record_views()
        record = entry.record_bytes
    size = f"{6 * record / 1000:.1f} KB"
    assert said == f"v: 6 records x {record} bytes ({size}); covers 9 of 9 tokens (100.0%)\n"
    said = good(
        "view", "build", "top", "--table", "ple", "--db", database, "--order", "access", "--form", "float32",
        "--top", 1, "--sql", "SELECT [1, 2, 3] AS tokens UNION ALL SELECT [1, 2]",
    )  # fmt: skip
    assert said.startswith("top: 1 records")
    assert "covers 2 of 5 tokens (40.0%)" in said
    keys = tmp_path / "keys.txt"
    keys.write_text("".join(f"{rowid}\n" for rowid in range(32)))
    assert good("view", "build", "k", "--table", "ple", "--keys", keys, "--db", database).startswith("k: 2 records")
    for name in ("v", "top", "k"):
        good("verify", name, "--db", database)
    with engramsql.connect(database) as db:
        assert (db.view("v").lookup(db.table("ple").rowids([1, 2, 3])) >= 0).all()


def test_index_build(database: Path, tmp_path: Path) -> None:
    good(
        "view", "import", "v", PEER / "view.bin", "--table", "peer", "--keys", PEER / "keys.txt", "--db", peer(tmp_path)
    )
    assert good("index", "build", "v", "--db", tmp_path / "peer") == "v: index of 24 keys\n"
    for form in ("v1", "v2", "v3"):
        to = tmp_path / form
        said = good("index", "build", "v", "--format", form, "--to", to, "--db", tmp_path / "peer")
        assert said == f"v: index of 24 keys in '{to}'\n"
        assert json.loads((to / "index.json").read_text())["count"] == 24
    good("index", "build", "v", "--format", "npz", "--to", tmp_path / "slot_index.npz", "--db", tmp_path / "peer")
    assert (tmp_path / "slot_index.npz").read_bytes() == (PEER / "slot_index.npz").read_bytes()
    assert run("index", "build", "v", "--format", "v1", "--db", tmp_path / "peer").returncode == 2
    assert (
        run("index", "build", "v", "--format", "v1", "--to", tmp_path / "v1", "--db", tmp_path / "peer").returncode == 1
    )


def peer(tmp_path: Path) -> Path:
    with engramsql.connect(tmp_path / "peer") as db:
        db.register("peer", PEER / "rows")
    return tmp_path / "peer"


def test_view_import_and_export(tmp_path: Path) -> None:
    db = peer(tmp_path)
    said = good(
        "view", "import", "v", PEER / "view.bin", "--table", "peer", "--index", PEER / "slot_index_v2", "--db", db
    )
    assert said == f"v: 24 records x 2560 bytes in '{PEER / 'view.bin'}'\n"
    said = good("view", "export", "v", tmp_path / "o", "--slot-bytes", 4096, "--index", "v2", "npz", "--db", db)
    assert said == (
        f"v: keys.txt, slot_index.json, slot_index.npz, slot_index_v2, v.bin, v.manifest.json in '{tmp_path / 'o'}'\n"
    )
    assert (tmp_path / "o" / "v.bin").read_bytes()[: 4 * 4096] == (PEER / "view4k.bin").read_bytes()
    done = run("view", "import", "w", PEER / "view.bin", "--table", "peer", "--db", db)
    assert done.returncode == 1
    assert "keys or slot index" in done.stderr
    assert run("view", "export", "v", tmp_path / "o", "--db", db).returncode == 1


def test_verify_tells_what_it_looked_at(database: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(good("verify", "t", "--db", database))))
    assert rows
    assert {row["ok"] for row in rows} == {"true"}
    assert list(rows[0]) == ["ok", "check", "shard", "detail", "expected", "found"]


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "box", "markdown", "arrow"])
def test_verify_tells_a_flipped_bit_and_exits_with_4(database: Path, form: str) -> None:
    shard = database / "tables" / "t" / "shard_001.bin"
    content = bytearray(shard.read_bytes())
    content[3] ^= 1
    shard.write_bytes(content)
    done = subprocess.run(
        [*PROGRAM, "verify", "t", "--db", str(database), "--format", form],
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 4
    assert re.fullmatch(rb"t: BAD, [12] of \d+ findings\n", done.stderr)
    if form == "json":
        findings = json.loads(done.stdout)
        bad = [finding for finding in findings if not finding["ok"]]
        assert {finding["shard"] for finding in bad} == {1}
        assert list(findings[0]) == ["ok", "check", "shard", "detail", "expected", "found"]
    elif form == "arrow":
        table = pa.ipc.open_stream(done.stdout).read_all()
        assert not all(table["ok"].to_pylist())
    else:
        # A box of 80 columns loses columns, but never this one.
        assert b"false" in done.stdout
        assert form == "box" or b"shard_001" in done.stdout


def test_a_terminal_sees_what_is_bad_and_a_closing_line(database: Path) -> None:
    shard = database / "tables" / "t" / "shard_001.bin"
    content = bytearray(shard.read_bytes())
    shard_good = bytes(content)
    assert on_terminal("verify", "t", "--db", database) == (0, "t: good, 240 bytes in 3 files\n")
    content[3] ^= 1
    shard.write_bytes(content)
    code, text = on_terminal("verify", database)
    assert code == 4
    lines = text.splitlines()
    assert re.fullmatch(r"ple: good, 225\.3 KB in \d files?", lines[0])
    assert re.match(r"t: shard 1: block: shard_001.bin, block 0 .*; expected \w+, found \w+$", lines[1])
    assert re.fullmatch(r"t: BAD, \d of \d+ findings", lines[-1])
    # Whoever asks for a format gets every finding; a narrow terminal loses other columns than this one.
    for words in (["t", "--db", database], [database]):
        code, text = on_terminal("verify", *words, "--format", "box")
        assert code == 4
        assert "false" in text
        assert "true" in text
    shard.write_bytes(shard_good)


def test_verify_of_everything(database: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2 3\n")
    good("view", "build", "v", "--table", "ple", "--tokens", tmp_path / "a.txt", "--db", database)
    for words in (["--db", database], [database]):
        rows = list(csv.DictReader(io.StringIO(good("verify", *words, "--level", "headers"))))
        assert list(dict.fromkeys(row["name"] for row in rows)) == ["ple", "t", "v"]
    assert run("verify").returncode == 2
    assert run("verify", database, "--against", "t").returncode == 2
    # One that cannot be opened does not hide the others.
    (database / "tables" / "t" / "manifest.json").unlink()
    done = run("verify", database, "--level", "headers")
    assert done.returncode in (1, 4)
    assert "v: good at level headers" in done.stderr


def test_view_list_and_drop(database: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2 3\n")
    good("view", "build", "v", "--table", "ple", "--tokens", tmp_path / "a.txt", "--db", database)
    for words in (["--db", database], [database]):
        (row,) = csv.DictReader(io.StringIO(good("view", "list", *words)))
        assert (row["name"], row["table_name"], row["slots"]) == ("v", "ple", "3")
        assert good("orphans", *words) == ""
    assert "has no view 'ple'" in run("view", "drop", "ple", "--db", database).stderr
    assert "'v' is a view of table 'ple'" in run("warm", "v", "--db", database).stderr
    assert "'v' is a view of table 'ple'" in run("verify", "v", "--against", "ple", "--db", database).stderr
    assert "'v' is a view of table 'ple'" in run("verify", "ple", "--against", "v", "--db", database).stderr
    good("view", "drop", "V", "--data", "--db", database)
    assert list(csv.DictReader(io.StringIO(good("view", "list", database)))) == []
    assert not (database / "views" / "v").exists()


def test_a_replaced_table_names_the_views_that_it_leaves_behind(database: Path, tmp_path: Path) -> None:
    (tmp_path / "k.txt").write_text("1\n2\n")
    words = ["--table", "t", "--keys", tmp_path / "k.txt", "--heads", 2, "--db", database]
    assert "give heads (--heads N)" in run("view", "build", "v", *words[:4], *words[6:]).stderr
    good("view", "build", "v", *words)
    assert "--replace" in run("view", "build", "v", *words).stderr
    make_store(tmp_path / "other", rows=7, width=8, manifest=True)
    done = run("build", "t", tmp_path / "other", "--db", database, "--replace")
    assert done.returncode == 0
    assert re.fullmatch(r"engramsql: warning: view 'v' of table 't' must be built again, .*--replace.*\n", done.stderr)
    done = run("view", "export", "v", tmp_path / "out", "--db", database)
    assert done.returncode == 1
    assert "was built from another state of table 't'" in done.stderr
    assert not (tmp_path / "out").exists()
    good("view", "build", "v", *words, "--replace")
    good("view", "export", "v", tmp_path / "out", "--db", database, "--index", "v2", "--index", "npz")
    assert {"slot_index_v2", "slot_index.npz"} <= {path.name for path in (tmp_path / "out").iterdir()}


def test_a_store_without_a_width_is_to_be_registered(database: Path, tmp_path: Path) -> None:
    make_store(tmp_path / "bare", rows=10, width=8)
    done = run("verify", "t", "--against", tmp_path / "bare", "--db", database)
    assert done.returncode == 1
    assert "register it first" in done.stderr


def test_verify_against(database: Path, tmp_path: Path) -> None:
    done = run("verify", "t", "--against", tmp_path / "s", "--db", database)
    assert done.returncode == 0
    assert done.stderr == f"t: 0 of 30 rows differ from {tmp_path / 's'}\n"
    assert done.stdout == "name,rowid,byte,a,b\n"
    (tmp_path / "s" / "shard_002.bin").write_bytes(np.full(80, 3, np.uint8).tobytes())
    done = run("verify", "t", "--against", tmp_path / "s", "--db", database, "--format", "json")
    assert done.returncode == 4
    assert done.stderr.startswith("t: 10 of 30 rows differ")
    assert json.loads(done.stdout)[0] == {"name": "t", "rowid": 20, "byte": 0, "a": 2, "b": 3}


def test_verify_of_a_path(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good("verify", database / "tables" / "t")
    monkeypatch.chdir(database / "tables")
    good("verify", "t", "--level", "sample")
    done = run("verify", "nope")
    assert done.returncode == 2
    assert "--db" in done.stderr
    assert run("verify", "nope", "--db", database).returncode == 1
    assert run("verify", "t", "--db", database, "--level", "deep").returncode == 2


def test_check(database: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2 3\n")
    good("view", "build", "v", "--table", "ple", "--tokens", tmp_path / "a.txt", "--db", database)
    lines = good("check", database).splitlines()
    assert [line.split(",")[0] for line in lines] == ["ple: ok", "t: ok", "v: ok"]
    assert good("check", "--db", database, "V").startswith("v: ok, 3 records x ")
    stray = database / "tables" / "stray"
    stray.mkdir()
    lines = good("check", "--db", database).splitlines()
    assert len(lines) == 4
    assert lines[3].startswith(f"'{stray}' belongs to no table or view")
    # A manifest of another table: it opens no more.
    manifest = database / "tables" / "t" / "manifest.json"
    before = manifest.read_bytes()
    manifest.write_bytes(before.replace(b'"total_rows": 30', b'"total_rows": 31'))
    done = run("check", "--db", database)
    assert done.returncode in (1, 4)
    assert "t: " in done.stdout
    assert "manifest.json" in done.stdout
    manifest.write_bytes(before)
    # What verification alone finds.
    shard = database / "tables" / "t" / "shard_001.bin"
    content = bytearray(shard.read_bytes())
    content[0] ^= 1
    shard.write_bytes(content)
    done = run("check", "--db", database, "t")
    assert done.returncode == 4
    assert "shard 1: block: " in done.stdout
    shard.unlink()
    assert run("check", "--db", database).returncode == 1
    assert run("check", "--db", database, "nope").returncode == 1
    assert run("check").returncode == 2


def test_a_bundle_is_registered(tmp_path: Path) -> None:
    shutil.copytree(PEER, tmp_path / "b")
    store = {"path": "rows", "shards": 4, "rows_per_shard": 64, "width": 160}
    memory = {"type": "view", "view": {"path": "view.bin"}, "slot_index": {"path": "slot_index_v1"}, "store": store}
    document = {"schema": "engramdb-bundle-v1", "memory": memory, "ple": {"ple_embed_dim": 2560, "num_heads": 16}}
    (tmp_path / "b" / "bundle.json").write_text(json.dumps(document))
    done = run("register", "x", tmp_path / "b", "--db", tmp_path / "db")
    assert done.returncode == 0
    assert done.stdout.startswith("x: 256 rows x 160 bytes in 4 shards")
    assert re.fullmatch(r"engramsql: warning: '.*bundle.json' hashes as no released model .* no spec.*\n", done.stderr)
    good("verify", "x_view", "--db", tmp_path / "db")


@pytest.mark.parametrize(
    "words, code, parts",
    [
        (["build", "t", "S", "--db", "new", "--width", "7"], 1, ["7"]),
        (["build", "x", "missing", "--db", "DB"], 1, ["missing"]),
        (["build", "x", "S", "--db", "DB", "--resume", "--restart"], 2, ["--restart"]),
        (["build", "x", "S", "--db", "DB", "--jobs", "0"], 2, ["'0'"]),
        (["build", "x", "S", "--db", "DB", "--width", "8", "--shard-size", "8G"], 1, ["'8G' is not a size"]),
        (["build", "x", "S"], 2, ["--db"]),
        (["build", "x", "S", "--db", "S"], 1, ["no database directory"]),
        (["view"], 2, ["build|list|drop|import|export"]),
        (["view", "make"], 2, ["make"]),
        (["view", "build", "v", "--table", "ple", "--db", "DB"], 2, ["--tokens", "--sql", "--keys"]),
        (["view", "build", "v", "--table", "no", "--tokens", "x.txt", "--db", "DB"], 1, ["'no'"]),
        (["view", "build", "v", "--table", "ple", "--tokens", "x.txt", "--db", "DB"], 1, ["'x.txt'"]),
        (["view", "build", "v", "--table", "ple", "--tokens", "x.csv", "--db", "DB"], 1, ["'x.csv': No such file"]),
        (
            ["view", "build", "v", "--table", "ple", "--sql", "SELECT 1", "--db", "DB"],
            1,
            ["no column of integer lists"],
        ),
        (["view", "build", "v", "--table", "ple", "--sql", "SELEC", "--db", "DB"], 1, ["SELEC"]),
        (["view", "export", "v", "o", "--db", "DB"], 1, ["'v'"]),
        (["view", "export", "v", "o", "--index", "v4", "--db", "DB"], 2, ["v4"]),
        (["index", "build", "v", "--db", "DB"], 1, ["'v'"]),
        (["verify", "t", "--db", "missing"], 1, ["'missing' does not exist"]),
        (["verify", "t", "--against", "missing", "--db", "DB"], 1, ["missing"]),
    ],
)
def test_what_cannot_be_is_refused(database: Path, words: list[str], code: int, parts: list[str]) -> None:
    places = {"DB": str(database), "S": str(database.parent / "s"), "new": str(database.parent / "new")}
    done = run(*[places.get(word, word) for word in words])
    assert (done.returncode, done.stdout) == (code, ""), done
    message = done.stderr.splitlines()[-1]
    assert message.startswith("engramsql")
    for part in parts:
        assert part in message
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["build", "view", "index", "verify", "check"])
def test_help(command: str) -> None:
    text = good(command, "--help")
    assert text.startswith(f"usage: engramsql {command}")
    listed = good("--help")
    assert re.search(rf"^  {command} ", listed, re.MULTILINE)
