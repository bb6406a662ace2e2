"""The table every measurement reads: a store of random rows, too big for CPU caches and small enough for memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

ROW_BYTES = 160
SHARD_ROWS = 2_500_012
"""Rows per shard of the released PLE table."""


def table(directory: Path, shards: int = 4) -> Path:
    """A store of ``shards`` released-size shards (400 MB each); written once, then reused."""
    store = directory / f"store-{shards}"
    store.mkdir(parents=True, exist_ok=True)
    for shard in range(shards):
        path = store / f"shard_{shard:03d}.bin"
        if path.exists() and path.stat().st_size == SHARD_ROWS * ROW_BYTES:
            continue
        rng = np.random.default_rng(shard)
        partial = path.with_suffix(".partial")
        with open(partial, "wb") as file:
            for start in range(0, SHARD_ROWS, 100_000):
                rows = min(100_000, SHARD_ROWS - start)
                data = rng.integers(0, 256, (rows, ROW_BYTES), dtype=np.uint8)
                data[(data & 0x7F) == 0x7F] ^= 1
                data.tofile(file)
        partial.rename(path)
    return store


def shard_files(store: Path) -> list[Path]:
    """The shard files in order."""
    return sorted(store.glob("shard_*.bin"))


def rows_of(store: Path) -> int:
    """Rows of the whole store."""
    return sum(p.stat().st_size for p in shard_files(store)) // ROW_BYTES
