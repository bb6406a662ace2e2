"""Files that change under an open table: an error for that query, never zeros, never other rows, never a crash.

Each case runs in a process of its own, because what must not happen is a bus error.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoints import make_qwen, make_store
from helpers import run_python
from readers import READERS, forced

PRELUDE = """
import os, sys
import numpy as np
import engramsql
from helpers import q, refuses
folder, route = sys.argv[1], sys.argv[2]
db = engramsql.connect()
db.register("t", folder, **({"width": 8} if not os.path.exists(os.path.join(folder, "config.json")) else {}))
rows = db.table("t").rows
before = db.table("t").fetch(np.arange(rows))
def read(ids):
    if route == "python":
        return db.table("t").fetch(ids).tobytes()
    if route == "fetch":
        return b"".join(r for (r,) in q(db, "SELECT row FROM engram_fetch('t', ?::BIGINT[])", list(map(int, ids))))
    if route == "scan":
        found = dict(q(db, "SELECT rowid, row FROM engram_scan('t')"))
        return b"".join(found[int(i)] for i in ids)
    sql = "SELECT engram_row('t', i) FROM (SELECT unnest(?::BIGINT[]) AS i)"
    return b"".join(r for (r,) in q(db, sql, list(map(int, ids))))
assert read(range(rows)) == before.tobytes()
"""

ROUTES = ["python", "fetch", "scalar", "scan"]


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> str:
    """Each code path that a batch can take."""
    name: str = request.param
    forced(name)
    return name


def run(folder: Path, reader: str, route: str, body: str) -> None:
    done = run_python(PRELUDE + body + "\nprint('survived')", args=[str(folder), route], env=forced(reader))
    assert done.stdout.endswith("survived\n")


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("size", [0, 63, 4096])
def test_truncated_while_open(tmp_path: Path, reader: str, route: str, size: int) -> None:
    make_store(tmp_path, rows=5000)
    run(
        tmp_path,
        reader,
        route,
        f"""
os.truncate(os.path.join(folder, "shard_001.bin"), {size})
refuses(lambda: read([9999, 0]), "shard_001.bin")
refuses(lambda: read([9999]), "shard_001.bin")
if route != "scan":
    # A query that stays clear of the damaged file goes on.
    assert read([0, 10000]) == bytes([0] * 8 + [2] * 8)
assert q(db, "SELECT 42") == [(42,)]
""",
    )


@pytest.mark.parametrize("route", ROUTES)
def test_truncated_checkpoint_while_open(tmp_path: Path, reader: str, route: str) -> None:
    make_qwen(tmp_path)
    run(
        tmp_path,
        reader,
        route,
        """
os.truncate(os.path.join(folder, "model.safetensors"), 0)
refuses(lambda: read([255]), "model.safetensors")
""",
    )


@pytest.mark.parametrize("route", ROUTES)
def test_replaced_by_rename(tmp_path: Path, reader: str, route: str) -> None:
    """Another file under the same name is an error: rows of two versions of a table must not mix."""
    make_store(tmp_path)
    run(
        tmp_path,
        reader,
        route,
        """
path = os.path.join(folder, "shard_001.bin")
with open(path + ".new", "wb") as f:
    f.write(bytes([77]) * 80)
os.rename(path + ".new", path)
refuses(lambda: read([10]), "shard_001.bin")
""",
    )


@pytest.mark.parametrize("route", ["python", "fetch"])
def test_replaced_by_a_shorter_file(tmp_path: Path, reader: str, route: str) -> None:
    make_store(tmp_path)
    run(
        tmp_path,
        reader,
        route,
        """
path = os.path.join(folder, "shard_001.bin")
with open(path + ".new", "wb") as f:
    f.write(bytes([77]) * 8)
os.rename(path + ".new", path)
refuses(lambda: read([19]), "shard_001.bin")
""",
    )


@pytest.mark.parametrize("route", ["python", "fetch"])
def test_deleted_while_open(tmp_path: Path, reader: str, route: str) -> None:
    make_store(tmp_path)
    run(
        tmp_path,
        reader,
        route,
        """
os.unlink(os.path.join(folder, "shard_001.bin"))
refuses(lambda: read([10]), "shard_001.bin")
present = dict(q(db, "SELECT shard, present FROM engram_shards('t')"))
assert present == {0: True, 1: False, 2: True}, present
""",
    )


def test_missing_at_the_next_open(tmp_path: Path) -> None:
    """Registered in a catalog, damaged before the next process opens it: the file is named at first use."""
    make_store(tmp_path / "s", manifest=True)
    done = run_python(
        """
import os, sys
import engramsql
from helpers import q, refuses
base = sys.argv[1]
with engramsql.connect(base + "/db") as db:
    db.register("t", base + "/s")
os.unlink(base + "/s/shard_001.bin")
with engramsql.connect(base + "/db") as db:
    refuses(lambda: q(db, "SELECT row FROM engram_fetch('t', [10])"), "shard_001.bin")
    assert q(db, "SELECT name FROM engram_tables()") == [("t",)]
print("ok")
""",
        args=[str(tmp_path)],
    )
    assert done.stdout == "ok\n"


def test_truncated_while_a_batch_is_read(tmp_path: Path, reader: str) -> None:
    """The window between the size check and the read: no moment of truncation is fatal, and no zeros come out."""
    make_store(tmp_path, rows=200_000, shards=2)
    done = run_python(
        """
import os, sys, threading, time
import numpy as np
import engramsql
folder = sys.argv[1]
db = engramsql.connect()
db.register("t", folder, width=8)
t = db.table("t")
ids = np.random.default_rng(0).integers(0, 400_000, 300_000)
want = (ids >= 200_000).astype(np.uint8)
stop = threading.Event()
def cut():
    path = os.path.join(folder, "shard_001.bin")
    while not stop.is_set():
        os.truncate(path, 0)
        time.sleep(0.0005)
        with open(path + ".n", "wb") as f:
            f.write(b"\\1" * 1_600_000)
        with open(path, "r+b") as f, open(path + ".n", "rb") as g:
            f.write(g.read())
        time.sleep(0.002)
thread = threading.Thread(target=cut)
thread.start()
bad = 0
end = time.monotonic() + 4
while time.monotonic() < end:
    try:
        got = t.fetch(ids)
    except Exception as e:
        assert "shard_001.bin" in str(e), e
        bad += 1
    else:
        assert (got == want[:, None]).all(), "zeros were handed out"
stop.set()
thread.join()
print("survived", bad > 0)
""",
        args=[str(tmp_path)],
        env=forced(reader),
    )
    assert done.stdout == "survived True\n"
