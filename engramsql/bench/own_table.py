"""The tables that are measured if none is given: random rows, too many for CPU caches and few enough for memory."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql.bench.progress import progress
from engramsql.errors import EngramError
from engramsql.publishing import new_directory, synced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CHANGED", "ENGRAM", "NAME", "PLANTED", "PLE", "Shape", "inspected_database", "own_database"]

NAME = "bench"
CHANGED = "changed"
"""The second table of an inspected database: the same rows, some of them changed."""
_BLOCK_ROWS = 100_000


@dataclass(frozen=True)
class Shape:
    """What a test table is like."""

    heads: int
    row_bytes: int
    dim: int
    format: str
    scale: float | None
    shards: int
    shard_rows: int
    planted_every: int | None = None
    """One dead row, one constant row, one with a NaN and half a pair of duplicates among so many; see ``_plant``."""
    changed: bool = False
    """Whether one row among so many has another value in the middle."""

    @property
    def label(self) -> str:
        """Part of its directory's name."""
        label = f"{self.shards}x{self.shard_rows}" + ("" if self.heads == 16 else f"-{self.heads}")
        if self.planted_every is not None:
            label += f"-planted-{self.planted_every}"
        return label + ("-changed" if self.changed else "")


PLE = Shape(16, 160, 160, "fp8_e4m3", 209 / 2**20, shards=4, shard_rows=2_500_012)
"""Heads, rows and rows per shard of the released PLE table, fewer shards."""
ENGRAM = Shape(48, 264, 256, "fp8_e4m3_e8m0", None, shards=4, shard_rows=1_500_000)
"""Heads and packed rows of DeepSeek V4.1 behind the hash of the PLE, which needs no tokenizer."""
PLANTED = replace(PLE, planted_every=1000)
"""Rows of which one in a thousand is of each kind that inspection looks for."""


def own_database(directory: Path, shape: Shape = PLE) -> Path:
    """A database below ``directory`` with a table ``bench`` of the shape, written in full before it gets its name."""
    return _database(directory, {NAME: shape})


def inspected_database(directory: Path, shape: Shape = PLANTED) -> Path:
    """A database with a table ``bench`` that has something to be found, and ``changed`` to compare it with."""
    return _database(directory, {NAME: shape, CHANGED: replace(shape, changed=True)})


def _database(directory: Path, shapes: dict[str, Shape]) -> Path:
    from engramsql.engine import Session

    database = directory / f"db-{shapes[NAME].label}"
    stores = {name: directory / f"store-{shape.label}" for name, shape in shapes.items()}
    for name, store in stores.items():
        if not store.exists():
            _write(store, shapes[name])
    try:
        session = Session.open(database, read_only=True)
        for name in shapes:
            session.table(name)
    except EngramError:
        # Not there, or a store was written anew since.
        shutil.rmtree(database, ignore_errors=True)
        session = Session.open(database, create=True)
        for name, shape in shapes.items():
            spec = str(stores[name] / "spec.toml")
            session.register(name, stores[name], spec=spec, format=shape.format, scale=shape.scale)
    return database


def _write(store: Path, shape: Shape) -> None:
    import numpy as np

    with new_directory(store) as growing:
        for shard in range(shape.shards):
            rng = np.random.default_rng(shard)
            with synced(growing / f"shard_{shard:03d}.bin") as file:
                for start in range(0, shape.shard_rows, _BLOCK_ROWS):
                    progress(f"writing {store}: shard {shard + 1} of {shape.shards}")
                    rows = _rows(rng, min(_BLOCK_ROWS, shape.shard_rows - start), shape.row_bytes)
                    if shape.planted_every is not None:
                        _plant(rows, shard * shape.shard_rows + start, shape.planted_every, shape.changed)
                    # Not tofile, which makes a TypeError of Ctrl-C.
                    file.write(rows.data)
        layout = {
            "shards": shape.shards,
            "rows_per_shard": shape.shard_rows,
            "width": shape.row_bytes,
            "elem_bytes": 1,
        }
        (growing / "manifest.json").write_text(json.dumps({"layout": layout}))
        (growing / "spec.toml").write_text(_spec(shape))


def _rows(rng: np.random.Generator, rows: int, row_bytes: int) -> NDArray[np.uint8]:
    import numpy as np

    data = rng.integers(0, 256, (rows, row_bytes), dtype=np.uint8)
    # No NaN, as in a trained table.
    data[(data & 0x7F) == 0x7F] ^= 1
    return data


def _plant(rows: NDArray[np.uint8], first_row: int, every: int, changed: bool) -> None:
    """Makes one row of each kind of every so many rows, told by the row id alone: both tables have the same."""
    import numpy as np

    from engramsql.demo.sparse import pseudo_rows

    ids = np.arange(first_row, first_row + len(rows))
    group, kind = np.divmod(ids, every)
    rows[kind == 0] = 0
    # 1.0 in E4M3.
    rows[kind == 1] = 0x38
    # One of the two NaN.
    rows[kind == 2, 0] = 0x7F
    # Two neighbouring groups share theirs, so the rows of a pair lie apart.
    rows[kind == 3] = pseudo_rows(0, group[kind == 3] // 2, rows.shape[1])
    if changed:
        # The sign of one value: no byte becomes a NaN by it.
        rows[kind == 4, rows.shape[1] // 2] ^= 0x80


def _spec(shape: Shape) -> str:
    """The released family with smaller heads: a prime above the base for each head stays within the rows."""
    rows = shape.shards * shape.shard_rows
    base = rows // shape.heads - rows // 4000 - 200
    return f"""name = "engramsql-bench"
family = "qwen_ple_v1"
description = "A test table of engramsql bench: the released hash with smaller heads."

[config]
model_type = "qwen4_exp_text"
ple_layer_ids = [1]
ple_embed_dim = {shape.heads * shape.dim}
ngram_size = 3
heads_per_ngram = {shape.heads // 2}
ngram_vocab_size_base = {base}
make_ngram_vocab_size_divisible_by = 1
vocab_size = 248320
eos_token_id = 248044
seed = 1234
"""
