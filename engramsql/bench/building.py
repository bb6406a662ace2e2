"""Builds and verification beside what the disk can do, each in a process of its own so that its memory shows."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engramsql.bench.child import ask
from engramsql.bench.measure import Contender, Result, Section, a_b_b_a, refuse_holes
from engramsql.bench.progress import progress
from engramsql.engine import Probe, Session

if TYPE_CHECKING:
    from engramsql.bench.target import Target

__all__ = ["BUILT", "run"]

BUILT = "built"
"""Name of the table that is built."""
_BLOCK = 512 << 10
_COPY_BLOCK = 2 << 20
_DEPTH = 8


def run(target: Target, repeats: int, directory: Path) -> Section:
    """A build of the whole table beside a plain copy of as many bytes, a full verification beside a plain reading.

    All four go around the page cache, so there is nothing to be hot in. ``directory`` gets two copies of the table for
    as long as this takes.

    Raises:
        Void: If the table is not on the disk.
    """
    refuse_holes(target.parts)
    section = Section(
        "build", "build and full verification beside the disk's own rate (everything around the page cache)"
    )
    size = target.rows * target.row_bytes
    # The disk's rate moves by a fifth from one copy to the next, so one round says little.
    rounds = max(1, repeats // 2)
    # Whole blocks of every extent; the smallest of a real table is larger than both.
    fitting = 1 << (min(part["bytes"] for part in target.parts) // 2).bit_length() - 1
    copied_block, read_block = min(_COPY_BLOCK, fitting), min(_BLOCK, fitting)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=directory) as scratch:
        copy, database = Path(scratch) / "copy", Path(scratch) / "db"
        peaks: dict[str, list[int]] = {"build": [], "verify": []}

        def child(action: str) -> float:
            progress(f"build: {action}")
            question = {"action": action, "database": str(database), "source": target.database, "name": target.name}
            answer = ask("building_child", question, f"the {action}")
            peaks[action].append(answer["peak_bytes"])
            seconds: float = answer["seconds"]
            return seconds

        def build() -> Contender:
            def prepare() -> Any:
                shutil.rmtree(database, ignore_errors=True)
                return lambda: child("build")

            return Contender(
                Result("Database.build", "engramsql", "byte", size), prepare, lambda: "stream, direct writes"
            )

        probe = Probe(target.extents())
        last = ""

        def copied() -> float:
            nonlocal last
            progress("build: plain copy")
            reading = probe.copy(copy, size, block=copied_block)
            last = reading.path
            return reading.seconds

        plain = Contender(Result("limit: plain copy", "limit", "byte", size), lambda: copied, lambda: last)
        ours, limit = a_b_b_a([build(), plain], rounds, first=0)
        _finish(section, ours, limit, peaks["build"])
        copy.unlink()

        built = Probe(Session.open(database, read_only=True).table(BUILT).shards())

        def read() -> float:
            nonlocal last
            progress("build: plain reading")
            reading = built.sequential(0, size, block=read_block, depth=_DEPTH)
            last = reading.path
            return reading.seconds

        verify = Contender(
            Result("Database.verify, full", "engramsql", "byte", size),
            lambda: lambda: child("verify"),
            lambda: "stream",
        )
        plain = Contender(Result("limit: plain reading", "limit", "byte", size), lambda: read, lambda: last)
        ours, limit = a_b_b_a([verify, plain], rounds, first=0)
        _finish(section, ours, limit, peaks["verify"])
    return section


def _finish(section: Section, ours: Result, limit: Result, peaks: list[int]) -> None:
    ours.compare([limit])
    ours.extra["peak_bytes"] = max(peaks)
    section.notes.append(f"{ours.name}: at most {max(peaks) / 1e6:.0f} MB of memory, the whole process")
    section.results += [ours, limit]
