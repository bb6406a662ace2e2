"""Texts with ids in them: plain text, CSV and JSON lines."""

from __future__ import annotations

import codecs
import csv
import json
import shlex
from collections.abc import Callable, Iterator
from itertools import count
from typing import IO, Any, AnyStr, NamedTuple

from engramsql.data_files import only_ids
from engramsql.errors import ArgumentError

__all__ = ["Cell", "csv_cells", "decimal_words", "exact_json", "json_values", "text_blocks"]

# Read at a time: what is made of the ids of one-word lines is a hundred times as large.
_BLOCK_BYTES = 1 << 19
_MOST_WORD = 1 << 22
# Of a number in text: far more than an id has, and few enough for Python.
_MOST_DIGITS = 1000
# Of one line of CSV or JSON, more than a million ids, which are Python's integers for a while.
_MOST_LINE = 12 << 20


class Cell(NamedTuple):
    """A value of a file of text."""

    line: int
    """Where it stands, 1-based."""
    value: Any


def csv_cells(name: str, column: str | None) -> Iterator[Cell]:
    """The texts of a column of CSV with a header, with their lines.

    Raises:
        ArgumentError: If there is no such column, or several could be meant.
    """
    # Python's limit is the process's, and far below one long sequence.
    csv.field_size_limit(max(csv.field_size_limit(), _MOST_LINE))
    # Strict: otherwise a quote that is not closed would make one cell of all the lines after it.
    with open(name, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(_bounded(file), strict=True)
        header = next(reader, None)
        if header is None:
            raise ArgumentError(f"'{name}' is empty; its first line names the columns")
        if column is None:
            if len(header) != 1:
                raise ArgumentError(
                    f"'{name}' has {len(header)} columns; name one with --column (column=): {', '.join(header)}"
                )
            if only_ids(header[0]):
                raise ArgumentError(
                    f"'{name}' begins with the value '{header[0][:40]}' where the name of the column belongs; put a "
                    f"header before it, or say that this is the name (--column {shlex.quote(header[0][:40])}, column=)"
                )
            position = 0
        elif header.count(column) != 1:
            found = "no" if column not in header else "more than one"
            raise ArgumentError(f"'{name}' has {found} column '{column}'; its columns: {', '.join(header)}")
        else:
            position = header.index(column)
        line = reader.line_num + 1
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise ArgumentError(f"line {line} is no CSV: {error}") from None
            if row is None:
                return
            if row:
                if len(row) != len(header):
                    raise ArgumentError(f"line {line} has {len(row)} cells, and the header {len(header)}")
                yield Cell(line, row[position])
            line = reader.line_num + 1


def json_values(name: str, column: str | None, usable: Callable[[Any], bool]) -> Iterator[Cell]:
    """The values of JSON lines: a member of each object, or what is no object as it is.

    Args:
        name: The file.
        column: The member; by default the only one that is usable.
        usable: Whether a member may be meant.

    Raises:
        ArgumentError: If a line is no JSON, or has no such member.
    """
    with open(name, "rb") as file:
        for number, line in enumerate(_bounded(file), start=1):
            if not line.strip():
                continue
            try:
                yield Cell(number, _member_of(exact_json(line), column, usable))
            except RecursionError:
                raise ArgumentError(f"line {number} is nested too deeply") from None
            except ArgumentError as error:
                raise ArgumentError(f"line {number} {error}") from None
            except ValueError as error:
                raise ArgumentError(f"line {number} is no JSON: {error}") from None


def _bounded(file: IO[AnyStr]) -> Iterator[AnyStr]:
    """The lines of a file.

    Raises:
        ArgumentError: If one is longer than may be in memory.
    """
    for number in count(1):
        line = file.readline(_MOST_LINE + 1)
        if len(line) > _MOST_LINE:
            raise ArgumentError(
                f"line {number} is longer than {_MOST_LINE} bytes; write such a sequence as .txt, .npy or .parquet"
            )
        if not line:
            return
        yield line


def exact_json(text: str | bytes) -> Any:
    """A JSON value, of which nothing is lost.

    Raises:
        ValueError: If it is none, names a member twice, or has a number of thousands of digits.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise
        # Python's words are about its own settings.
        raise ValueError("a number of thousands of digits is no id") from None


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        names = [name for name, _ in members]
        raise ValueError(f"member '{next(name for name in names if names.count(name) > 1)}' is there twice")
    return found


def _member_of(value: Any, column: str | None, usable: Callable[[Any], bool]) -> Any:
    if isinstance(value, dict):
        if column is None:
            members = [name for name, member in value.items() if usable(member)]
            if not members:
                raise ArgumentError(
                    f"has no member with ids; its members: {', '.join(value) or 'none'} (the token ids of a text are "
                    "engram_tokens('ple', text), in a query)"
                )
            if len(members) != 1:
                raise ArgumentError(
                    f"has {len(members)} members that could be meant; name one with --column (column=); its members: "
                    f"{', '.join(value)}"
                )
            column = members[0]
        elif column not in value:
            raise ArgumentError(f"has no member '{column}'; its members: {', '.join(value)}")
        return value[column]
    if column is not None:
        raise ArgumentError(f"is no object with a member '{column}'")
    return value


def text_blocks(name: str) -> Iterator[bytes]:
    """The bytes of a text file in blocks that cut no word; a mark that says that it is UTF-8 is left out.

    Raises:
        ArgumentError: If a word is longer than a block.
    """
    with open(name, "rb") as file:
        start = file.read(len(codecs.BOM_UTF8))
        rest = b"" if start == codecs.BOM_UTF8 else start
        line = 1
        while block := file.read(_BLOCK_BYTES):
            block = rest + block
            # No carriage return: whether a line ends with it is told by what follows.
            end = max(block.rfind(space) for space in (b" ", b"\t", b"\n")) + 1
            line += block.count(b"\n", 0, end)
            rest = block[end:]
            if len(rest) > _MOST_WORD:
                raise ArgumentError(f"line {line} has a word of more than {_MOST_WORD} bytes; ids are decimal numbers")
            if end:
                yield block[:end]
        if rest:
            yield rest


def decimal_words(text: str) -> list[Any]:
    """The numbers of a cell of CSV: a JSON list, or decimal numbers with spaces between them.

    Raises:
        ValueError: If it is neither.
    """
    text = text.strip()
    if text.startswith("["):
        value = exact_json(text)
        if not isinstance(value, list):
            raise ValueError("is no list")
        return value
    words = text.split()
    for word in words:
        if not (word.isascii() and word.removeprefix("-").isdigit()):
            raise ValueError(f"'{word[:40]}' is no decimal number")
        if len(word) > _MOST_DIGITS:
            raise ValueError(f"'{word[:40]}...' is no id: it has {len(word)} digits")
    return list(map(int, words))
