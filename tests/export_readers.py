"""Exported files as columns, read by pyarrow and by a second implementation."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import safe_open

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["arrow_table", "second_reader", "vectors_of"]


def arrow_table(path: Path) -> pa.Table:
    """What pyarrow reads of an Arrow or Parquet file; each batch is valid to its last buffer."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
    elif path.suffix == ".arrows":
        with open(path, "rb") as file:
            table = pa.ipc.open_stream(file).read_all()
            assert file.read() == b"", "bytes after the end marker"
        # Without its marker a stream only seems to end.
        assert path.read_bytes()[-8:] == b"\xff\xff\xff\xff\x00\x00\x00\x00"
    else:
        table = pa.ipc.open_file(path).read_all()
    table.validate(full=True)
    return table


def second_reader(path: Path) -> dict[str, list[Any]]:
    """Columns as Python lists, read by polars, NumPy, safetensors or the standard library."""
    suffix = path.suffix
    if suffix in (".arrow", ".feather"):
        return pl.read_ipc(path).to_dict(as_series=False)
    if suffix == ".arrows":
        return pl.read_ipc_stream(path).to_dict(as_series=False)
    if suffix == ".parquet":
        return pl.read_parquet(path).to_dict(as_series=False)
    if suffix == ".npy":
        return {"": list(np.load(path))}
    if suffix == ".npz":
        with np.load(path) as archive:
            return {name: list(archive[name]) for name in archive.files}
    if suffix == ".safetensors":
        with safe_open(path, "np") as file:
            return {name: list(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    if suffix == ".csv":
        csv.field_size_limit(1 << 26)
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return {name: [_value(row[name]) for row in rows] for name in (rows[0] if rows else {})}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {name: [line[name] for line in lines] for name in (lines[0] if lines else {})}


def _value(text: str) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def vectors_of(column: list[Any], dtype: str) -> NDArray[Any]:
    """A column of vectors as one array; bytes as uint8, texts of NaN as NaN."""
    if dtype == "row":
        return np.array([list(bytes.fromhex(v) if isinstance(v, str) else bytes(v)) for v in column], np.uint8)
    return np.array([[np.float32(value) for value in vector] for vector in column], np.float32)
