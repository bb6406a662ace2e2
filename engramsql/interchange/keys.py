"""Keys files of engramdb-python: text, one decimal row id per line, the row ids of one slot after those of another.

Lines are trimmed and empty lines skipped; within a slot the row ids are in head order. Keys are read from the other
kinds of files that row ids lie in too.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

import numpy as np

from engramsql.data_files import KINDS
from engramsql.errors import ArgumentError, RowIdError
from engramsql.interchange.damaged import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = ["BLOCK_KEYS", "read_keys", "write_keys"]

# A few megabytes of row ids at a time.
BLOCK_KEYS = 1 << 15
_BLOCK_BYTES = 1 << 22
# 2^64 has 20 digits.
_MOST_DIGITS = 20


def read_keys(path: str | os.PathLike[str], heads: int, column: str | None = None) -> Iterator[NDArray[np.int64]]:
    """The keys of a keys file (``.txt``), of an array file (``.npy``), or of another file of row ids, in slot order.

    Args:
        path: The file; one with an ending that is not known is text.
        heads: Row ids per key.
        column: The column of lists, or of single row ids, of a file that has several.

    Yields:
        int64 [n, heads], a few megabytes at a time.

    Raises:
        ArgumentError: If the file cannot be read, or its row ids are no whole number of keys.
        RowIdError: If a line is no decimal number.
    """
    name = os.fspath(path)
    kind = KINDS.get(os.path.splitext(name)[1].lower(), "txt")
    if kind not in ("npy", "txt"):
        yield from _read_columns(name, heads, column)
        return
    if column is not None:
        raise ArgumentError(f"'{name}' has no columns; leave '{column}' out")
    try:
        yield from _read_array(name, heads) if name.endswith(".npy") else _read_text(name, heads)
    except OSError as error:
        if isinstance(error, (ArgumentError, RowIdError)):
            raise
        raise ArgumentError(f"cannot read '{name}': {error.strerror or error}") from error


def _read_text(name: str, heads: int) -> Iterator[NDArray[np.int64]]:
    ids: list[int] = []
    line = 0
    rest = b""
    with open(name, "rb") as file:
        while True:
            block = file.read(_BLOCK_BYTES)
            data = rest + block
            end = data.rfind(b"\n") + 1 if block else len(data)
            lines, rest = data[:end].split(b"\n"), data[end:]
            if len(rest) > _BLOCK_BYTES:
                raise RowIdError(f"'{name}', line {line + len(lines)} is longer than {_BLOCK_BYTES} bytes: no row id")
            words = [word for word in map(bytes.strip, lines) if word]
            if words and not b"".join(words).isdigit():
                at, odd = next((n, w) for n, w in enumerate(map(bytes.strip, lines), 1) if w and not w.isdigit())
                text = odd[:40].decode("utf-8", "replace")
                raise RowIdError(f"'{name}', line {line + at}: '{text}' is no decimal row id")
            if any(len(word) > _MOST_DIGITS for word in words):
                at, odd = next((n, w) for n, w in enumerate(map(bytes.strip, lines), 1) if len(w) > _MOST_DIGITS)
                raise RowIdError(f"'{name}', line {line + at}: {odd[:20].decode()}... is beyond every table")
            # What follows the last newline is the beginning of another line.
            line += len(lines) - 1
            ids += map(int, words)
            whole = len(ids) // heads * heads
            if whole:
                yield _array(ids[:whole], name).reshape(-1, heads)
            ids = ids[whole:]
            if not block:
                break
    if ids:
        raise ArgumentError(f"'{name}' ends within a key: {heads} row ids make one, {len(ids)} are left over")


def _read_columns(name: str, heads: int, column: str | None) -> Iterator[NDArray[np.int64]]:
    """Keys as lists of row ids, or as row ids one after the other."""
    from engramsql.id_files import ids_of_file

    rest = np.empty(0, np.int64)
    for ids, valid, numbers, file in ids_of_file(name, column):
        if valid is not None:
            at = int(np.argmin(valid))
            where = f"{file} {numbers[at]}" if numbers is not None else file
            raise RowIdError(f"{where}: a row id is NULL, and a key has none")
        together = np.concatenate([rest, ids])
        whole = len(together) // heads * heads
        yield from key_blocks(together[:whole].reshape(-1, heads), heads)
        rest = together[whole:]
    if len(rest):
        raise ArgumentError(f"'{name}' ends within a key: {heads} row ids make one, {len(rest)} are left over")


def _array(ids: list[int], name: str) -> NDArray[np.int64]:
    try:
        return np.array(ids, dtype=np.int64)
    except OverflowError:
        raise RowIdError(f"'{name}': row id {max(ids)} is beyond every table") from None


def _read_array(name: str, heads: int) -> Iterator[NDArray[np.int64]]:
    try:
        keys = np.load(name, mmap_mode="r", allow_pickle=False)
    except DAMAGED as error:
        raise ArgumentError(f"cannot read '{name}': {error}") from error
    yield from key_blocks(keys, heads, f"'{name}'")


def key_blocks(keys: NDArray[np.integer], heads: int, what: str = "keys") -> Iterator[NDArray[np.int64]]:
    """An integer array [n, heads] in blocks of int64.

    Raises:
        ArgumentError: If it has another shape or type.
        RowIdError: If a row id is beyond 64 bits.
    """
    if keys.ndim != 2 or keys.shape[1] != heads or (keys.dtype.kind not in "iu" and keys.size):
        raise ArgumentError(
            f"{what} must be integers of shape [n, {heads}], a row id per head; got {keys.dtype} {list(keys.shape)}"
        )
    for first in range(0, len(keys), BLOCK_KEYS):
        block = keys[first : first + BLOCK_KEYS]
        if block.dtype.kind == "u" and block.dtype.itemsize == 8 and block.max() > np.iinfo(np.int64).max:
            raise RowIdError(f"{what}: row id {block.max()} is beyond every table")
        yield np.ascontiguousarray(block, dtype=np.int64)


def write_keys(keys: Iterable[NDArray[np.int64]], file: IO[bytes]) -> None:
    """Writes blocks of keys, int64 [n, heads], as engramdb-python does: one row id per line."""
    for block in keys:
        file.write(b"".join(b"%d\n" % rowid for rowid in block.reshape(-1).tolist()))
