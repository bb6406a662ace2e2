"""Readers as a user meets them: forced by the environment, in forked children, on file systems of several kinds."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from checkpoints import make_store
from helpers import run_python
from readers import READERS, forced


def test_an_unknown_reader_is_refused_by_name(tmp_path: Path) -> None:
    make_store(tmp_path)
    done = run_python(
        """
import sys
import engramsql
from helpers import refuses
db = engramsql.connect()
db.register("t", sys.argv[1], width=8)
refuses(lambda: db.table("t"), "positional", *sys.argv[2:])
print("refused")
""",
        args=[str(tmp_path), *READERS],
        env={"ENGRAMSQL_READER": "positional"},
    )
    assert done.stdout == "refused\n"


@pytest.mark.parametrize("reader", READERS)
def test_a_forked_child_reads_by_itself(tmp_path: Path, reader: str) -> None:
    """Rings and threads belong to the process that made them: a child that used its parent's would wait for ever."""
    make_store(tmp_path, rows=5000)
    done = run_python(
        """
import os, sys, threading, warnings
import numpy as np
import engramsql
warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tested
db = engramsql.connect()
db.register("t", sys.argv[1], width=8)
t = db.table("t")
def right(seed):
    ids = np.random.default_rng(seed).integers(0, 15000, 300)
    return bool((t.fetch(ids) == (ids // 5000).astype(np.uint8)[:, None]).all())
assert right(0)
stop = threading.Event()
wrong = []
def work(seed):
    while not stop.is_set():
        if not right(seed):
            wrong.append(seed)
threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
[thread.start() for thread in threads]
children = []
for k in range(10):
    child = os.fork()
    if child == 0:
        os._exit(0 if all(right(100 * k + i) for i in range(20)) else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
stop.set()
[thread.join() for thread in threads]
print(codes == [0] * 10, wrong, right(1))
""",
        args=[str(tmp_path)],
        env=forced(reader),
        timeout=120,
    )
    assert done.stdout == "True [] True\n"


@pytest.mark.parametrize("reader", READERS)
def test_nothing_stays_open_between_batches(tmp_path: Path, reader: str) -> None:
    make_store(tmp_path, rows=50, shards=40)
    done = run_python(
        """
import os, sys
import numpy as np
import engramsql
db = engramsql.connect()
db.register("t", sys.argv[1], width=8)
t = db.table("t")
for _ in range(5):
    t.fetch(np.arange(2000))
paths = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
links = [os.readlink(path) for path in paths if os.path.lexists(path)]
print([link for link in links if "shard_" in link], sum("io_uring" in link for link in links) <= 2)
""",
        args=[str(tmp_path)],
        env=forced(reader),
    )
    assert done.stdout == "[] True\n"


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader != "io_uring"])
def test_memory_file_systems_are_read_too(reader: str) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm to write to")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        make_store(Path(folder), rows=1000)
        done = run_python(
            """
import sys
import numpy as np
import engramsql
db = engramsql.connect()
db.register("t", sys.argv[1], width=8)
ids = np.random.default_rng(0).integers(0, 3000, 500)
print(bool((db.table("t").fetch(ids) == (ids // 1000).astype(np.uint8)[:, None]).all()))
""",
            args=[folder],
            env=forced(reader),
        )
        assert done.stdout == "True\n"
