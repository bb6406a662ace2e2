"""Sparse checkpoints: files of released size that take no room, for the demo and for tests of full-size geometry.

A file is laid out exactly as a release lays it out (safetensors header, tensors back to back) and then given its full
length with ``ftruncate``. Only what is written later, row by row, takes blocks on the disk.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engramsql.errors import EngramError

if TYPE_CHECKING:
    from numpy.typing import NDArray

ITEM_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E8M0": 1,
    "BF16": 2,
    "F16": 2,
    "F32": 4,
    "I64": 8,
}
"""Bytes per element of the safetensors dtypes used here."""

_PROBE_BYTES = 1 << 30


class SparseError(EngramError):
    """The file system cannot hold the sparse files asked for."""


@dataclass(frozen=True)
class Tensor:
    """One tensor of a file: its dtype and shape, and its bytes unless it is left as a hole."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor in the file."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


def safetensors_header(
    tensors: Mapping[str, Tensor], *, metadata: Mapping[str, str] | None = None, pad: int = 0
) -> tuple[bytes, dict[str, int]]:
    """Length prefix plus JSON header, and the offset of every tensor from the start of the file.

    ``pad`` spaces are appended, so that a header length (and with it every tensor) need not be aligned.
    """
    entries: dict[str, object] = {}
    if metadata is not None:
        entries["__metadata__"] = dict(metadata)
    begins: dict[str, int] = {}
    at = 0
    for name, tensor in tensors.items():
        begins[name] = at
        entries[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [at, at + tensor.nbytes],
        }
        at += tensor.nbytes
    text = json.dumps(entries, separators=(",", ":")).encode() + b" " * pad
    header = struct.pack("<Q", len(text)) + text
    return header, {name: len(header) + begin for name, begin in begins.items()}


def write_sparse(
    path: Path, tensors: Mapping[str, Tensor], *, metadata: Mapping[str, str] | None = None, pad: int = 0
) -> dict[str, int]:
    """Writes one safetensors file whose data-less tensors are holes; returns each tensor's offset in the file.

    Raises:
        SparseError: the file system refuses a file of that length.
    """
    header, offsets = safetensors_header(tensors, metadata=metadata, pad=pad)
    size = len(header) + sum(t.nbytes for t in tensors.values())
    with open(path, "wb", buffering=0) as file:
        set_length(file.fileno(), size, path)
        write_at(file.fileno(), header, 0)
        for name, tensor in tensors.items():
            if tensor.data is not None:
                write_at(file.fileno(), tensor.data, offsets[name])
    return offsets


def set_length(fd: int, size: int, path: Path) -> None:
    """Gives a file its length without writing it; a refusal names the file, the length and the file system."""
    try:
        os.ftruncate(fd, size)
    except OSError as e:
        raise SparseError(
            f"cannot make the sparse file '{path}' of {size} bytes ({e.strerror}); "
            "choose a directory on a file system with large sparse files, such as ext4, xfs or btrfs",
        ) from e


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Writes all of ``data`` at ``offset``; a short write is continued, never ignored."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view = view[written:]
        offset += written


def require_sparse(directory: Path) -> None:
    """Proves that ``directory`` lies on a file system where a hole takes no room.

    Raises:
        SparseError: it does not, or the probe could not be written.
    """
    probe = directory / f".sparse-probe-{os.getpid()}"
    try:
        with open(probe, "wb", buffering=0) as file:
            set_length(file.fileno(), _PROBE_BYTES, probe)
            write_at(file.fileno(), b"end", _PROBE_BYTES - 3)
            os.fsync(file.fileno())
            taken = os.fstat(file.fileno()).st_blocks * 512
    finally:
        probe.unlink(missing_ok=True)
    if taken > _PROBE_BYTES // 8:
        raise SparseError(
            f"'{directory}' is on a file system without sparse files (a hole of {_PROBE_BYTES} bytes took {taken}), "
            "and these tables need 254 GB as ordinary files; choose a directory on ext4, xfs or btrfs",
        )


def apparent_and_taken_bytes(directory: Path) -> tuple[int, int]:
    """Sum of file lengths, and bytes really taken on the disk, of all files below ``directory``."""
    stats = [p.stat() for p in directory.rglob("*") if p.is_file()]
    return sum(s.st_size for s in stats), sum(s.st_blocks * 512 for s in stats)


@dataclass(frozen=True)
class Part:
    """Rows that lie back to back in one file."""

    path: Path
    offset: int
    first_row: int
    rows: int


@dataclass
class SparseRows:
    """Where the rows (or the scales) of one table lie, so that chosen rows can be filled in."""

    row_bytes: int
    parts: list[Part] = field(default_factory=list)

    def write(self, ids: Sequence[int] | NDArray[np.int64], rows: NDArray[np.uint8]) -> None:
        """Writes ``rows`` (uint8 [n, row_bytes]) at the given row ids."""
        order = np.argsort(np.asarray(ids, dtype=np.int64), kind="stable")
        sorted_ids = np.asarray(ids, dtype=np.int64)[order]
        for part in self.parts:
            low, high = np.searchsorted(sorted_ids, [part.first_row, part.first_row + part.rows])
            if low == high:
                continue
            fd = os.open(part.path, os.O_WRONLY)
            try:
                for k in range(int(low), int(high)):
                    local = int(sorted_ids[k]) - part.first_row
                    write_at(fd, rows[order[k]].tobytes(), part.offset + local * self.row_bytes)
            finally:
                os.close(fd)


def pseudo_rows(seed: int, ids: Iterable[int] | NDArray[np.int64], row_bytes: int) -> NDArray[np.uint8]:
    """Deterministic bytes uint8 [n, row_bytes] that depend on (seed, row id) only; none is an E4M3 NaN.

    The generator is splitmix64 (Steele, Lea and Flood 2014) over the number of each 8-byte word.
    """
    words = -(-row_bytes // 8)
    number = np.asarray(list(ids) if not isinstance(ids, np.ndarray) else ids, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = number[:, None] * np.uint64(words) + np.arange(words, dtype=np.uint64)[None, :]
        z = (z + np.uint64(seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    rows: NDArray[np.uint8] = np.ascontiguousarray(z.astype("<u8")).view(np.uint8)[:, :row_bytes].copy()
    # 0x7F and 0xFF are the two NaN codes of E4M3.
    rows[(rows & 0x7F) == 0x7F] ^= 1
    return rows
