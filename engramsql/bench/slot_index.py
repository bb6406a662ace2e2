"""The slot index of a view: how long it takes to build, and what a lookup costs while it is in memory."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.bench.measure import Contender, Result, Section, a_b_b_a, plural
from engramsql.bench.progress import progress
from engramsql.engine import Session

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["run"]

SIZES = (1_000_000, 10_000_000)
_LOOKUPS = (1, 16, 256, 65536)
# The peer takes minutes for more.
_PEER_KEYS = 1_000_000
_PEER_LOOKUPS = 20_000
_CHUNK = 100_000
# As the released PLE table.
_ROWS = 320_001_536
_HEADS = 16


def run(peers: list[str], repeats: int, directory: Path) -> Section:
    """Builds and batched lookups for a million and ten million random keys of 16 heads, the peer's disk index beside.

    Rows and records are zeros of one byte: keys and index are what matters.
    """
    section = Section("index", "slot index: build, and lookup while it is in memory")
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="index-", dir=directory) as scratch:
        store = Path(scratch) / "store"
        store.mkdir()
        _zeros(store / "shard_000.bin", _ROWS)
        for size in SIZES:
            progress(f"index: {plural(size, 'key')}")
            home = Path(scratch) / f"db-{size}"
            session = Session.open(home, create=True)
            session.register("zeros", store, width=1)
            keys = np.random.default_rng().integers(0, _ROWS, (size, _HEADS))
            records = home / "records.bin"
            _zeros(records, size * _HEADS)
            builder = session.view_builder("keys", "zeros", heads=_HEADS, records=records, slot_bytes=_HEADS)
            for start in range(0, size, _CHUNK):
                builder.add_keys(keys[start : start + _CHUNK])
            builder.finish()
            ours = _build(session, size, max(1, repeats // 2))
            section.results.append(ours)
            view = session.view("keys")
            # A build writes around the page cache.
            for start in range(0, size, _CHUNK):
                view.lookup(keys[start : start + _CHUNK])
            section.notes.append(f"{plural(size, 'key')}: {_index_bytes(home) / size:.1f} bytes a key")
            theirs = None
            if "engramdb" in peers and size == _PEER_KEYS:
                progress(f"index: {plural(size, 'key')}, engramdb")
                theirs, index = _peer(keys, Path(scratch) / "peer")
                ours.compare([theirs])
                section.results.append(theirs)
            for batch in _LOOKUPS:
                contenders = [_lookup(view, keys, batch)]
                if theirs is not None:
                    contenders.append(_peer_lookup(index, keys, min(batch, _PEER_LOOKUPS)))
                done = a_b_b_a(contenders, repeats * (20 if batch < 1000 else 2), first=3)
                done[0].compare(done[1:])
                section.results += done
            del view, session
            shutil.rmtree(home)
    return section


def _zeros(path: Path, size: int) -> None:
    with open(path, "wb") as file:
        file.truncate(size)


def _build(session: Session, size: int, repeats: int) -> Result:
    result = Result(f"build, {plural(size, 'key')}", "engramsql", "key", size)
    for _ in range(repeats):
        start = time.perf_counter()
        session.build_index("keys")
        result.seconds.append(time.perf_counter() - start)
    return result


def _index_bytes(database: Path) -> int:
    return sum(path.stat().st_size for path in database.glob("views/*/index/*"))


def _lookup(view: Any, keys: NDArray[np.int64], batch: int) -> Contender:
    def prepare() -> Any:
        asked = keys[np.random.default_rng().integers(0, len(keys), batch)]
        return lambda: view.lookup(asked)

    return Contender(Result(f"lookup, {plural(len(keys), 'key')}, batch {batch}", "engramsql", "key", batch), prepare)


def _peer(keys: NDArray[np.int64], directory: Path) -> tuple[Result, Any]:
    from engramdb.disk_slot_index import DiskSlotIndex

    result = Result(f"engramdb, build, {plural(len(keys), 'key')}", "engramdb", "key", len(keys))
    start = time.perf_counter()
    index = DiskSlotIndex.build(keys, directory)
    result.seconds.append(time.perf_counter() - start)
    result.code_path = "engramdb.DiskSlotIndex.build"
    return result, index


def _peer_lookup(index: Any, keys: NDArray[np.int64], batch: int) -> Contender:
    def prepare() -> Any:
        asked = keys[np.random.default_rng().integers(0, len(keys), batch)]
        return lambda: index.to_slots(asked)

    name = f"engramdb, lookup, {plural(len(keys), 'key')}, batch {batch}"
    return Contender(Result(name, "engramdb", "key", batch), prepare, lambda: "engramdb.DiskSlotIndex.to_slots")
