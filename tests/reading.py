"""Stores that are read again and again, files that are cold, and what a call added to the counters of a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from checkpoints import make_store

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = 160
MIB = 1 << 20


def random_store(path: Path, *, rows: int = 50_000, shards: int = 2, seed: int = 0) -> NDArray[np.uint8]:
    """A store of ``shards`` x ``rows`` random rows of 160 bytes; its rows."""
    data = np.random.default_rng(seed).integers(0, 256, (shards * rows, WIDTH), dtype=np.uint8)
    make_store(path, shards=shards, rows=rows, width=WIDTH, data=data)
    return data


def sparse_store(path: Path, gigabytes: int) -> Path:
    """A store of one file that takes no room: rows of zeros, 160 bytes each."""
    from engramsql.demo.sparse import SparseError, require_sparse

    path.mkdir(parents=True, exist_ok=True)
    try:
        require_sparse(path)
    except SparseError as e:
        pytest.skip(f"no sparse files here: {e}")
    with open(path / "shard_000.bin", "wb") as file:
        file.truncate(gigabytes * 1_000_000_000 // WIDTH * WIDTH)
    return path


def make_cold(path: Path) -> None:
    """Drops the pages of a directory's files, which no table may have open: pages of a live map stay."""
    for file in path.iterdir():
        fd = os.open(file, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def require_cold(table: Any) -> None:
    """Skips the test where the file system keeps its pages, as memory file systems do."""
    resident = [shard.resident_bytes for shard in table.shards()]
    if any(resident) or None in resident:
        pytest.skip(f"pages cannot be dropped here: {resident} bytes are resident")


def added(before: list[Any], after: list[Any]) -> dict[str, int]:
    """Rows by code path that came between two results of ``Table.stats()``."""
    had = {stats.path: stats.rows for stats in before}
    new = {stats.path: stats.rows - had.get(stats.path, 0) for stats in after}
    return {path: rows for path, rows in new.items() if rows}
