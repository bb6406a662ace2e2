"""Files of token sequences: Parquet, Arrow IPC, NumPy arrays, safetensors, CSV, JSON lines and text, read in pieces."""

from __future__ import annotations

import math
import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.corpus import (
    BATCH_SEQUENCES,
    BATCH_TOKENS,
    Piece,
    integers,
    joined,
    list_column,
    pieces_of_lists,
    pieces_of_matrix,
)
from engramsql.data_files import kind_of, named_errors
from engramsql.data_files.arrays import open_matrix
from engramsql.data_files.columns import arrow_batches
from engramsql.data_files.texts import csv_cells, decimal_words, json_values, text_blocks
from engramsql.errors import ArgumentError, TokenIdError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from engramsql.data_files.texts import Cell

__all__ = ["count_of_file", "pieces_of_file"]

# So many digits are fewer than 2^63.
_SURE_DIGITS = 18


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
    with named_errors(name), open_matrix(name, "npy", None) as matrix:
        return math.prod(matrix.shape)


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
        if count >= BATCH_TOKENS or len(gathered) >= BATCH_SEQUENCES:
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
    line, continues = 1, False
    for block in text_blocks(name):
        pieces, line, continues = _lines(block, line, continues)
        yield from pieces


def _lines(block: bytes, line: int, continues: bool) -> tuple[list[Piece], int, bool]:
    """The ids of some lines; the number of the line at its end, and whether that has ids already."""
    found: list[bytes] = []
    starts: list[int] = []
    numbers: list[int] = []
    first_continues = False
    for index, part in enumerate(block.split(b"\n")):
        if index:
            line, continues = line + 1, False
        if b"\r" in part[:-1]:
            raise ArgumentError(
                f"line {line} has a carriage return within it, so where sequences end is not clear; end lines with \\n"
            )
        words = part.split()
        if not words:
            continue
        _check_words(words, line)
        if not numbers:
            first_continues = continues
        starts.append(len(found))
        numbers.append(line)
        found += words
        continues = True
    if not numbers:
        return [], line, continues
    tokens = np.array(list(map(int, found)), dtype=np.int64)
    piece = Piece(tokens, np.array(starts, dtype=np.int64), first_continues, np.array(numbers, dtype=np.int64))
    return [piece], line, continues


def _check_words(words: list[bytes], line: int) -> None:
    """Refuses what is no decimal number of 64 bits."""
    if not b"".join(words).isdigit():
        odd = next(word for word in words if not word.isdigit())
        raise TokenIdError(f"line {line}: '{odd[:40].decode('utf-8', 'replace')}' is no decimal token id")
    for word in words if len(max(words, key=len)) > _SURE_DIGITS else ():
        digits = word.lstrip(b"0")
        # Python takes long over thousands of digits, or refuses them.
        if len(digits) > _SURE_DIGITS + 1 or int(digits or b"0") >= 1 << 63:
            shown = digits[:40].decode() + ("..." if len(digits) > 40 else "")
            raise TokenIdError(f"line {line}: token id {shown} is beyond every vocabulary")


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
