"""What this machine can do: the figures that all others are held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.bench.arrays import aligned
from engramsql.bench.hot import bring_in, first_calls, limit_loop, pages_note, rounds, thread_counts, window_note
from engramsql.bench.measure import Contender, Result, Section, a_b_b_a, in_memory, refuse_holes
from engramsql.bench.progress import progress
from engramsql.engine import Probe, ProbeReading, probe_rate

if TYPE_CHECKING:
    from engramsql.bench.target import Target

__all__ = ["run"]

_DEPTHS = (1, 4, 8, 16, 32, 64, 128)
_STEPS = (16, 48)
_MOST_READS = 20_000
_SEQUENTIAL_BYTES = 256 << 20
_GATHERS = (16, 65536, 1_000_000)


def run(target: Target, threads: int, repeats: int) -> Section:
    """Random sectors, sequential blocks, the copy loop, memcpy and widening, with fresh random ids each time.

    Raises:
        Void: If the table is not on the disk.
    """
    section = Section("limits", "limits of this machine for the rows of this table")
    section.notes.append("the disk is read around the page cache (O_DIRECT), one read per row, sorted by offset")
    window_note(section, target)
    refuse_holes(target.parts)
    probe = Probe(target.extents(), target.hot_rows)
    for sector in sorted({probe.sector, 4096}):
        for depth in _DEPTHS:
            rows = min(_MOST_READS, 500 * depth)
            section.results += _random(
                probe, target, f"random {sector} B, {depth} outstanding", rows, depth, sector, repeats
            )
    for rows in _STEPS:
        name = f"one decode step, {rows} reads at once"
        section.results += _random(probe, target, name, rows, rows, probe.sector, repeats * 10)
    smallest = min(part["bytes"] for part in target.parts)
    for block in (512 << 10, 1 << 20):
        for depth in (8, 32):
            if smallest >= 2 * block:
                section.results += _sequential(probe, target, block, depth, repeats)
    bring_in(target)
    for rows in _GATHERS:
        progress(f"limits: copy loop, {rows} rows")
        out = aligned((rows, target.row_bytes), np.uint8)
        hot = Probe(target.extents(), target.hot_rows)
        loops = [limit_loop(hot, target, rows, out, count) for count in thread_counts(rows, threads)]
        with in_memory(section, f"copy loop, {rows} rows"):
            section.results += a_b_b_a(loops, rounds(repeats, rows), first_calls(rows))
    # While the last probe still maps the files.
    pages_note(section, target)
    for kind, unit in (("copy", "byte"), ("widen", "value")):
        for place in ("cache", "memory"):
            progress(f"limits: {kind} in {place}")
            section.results += a_b_b_a([rate(kind, place, unit)], repeats)
    return section


def _random(probe: Probe, target: Target, name: str, rows: int, depth: int, sector: int, times: int) -> list[Result]:
    progress(f"limits: {name}")
    out = aligned((rows, target.row_bytes), np.uint8)

    def measure() -> ProbeReading:
        ids = np.random.default_rng().integers(0, target.rows, rows)
        return probe.random(ids, out, depth=depth, sector=sector)

    return a_b_b_a([_self_timed(Result(name, "limit", "row", rows), measure)], times)


def _sequential(probe: Probe, target: Target, block: int, depth: int, repeats: int) -> list[Result]:
    name = f"sequential {block >> 10} KiB, {depth} outstanding"
    progress(f"limits: {name}")
    total = sum(part["bytes"] for part in target.parts)
    length = min(_SEQUENTIAL_BYTES, total)

    def measure() -> ProbeReading:
        start = int(np.random.default_rng().integers(0, total))
        return probe.sequential(start, length, block=block, depth=depth)

    units = measure().bytes
    return a_b_b_a([_self_timed(Result(name, "limit", "byte", units), measure)], max(1, repeats // 2))


def rate(kind: str, place: Any, unit: str, name: str | None = None, **arguments: Any) -> Contender:
    """A rate of one thread, as a contender; the probe says how many units one call has."""
    units = probe_rate(kind, place, **arguments).bytes
    where = {"cache": "in L2", "memory": "from memory"}[place]
    what = name or {"copy": "memcpy", "widen": "byte to float32 without decoding"}[kind]
    result = Result(f"{what}, {where}", "limit" if name is None else "engramsql", unit, units)
    return _self_timed(result, lambda: probe_rate(kind, place, **arguments))


def _self_timed(result: Result, measure: Callable[[], ProbeReading]) -> Contender:
    path = [""]

    def call() -> float:
        reading = measure()
        path[0] = reading.path
        return reading.seconds

    return Contender(result, lambda: call, lambda: path[0])
