"""Timing, spread, A B B A, and dropping a file's pages; shared by every measurement."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VOID_EXIT = 3
"""Exit code of a measurement that did not prove itself."""


@dataclass
class Sample:
    """Times of one thing: the median and the spread, in microseconds per unit."""

    name: str
    unit: str
    units: int
    seconds: list[float] = field(default_factory=list)

    @property
    def median_us(self) -> float:
        """Median, microseconds per unit."""
        return statistics.median(self.seconds) / self.units * 1e6

    def line(self) -> str:
        """One line: median, lowest and highest, and the rate."""
        low, high = min(self.seconds) / self.units * 1e6, max(self.seconds) / self.units * 1e6
        rate = self.units / statistics.median(self.seconds)
        spread = f"{self.median_us:9.4f} us/{self.unit} ({low:.4f} to {high:.4f})"
        return f"{self.name:44s} {spread}, {rate / 1e6:9.3f} M {self.unit}s/s"

    def record(self) -> dict[str, Any]:
        """The sample with its median, for JSON."""
        return asdict(self) | {"median_us": self.median_us}


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def repeat(sample: Sample, prepare: Callable[[], Callable[[], object]], times: int) -> Sample:
    """Runs a freshly prepared call ``times`` times after one that is thrown away."""
    prepare()()
    for _ in range(times):
        call = prepare()
        sample.seconds.append(timed(call))
    return sample


def a_b_b_a(
    a: tuple[Sample, Callable[[], Callable[[], object]]],
    b: tuple[Sample, Callable[[], Callable[[], object]]],
    rounds: int,
) -> None:
    """Runs A B B A, ``rounds`` times, so that drift of the machine hits both alike."""
    a[1]()()
    b[1]()()
    for _ in range(rounds):
        for sample, prepare in (a, b, b, a):
            call = prepare()
            sample.seconds.append(timed(call))


def drop_pages(paths: list[Path]) -> None:
    """Drops the files' pages from the page cache; dirty pages would stay, hence the sync, and so would mapped ones."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def is_cold(first: float, again: float, rows: int) -> bool:
    """The rule: the first read was 5x slower per row, or at least 2 us per row slower, than the same read again."""
    return first >= 5 * again or (first - again) / rows * 1e6 >= 2.0


def void(reason: str) -> None:
    """Prints VOID and ends with exit code 3: nothing is published."""
    print(f"VOID: {reason}", file=sys.stderr)
    raise SystemExit(VOID_EXIT)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cpu = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        pass
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}


def save(path: Path, results: dict[str, Any]) -> None:
    """Adds results to a JSON file under their measurement's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    known |= results | {"machine": machine()}
    path.write_text(json.dumps(known, indent=1))
