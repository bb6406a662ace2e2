"""Tables that moved, what is dropped with its data, what nothing names, and what a kill at any step leaves."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkpoints import make_store
from helpers import one, q, refuses, run_python, sql_refuses

import engramsql
from engramsql.errors import UnknownTableError

KILLED = -signal.SIGKILL


def row(shard: int) -> bytes:
    """A row of the small table."""
    return bytes([shard] * 8)


def cli(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engramsql", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def built(database: Path, name: str) -> Path:
    """A store below ``tables/``, as a build leaves it for the catalog to name."""
    store = database / "tables" / name
    make_store(store, manifest=True)
    return store


def leave(database: Path, folder: str, name: str, format: str) -> Path:
    """A finished directory of EngramSQL's own that no entry names."""
    path = database / folder / name
    make_store(path)
    (path / "manifest.json").write_text(json.dumps({"engramsql": {"format": format, "version": 1}}))
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of a table in place, ``far``, and one of its own, ``own``."""
    path = tmp_path / "db"
    make_store(tmp_path / "far", manifest=True)
    with engramsql.connect(path) as db:
        db.register("far", tmp_path / "far")
        db.register("own", built(path, "own"))
    return path


# --- relocate -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["python", "sql", "command"])
def test_relocate(database: Path, tmp_path: Path, way: str) -> None:
    (tmp_path / "far").rename(tmp_path / "farther")
    with engramsql.connect(database) as db:
        refuses(lambda: db.table("far"), "far")
        if way == "python":
            entry = db.relocate("far", tmp_path / "farther")
            assert (entry.name, entry.source, entry.in_place) == ("far", tmp_path / "farther", True)
        elif way == "sql":
            (found,) = q(db, "CALL engram_relocate('far', ?)", str(tmp_path / "farther"))
            assert (found[0], found[3]) == ("far", 30)
        else:
            done = cli("relocate", "FAR", tmp_path / "farther", "--db", database)
            assert (done.returncode, done.stdout) == (0, f"far: {tmp_path / 'farther'}\n"), done.stderr
        assert db.table("far").fetch([29]).tobytes() == row(2)
        assert one(db, "SELECT row FROM far WHERE rowid = 10") == row(1)
        assert one(db, "SELECT source FROM engram_tables() WHERE name = 'far'") == str(tmp_path / "farther")


def test_relocate_to_another_table_is_refused(database: Path, tmp_path: Path) -> None:
    make_store(tmp_path / "fewer", rows=9, manifest=True)
    before = (database / "engram.json").read_bytes()
    with engramsql.connect(database) as db:
        refuses(lambda: db.relocate("far", tmp_path / "fewer"), "rows was 30", "27", "left where it was")
        refuses(lambda: db.relocate("far", tmp_path / "none"), tmp_path / "none")
        refuses(lambda: db.relocate("fra", tmp_path / "far"), "no table named 'fra'", "'far'")
        sql_refuses(db, f"CALL engram_relocate('far', '{tmp_path / 'fewer'}')", "rows was 30")
        assert db.table("far").fetch([0]).tobytes() == row(0)
    done = cli("relocate", "far", tmp_path / "fewer", "--db", database)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert (database / "engram.json").read_bytes() == before


# --- drop -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["python", "sql", "command"])
def test_drop_with_its_data(database: Path, tmp_path: Path, way: str) -> None:
    with engramsql.connect(database) as db:
        db.drop("far")
        db.create_view("few", "SELECT 1 AS x")
        if way == "python":
            db.drop("own", data=True)
            db.drop("few")
        elif way == "sql":
            (dropped,) = q(db, "CALL engram_drop('Own', data := true)")
            assert (dropped[0], dropped[3], dropped[10]) == ("own", 30, str(database / "tables" / "own"))
            ((name, *rest),) = q(db, "CALL engram_drop('few')")
            assert (name, set(rest)) == ("few", {None})
        else:
            for arguments in (["own", "--data"], ["few"]):
                done = cli("drop", *arguments, "--db", database)
                assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert (db.tables(), db.views()) == ([], [])
        sql_refuses(db, "FROM own", "own")
        sql_refuses(db, "FROM few", "few")
        with pytest.raises(UnknownTableError):
            db.drop("own", data=True)
    assert list((database / "tables").iterdir()) == []
    assert (tmp_path / "far" / "shard_002.bin").exists()


def test_data_that_lies_elsewhere_is_never_removed(database: Path, tmp_path: Path) -> None:
    before = (database / "engram.json").read_bytes()
    with engramsql.connect(database) as db:
        refuses(lambda: db.drop("far", data=True), tmp_path / "far", "never removed", "without its data")
        sql_refuses(db, "CALL engram_drop('far', data := true)", "never removed")
        assert db.table("far").fetch([0]).tobytes() == row(0)
    done = cli("drop", "far", "--data", "--db", database)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert (database / "engram.json").read_bytes() == before


def test_a_materialised_view_in_the_catalog(database: Path) -> None:
    """Listed with what it is, kept from being orphaned by its table, dropped by name."""
    records = leave(database, "views", "seen", "engramsql-view")
    catalog = json.loads((database / "engram.json").read_text())
    view = {
        "name": "seen", "directory": "views/seen", "table": "own", "table_identity": "0" * 64, "slots": 30, "heads": 2,
        "record_bytes": 16, "bytes": 480, "form": "rows", "order": "key", "tokens": 99, "covered": None,
        "digest": "1" * 64, "built_at": 5, "verified_at": None,
    }  # fmt: skip
    catalog["views"] = [view]
    (database / "engram.json").write_text(json.dumps(catalog))
    with engramsql.connect(database) as db:
        db.create_view("few", "SELECT 1 AS x")
        rows = db.sql("FROM engram_views()").fetchall()
        assert rows == [
            ("seen", "materialised", "own", 30, 2, 16, 480, "rows", "key", 99, None, str(records), None, None),
            ("few", "sql", *[None] * 10, "SELECT 1 AS x", None),
        ]
        assert [view.name for view in db.views()] == ["few"]
        assert db.orphans() == []
        refuses(lambda: db.create_view("SEEN", "SELECT 1", replace=True), "a view named 'seen'", "drop the view first")
        refuses(lambda: db.register("seen", database / "tables" / "own"), "a view named 'seen'")
        refuses(lambda: db.drop("own"), "has the views 'seen'", "drop those first")
        (dropped,) = q(db, "CALL engram_drop('seen', data := true)")
        assert (dropped[0], dropped[3], dropped[9], dropped[10]) == ("seen", 30, 480, str(records))
        db.drop("own", data=True)
    assert not records.exists()


# --- orphans --------------------------------------------------------------------------------------------------------


def test_orphans(database: Path) -> None:
    leave(database, "tables", "own~2", "engramsql-store")
    (database / "tables" / "notes").mkdir()
    building = database / "tables" / ".next.building"
    make_store(building)
    with engramsql.connect(database, read_only=True) as db, (building / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        expected = [
            (str(building), "unfinished build", 240, True),
            (str(database / "tables" / "notes"), "foreign", 0, False),
            (str(database / "tables" / "own~2"), "store", 300, False),
        ]
        found = db.sql("FROM engram_orphans()").fetchall()
        size = sum(file.stat().st_size for file in (database / "tables" / "own~2").iterdir())
        expected[2] = (*expected[2][:2], size, False)
        assert found == expected
        assert [(str(o.path), o.kind, o.bytes, o.in_use) for o in db.orphans()] == expected
        refuses(db.remove_orphans, "read-only")

        listed = cli("orphans", "--db", database)
        assert (listed.returncode, listed.stderr) == (0, "")
        assert listed.stdout == (
            f"{building}: unfinished build, 240 bytes, in use\n"
            f"{database / 'tables' / 'notes'}: foreign, 0 bytes\n"
            f"{database / 'tables' / 'own~2'}: store, {size} bytes\n"
        )
        removed = cli("orphans", "--remove", "--db", database)
        assert (removed.returncode, removed.stderr) == (0, "")
        assert removed.stdout == (
            f"{database / 'tables' / 'own~2'}: store, {size} bytes, removed\n"
            f"{building}: unfinished build, 240 bytes, in use, kept\n"
            f"{database / 'tables' / 'notes'}: foreign, 0 bytes, kept\n"
        )
    with engramsql.connect(database) as db:
        assert [o.path for o in db.remove_orphans()] == [building]
        assert [o.kind for o in db.orphans()] == ["foreign"]
        assert db.table("own").fetch([29]).tobytes() == row(2)
    assert sorted(p.name for p in (database / "tables").iterdir()) == ["notes", "own"]


def test_a_database_in_memory_has_no_orphans() -> None:
    with engramsql.connect() as db:
        assert db.orphans() == []
        assert db.remove_orphans() == []
    done = cli("orphans", "--db", Path(__file__).parent)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is no database directory" in done.stderr


# --- kills ----------------------------------------------------------------------------------------------------------

# Steps of a change, in their order, and those before which the old catalog stands.
CATALOG_STEPS = ["catalog.write", "publish", "catalog.backup", "catalog.written"]
OLD = {"catalog.write", "publish", "catalog.backup"}
TRASH_STEPS = ["trash.rename", "trash.renamed", "trash.removed"]

CHANGES = {
    "register": "db.register('new', base + '/far')",
    "relocate": "db.relocate('far', base + '/farther')",
    "drop": "db.drop('far')",
    "drop with data": "db.drop('own', data=True)",
    "create view": "db.create_view('few', 'SELECT 1 AS x')",
}


def state(path: Path) -> tuple[list[tuple[Any, ...]], list[str]]:
    """What a database says that it holds; every table is read."""
    with engramsql.connect(path) as db:
        for entry in db.tables():
            assert db.table(entry.name).fetch([0, 29]).tobytes() == row(0) + row(2)
        tables = [(entry.name, entry.source) for entry in db.tables()]
        return tables, [view.name for view in db.views()]


def killed_during(change: str, point: str, base: Path) -> None:
    code = f"import sys, engramsql\nbase = sys.argv[1]\ndb = engramsql.connect(base + '/db')\n{change}\n"
    run_python(code, args=[str(base)], env={"ENGRAMSQL_FAULT": f"kill@{point}"}, expect=KILLED)


@pytest.mark.parametrize(
    "change, point",
    [(change, point) for change in CHANGES for point in CATALOG_STEPS]
    + [("drop with data", point) for point in TRASH_STEPS],
)
def test_a_kill_leaves_the_old_state_or_the_new(database: Path, tmp_path: Path, change: str, point: str) -> None:
    make_store(tmp_path / "farther", manifest=True)
    before, text = state(database), (database / "engram.json").read_bytes()
    killed_during(CHANGES[change], point, tmp_path)
    if point in OLD:
        assert (database / "engram.json").read_bytes() == text
        assert state(database) == before
    else:
        assert state(database) != before
        assert (database / "engram.json.bak").read_bytes() == text
    # Nothing is in the way of the same change, done to the end: with the old state it is made now, with the new it was.
    done = run_python(
        f"import sys, engramsql\nbase = sys.argv[1]\ndb = engramsql.connect(base + '/db')\n{CHANGES[change]}\n",
        args=[str(tmp_path)],
        expect=None,
    )
    if point in OLD or change == "relocate":
        assert done.returncode == 0, done.stderr
    else:
        assert "CatalogError" in done.stderr or "UnknownTableError" in done.stderr, done.stderr
    after = state(database)
    assert after != before
    with engramsql.connect(database) as db:
        db.remove_orphans()
        assert [orphan.kind for orphan in db.orphans()] in ([], ["foreign"])
    assert state(database) == after
    assert not [name for name in os.listdir(database) if name.startswith(".")]


@pytest.mark.parametrize(
    "point, left",
    [("trash.rename", ["store", "unfinished build"]), ("trash.renamed", ["trash", "unfinished build"]),
     ("trash.renamed:2", ["trash", "trash"]), ("trash.removed", ["trash"])],
)  # fmt: skip
def test_a_removal_of_orphans_that_was_killed_is_finished_by_the_next(
    database: Path, tmp_path: Path, point: str, left: list[str]
) -> None:
    leave(database, "tables", "own~2", "engramsql-store")
    make_store(database / "views" / ".v.building")
    text = (database / "engram.json").read_bytes()
    killed_during("db.remove_orphans()", point, tmp_path)
    with engramsql.connect(database) as db:
        assert sorted(orphan.kind for orphan in db.orphans()) == left
        assert sorted(orphan.kind for orphan in db.remove_orphans()) == left
        assert db.orphans() == []
    assert (database / "engram.json").read_bytes() == text
    assert state(database)[0]


@pytest.mark.parametrize("point", ["publish", "catalog.backup"])
def test_a_full_disk_changes_nothing(database: Path, tmp_path: Path, point: str) -> None:
    text, backup = (database / "engram.json").read_bytes(), (database / "engram.json.bak").read_bytes()
    before = state(database)
    run_python(
        """
