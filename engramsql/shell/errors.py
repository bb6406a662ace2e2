"""Errors as a user reads them: one line with the nearest names, and the line of the statement with a caret."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import duckdb

from engramsql._nearest import UNKNOWN, with_nearest
from engramsql.sql_text import one_line

if TYPE_CHECKING:
    from engramsql.shell.statements import Piece

__all__ = ["Place", "describe", "place_of"]

_PICTURE = re.compile(r"\n\nLINE (\d+): (.*)\n( *)(\^+)\s*$", re.DOTALL)
# DuckDB shortens a long line on both sides.
_CUT = "..."
_WIDEST = 120


class Place:
    """A line of a statement and what in it an error is about."""

    def __init__(self, line: int, text: str, column: int, width: int) -> None:
        """All of it counts from 0.

        Args:
            line: Line of the statement.
            text: That line, perhaps cut to the part that matters.
            column: Where in the text, in columns of a terminal.
            width: How many columns.
        """
        self.line = line
        self.text = text
        self.column = column
        self.width = width

    def drawn(self, first: int) -> str:
        """Two lines: the text, and the carets under the place.

        Args:
            first: Line on which the statement begins, from 0.
        """
        head = f"LINE {self.line + first + 1}: "
        return f"{head}{self.text}\n{' ' * (len(head) + self.column)}{'^' * self.width}"


def describe(error: BaseException, piece: Piece, connection: duckdb.DuckDBPyConnection, params: object = None) -> str:
    """What to show of an error of a statement.

    Args:
        error: What DuckDB, or the engine, raised.
        piece: The statement.
        connection: Where it failed; asked for names and for the place.
        params: The statement's parameters.
    """
    text = one_line(str(error))
    if not isinstance(error, duckdb.Error):
        return text
    place = place_of(str(error), piece.text) or _asked(error, piece.text, connection, params)
    place = place or _searched(text, piece.text)
    with contextlib.suppress(duckdb.Error):
        text = with_nearest(text, str(error), connection)
    return text if place is None else f"{text}\n{place.drawn(piece.line)}"


def place_of(message: str, statement: str) -> Place | None:
    r"""The place that a message of DuckDB's draws, if what it draws is a line of the statement.

    Example:
        >>> place_of('Parser Error: syntax error\n\nLINE 2: FRM t\n        ^^^', 'SELECT 1\nFRM t').drawn(0)
        'LINE 2: FRM t\n        ^^^'
    """
    found = _PICTURE.search(message)
    if found is None:
        return None
    number, text, blank, carets = int(found[1]) - 1, found[2], found[3], found[4]
    lines = statement.split("\n")
    core = text.removeprefix(_CUT).removesuffix(_CUT)
    # The planner, or DuckDB itself, may have run another text.
    if number >= len(lines) or core.strip() not in lines[number].replace("\t", " "):
        return None
    column = len(blank) - len(f"LINE {number + 1}: ")
    return Place(number, text, column, len(carets)) if column >= 0 else None


def _asked(error: duckdb.Error, statement: str, connection: duckdb.DuckDBPyConnection, params: object) -> Place | None:
    """The place as EXPLAIN draws it: a relation is bound without one. EXPLAIN runs nothing."""
    if not isinstance(error, (duckdb.BinderException, duckdb.CatalogException)):
        return None
    if re.match(r"\s*(EXPLAIN|CREATE|SET|CALL|PRAGMA)\b", statement, re.IGNORECASE):
        return None
    try:
        connection.execute(f"EXPLAIN\n{statement}", params)
    except duckdb.Error as again:
        found = _PICTURE.search(str(again))
        if found is None:
            return None
        place = place_of(str(again), f"EXPLAIN\n{statement}")
        if place is None or place.line == 0:
            return None
        return Place(place.line - 1, place.text, place.column, place.width)
    return None


def _searched(text: str, statement: str) -> Place | None:
    """The place of the name that is not known, if it is in the statement just once."""
    found = next(filter(None, (pattern.search(text) for pattern in UNKNOWN)), None)
    if found is None:
        return None
    name = found["name"].rpartition(".")[2].lower().encode()
    data = statement.encode()
    offsets = []
    for offset, _ in duckdb.tokenize(statement):
        # In quotes it is one character further.
        start = offset + (data[offset : offset + 1] in (b"'", b'"'))
        after = data[start + len(name) : start + len(name) + 1]
        if data[start : start + len(name)].lower() == name and not after.isalnum():
            offsets.append(start)
    if len(offsets) != 1:
        return None
    before = data[: offsets[0]].decode()
    line, start = before.count("\n"), before.rfind("\n") + 1
    shown, column = statement.split("\n")[line], len(before) - start
    if len(shown) > _WIDEST:
        left = max(0, column - _WIDEST // 2)
        shown, column = f"{_CUT}{shown[left : left + _WIDEST]}{_CUT}", column - left + len(_CUT)
    return Place(line, shown, column, len(name.decode()))
