"""Timing, spread, A B B A, and the proof that a read was cold; shared by every measurement."""

from __future__ import annotations

import errno
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Contender",
    "Result",
    "Section",
    "Void",
    "a_b_b_a",
    "drop_pages",
    "in_memory",
    "is_cold",
    "mapped_bytes",
    "mapped_files",
    "plural",
    "refuse_holes",
    "timed",
]

Call = Callable[[], object]

# Pages of libraries that a busy machine pages in again, next to thousands of rows per figure.
_STRAY_FAULTS = 16
# Of the bytes of a table in one file: what a file system may leave out at its edges, but no more.
_LEAST_DATA = 0.9


class Void(Exception):  # noqa: N818 - the word of the protocol
    """A measurement that did not prove itself: nothing of the run is published."""


@dataclass
class Result:
    """Samples of one thing: seconds per call of ``units`` units, and how they compare with others of the same run."""

    name: str
    role: str
    """``engramsql``, ``limit`` or the name of a peer."""
    unit: str
    units: int
    code_path: str = ""
    seconds: list[float] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def median_us(self) -> float:
        """Median, microseconds per unit."""
        return statistics.median(self.seconds) / self.units * 1e6

    @property
    def lowest_us(self) -> float:
        """Lowest, microseconds per unit."""
        return min(self.seconds) / self.units * 1e6

    @property
    def highest_us(self) -> float:
        """Highest, microseconds per unit."""
        return max(self.seconds) / self.units * 1e6

    def compare(self, others: Iterable[Result]) -> None:
        """Adds, for each other, how many times faster this is: below 1 it is slower."""
        for other in others:
            self.ratios[other.role if other.role != "limit" else other.name] = other.median_us / self.median_us

    def record(self) -> dict[str, Any]:
        """The result as JSON has it."""
        return {
            "name": self.name,
            "role": self.role,
            "code_path": self.code_path,
            "unit": self.unit,
            "units": self.units,
            "median_us": self.median_us,
            "lowest_us": self.lowest_us,
            "highest_us": self.highest_us,
            "per_second": 1e6 / self.median_us,
            "ratios": self.ratios,
            **self.extra,
            "seconds": self.seconds,
        }


@dataclass
class Section:
    """The results of one measurement, with what a reader must know about them."""

    name: str
    title: str
    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """The section as JSON has it."""
        return {"title": self.title, "notes": self.notes, "results": [result.record() for result in self.results]}


@dataclass
class Contender:
    """Somebody who takes part in A B B A: ``prepare`` makes a call on fresh input, outside the clock.

    A call that returns a float has kept time itself, in seconds.
    """

    result: Result
    prepare: Callable[[], Call]
    path: Callable[[], str] = str
    """The code path really taken, asked after the calls."""


def timed(call: Call) -> float:
    """Seconds of one call; its own clock if it has one."""
    start = time.perf_counter()
    own = call()
    elapsed = time.perf_counter() - start
    return own if isinstance(own, float) else elapsed


def a_b_b_a(contenders: Sequence[Contender], rounds: int, first: int = 1) -> list[Result]:
    """Runs A B ... B A, ``rounds`` times, so that drift of the machine hits all alike.

    The ``first`` calls of each are not kept: they fill caches and make what is made on first use.
    """
    for _ in range(first):
        for contender in contenders:
            contender.prepare()()
    for _ in range(rounds):
        for contender in (*contenders, *reversed(contenders)):
            call = contender.prepare()
            contender.result.seconds.append(timed(call))
    for contender in contenders:
        contender.result.code_path = contender.path() or contender.result.code_path
    return [contender.result for contender in contenders]


def drop_pages(files: Iterable[str]) -> None:
    """Drops the files' pages from the page cache. Dirty pages would stay, hence the sync.

    Raises:
        Void: If this process maps one of them: mapped pages stay too.
    """
    files = list(files)
    if mapped := mapped_files(files):
        raise Void(f"'{mapped[0]}' is mapped by the measuring process, so its pages cannot be dropped")
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def refuse_holes(parts: Iterable[dict[str, Any]]) -> None:
    """Refuses extents that are holes of sparse files: a hole is read without touching the disk.

    Raises:
        Void: If less than 90 % of the extents' bytes in one file are data. Blocks that are only reserved are holes too;
            other tensors of the file do not count.
    """
    by_file: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        by_file.setdefault(part["file"], []).append(part)
    for file, extents in by_file.items():
        size = sum(extent["bytes"] for extent in extents)
        descriptor = os.open(file, os.O_RDONLY)
        try:
            data = sum(_data_bytes(descriptor, e["offset"], e["offset"] + e["bytes"]) for e in extents)
        finally:
            os.close(descriptor)
        if data < _LEAST_DATA * size:
            raise Void(
                f"'{file}' is a sparse file: only {data / size:.1%} of the bytes of its rows are on the disk, and "
                "reading a hole never touches the disk; measure a copy that is written in full"
            )


def _data_bytes(descriptor: int, start: int, end: int) -> int:
    """Bytes between two offsets that are no hole."""
    total = 0
    while start < end:
        try:
            start = os.lseek(descriptor, start, os.SEEK_DATA)
        except OSError as error:
            # No data from here to the end of the file.
            if error.errno == errno.ENXIO:
                break
            raise
        hole = os.lseek(descriptor, start, os.SEEK_HOLE)
        total += max(0, min(hole, end) - start)
        start = hole
    return total


@contextmanager
def in_memory(section: Section, what: str) -> Iterator[None]:
    """Says so in the section if pages had to come from the disk meanwhile: a machine short of memory evicts them."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    yield
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
    if faults > _STRAY_FAULTS:
        section.notes.append(f"{what}: NOT ALL IN MEMORY, {faults} pages came from the disk meanwhile")


def mapped_files(files: Iterable[str]) -> list[str]:
    """Those of the files that this process maps."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        mapped = {line.rstrip("\n").split(maxsplit=5)[-1] for line in maps}
    return [file for file in files if os.path.realpath(file) in mapped]


def mapped_bytes(files: Iterable[str]) -> tuple[int, int]:
    """Bytes of the files that this process maps and has touched, and how many of them lie on huge pages.

    Whether the page cache holds a file in large pieces depends on how it was read or written first.
    """
    wanted = {os.path.realpath(file) for file in files}
    mapped = huge = 0
    inside = False
    with open("/proc/self/smaps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            words = line.rstrip("\n").split(maxsplit=5)
            if not words[0].endswith(":"):
                inside = words[-1] in wanted
            elif inside and words[0] == "Rss:":
                mapped += int(words[1]) * 1024
            elif inside and words[0] == "FilePmdMapped:":
                huge += int(words[1]) * 1024
    return mapped, huge


def plural(count: int, noun: str) -> str:
    """The count with its noun: ``1 shard``, ``2 shards``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def is_cold(first: float, again: float, rows: int) -> bool:
    """The rule: the first read was 5x slower per row, or at least 2 us per row slower, than the same read again."""
    return first >= 5 * again or (first - again) / rows * 1e6 >= 2.0
