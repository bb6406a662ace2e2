"""What to write instead, where DuckDB's own message does not say it.

A question about a table or a corpus is a macro, and what DuckDB says of a wrong argument is about what the macro is
made of. Such messages are written anew, in the words of the statement. DuckDB's wording is that of 1.5 to 2.0; a
message that no longer matches is passed on as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engramsql._corpus_hints import of_a_corpus
from engramsql._nearest import with_nearest_table
from engramsql.quoting import folded, literal

if TYPE_CHECKING:
    import duckdb

_LISTS = re.compile(r"engram_(?:plan|prefetch|view_fetch)\b", re.IGNORECASE)
_LIST = (
    "engram_plan, engram_prefetch and engram_view_fetch take their list as a constant, a parameter or a variable: "
    "SET VARIABLE ids = (SELECT list(id) FROM ...), then getvariable('ids') as the list"
)
_CONSTANT = (
    "table functions of EngramSQL take the name of a table and the limits of a range as constants, parameters or "
    "variables; for several tables write a query of each and UNION ALL. Lists of engram_fetch and engram_embeddings "
    "may come from columns and subqueries"
)
#: What tells rows of two formats apart, where their bytes cannot be compared.
VALUES_INSTEAD = "compare values with engram_distance, engram_drift or engram_changed_rows"
_PUZZLES = ("Table function cannot contain subqueries", "does not support lateral join column parameters")

_CALLS = re.compile(r"\b(engram_\w+)\s*\(", re.IGNORECASE)
_UNKNOWN = re.compile(r"Table Function with name (engram_\w+) does not exist!\s+Did you mean \"memory\.")
_INSIDE = re.compile(r"argument types '(?:_engram_\w+|engram_heads)\(")
_BARE = re.compile(r'Referenced column "(\w+)" not found in FROM clause')
_TEXT = re.compile(r"(engram_\w+: token ids must be a list of integers, got VARCHAR) '(.*)'", re.DOTALL)
_FIRST = re.compile(r"\bengram_\w+\s*\(\s*('(?:[^']|'')*'|\w+)\s*,", re.IGNORECASE)
_NO_TABLE_FUNCTION = re.compile(r"Table Function with name (\w+) does not exist!")
_IS_A_VIEW = re.compile(r'Existing object "?([^"]+?)"? is of type View, trying to drop type Table')
_OTHER_BYTES = re.compile(r"'(.+)' and '(.+)' cannot be compared: rows of '.+' have \d+ bytes")
_CANDIDATES = re.compile(r"(\n\tCandidate functions:)((?:\n\t[^\n]+)+)")
_OF_A_VECTOR = re.compile(r"argument types '([-+*/])\((?:FLOAT\[\d*\], |[^']*, FLOAT\[\d*\]\))")
#: Candidates of an overloaded function that are shown.
_MOST_CANDIDATES = 3


def hinted(query: object, connection: duckdb.DuckDBPyConnection, label: str, error: Exception) -> Exception:
    """The error itself, or one of its class that says what our functions take, and what to write.

    Args:
        query: The statement.
        connection: Where it failed; asked for the names of tables.
        label: The database, as it was opened.
        error: What DuckDB, or the engine, raised.
    """
    text = str(error)
    called = list(dict.fromkeys(name.lower() for name in _CALLS.findall(str(query))))
    message = _in_words_of(called, str(query), text, connection) if called else None
    if message is None:
        if called and any(puzzle in text for puzzle in _PUZZLES):
            return type(error)(f"{text.rstrip()}\n\n{_LIST if _LISTS.search(str(query)) else _CONSTANT}")
        return _beside(error, text, connection, label)
    # "Binder Error: ", as DuckDB begins its messages.
    kind = re.match(r"[A-Z]\w+(?: \w+)* Error: ", text)
    return type(error)(f"{kind.group() if kind else ''}{message}")


def _beside(error: Exception, text: str, connection: duckdb.DuckDBPyConnection, label: str) -> Exception:
    """The error with what helps beside DuckDB's own words."""
    try:
        if (found := _NO_TABLE_FUNCTION.search(text)) and (message := _scalar(found.group(1), connection)):
            return type(error)(f"{text[: found.start()]}{message}")
        named = _shortened(with_nearest_table(text, connection, label))
        if hint := _hint(text, connection):
            first, line, picture = named.partition("\n\nLINE ")
            named = f"{first.rstrip()}; {hint}{line}{picture}"
    except Exception:  # of a connection that was closed meanwhile: what is to be told is the error itself
        return error
    return error if named == text else type(error)(named)


