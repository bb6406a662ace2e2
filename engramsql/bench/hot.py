"""Hot: rows that are in memory. Says that the code path is cheap, never what a cold read costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.bench.arrays import aligned
from engramsql.bench.measure import (
    Contender,
    Result,
    Section,
    a_b_b_a,
    drop_pages,
    in_memory,
    mapped_bytes,
    mapped_files,
    plural,
)
from engramsql.bench.peers import fresh_ids, make_peer
from engramsql.bench.progress import progress
from engramsql.bench.target import paths_since_now
from engramsql.engine import Probe, set_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engramsql.bench.target import Target
    from engramsql.engine import Table

__all__ = [
    "BATCHES",
    "bring_in",
    "first_calls",
    "limit_loop",
    "pages_note",
    "rounds",
    "run",
    "thread_counts",
    "warm",
    "window_note",
]

BATCHES = (16, 256, 8192, 65536, 1_000_000)
_WARM_ROWS = 50_000
# Rows of a thread at least; a batch is split if there are two such parts. The engine splits smaller batches where
# calls follow each other; here it is held to one thread then, as the loop beside it is.
_ROWS_PER_THREAD = 32 << 10


def run(target: Target, batches: list[int] | None, peers: list[str], threads: int, repeats: int) -> Section:
    """Rows and vectors into reused arrays beside the limit loop and the peers, A B B A per batch size."""
    section = Section("hot", "hot: rows in memory (no budget for a cold read)")
    if threads > 1:
        section.notes.append(f"batches below {2 * _ROWS_PER_THREAD} rows are read by one thread")
    window_note(section, target)
    bring_in(target)
    table = target.open()
    warm(table, target)
    others = {name: make_peer(name, target) for name in peers}
    for peer in others.values():
        for matrix in getattr(peer, "matrices", []):
            # The first touch of a mapped page is no part of a gather.
            matrix.reshape(-1)[::4096].max()
    for rows in batches or BATCHES:
        progress(f"hot: {rows} rows")
        # Anew for each batch size: what was evicted since is brought back.
        probe = Probe(target.extents(), target.hot_rows)
        out = aligned((rows, target.row_bytes), np.uint8)
        counts = thread_counts(rows, threads)
        contenders = [limit_loop(probe, target, rows, out, count) for count in counts]
        limits = len(contenders)
        floats = aligned((rows, target.dim), np.float32) if target.dim is not None else None
        for count in counts:
            contenders.append(_ours("fetch", target, rows, table, out, count))
            if floats is not None:
                contenders.append(_ours("vectors", target, rows, table, floats, count))
        for name, peer in others.items():
            result = Result(f"{name}, {plural(rows, 'row')}", name, "row", rows, code_path=peer.path)

            def prepare(name: str = name, peer: Any = peer, rows: int = rows, out: Any = out) -> Callable[[], object]:
                call: Callable[[], object] = peer.fetch(fresh_ids(name, target, rows, target.hot_rows), out)
                return call

            contenders.append(Contender(result, prepare))
        with in_memory(section, f"{rows} rows"):
            results = a_b_b_a(contenders, rounds(repeats, rows), first_calls(rows))
        for result in results[limits:]:
            if result.role == "engramsql":
                result.compare(other for other in results[:limits] if other.extra == result.extra)
                result.compare(other for other in results[limits:] if other.role != "engramsql")
        section.results += [result for result in results if _is_split(result)]
    pages_note(section, target)
    return section


def pages_note(section: Section, target: Target) -> None:
    """Says how much of the mapped table lies on huge pages: a gather from them is up to twice as fast."""
    mapped, huge = mapped_bytes(target.files())
    if mapped:
        section.notes.append(f"{huge / mapped:.0%} of the mapped pages of the table are huge (2 MiB)")


def bring_in(target: Target) -> None:
    """Brings the rows into memory, megabytes at a time, and reads one row of each page.

    Populated is not enough: on a virtual machine the first access to a page that the disk has filled goes to the host,
    and a copy loop of 16 rows takes 60 times as long until all pages were read once.

    The own table is dropped first, so that it always lies on huge pages: what was read row by row stays on small ones.
    """
    if target.own and not mapped_files(target.files()):
        drop_pages(target.files())
    probe = Probe(target.extents(), target.hot_rows)
    out = np.zeros((_WARM_ROWS, target.row_bytes), np.uint8)
    for ids in _a_row_of_each_page(target):
        probe.gather(ids, out[: len(ids)])


def warm(table: Any, target: Target) -> None:
    """Reads a row of every page, as a long-lived user has: a map's first touch of a page is no part of a gather."""
    out = np.zeros((_WARM_ROWS, target.row_bytes), np.uint8)
    for ids in _a_row_of_each_page(target):
        table.fetch(ids, out=out[: len(ids)])


def _a_row_of_each_page(target: Target) -> Iterator[NDArray[np.int64]]:
    ids = np.arange(0, target.hot_rows, max(1, 4096 // target.row_bytes))
    for start in range(0, len(ids), _WARM_ROWS):
        yield ids[start : start + _WARM_ROWS]


def window_note(section: Section, target: Target) -> None:
    """Says so if the ids come from a part of the table only."""
    if target.hot_rows < target.rows:
        section.notes.append(f"ids are drawn from the first {target.hot_rows} rows, which fit into memory")


def rounds(repeats: int, rows: int) -> int:
    """Rounds of A B B A: small batches are over in microseconds, so hundreds of calls are needed."""
    if rows < 1000:
        return max(100, repeats * 60)
    return repeats * (10 if rows < 20_000 else 3 if rows < 200_000 else 1)


def first_calls(rows: int) -> int:
    """Calls of each contender before the clock runs; each has code and pages of its own to bring into the caches."""
    return 50 if rows < 1000 else 5 if rows < 200_000 else 2


def thread_counts(rows: int, threads: int) -> list[int]:
    """One thread, and as many as the engine really uses of ``threads`` if it splits such a batch."""
    return sorted({1, max(1, min(threads, rows // _ROWS_PER_THREAD))})


def limit_loop(probe: Probe, target: Target, rows: int, out: Any, threads: int) -> Contender:
    """The native loop that only copies rows; its first call, which a_b_b_a throws away, brings them into memory."""
    name = f"limit: copy loop, {plural(threads, 'thread')}, {plural(rows, 'row')}"
    result = Result(name, "limit", "row", rows)
    result.extra["threads"] = threads
    path = [""]

    def prepare() -> Callable[[], object]:
        ids = np.random.default_rng().integers(0, target.hot_rows, rows)

        def call() -> float:
            reading = probe.gather(ids, out, threads=threads)
            path[0] = reading.path
            return reading.seconds

        return call

    return Contender(result, prepare, lambda: path[0])


def _is_split(result: Result) -> bool:
    """Whether so many threads read: a reader that is forced and reads no mapped memory uses one thread."""
    return result.role != "engramsql" or result.extra["threads"] == 1 or "mapped" in result.code_path


def _ours(name: str, target: Target, rows: int, table: Table, out: Any, threads: int) -> Contender:
    """A method of the table on so many threads, see ``thread_counts``."""
    read: Any = getattr(table, name)

    def prepare() -> Callable[[], object]:
        set_threads(threads)
        ids = np.random.default_rng().integers(0, target.hot_rows, rows)
        return lambda: read(ids, out=out)

    label = f"Table.{name}(ids, out=), {plural(threads, 'thread')}, {plural(rows, 'row')}"
    result = Result(label, "engramsql", "row", rows)
    result.extra["threads"] = threads
    return Contender(result, prepare, paths_since_now(table))