import sys
import engramsql
from helpers import refuses
base = sys.argv[1]
with engramsql.connect(base + "/db") as db:
    refuses(lambda: db.register("new", base + "/far"), base + "/db/engram.json", "No space left")
    refuses(lambda: db.drop("own", data=True), base + "/db/engram.json", "No space left")
    assert [entry.name for entry in db.tables()] == ["far", "own"]
    db.table("own").fetch([29])
""",
        args=[str(tmp_path)],
        env={"ENGRAMSQL_FAULT": f"enospc@{point}"},
    )
    if point == "publish":
        assert (database / "engram.json.bak").read_bytes() == backup
    assert (database / "engram.json").read_bytes() == text
    assert state(database) == before
    assert not [name for name in os.listdir(database) if name.startswith(".")]


# --- damage ---------------------------------------------------------------------------------------------------------


def test_a_damaged_catalog_names_its_backup(database: Path) -> None:
    catalog, backup = database / "engram.json", database / "engram.json.bak"
    catalog.write_bytes(catalog.read_bytes()[:100])
    message = refuses(lambda: engramsql.connect(database), catalog, "is damaged", backup, "copy it over")
    assert "\n" not in message.strip().partition("\n\n")[0]
    catalog.unlink()
    refuses(lambda: engramsql.connect(database), "engram.json is missing", "copy it to engram.json")
    assert not catalog.exists()
    backup.rename(catalog)
    assert [name for name, _ in state(database)[0]] == ["far"]


# --- many processes -------------------------------------------------------------------------------------------------


def test_a_writer_waits_for_the_other(database: Path, tmp_path: Path) -> None:
    text = (database / "engram.json").read_bytes()
    with (database / "engram.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code = (
            "import sys, engramsql\n"
            "db = engramsql.connect(sys.argv[1] + '/db')\n"
            "print('ready', flush=True)\n"
            "db.drop('own', data=True)\n"
            "print('done', flush=True)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            # It has the lock file open, so it is at the lock.
            while str(database / "engram.lock") not in open_files(writer.pid):
                assert writer.poll() is None
            assert (database / "engram.json").read_bytes() == text
            assert (database / "tables" / "own").exists()
            fcntl.flock(lock, fcntl.LOCK_UN)
            out, err = writer.communicate(timeout=60)
            assert (writer.returncode, out, err) == (0, "done\n", "")
    assert [name for name, _ in state(database)[0]] == ["far"]
    assert not (database / "tables" / "own").exists()


def open_files(pid: int) -> set[str]:
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.add(os.readlink(link))
        except FileNotFoundError:
            continue
    return found


WRITER = """
import sys
from pathlib import Path
import engramsql
from checkpoints import make_store
base, mine, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with engramsql.connect(base / "db") as db:
    for number in range(rounds):
        store = base / "db" / "tables" / f"{mine}{number}"
        make_store(store, manifest=True)
        db.register(f"{mine}{number}", store)
        db.create_view(f"v{mine}", f"SELECT count(*) AS n FROM {mine}{number}", replace=True)
        db.remove_orphans()
        assert db.sql(f"FROM v{mine}").fetchall() == [(30,)]
        db.drop(f"{mine}{number}", data=True)
