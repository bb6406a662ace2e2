"""``SlotIndex`` of engramdb-python: ``NAME.npz`` with all row ids and slots, and ``NAME.json`` beside it.

The peer holds both arrays in memory; here they pass in blocks, and give the bytes that ``numpy.savez`` would write.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from engramsql.errors import ArgumentError
from engramsql.interchange.damaged import DAMAGED
from engramsql.interchange.keys import BLOCK_KEYS
from engramsql.publishing import new_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

__all__ = ["FORMAT", "read_slot_index", "write_slot_index"]

FORMAT = "engramdb-slot-index-v1"


def write_slot_index(
    path: Path,
    count: int,
    heads: int,
    keys: Callable[[], Iterable[NDArray[np.int64]]],
    slots: Callable[[], Iterable[NDArray[np.int64]]],
    name: str | None = None,
) -> None:
    """Writes ``path`` (``.npz``) and its sidecar.

    Args:
        path: The file, which must not be there.
        count: Number of keys.
        heads: Row ids per key.
        keys: Makes blocks of keys, int64 [n, heads], in slot order.
        slots: Makes blocks of their slots, int64 [n].
        name: What the sidecar calls the file; by default its name.
    """
    beside = path.with_suffix(".json")
    if beside == path:
        raise ArgumentError(f"'{path}' is the name of the index's sidecar; name a file that ends with .npz")
    with new_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _write_array(archive, "rowids", (count, heads), keys())
        _write_array(archive, "slots", (count,), slots())
        _write_array(archive, "heads", (1,), [np.array([heads], np.int64)])
    sidecar = {"format": FORMAT, "heads": heads, "count": count, "path": name or path.name}
    with new_file(beside) as file:
        file.write((json.dumps(sidecar, indent=2, ensure_ascii=False) + "\n").encode())


def _write_array(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], blocks: Iterable[NDArray[np.int64]]
) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        header = {"descr": "<i8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        for block in blocks:
            member.write(np.ascontiguousarray(block, dtype="<i8").tobytes())


def read_slot_index(path: str | os.PathLike[str]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The entries of an index in file order: keys int64 [n, heads] and slots int64 [n], block by block.

    Raises:
        ArgumentError: If the file is no such index, with what is wrong.
    """
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            members = set(archive.namelist())
            if not {"rowids.npy", "slots.npy"} <= members:
                raise ArgumentError(f"'{name}' holds no slot index: it needs the arrays rowids and slots")
            with archive.open("rowids.npy") as rowids, archive.open("slots.npy") as slots:
                shape, key_type = _header(rowids)
                if len(shape) != 2 or 0 in shape[1:]:
                    raise ArgumentError(f"'{name}': rowids must be of shape [n, heads], got {list(shape)}")
                slot_shape, slot_type = _header(slots)
                if slot_shape != shape[:1]:
                    raise ArgumentError(f"'{name}' has {shape[0]} keys and slots of shape {list(slot_shape)}")
                if "heads.npy" in members:
                    (heads,) = np.load(archive.open("heads.npy"), allow_pickle=False).reshape(-1).tolist()
                    if heads != shape[1]:
                        raise ArgumentError(f"'{name}' says {heads} heads and has keys of {shape[1]} row ids")
                for first in range(0, shape[0], BLOCK_KEYS):
                    count = min(BLOCK_KEYS, shape[0] - first)
                    keys = _block(rowids, count * shape[1], key_type).reshape(count, shape[1])
                    yield keys, _block(slots, count, slot_type)
    except OSError as error:
        raise ArgumentError(f"cannot read '{name}': {error.strerror or error}") from error
    except ArgumentError:
        raise
    except (zipfile.BadZipFile, KeyError, *DAMAGED) as error:
        raise ArgumentError(f"'{name}' is damaged or no slot index: {error}") from error


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    if version != (1, 0):
        raise ValueError(f"an array of format version {version}")
    read = np.lib.format.read_array_header_1_0
    shape, fortran, dtype = read(member)
    if (fortran and len(shape) > 1) or dtype.kind not in "iu":
        raise ValueError(f"an array of {dtype} in {'Fortran' if fortran else 'C'} order; integers in C order are read")
    return shape, dtype


def _block(member: IO[bytes], count: int, dtype: np.dtype[Any]) -> NDArray[np.int64]:
    data = member.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise ValueError("an array ends early")
    values = np.frombuffer(data, dtype)
    if values.size and dtype.kind == "u" and values.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{values.max()} is beyond every table")
    return values.astype(np.int64)
