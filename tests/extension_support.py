"""A DuckDB connection with the extension, and the tables the extension's tests read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from engramsql.udf import extension_path

if TYPE_CHECKING:
    import pyarrow as pa

GOLDEN = Path(__file__).parent / "golden"
FP8 = GOLDEN / "ckpt_qwen4_exp_fp8"
FP8_ROWS = 1408
FP8_REACHABLE = 1392
FP8_HEADS = 16
FP8_DIM = 160


def connect(database: str = ":memory:", **config: object) -> duckdb.DuckDBPyConnection:
    """A new database with the extension loaded."""
    con = duckdb.connect(database, config={"allow_unsigned_extensions": "true", **config})
    con.load_extension(str(extension_path()))
    return con


def connect_ple(**config: object) -> duckdb.DuckDBPyConnection:
    """A new database in memory with the small FP8 checkpoint registered as ``ple``."""
    con = connect(**config)
    con.execute(f"CALL engram_register('ple', '{FP8}')")
    return con


def small_store(directory: Path) -> Path:
    """3 shards x 10 rows x 8 bytes; every byte is its shard's number."""
    directory.mkdir(parents=True, exist_ok=True)
    for shard in range(3):
        (directory / f"shard_{shard:03}.bin").write_bytes(bytes([shard]) * 80)
    return directory


def arrow(con: duckdb.DuckDBPyConnection, sql: str, *parameters: object) -> pa.Table:
    """The result as an Arrow table."""
    # A cursor: a result that is not drained would block the connection.
    return con.cursor().sql(sql, params=list(parameters)).to_arrow_table()


def golden(name: str) -> dict[str, np.ndarray]:
    """Expected arrays of a golden checkpoint, by their short names."""
    with np.load(GOLDEN / f"{name}_expected.npz") as arrays:
        return {key.removeprefix("main."): arrays[key] for key in arrays}


def bf16(values: np.ndarray) -> np.ndarray:
    """float32 rounded to bfloat16 (nearest, ties to even), as bit patterns."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs ``code`` in a fresh interpreter that imports from where this one does."""
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
