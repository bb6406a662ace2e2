"""Cold: rows that are not in memory. Every figure proves itself or is VOID.

Each read runs in a fresh process: the parent drops the file's pages while nothing maps them, the child opens the table,
reads fresh random ids, and reads the same ids again at once. Only the ratio of the two says that the first was cold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.data import ROW_BYTES, rows_of, shard_files
from benchmarks.measure import Sample, drop_pages, is_cold, timed, void

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCHES = (16, 256, 8192, 65536)
PROBE_WINDOW = 192
"""Reads outstanding at once."""


def run(store: Path, repeats: int) -> dict[str, Any]:
    """engramsql, engramdb-python and a read-ahead probe, A B B A per batch size, each read in a process of its own.

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
        # A small batch takes well under a millisecond, so one read says little.
        for _ in range(repeats * 3 if rows < 1000 else repeats):
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
    """The limit beside it: pages announced to the kernel a window ahead, then positional reads in file order."""

    def __init__(self, store: Path) -> None:
        files = shard_files(store)
        self._fds = [os.open(p, os.O_RDONLY) for p in files]
        for fd in self._fds:
            # Without it the kernel reads ahead far more than the row.
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        self._shard_rows = files[0].stat().st_size // ROW_BYTES

    def read(self, ids: NDArray[np.int64]) -> None:
        """Reads each row once, in file order, with up to PROBE_WINDOW reads outstanding."""
        at = [divmod(i, self._shard_rows) for i in np.sort(ids).tolist()]
        for shard, local in at[:PROBE_WINDOW]:
            self._announce(shard, local)
        for k, (shard, local) in enumerate(at):
            if k + PROBE_WINDOW < len(at):
                self._announce(*at[k + PROBE_WINDOW])
            if len(os.pread(self._fds[shard], ROW_BYTES, local * ROW_BYTES)) != ROW_BYTES:
                raise OSError(f"short read of row {local} of shard {shard}")

    def _announce(self, shard: int, local: int) -> None:
        os.posix_fadvise(self._fds[shard], local * ROW_BYTES, ROW_BYTES, os.POSIX_FADV_WILLNEED)


if __name__ == "__main__":
    print(json.dumps(_read_once(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
