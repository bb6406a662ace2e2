"""The names that are nearest to one that is not known, in messages of DuckDB's and of argparse's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engramsql.quoting import folded, literal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    import duckdb

__all__ = [
    "UNKNOWN",
    "nearest_choice",
    "nearest_names",
    "of_an_empty",
    "record_view_hint",
    "with_nearest",
    "with_nearest_option",
    "with_nearest_table",
]

#: Messages about a name that is not known.
UNKNOWN = (
    re.compile(r"(?P<kind>Table) with name (?P<name>\S+) does not exist"),
    re.compile(r"(?P<kind>Referenced table) \"(?P<name>[^\"]+)\" not found"),
    re.compile(r"no (?P<kind>table) named '(?P<name>[^']+)'"),
    re.compile(r"(?P<kind>Function) with name \"?(?P<name>[^\s\"]+)\"? (?:does not exist|is not in the catalog)"),
    re.compile(r"(?P<kind>Referenced column) \"(?P<name>[^\"]+)\" (?:not found|was not found)"),
    re.compile(r"(?P<kind>unrecognized configuration parameter) \"(?P<name>[^\"]+)\""),
)
# DuckDB's suggestion, or ours that is there already.
_SUGGESTION = re.compile(
    r"\s*Did you mean .*?\?(?=\s|$)|\s*Candidate (?:bindings|tables): .*$|\s*Did you mean: .*$|\s*Nearest: .*$",
    re.DOTALL,
)
_SUGGESTED = re.compile(r'Did you mean "([^"]+)"\?')
_CANDIDATES = re.compile(r"Candidate bindings: (.*)", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: '(?P<word>.*)' \(choose from (?P<known>.*)\)$", re.DOTALL)
_UNRECOGNIZED = "unrecognized arguments: "

_TABLES = (
    "SELECT view_name FROM duckdb_views() WHERE NOT internal UNION ALL SELECT table_name FROM duckdb_tables() "
    "WHERE NOT internal"
)
_RECORD_VIEWS = "SELECT name FROM engram_views() WHERE kind <> 'sql'"
_CATALOG = "SELECT name FROM engram_tables() UNION ALL SELECT name FROM engram_views() LIMIT 1"
_FUNCTIONS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE regexp_matches(function_name, '^[a-z]')"
_SETTINGS = "SELECT name FROM duckdb_settings()"


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """The names most like one that is not known, at most three; case does not matter.

    Example:
        >>> nearest_names("Engram_fetsch", ["engram_fetch", "engram_scan", "sum"])
        ['engram_fetch', 'engram_scan']
    """
    import difflib  # not for --help

    by_folded = {one.lower(): one for one in known}
    return [by_folded[near] for near in difflib.get_close_matches(name.lower(), by_folded, n=3, cutoff=0.6)]


def nearest_choice(message: str) -> str:
    """A message of argparse's, with the nearest choice if a word is none of them.

    Example:
        >>> nearest_choice("argument KIND: invalid choice: 'norm' (choose from 'norms', 'plan')")
        "argument KIND: invalid choice: 'norm' (choose from 'norms', 'plan'); did you mean 'norms'?"
    """
    found = _CHOICE.search(message)
    near = nearest_names(found["word"], re.findall(r"[\w-]+", found["known"])) if found else []
    return f"{message}; did you mean '{near[0]}'?" if near else message


def with_nearest_option(message: str, *parsers: argparse.ArgumentParser) -> str:
    """A message of argparse's, with the nearest option of these parsers if one is not known.

    Example:
        >>> import argparse
        >>> parser = argparse.ArgumentParser()
        >>> _ = parser.add_argument("--replace", action="store_true")
        >>> with_nearest_option("unrecognized arguments: --replce", parser)
        "unrecognized arguments: --replce; did you mean '--replace'?"
    """
    words = message.removeprefix(_UNRECOGNIZED).split() if message.startswith(_UNRECOGNIZED) else []
    word = next((word.partition("=")[0] for word in words if word.startswith("--")), None)
    if word is None:
        return message
    known = [
        option
        for parser in parsers
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--")
    ]
    near = nearest_names(word, known)
    return f"{message}; did you mean '{near[0]}'?" if near else message


def record_view_hint(name: str, connection: duckdb.DuckDBPyConnection) -> str | None:
    """What to say of a name that is a materialised view, which is no relation; None if it is none.

    Raises:
        duckdb.Error: If the views cannot be listed.
    """
    for (view,) in connection.execute(_RECORD_VIEWS).fetchall():
        if folded(view) == folded(name):
            return f"'{view}' is a materialised view: engram_view_fetch({literal(view)}, [0, 1]) reads records of it"
    return None


def with_nearest(text: str, message: str, connection: duckdb.DuckDBPyConnection) -> str:
    """A message with our nearest names instead of DuckDB's, which look at its own tables too.

    Args:
        text: The message in one line.
        message: The message as it is.
        connection: Asked for names.

    Raises:
        duckdb.Error: If it cannot answer.
    """
    found = next(filter(None, (pattern.search(text) for pattern in UNKNOWN)), None)
    if found is None:
        return text
    kind, name = found["kind"], found["name"]
    if kind.lower().endswith("table") and (hint := record_view_hint(name, connection)):
        return f"{_SUGGESTION.sub('', text).rstrip()} {hint}"
    # The engine's message names the nearest; the candidates of a qualifier are the names of FROM: DuckDB lists them.
    if kind in ("table", "Referenced table"):
        return text
    if kind == "Referenced column":
        listed = _CANDIDATES.search(message)
        known = re.findall(r'"([^"]+)"', listed[1]) if listed else []
        near = nearest_names(name, known) or known[:8]
    else:
        question = {"Function": _FUNCTIONS, "unrecognized configuration parameter": _SETTINGS}.get(kind, _TABLES)
        near = nearest_names(name, [row[0] for row in connection.execute(question).fetchall()])
        # What the connection asked does not see, such as a temporary table of another one, DuckDB may know.
        near = near or nearest_names(name, _SUGGESTED.findall(message))
    text = _SUGGESTION.sub("", text).rstrip()
    if not near:
        return text
    names = ", ".join(f'"{one}"' for one in near)
    return f"{text} Did you mean {names}?" if len(near) == 1 else f"{text} Nearest: {names}"


def with_nearest_table(message: str, connection: duckdb.DuckDBPyConnection, label: str) -> str:
    """A message about a table that is not there, with our nearest names; any other one as it is.

    Args:
        message: The message as it is, with the picture of the place if it has one.
        connection: Asked for names, through a cursor: it may hold a result that is not read to its end.
        label: The database, named if it is empty: a directory that was misspelt is a new one.

    Raises:
        duckdb.Error: If it cannot answer.
    """
    text, line, picture = message.partition("\n\nLINE ")
    if not (UNKNOWN[0].search(text) or UNKNOWN[2].search(text)):
        return message
    with connection.cursor() as cursor:
        text = with_nearest(text, text, cursor)
        if label != ":memory:" and not cursor.execute(_CATALOG).fetchall():
            text = f"{text.rstrip()} {of_an_empty(label)}"
        return f"{text}{line}{picture}"


def of_an_empty(label: str) -> str:
    """What to say beside the name of a table that is not there, of a database without tables."""
    return f"({label!r} is an empty database: no table was registered in it)"
