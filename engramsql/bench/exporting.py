"""Exports beside what they are made of: e_t of a corpus beside computing it, a whole table beside the disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.bench.arrays import aligned
from engramsql.bench.child import ask
from engramsql.bench.hot import bring_in, warm
from engramsql.bench.machine import available_memory
from engramsql.bench.measure import Contender, Result, Section, a_b_b_a, in_memory, plural, refuse_holes
from engramsql.bench.memory import own_peak
from engramsql.bench.progress import progress
from engramsql.bench.target import paths_since_now
from engramsql.engine import Probe

if TYPE_CHECKING:
    from engramsql.bench.target import Target

__all__ = ["run"]

TOKENS = 1_000_000
_BATCH = 8192
"""Tokens of a call that computes e_t alone: enough rows for two threads."""
_VALUES = {"float32": 4, "bfloat16": 2}
_IN_MEMORY = Path("/dev/shm")
_SHARE = 2
"""The file of a corpus may take this part of the free memory, if it goes into memory, or an array instead of it."""
_WRITE_BLOCK = 8 << 20
_COPY_BLOCK = 2 << 20


def run(target: Target, repeats: int, directory: Path) -> Section:
    """e_t of a corpus to an Arrow file, hot, and the whole table to one, cold.

    The file of the corpus goes into memory where there is room, so that the disk is no part of that figure.
    ``directory`` gets a file of the whole table as float32 for as long as its export takes.

    Raises:
        Void: If the table is not on the disk.
    """
    section = Section(
        "export", "export: e_t of a corpus beside computing it (hot), a whole table beside the disk (cold)"
    )
    refuse_holes(target.parts)
    directory.mkdir(parents=True, exist_ok=True)
    rounds = max(1, repeats // 3)
    _whole_table(section, target, max(1, rounds // 2), directory)
    spec = target.open().spec
    if target.dim is None or spec is None or not spec.can_hash:
        section.notes.append("no e_t: the table has no value format or no hash spec that can hash")
    elif target.hot_rows < target.rows:
        section.notes.append("no e_t: tokens reach any row, and memory does not hold them all")
    else:
        bring_in(target)
        for values in _VALUES:
            _corpus(section, target, values, rounds, directory)
    return section


def _corpus(section: Section, target: Target, values: str, rounds: int, directory: Path) -> None:
    from engramsql.database import connect

    bytes_per_token = target.heads * (target.dim or 0) * _VALUES[values]
    place = _IN_MEMORY if _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK) else directory
    room = min(available_memory(), shutil.disk_usage(place).free) // _SHARE
    tokens = min(TOKENS, max(_BATCH, room // bytes_per_token))
    what = f"e_t of {plural(tokens, 'token')} as {values}"
    size = tokens * bytes_per_token
    with (
        tempfile.TemporaryDirectory(prefix="engramsql-bench-", dir=place) as scratch,
        connect(target.database, read_only=True) as database,
    ):
        section.notes.append(f"{what}: {size / 1e9:.1f} GB into '{place}'")
        table = database.table(target.name)
        warm(table, target)
        spec = table.spec
        assert spec is not None
        out = Path(scratch) / "e_t.arrow"
        width, dtype = target.heads * (target.dim or 0), np.float32 if values == "float32" else np.uint16
        memory = aligned((_BATCH, width), dtype)

        def corpus() -> np.ndarray[Any, np.dtype[np.int64]]:
            return np.random.default_rng().integers(0, spec.vocab_size, tokens)

        def computing(kept: bool) -> Callable[[], object]:
            out.unlink(missing_ok=True)
            ids = corpus()

            def compute() -> object:
                every = aligned((tokens, width), dtype, new=True) if kept else None
                for start in range(0, tokens, _BATCH):
                    part = ids[start : start + _BATCH]
                    into = memory[: len(part)] if every is None else every[start : start + len(part)]
                    history = ids[max(0, start - spec.history_len) : start]
                    table.e_t(part, history, out=into, dtype=values)  # type: ignore[call-overload]
                # Kept until the clock has stopped, as a file is.
                return every

            return compute

        def exporting() -> Callable[[], object]:
            out.unlink(missing_ok=True)
            ids = corpus()
            return lambda: database.export(target.name, out, tokens=ids, values=values)  # type: ignore[arg-type]

        def streaming() -> Callable[[], object]:
            out.unlink(missing_ok=True)
            ids = corpus()

            def read() -> None:
                for _ in database.arrow_reader(target.name, tokens=ids, values=values):  # type: ignore[arg-type]
                    pass

            return read

        def writing() -> Callable[[], object]:
            out.unlink(missing_ok=True)
            return lambda: _write(out, size)

        def limit(name: str, prepare: Callable[[], Callable[[], object]], path: Callable[[], str] = str) -> Contender:
            return Contender(Result(f"limit: {name}, {what}", "limit", "token", tokens), prepare, path)

        progress(f"export: {what}")
        with own_peak() as peak:
            exporting()()
        contenders = [
            Contender(
                Result(f"Database.export, {what}", "engramsql", "token", tokens), exporting, paths_since_now(table)
            ),
            Contender(
                Result(f"Database.arrow_reader, {what}", "engramsql", "token", tokens),
                streaming,
                paths_since_now(table),
            ),
            limit("hashing, gather, decode, all of it kept in memory", lambda: computing(True), paths_since_now(table)),
            limit("hashing, gather, decode into memory used again", lambda: computing(False), paths_since_now(table)),
            limit("writing as many bytes from memory", writing, lambda: "pwrite"),
        ]
        with in_memory(section, what):
            ours, stream, *limits = a_b_b_a(contenders, rounds, first=0)
    ours.compare(limits)
    # It writes nothing.
    stream.compare(limits[:-1])
    ours.extra["own_peak_bytes"] = ours.extra["peak_bytes"] = peak.bytes
    section.notes.append(f"{ours.name}: at most {peak.bytes / 1e6:.0f} MB of memory of its own, the whole process")
    section.results += [ours, stream, *limits]


def _write(path: Path, size: int) -> None:
    """As many bytes as an export writes, by one thread, from memory that is in the processor's cache or near it."""
    block = np.ones(_WRITE_BLOCK, np.uint8).data
    with open(path, "wb", buffering=0) as file:
        for start in range(0, size, _WRITE_BLOCK):
            os.pwrite(file.fileno(), block[: min(_WRITE_BLOCK, size - start)], start)
        os.fsync(file.fileno())


