"""Cold: rows that are not in memory. Every figure proves itself or is VOID.

Each read runs in a fresh process: the parent drops the file's pages while nothing maps them, the child opens the table,
reads fresh random ids, and reads the same ids again at once. Only the ratio of the two says that the first was cold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import ROW_BYTES, rows_of, shard_files
from benchmarks.measure import Sample, drop_pages, is_cold, timed, void

BATCHES = (16, 256, 8192, 65536)
PROBE_THREADS = 64


def run(store: Path, repeats: int) -> dict[str, Any]:
    """engramsql, engramdb-python and a pread probe, A B B A per batch size, each read in a process of its own.

    Raises:
        SystemExit: 3, if a read did not prove itself cold.
    """
    readers = ["engramsql", "probe"]
    try:
        import engramdb  # noqa: F401

        readers.insert(1, "engramdb")
    except ImportError:
        pass
    samples: list[Sample] = []
    again_us: dict[str, list[float]] = {}
    paths: set[str] = set()
    for rows in BATCHES:
        batch = {r: Sample(f"{r}, cold, {rows} rows", "row", rows) for r in readers}
        for _ in range(repeats):
            for reader in readers + readers[::-1]:
                drop_pages(shard_files(store))
                first, again, path = _child(store, reader, rows)
                if not is_cold(first, again, rows):
                    void(
                        f"{reader}, {rows} rows: first read {first / rows * 1e6:.2f} us/row, the same again "
                        f"{again / rows * 1e6:.2f} us/row; the first was not cold"
                    )
                batch[reader].seconds.append(first)
                again_us.setdefault(batch[reader].name, []).append(again / rows * 1e6)
                if reader == "engramsql":
                    paths.add(path)
        samples += batch.values()
    print(f"cold, first read after dropping pages, a process each; code path: {', '.join(sorted(paths))}")
    for s in samples:
        print("  " + s.line())
    records = [s.record() | {"again_us": again_us[s.name]} for s in samples]
    return {"cold": {"code_path": sorted(paths), "rows_in_table": rows_of(store), "samples": records}}


def _child(store: Path, reader: str, rows: int) -> tuple[float, float, str]:
    """(seconds of the first read, seconds of the same again, code path) from a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.cold", str(store), reader, str(rows)],
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    return answer["first"], answer["again"], answer["path"]


def _read_once(store: Path, reader: str, rows: int) -> dict[str, Any]:
    """In the child: opens, reads fresh random ids, reads them again."""
    ids = np.random.default_rng().integers(0, rows_of(store), rows)
    path = reader
    if reader == "engramsql":
        import engramsql
        from benchmarks.hot import _code_path

        db = engramsql.connect()
        db.register("t", store, width=ROW_BYTES)
        table, out = db.table("t"), np.zeros((rows, ROW_BYTES), np.uint8)
        first = timed(lambda: table.fetch(ids, out=out))
        path = _code_path(db)
        again = timed(lambda: table.fetch(ids, out=out))
    elif reader == "engramdb":
        import engramdb

        files, wanted = shard_files(store), ids.tolist()
        peer = engramdb.Store(
            str(store), shards=len(files), rows_per_shard=rows_of(store) // len(files), width=ROW_BYTES
        )
        first = timed(lambda: peer.fetch(wanted))
        again = timed(lambda: peer.fetch(wanted))
    else:
        probe = _Probe(store)
        first = timed(lambda: probe.read(ids))
        again = timed(lambda: probe.read(ids))
    return {"first": first, "again": again, "path": path}


class _Probe:
    """The limit beside it: sorted positional reads from many threads, nothing else."""

    def __init__(self, store: Path) -> None:
        files = shard_files(store)
        self._fds = [os.open(p, os.O_RDONLY) for p in files]
        for fd in self._fds:
            # Without it the kernel reads ahead far more than the row.
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        self._shard_rows = files[0].stat().st_size // ROW_BYTES
        self._pool = ThreadPoolExecutor(PROBE_THREADS)
        list(self._pool.map(lambda _: None, range(PROBE_THREADS)))

    def read(self, ids: Any) -> None:
        """Reads each row once, in file order, split over the threads."""
        parts = np.array_split(np.sort(ids), min(PROBE_THREADS, len(ids)))
        list(self._pool.map(self._read_part, [p.tolist() for p in parts]))

    def _read_part(self, ids: list[int]) -> None:
        for i in ids:
            shard, local = divmod(i, self._shard_rows)
            if len(os.pread(self._fds[shard], ROW_BYTES, local * ROW_BYTES)) != ROW_BYTES:
                raise OSError(f"short read of row {i}")


if __name__ == "__main__":
    print(json.dumps(_read_once(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
