"""Files of token sequences: Parquet, Arrow IPC, JSON lines, NumPy arrays and text, read in pieces."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.corpus import BATCH_TOKENS, Piece, integers, joined, list_column, pieces_of_lists, pieces_of_matrix
from engramsql.errors import ArgumentError, EngramError, TokenIdError
from engramsql.interchange.files import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

__all__ = ["SUFFIXES", "pieces_of_file"]

# Rows of a column file at a time: documents may be long.
_BATCH_ROWS = 4096
_BLOCK_BYTES = 1 << 22


def pieces_of_file(path: str | os.PathLike[str], column: str | None = None) -> Iterator[Piece]:
    """The sequences of a file, by its name's ending.

    Args:
        path: ``.parquet``, ``.arrow``, ``.jsonl``, ``.npy``, ``.txt`` and the other endings in SUFFIXES.
        column: The list column (the member, of lines of JSON that are objects); by default the only one.

    Raises:
        ArgumentError: If the ending is not known, the file cannot be read or is damaged.
        TokenIdError: If a token is no integer, or NULL.
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        raise ArgumentError(f"'{name}' does not exist; name a file of tokens")
    read = SUFFIXES.get(os.path.splitext(name)[1].lower())
    if read is None:
        raise ArgumentError(f"'{name}': the name of a file of tokens ends with one of {', '.join(SUFFIXES)}")
    if column is not None and read in (_npy, _text):
        raise ArgumentError(f"'{name}' has no columns; leave '{column}' out")
    file = f"'{name}', {'line' if read in (_text, _json_lines) else 'row'}"
    try:
        for piece in read(name, column):
            yield piece._replace(file=file)
    except (TokenIdError, ArgumentError) as error:
        raise error if name in str(error) else type(error)(f"'{name}': {error}") from None
    except EngramError:
        raise
    except OSError as error:
        raise ArgumentError(f"cannot read '{name}': {error.strerror or error}") from error
    except DAMAGED as error:
        raise ArgumentError(f"cannot read '{name}': {error}") from error


def _parquet(name: str, column: str | None) -> Iterator[Piece]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(name) as file:
        chosen = list_column(file.schema_arrow, column, f"'{name}'")
        first = 0
        for batch in file.iter_batches(_BATCH_ROWS, columns=[chosen]):
            yield from pieces_of_lists(batch.column(0), f"'{name}', column '{chosen}'", first)
            first += batch.num_rows


def _arrow(name: str, column: str | None) -> Iterator[Piece]:
    import pyarrow as pa

    with pa.memory_map(name) as source:
        magic = source.read(6)
        source.seek(0)
        # The two forms of IPC share their endings in the wild; the file says which it is.
        if magic == b"ARROW1":
            file = pa.ipc.open_file(source)
            schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
        else:
            reader = pa.ipc.open_stream(source)
            schema, batches = reader.schema, reader
        chosen = list_column(schema, column, f"'{name}'")
        first = 0
        for batch in batches:
            yield from pieces_of_lists(batch.column(chosen), f"'{name}', column '{chosen}'", first)
            first += batch.num_rows


def _npy(name: str, _: str | None) -> Iterator[Piece]:
    # Mapped: pages come as they are read, and go.
    yield from pieces_of_matrix(np.load(name, mmap_mode="r", allow_pickle=False), f"'{name}'")


def _json_lines(name: str, column: str | None) -> Iterator[Piece]:
    gathered: list[NDArray[np.int64]] = []
    numbers: list[int] = []
    count = 0
    with open(name, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                tokens = _json_sequence(json.loads(line), column)
            except RecursionError:
                raise ArgumentError(f"line {number} is nested too deeply") from None
            except ArgumentError as error:
                raise ArgumentError(f"line {number} {error}") from None
            except ValueError as error:
                raise ArgumentError(f"line {number} is no JSON: {error}") from None
            if tokens is None or len(tokens) == 0:
                continue
            if any(type(token) is not int for token in tokens):
                odd = next(token for token in tokens if type(token) is not int)
                raise TokenIdError(f"line {number}: token id {odd!r:.60} is not an integer")
            gathered.append(integers(tokens, f"line {number}"))
            numbers.append(number)
            count += len(tokens)
            if count >= BATCH_TOKENS:
                yield joined(gathered, numbers)
                gathered, numbers, count = [], [], 0
    if gathered:
        yield joined(gathered, numbers)


def _json_sequence(value: Any, column: str | None) -> list[Any] | None:
    if isinstance(value, dict):
        if column is None:
            lists = [name for name, member in value.items() if isinstance(member, list)]
            if len(lists) != 1:
                raise ArgumentError(
                    f"has {len(lists)} members that are lists; name one with --column (column=); its members: "
                    f"{', '.join(value)}"
                )
            column = lists[0]
        elif column not in value:
            raise ArgumentError(f"has no member '{column}'; its members: {', '.join(value)}")
        value = value[column]
    elif column is not None:
        raise ArgumentError(f"is no object with a member '{column}'")
    if value is not None and not isinstance(value, list):
        raise ArgumentError("is no list of integers")
    return value


def _text(name: str, _: str | None) -> Iterator[Piece]:
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


SUFFIXES: dict[str, Callable[[str, str | None], Iterator[Piece]]] = {
    ".parquet": _parquet,
    ".pq": _parquet,
    ".arrow": _arrow,
    ".arrows": _arrow,
    ".ipc": _arrow,
    ".feather": _arrow,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".npy": _npy,
    ".txt": _text,
}