def _hint(text: str, connection: duckdb.DuckDBPyConnection) -> str | None:
    """What to write instead of what DuckDB, or the engine, refused in plain words."""
    if (found := _IS_A_VIEW.search(text)) and _dims(connection, found.group(1)):
        name = found.group(1)
        return f"it is a table of the catalog: CALL engram_drop({literal(name)}) forgets it (engramsql drop {name})"
    if (found := _OTHER_BYTES.search(text)) and len(set(_dims(connection, *found.groups()))) < 2:
        return VALUES_INSTEAD
    if found := _OF_A_VECTOR.search(text):
        return f"of every value of a vector: list_transform(embedding::FLOAT[], lambda x: x {found.group(1)} 1)"
    return None


def _dims(connection: duckdb.DuckDBPyConnection, *names: str) -> list[int]:
    """Values per row of those names that are tables."""
    with connection.cursor() as cursor:
        rows = cursor.execute("SELECT name, dim FROM engram_tables()").fetchall()
    wanted = {folded(name) for name in names}
    return [dim for name, dim in rows if folded(name) in wanted]


def _shortened(text: str) -> str:
    """A message without most of DuckDB's candidates, which may be fifty lines."""

    def few(found: re.Match[str]) -> str:
        listed = found[2].split("\n")[1:]
        if len(listed) <= _MOST_CANDIDATES + 1:
            return found[0]
        return "\n".join([found[1], *listed[:_MOST_CANDIDATES], f"\tand {len(listed) - _MOST_CANDIDATES} more"])

    return _CANDIDATES.sub(few, text)


def _scalar(name: str, connection: duckdb.DuckDBPyConnection) -> str | None:
    """What to say of a scalar function of ours that stands behind FROM; None if it is none."""
    with connection.cursor() as cursor:
        found = cursor.execute(
            "SELECT name, example FROM engram_functions() WHERE kind = 'scalar' AND name = ?", [name.lower()]
        ).fetchone()
    return f"{found[0]} is a scalar function and gives a value, no table: {found[1]}" if found else None


def _in_words_of(called: list[str], query: str, text: str, connection: duckdb.DuckDBPyConnection) -> str | None:
    """What a message about the inside of a macro means for the call; None if it is not about that."""
    if message := of_a_corpus(called, query, text, connection):
        return message
    if found := _TEXT.search(text):
        first = _FIRST.search(query)
        value = found.group(2)
        shown = literal(value)
        wanted = (
            f"{shown}::BIGINT[]"
            if value.startswith("[")
            else f"engram_tokens({first[1] if first else 'table'}, {shown})"
        )
        return f"{found.group(1)} {shown}; its token ids are {wanted}"
    if found := _UNKNOWN.search(text):
        name = found.group(1)
        return (
            f"{name} is not found where you are: the questions about tables and corpora are in memory.main. Write "
            f"memory.main.{name}(...), or USE memory.main"
        )
    bare = _BARE.search(text)
    if _INSIDE.search(text) or (bare and re.search(rf"\(\s*\"?{re.escape(bare.group(1))}\"?\s*[,)]", query)):
        name = called[0] if len(called) == 1 else "a question about a table"
        return (
            f"{name}: a table is given by its name, as a text ('ple'), or by the path of a checkpoint or store; "
            f"SELECT signature, example FROM engram_functions() WHERE name = '{called[0]}' shows a call"
        )
    return None
