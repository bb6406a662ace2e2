"""The table that is measured if none is given: random rows, too many for CPU caches and few enough for memory."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql.bench.progress import progress
from engramsql.errors import EngramError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NAME", "ROW_BYTES", "own_database"]

NAME = "bench"
ROW_BYTES = 160
SHARDS = 4
SHARD_ROWS = 2_500_012
"""Rows per shard of the released PLE table."""
SCALE = 209 / 2**20
_BLOCK_ROWS = 100_000


def own_database(directory: Path, shards: int = SHARDS, shard_rows: int = SHARD_ROWS) -> Path:
    """A database below ``directory`` whose table ``bench`` is like a PLE table: 16 heads, FP8 rows of 160 bytes.

    It is written once, in full before it gets its name, and reused.
    """
    from engramsql.engine import Session

    name = f"{shards}x{shard_rows}"
    store, database = directory / f"store-{name}", directory / f"db-{name}"
    if not store.exists():
        _write(store, shards, shard_rows)
    try:
        Session.open(database, read_only=True).table(NAME)
    except EngramError:
        # Not there, or the store was written anew since.
        shutil.rmtree(database, ignore_errors=True)
        spec = store / "spec.toml"
        session = Session.open(database, create=True)
        session.register(NAME, store, spec=str(spec), format="fp8_e4m3", scale=SCALE)
    return database


def _write(store: Path, shards: int, shard_rows: int) -> None:
    import numpy as np

    _remove_abandoned(store)
    partial = store.with_name(f".{store.name}.{os.getpid()}")
    partial.mkdir(parents=True)
    try:
        for shard in range(shards):
            rng = np.random.default_rng(shard)
            with open(partial / f"shard_{shard:03d}.bin", "wb") as file:
                for start in range(0, shard_rows, _BLOCK_ROWS):
                    progress(f"writing {store}: shard {shard + 1} of {shards}")
                    # Not tofile, which makes a TypeError of Ctrl-C.
                    file.write(_rows(rng, min(_BLOCK_ROWS, shard_rows - start)).data)
                file.flush()
                os.fsync(file.fileno())
        layout = {"shards": shards, "rows_per_shard": shard_rows, "width": ROW_BYTES, "elem_bytes": 1}
        (partial / "manifest.json").write_text(json.dumps({"layout": layout}))
        (partial / "spec.toml").write_text(_spec(shards * shard_rows))
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


def _rows(rng: np.random.Generator, rows: int) -> NDArray[np.uint8]:
    import numpy as np

    data = rng.integers(0, 256, (rows, ROW_BYTES), dtype=np.uint8)
    # No NaN, as in a trained table.
    data[(data & 0x7F) == 0x7F] ^= 1
    return data


def _spec(rows: int) -> str:
    """The released family with smaller heads: 16 primes above the base stay within the rows."""
    base = rows // 16 - rows // 4000 - 200
    return f"""name = "engramsql-bench"
family = "qwen_ple_v1"
description = "The test table of engramsql bench: the released hash with smaller heads."

[config]
model_type = "qwen4_exp_text"
ple_layer_ids = [1]
ple_embed_dim = {16 * ROW_BYTES}
ngram_size = 3
heads_per_ngram = 8
ngram_vocab_size_base = {base}
make_ngram_vocab_size_divisible_by = 1
vocab_size = 248320
eos_token_id = 248044
seed = 1234
"""