print("done")
"""

READER = """
import sys, threading
import engramsql
from engramsql.errors import EngramError
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
rounds = seen = 0
with engramsql.connect(sys.argv[1] + "/db", read_only=True) as db:
    print("ready", flush=True)
    while not stop.is_set() or rounds == 0:
        names = [entry.name for entry in db.tables()]
        assert names[:2] == ["far", "own"], names
        assert db.table("own").fetch([29]).tobytes() == bytes([2] * 8)
        for orphan in db.orphans():
            assert orphan.path.name not in ("own", "far"), orphan
        for name in names[2:]:
            try:
                found = db.table(name).fetch([29]).tobytes()
            except EngramError as error:
                # It went meanwhile, and the message says so: no row is made up.
                assert name in str(error), error
            else:
                assert found == bytes([2] * 8)
                seen += 1
        rounds += 1
print(rounds > 0)
"""


@pytest.mark.filterwarnings("ignore")
def test_readers_see_whole_states_while_two_writers_work(database: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}

    def start(code: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code, str(tmp_path), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    reader = start(READER)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"
    for writer in [start(WRITER, mine, "12") for mine in ("a", "b")]:
        out, err = writer.communicate(timeout=180)
        assert (writer.returncode, out) == (0, "done\n"), err
    out, err = reader.communicate(timeout=60)
    assert (reader.returncode, out) == (0, "True\n"), err
    assert [name for name, _ in state(database)[0]] == ["far", "own"]
    assert [path.name for path in (database / "tables").iterdir()] == ["own"]