def _whole_table(section: Section, target: Target, rounds: int, directory: Path) -> None:
    """The table in each kind of values beside a plain copy, which reads around the page cache and writes as much."""
    table_bytes = target.rows * target.row_bytes
    probe = Probe(target.extents())
    fitting = 1 << (min(part["bytes"] for part in target.parts) // 2).bit_length() - 1
    with tempfile.TemporaryDirectory(prefix="export-", dir=directory) as scratch:
        out, copy = Path(scratch) / "rows.arrow", Path(scratch) / "copy"
        kinds = ["row"] if target.dim is None else ["row", "float32"]
        for values in kinds:
            width = target.row_bytes if values == "row" else 4 * (target.dim or 0)
            size = target.rows * width
            if shutil.disk_usage(directory).free < 2 * size:
                section.notes.append(f"no export as {values}: '{directory}' has no room for {size / 1e9:.1f} GB")
                continue
            answers: list[dict[str, Any]] = []

            def export(values: str = values, answers: list[dict[str, Any]] = answers, watch: bool = False) -> float:
                progress(f"export: the table as {values}")
                question = {
                    "database": target.database,
                    "name": target.name,
                    "out": str(out),
                    "values": values,
                    "files": target.files(),
                    "watch": watch,
                }
                answers.append(ask("exporting_child", question, f"the export as {values}"))
                return float(answers[-1]["seconds"])

            def exporting(export: Callable[[], float] = export) -> Callable[[], object]:
                copy.unlink(missing_ok=True)
                out.unlink(missing_ok=True)
                return export

            path = [""]

            def plain(values: str = values, size: int = size, path: list[str] = path) -> float:
                progress(f"export: the disk beside {values}")
                block = min(_COPY_BLOCK, fitting)
                reading = probe.copy(copy, table_bytes, block=block, written=size)
                path[0] = reading.path
                return reading.seconds

            def disk(plain: Callable[[], float] = plain) -> Callable[[], object]:
                copy.unlink(missing_ok=True)
                out.unlink(missing_ok=True)
                return plain

            # Before the rounds, which its memory is not watched in.
            export(watch=True)
            name = "plain copy" if values == "row" else f"plain copy, {size / table_bytes:.3g} bytes for each"
            what = f"the table as {values}"
            ours, limit = a_b_b_a(
                [
                    Contender(
                        Result(f"Database.export, {what}", "engramsql", "byte", size),
                        exporting,
                        lambda answers=answers: answers[-1]["path"],  # type: ignore[misc]
                    ),
                    Contender(Result(f"limit: {name}, {what}", "limit", "byte", size), disk, lambda path=path: path[0]),  # type: ignore[misc]
                ],
                rounds,
                first=0,
            )
            ours.compare([limit])
            ours.extra["peak_bytes"] = max(answer["peak_bytes"] for answer in answers)
            ours.extra["own_peak_bytes"] = max(answer["own_peak_bytes"] for answer in answers)
            section.results += [ours, limit]
