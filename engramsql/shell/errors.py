"""Errors as a user reads them: one line with the nearest names, and the line of the statement with a caret."""

from __future__ import annotations

import contextlib
import difflib
import re
from typing import TYPE_CHECKING

import duckdb

from engramsql.quoting import folded, literal
from engramsql.script import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engramsql.shell.statements import Piece

__all__ = ["Place", "describe", "nearest_names", "place_of", "record_view_hint"]

_PICTURE = re.compile(r"\n\nLINE (\d+): (.*)\n( *)(\^+)\s*$", re.DOTALL)
# DuckDB shortens a long line on both sides.
_CUT = "..."
_SUGGESTION = re.compile(r"\s*Did you mean .*?\?(?=\s|$)|\s*Candidate bindings: .*$|\s*Did you mean: .*$", re.DOTALL)
_UNKNOWN = (
    re.compile(r"(?P<kind>Table) with name (?P<name>\S+) does not exist"),
    re.compile(r"(?P<kind>Referenced table) \"(?P<name>[^\"]+)\" not found"),
    re.compile(r"no (?P<kind>table) named '(?P<name>[^']+)'"),
    re.compile(r"(?P<kind>Function) with name \"?(?P<name>[^\s\"]+)\"? (?:does not exist|is not in the catalog)"),
    re.compile(r"(?P<kind>Referenced column) \"(?P<name>[^\"]+)\" (?:not found|was not found)"),
    re.compile(r"(?P<kind>unrecognized configuration parameter) \"(?P<name>[^\"]+)\""),
)
_CANDIDATES = re.compile(r"Candidate bindings: (.*)", re.DOTALL)
_WIDEST = 120

_TABLES = (
    "SELECT view_name FROM duckdb_views() WHERE NOT internal UNION ALL SELECT table_name FROM duckdb_tables() "
    "WHERE NOT internal"
)
_RECORD_VIEWS = "SELECT name FROM engram_views() WHERE kind <> 'sql'"
_FUNCTIONS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE regexp_matches(function_name, '^[a-z_]')"
_SETTINGS = "SELECT name FROM duckdb_settings()"


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
        text = _with_names(text, str(error), connection)
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


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """The names most like one that is not known, at most three; case does not matter.

    Example:
        >>> nearest_names("Engram_fetsch", ["engram_fetch", "engram_scan", "sum"])
        ['engram_fetch', 'engram_scan']
    """
    by_folded = {one.lower(): one for one in known}
    return [by_folded[near] for near in difflib.get_close_matches(name.lower(), by_folded, n=3, cutoff=0.6)]


def record_view_hint(name: str, connection: duckdb.DuckDBPyConnection) -> str | None:
    """What to say of a name that is a materialised view, which is no relation; None if it is none.

    Raises:
        duckdb.Error: If the views cannot be listed.
    """
    for (view,) in connection.execute(_RECORD_VIEWS).fetchall():
        if folded(view) == folded(name):
            return f"'{view}' is a materialised view: engram_view_fetch({literal(view)}, [0, 1]) reads records of it"
    return None


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
    found = next(filter(None, (pattern.search(text) for pattern in _UNKNOWN)), None)
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


def _with_names(text: str, message: str, connection: duckdb.DuckDBPyConnection) -> str:
    """The message with our nearest names instead of DuckDB's, which look at its own tables too."""
    found = next(filter(None, (pattern.search(text) for pattern in _UNKNOWN)), None)
    if found is None:
        return text
    kind, name = found["kind"], found["name"]
    if kind.lower().endswith("table") and (hint := record_view_hint(name, connection)):
        return f"{_SUGGESTION.sub('', text).rstrip()} {hint}"
    if kind == "table":  # the engine's own message names the nearest
        return text
    if kind == "Referenced column":
        listed = _CANDIDATES.search(message)
        known = re.findall(r'"([^"]+)"', listed[1]) if listed else []
        near = nearest_names(name, known) or known[:8]
    else:
        question = {"Function": _FUNCTIONS, "unrecognized configuration parameter": _SETTINGS}.get(kind, _TABLES)
        near = nearest_names(name, [row[0] for row in connection.execute(question).fetchall()])
    text = _SUGGESTION.sub("", text).rstrip()
    if not near:
        return text
    names = ", ".join(f'"{one}"' for one in near)
    return f"{text} Did you mean {names}?" if len(near) == 1 else f"{text} Nearest: {names}"
