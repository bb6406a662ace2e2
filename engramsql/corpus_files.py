"""Files of token sequences: Parquet, Arrow IPC, NumPy arrays, safetensors, CSV, JSON lines and text, read in pieces."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.corpus import BATCH_TOKENS, Piece, integers, joined, list_column, pieces_of_lists, pieces_of_matrix
from engramsql.data_files import (
    arrow_batches,
    csv_cells,
    decimal_words,
    json_values,
    kind_of,
    named_errors,
    open_matrix,
)
from engramsql.errors import ArgumentError, TokenIdError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from engramsql.data_files import Cell

__all__ = ["count_of_file", "pieces_of_file"]

_BLOCK_BYTES = 1 << 22


def pieces_of_file(path: str | os.PathLike[str], column: str | None = None) -> Iterator[Piece]:
    """The sequences of a file, by its name's ending.

    Args:
        path: ``.parquet``, ``.arrow``, ``.npy``, ``.safetensors``, ``.csv``, ``.jsonl``, ``.txt`` and the other endings
            in ``data_files.KINDS``.
        column: The list column (the array, tensor, or member of objects in lines of JSON); by default the only one.

    Raises:
        ArgumentError: If the ending is not known, the file cannot be read or is damaged.
        TokenIdError: If a token is no integer, or NULL.
    """
    name = os.fspath(path)
    kind = kind_of(name)
    if column is not None and kind in ("npy", "txt"):
        raise ArgumentError(f"'{name}' has no columns; leave '{column}' out")
    file = f"'{name}', {'line' if kind in ('txt', 'jsonl', 'csv') else 'row'}"
    with named_errors(name):
        for piece in _READERS[kind](name, kind, column):
            yield piece._replace(file=file)


def count_of_file(path: str | os.PathLike[str]) -> int:
    """Tokens of a file, if its header says how many there are; else 0."""
    name = os.fspath(path)
    if os.path.splitext(name)[1].lower() != ".npy" or not os.path.exists(name):
        return 0
    with named_errors(name):
        return int(np.load(name, mmap_mode="r", allow_pickle=False).size)


def _columns(name: str, kind: str, column: str | None) -> Iterator[Piece]:
    chosen, batches = arrow_batches(name, kind, lambda schema: list_column(schema, column, f"'{name}'"))
    with closing(batches):  # type: ignore[type-var]
        for array, first in batches:
            yield from pieces_of_lists(array, f"'{name}', column '{chosen}'", first)


def _matrix(name: str, kind: str, column: str | None) -> Iterator[Piece]:
    with open_matrix(name, kind, column) as matrix:
        if len(matrix.shape) > 2:
            raise ArgumentError(
                f"{matrix.label} must have one dimension or two (a sequence per row), got {len(matrix.shape)}"
            )
        first = 0
        for block in matrix.blocks(BATCH_TOKENS):
            for piece in pieces_of_matrix(block, matrix.label):
                if block.ndim == 1:
                    yield piece._replace(continues=first > 0 or piece.continues)
                else:
                    yield piece._replace(numbers=None if piece.numbers is None else piece.numbers + first)
            first += len(block)


def _json_lines(name: str, _: str, column: str | None) -> Iterator[Piece]:
    return _gathered(json_values(name, column, lambda member: isinstance(member, list)), _json_sequence)


def _csv(name: str, _: str, column: str | None) -> Iterator[Piece]:
    return _gathered(csv_cells(name, column), lambda cell: decimal_words(cell) if cell.strip() else None)


def _gathered(cells: Iterable[Cell], sequence: Callable[[Any], list[Any] | None]) -> Iterator[Piece]:
    """A sequence per cell, gathered into pieces worth a call."""
    gathered: list[NDArray[np.int64]] = []
    numbers: list[int] = []
    count = 0
    for line, value in cells:
        try:
            tokens = sequence(value)
        except RecursionError:
            raise ArgumentError(f"line {line} is nested too deeply") from None
        except ValueError as error:
            raise TokenIdError(f"line {line} {error}") from None
        if not tokens:
            continue
        if any(type(token) is not int for token in tokens):
            odd = next(token for token in tokens if type(token) is not int)
            raise TokenIdError(f"line {line}: token id {odd!r:.60} is not an integer")
        gathered.append(integers(tokens, f"line {line}"))
        numbers.append(line)
        count += len(tokens)
        if count >= BATCH_TOKENS:
            yield joined(gathered, numbers)
            gathered, numbers, count = [], [], 0
    if gathered:
        yield joined(gathered, numbers)


def _json_sequence(value: Any) -> list[Any] | None:
    if value is not None and not isinstance(value, list):
        raise ValueError("is no list of integers")
    return value


def _text(name: str, _: str, __: str | None) -> Iterator[Piece]:
    """Decimal ids, a sequence per line; a line may be longer than memory."""
    rest = b""
    line, continues = 1, False
    with open(name, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            block = rest + block
            # The last id may go on in the next block.
            end = max(block.rfind(space) for space in (b" ", b"\t", b"\n", b"\r")) + 1
            rest = block[end:]
            if len(rest) > _BLOCK_BYTES:
                raise ArgumentError(
                    f"line {line} has a word of more than {_BLOCK_BYTES} bytes; ids are decimal numbers"
                )
            pieces, line, continues = _lines(block[:end], line, continues)
            yield from pieces
        pieces, line, continues = _lines(rest, line, continues)
        yield from pieces


def _lines(block: bytes, line: int, continues: bool) -> tuple[list[Piece], int, bool]:
    """The ids of some lines; the number of the line at its end, and whether that has ids already."""
    sequences: list[NDArray[np.int64]] = []
    numbers: list[int] = []
    first_continues = False
    parts = block.split(b"\n")
    for index, part in enumerate(parts):
        if index:
            line, continues = line + 1, False
        words = part.split()
        if not words:
            continue
        if not b"".join(words).isdigit():
            odd = next(word for word in words if not word.isdigit())
            raise TokenIdError(f"line {line}: '{odd[:40].decode('utf-8', 'replace')}' is no decimal token id")
        if not sequences:
            first_continues = continues
        sequences.append(integers(list(map(int, words)), f"line {line}"))
        numbers.append(line)
        continues = True
    if not sequences:
        return [], line, continues
    return [joined(sequences, numbers)._replace(continues=first_continues)], line, continues


_READERS: dict[str, Callable[[str, str, str | None], Iterator[Piece]]] = {
    "parquet": _columns,
    "arrow": _columns,
    "npy": _matrix,
    "npz": _matrix,
    "safetensors": _matrix,
    "csv": _csv,
    "jsonl": _json_lines,
    "txt": _text,
}
