"""The catalog: what is saved comes back exactly; readers never block; writers exclude each other; names are names."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checkpoints import make_qwen, make_store
from golden_data import GOLDEN, case
from helpers import one, outcome, q, refuses, run_python

import engramsql

NAMES = [
    "plain",
    "My Table",
    "tab-le",
    "select",
    "tëst",
    "表",
    "a.b",
    "x'y",
    'q"q',
    "UPPER",
    "1st",
    "semi;colon",
    "per%cent",
    "a" * 60,
]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that other users may enter, unlike pytest's."""
    path = Path(tempfile.mkdtemp(prefix="engramsql-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


# --- what is saved --------------------------------------------------------------------------------------------------


def test_large_multipliers_survive_reopening(tmp_path: Path) -> None:
    """Multipliers above 2^53, which a float or a 32-bit integer would spoil."""
    c = case("ckpt_deepseek_v41_expected", "main")
    assert max(max(m) for m in c.top["multipliers"]) > 2**53
    with engramsql.connect(tmp_path / "db") as db:
        db.register("v41", GOLDEN / "ckpt_deepseek_v41")
    for _ in range(2):
        with engramsql.connect(tmp_path / "db") as db:
            for k, layer in enumerate((1, 3)):
                ids = db.table(f"v41_l{layer}").rowids(c["tokens"].astype("int64"))
                assert ids.tolist() == c["ids"][:, k].tolist()
                assert list(db.table(f"v41_l{layer}").spec.multipliers) == c.top["multipliers"][k]


def test_tables_and_views_are_there_again(tmp_path: Path) -> None:
    make_store(tmp_path / "s", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "s", format="f32")
        db.create_view("heads", "SELECT rowid, row FROM t WHERE rowid < 3")
    with engramsql.connect(tmp_path / "db") as db:
        assert q(db, "SELECT name, rows FROM engram_tables()") == [("t", 30)]
        assert db.sql("SELECT count(*) FROM heads").fetchall() == [(3,)]
        db.drop_view("heads")
        db.drop("t")
    with engramsql.connect(tmp_path / "db") as db:
        assert q(db, "SELECT name FROM engram_tables()") == []
        assert db.views() == []
        assert (tmp_path / "s" / "shard_000.bin").stat().st_size == 80


def test_a_view_whose_table_is_gone_is_reported_not_fatal(tmp_path: Path) -> None:
    make_store(tmp_path / "s", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "s")
        db.create_view("first", "SELECT rowid, row FROM t WHERE rowid < 3")
        db.drop_view("first")
        db.create_view("first", "SELECT rowid, row FROM t WHERE rowid < 4")
        with warnings.catch_warnings(record=True):
            db.drop("t")
    with pytest.warns(engramsql.errors.EngramWarning, match="first"):
        db = engramsql.connect(tmp_path / "db")
    assert [v.name for v in db.views()] == ["first"]
    assert one(db, "SELECT 42") == 42
    db.register("t", tmp_path / "s")
    assert db.sql("SELECT count(*) FROM first").fetchall() == [(4,)]
    db.close()


def test_the_database_moves_with_its_tables(tmp_path: Path) -> None:
    """Paths inside are relative where they can be: a directory that holds both moves as one."""
    make_store(tmp_path / "a" / "db" / "tables-of-mine", manifest=True)
    with engramsql.connect(tmp_path / "a" / "db2") as db:
        make_store(tmp_path / "a" / "db2" / "tables" / "t", manifest=True)
        db.register("t", tmp_path / "a" / "db2" / "tables" / "t")
    (tmp_path / "a").rename(tmp_path / "b")
    with engramsql.connect(tmp_path / "b" / "db2") as db:
        assert one(db, "SELECT row FROM engram_fetch('t', [15])") == bytes([1] * 8)


def test_failed_registration_changes_nothing(tmp_path: Path) -> None:
    make_store(tmp_path / "s", manifest=True)
    make_store(tmp_path / "bad", manifest={"width": 4})
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "s")
        before = (tmp_path / "db" / "engram.json").read_bytes()
        refuses(lambda: db.register("u", tmp_path / "bad"))
        assert (tmp_path / "db" / "engram.json").read_bytes() == before
    left = {p.name for p in (tmp_path / "db").iterdir()}
    assert not [n for n in left if "tmp" in n.lower()], left


def version_key(catalog: dict[str, Any]) -> str:
    """The key that holds the format version of the catalog."""
    (key,) = [k for k, v in catalog.items() if isinstance(v, int) and ("version" in k or "format" in k)]
    return key


def test_newer_catalog_is_refused_by_version(tmp_path: Path) -> None:
    make_store(tmp_path / "s", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "s")
    path = tmp_path / "db" / "engram.json"
    catalog = json.loads(path.read_text())
    catalog[version_key(catalog)] = 999
    path.write_text(json.dumps(catalog))
    refuses(
        lambda: engramsql.connect(tmp_path / "db").sql("SELECT * FROM engram_tables()"), "999", "version", "engram.json"
    )
    assert json.loads(path.read_text())[version_key(catalog)] == 999


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xff", b'{"tables": 5}', b"{}"])
def test_catalog_that_is_broken(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "engram.json").write_bytes(content)
    refuses(lambda: engramsql.connect(tmp_path / "db").sql("SELECT * FROM engram_tables()"), "engram.json")
    assert (tmp_path / "db" / "engram.json").read_bytes() == content


def test_a_half_written_catalog_is_never_published(tmp_path: Path) -> None:
    """A temporary file that a killed writer left behind does not disturb the next open."""
    make_store(tmp_path / "s", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "s")
    (tmp_path / "db" / ".engram.json.tmp").write_bytes(b'{"format')
    with engramsql.connect(tmp_path / "db") as db:
        assert q(db, "SELECT name FROM engram_tables()") == [("t",)]


def test_name_taken(tmp_path: Path, db: Any) -> None:
    make_store(tmp_path / "a", manifest=True)
    make_store(tmp_path / "b", manifest=True, rows=20)
    db.register("t", tmp_path / "a")
    refuses(lambda: db.register("t", tmp_path / "b"), "'t'", ("already", "exists"))
    refuses(lambda: db.register("T", tmp_path / "b"), ("already", "exists"))
    assert db.table("t").rows == 30


def test_drop_of_an_unknown_table(db: Any, tmp_path: Path) -> None:
    make_store(tmp_path, manifest=True)
    db.register("ple", tmp_path)
    refuses(lambda: db.drop("pel"), "pel", "'ple'")


# --- several processes ----------------------------------------------------------------------------------------------

WRITER = """
import sys, time
import engramsql
base, mine, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
db = engramsql.connect(base + "/db")
for k in range(count):
    for attempt in range(2000):
        try:
            db.register(f"{mine}{k}", base + "/s")
            break
        except Exception as e:
            assert any(w in str(e).lower() for w in ("lock", "another process", "being changed")), e
            time.sleep(0.002)
    else:
        raise SystemExit("never got the lock")
print("done")
"""


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    import subprocess
    import sys

    make_store(tmp_path / "s", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("first", tmp_path / "s")
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), mine, "15"], stdout=subprocess.PIPE, text=True)
        for mine in ("a", "b")
    ]
    for process in running:
        out, _ = process.communicate(timeout=180)
        assert (process.returncode, out) == (0, "done\n")
    with engramsql.connect(tmp_path / "db") as db:
        names = {n for (n,) in q(db, "SELECT name FROM engram_tables()")}
    assert names == {"first", *(f"{m}{k}" for m in "ab" for k in range(15))}


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    make_store(tmp_path / "s", manifest=True)
    run_python(
        """
import os, signal, sys, threading, time
import engramsql
base = sys.argv[1]
db = engramsql.connect(base + "/db")
db.register("t", base + "/s")
threading.Thread(target=lambda: (time.sleep(0.2), os.kill(os.getpid(), signal.SIGKILL))).start()
k = 0
while True:
    db.register(f"x{k}", base + "/s")
    k += 1
""",
        args=[str(tmp_path)],
        expect=-9,
    )
    with engramsql.connect(tmp_path / "db") as db:
        db.register("after", tmp_path / "s")
        names = {n for (n,) in q(db, "SELECT name FROM engram_tables()")}
    assert {"t", "after"} <= names


