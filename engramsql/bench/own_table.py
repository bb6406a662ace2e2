"""The tables that are measured if none is given: random rows, too many for CPU caches and few enough for memory."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql.bench.progress import progress
from engramsql.errors import EngramError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ENGRAM", "NAME", "PLE", "Shape", "own_database"]

NAME = "bench"
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

    @property
    def label(self) -> str:
        """Part of its directory's name."""
        return f"{self.shards}x{self.shard_rows}" + ("" if self.heads == 16 else f"-{self.heads}")


PLE = Shape(16, 160, 160, "fp8_e4m3", 209 / 2**20, shards=4, shard_rows=2_500_012)
"""Heads, rows and rows per shard of the released PLE table, fewer shards."""
ENGRAM = Shape(48, 264, 256, "fp8_e4m3_e8m0", None, shards=4, shard_rows=1_500_000)
"""Heads and packed rows of DeepSeek V4.1 behind the hash of the PLE, which needs no tokenizer."""


def own_database(directory: Path, shape: Shape = PLE) -> Path:
    """A database below ``directory`` with a table ``bench`` of the shape, written in full before it gets its name."""
    from engramsql.engine import Session

    store, database = directory / f"store-{shape.label}", directory / f"db-{shape.label}"
    if not store.exists():
        _write(store, shape)
    try:
        Session.open(database, read_only=True).table(NAME)
    except EngramError:
        # Not there, or the store was written anew since.
        shutil.rmtree(database, ignore_errors=True)
        spec = store / "spec.toml"
        session = Session.open(database, create=True)
        session.register(NAME, store, spec=str(spec), format=shape.format, scale=shape.scale)
    return database


def _write(store: Path, shape: Shape) -> None:
    import numpy as np

    _remove_abandoned(store)
    partial = store.with_name(f".{store.name}.{os.getpid()}")
    partial.mkdir(parents=True)
    try:
        for shard in range(shape.shards):
            rng = np.random.default_rng(shard)
            with open(partial / f"shard_{shard:03d}.bin", "wb") as file:
                for start in range(0, shape.shard_rows, _BLOCK_ROWS):
                    progress(f"writing {store}: shard {shard + 1} of {shape.shards}")
                    # Not tofile, which makes a TypeError of Ctrl-C.
                    file.write(_rows(rng, min(_BLOCK_ROWS, shape.shard_rows - start), shape.row_bytes).data)
                file.flush()
                os.fsync(file.fileno())
        layout = {
            "shards": shape.shards,
            "rows_per_shard": shape.shard_rows,
            "width": shape.row_bytes,
            "elem_bytes": 1,
        }
        (partial / "manifest.json").write_text(json.dumps({"layout": layout}))
        (partial / "spec.toml").write_text(_spec(shape))
        partial.rename(store)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _remove_abandoned(store: Path) -> None:
    """Removes what was half written by processes that were killed: more than a gigabyte each."""
    for partial in store.parent.glob(f".{store.name}.*"):
        try:
            os.kill(int(partial.suffix[1:]), 0)
        except (ValueError, PermissionError):
            continue
        except ProcessLookupError:
            shutil.rmtree(partial, ignore_errors=True)


def _rows(rng: np.random.Generator, rows: int, row_bytes: int) -> NDArray[np.uint8]:
    import numpy as np

    data = rng.integers(0, 256, (rows, row_bytes), dtype=np.uint8)
    # No NaN, as in a trained table.
    data[(data & 0x7F) == 0x7F] ^= 1
    return data


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