def test_a_reader_sees_what_another_process_registered(tmp_path: Path) -> None:
    make_store(tmp_path / "s", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "s")
        run_python(
            "import sys, engramsql\n"
            "with engramsql.connect(sys.argv[1] + '/db') as db:\n"
            "    assert db.table('t').rows == 30\n"
            "    db.register('u', sys.argv[1] + '/s')\n",
            args=[str(tmp_path)],
        )
        assert {n for (n,) in q(db, "SELECT name FROM engram_tables()")} == {"t", "u"}
        assert one(db, "SELECT row FROM engram_fetch('u', [29])") == bytes([2] * 8)


# --- read-only ------------------------------------------------------------------------------------------------------


def snapshot(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(p.relative_to(folder)), p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*"))


def test_read_only_directory_of_someone_else(shared: Path) -> None:
    """Opening and querying write nothing, not even a lock; changing it is refused and named."""
    make_store(shared / "s", manifest=True)
    with engramsql.connect(shared / "db") as db:
        db.register("t", shared / "s")
    for path in [shared / "db", *(shared / "db").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = snapshot(shared)
    done = run_python(
        """
import os, sys
import engramsql
from helpers import q, refuses
base = sys.argv[1]
engramsql.connect().sql("SELECT 1").fetchall()  # everything is imported and loaded before the user changes
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with engramsql.connect(base + "/db") as db:
    assert q(db, "SELECT name FROM engram_tables()") == [("t",)]
    assert q(db, "SELECT row FROM engram_fetch('t', [29])") == [(bytes([2] * 8),)]
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(30,)]
    refuses(lambda: db.register("u", base + "/s"), base + "/db", ("read-only", "permission", "cannot write"))
    refuses(lambda: db.drop("t"), ("read-only", "permission", "cannot write"))
    refuses(lambda: db.create_view("v", "SELECT 1"), ("read-only", "permission", "cannot write"))
print("ok")
""",
        args=[str(shared)],
    )
    assert done.stdout == "ok\n"
    assert snapshot(shared) == before


def test_opening_and_querying_write_nothing(tmp_path: Path) -> None:
    make_store(tmp_path / "s", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "s")
    before = snapshot(tmp_path)
    with engramsql.connect(tmp_path / "db") as db:
        assert one(db, "SELECT count(*) FROM engram_fetch('t', range(30))") == 30
    assert snapshot(tmp_path) == before


def test_opening_a_checkpoint_in_place_writes_nothing(tmp_path: Path) -> None:
    made = make_qwen(tmp_path / "q")
    before = snapshot(tmp_path)
    with engramsql.connect(tmp_path / "q") as db:
        (name,) = [n for (n,) in q(db, "SELECT name FROM engram_tables()")]
        assert db.table(name).fetch([7]).tobytes() == made.rows[7].tobytes()
        assert one(db, "SELECT count(*) FROM engram_fetch(?, [1, 2])", name) == 2
    assert snapshot(tmp_path) == before


# --- names and paths ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_any_name_works_everywhere(tmp_path: Path, name: str) -> None:
    make_store(tmp_path / "s", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register(name, tmp_path / "s", format="f32")
    with engramsql.connect(tmp_path / "db") as db:
        assert q(db, "SELECT name FROM engram_tables()") == [(name,)]
        assert one(db, "SELECT row FROM engram_fetch(?, [12])", name) == bytes([1] * 8)
        literal = name.replace("'", "''")
        assert one(db, f"SELECT row FROM engram_fetch('{literal}', [12])") == bytes([1] * 8)
        assert one(db, f"SELECT engram_row('{literal}', 12)") == bytes([1] * 8)
        quoted = '"' + name.replace('"', '""') + '"'
        assert db.sql(f"SELECT count(*) FROM {quoted}").fetchall() == [(30,)]
        assert db.sql(f"SELECT row FROM {quoted} WHERE rowid = 12").fetchall() == [(bytes([1] * 8),)]
        assert db.table(name).rows == 30
        db.drop(name)
        assert q(db, "SELECT name FROM engram_tables()") == []


def test_case_does_not_matter(tmp_path: Path, db: Any) -> None:
    make_store(tmp_path / "s", manifest=True)
    db.register("Ple", tmp_path / "s")
    for name in ("ple", "PLE", "Ple"):
        assert one(db, "SELECT count(*) FROM engram_fetch(?, [1])", name) == 1
        assert db.table(name).rows == 30
        assert db.sql(f"SELECT count(*) FROM {name}").fetchall() == [(30,)]
    assert q(db, "SELECT name FROM engram_tables()") == [("Ple",)]


@pytest.mark.parametrize("name", ["", " ", "a/b", "..", "a\0b"])
def test_names_that_are_refused(tmp_path: Path, db: Any, name: str) -> None:
    """A name with a path separator would be read as a path."""
    make_store(tmp_path / "s", manifest=True)
    refuses(lambda: db.register(name, tmp_path / "s"), "name")


@pytest.mark.parametrize(
    "folder",
    ["with space", "umläut-öß", "表格", "quo'te", 'dou"ble', "per%cent", "semi;colon", "#hash", "new\nline", "x" * 200],
)
def test_paths_as_python_knows_them(tmp_path: Path, folder: str) -> None:
    base = tmp_path / folder
    data = make_store(base / "s", manifest=True)
    made = make_qwen(base / "q", files=2)
    with engramsql.connect(base / "db") as db:
        db.register("s", base / "s")
        db.register("q", base / "q")
    with engramsql.connect(base / "db") as db:
        assert db.table("s").fetch(range(30)).tobytes() == data.tobytes()
        assert db.table("q").fetch(range(256)).tobytes() == made.rows.tobytes()
        assert q(db, "SELECT count(*) FROM engram_fetch('s', range(30))") == [(30,)]
        # A path takes the place of a name.
        assert one(db, "SELECT row FROM engram_fetch(?, [12])", str(base / "s")) == bytes([1] * 8)
        files = {f for (f,) in q(db, "SELECT file FROM engram_shards('s')")}
        assert all(Path(f).name.startswith("shard_00") for f in files)
    before = os.getcwd()
    os.chdir(base)
    try:
        with engramsql.connect("db") as db:
            assert one(db, "SELECT row FROM engram_fetch('./s', [12])") == bytes([1] * 8)
    finally:
        os.chdir(before)


def test_path_that_is_no_utf8(tmp_path: Path) -> None:
    base = Path(os.fsdecode(os.fsencode(str(tmp_path)) + b"/caf\xe9"))
    data = make_store(base, manifest=True)
    with engramsql.connect() as db:
        # A catalog in JSON may not hold such a path, but must say so.
        _, said = outcome(lambda: db.register("t", base))
        if said is not None:
            assert "unicode" in said.lower()
        else:
            assert db.table("t").fetch(range(30)).tobytes() == data.tobytes()
