"""What to write instead, where a question about a corpus fails: in the words of the call, with the corpus's columns."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["of_a_corpus"]

#: The questions whose second argument is a corpus.
_QUESTIONS = {
    "engram_collisions", "engram_coverage", "engram_head_load", "engram_hot_rows", "engram_reuse", "engram_row_ngrams",
}  # fmt: skip
_CORPUS = "a table or view with a column tokens (in each row a list of token ids)"
_SUBQUERY = "Table function cannot contain subqueries"
# The second argument is a query.
_QUERY = re.compile(r"\bengram_\w+\s*\(\s*(?:'[^']*'|\w+)\s*,\s*\((.*)", re.IGNORECASE | re.DOTALL)
_WHOLE = re.compile(r"\s*(?:SELECT\s+\*\s+)?FROM\s+(\w+)\s*\)", re.IGNORECASE)
_ARGUMENTS = re.compile(
    r"\s*\(\s*(?P<table>'(?:[^']|'')*'|\w+)\s*,\s*(?:'(?P<text>(?:[^']|'')+)'|(?P<name>\"[^\"]+\"|\w+))", re.IGNORECASE
)
_UNREADABLE = re.compile(r'No extension found that is capable of reading the file "(.+?)"')
_LINES = "read_csv('{file}', columns = {{'line': 'VARCHAR'}}, header = false, delim = '\\t', quote = '')"

_QUERY_TABLE = re.compile(r"argument types 'query_table\((.+?)\)'")
_COLUMN = re.compile(r'"_c" does not have a column named "tokens"')
_MISSING = re.compile(r"Table with name (.+) does not exist!")
_LENGTH = re.compile(r"argument types 'len\((\w+)")
_TEXT = re.compile(r"token ids must be a list of integers, got VARCHAR '(.*)'", re.DOTALL)
_INTEGERS = re.compile(r"U?(?:TINY|SMALL|BIG)?INT(?:EGER)?\[\d*\]")
#: Columns that are shown of a corpus without the one that is meant.
_MOST_COLUMNS = 8


def of_a_corpus(called: list[str], query: str, text: str, connection: duckdb.DuckDBPyConnection) -> str | None:
    """What a message about the inside of a macro means for its corpus; None if it is not about that.

    Args:
        called: The functions of ours that the statement calls, in small letters.
        query: The statement.
        text: The message.
        connection: Where it failed; asked for the columns of the corpus, through a cursor.
    """
    questions = [name for name in called if name in _QUESTIONS]
    if not questions:
        return None
    corpus = questions[0] if len(questions) == 1 else "a question about a corpus"
    table, given = _arguments(query, questions)
    if found := _UNREADABLE.search(text):
        return (
            f"{corpus}: SQL cannot read '{found.group(1)}' as a corpus: it takes the name of {_CORPUS}, or of a "
            f"Parquet or JSON lines file with one; {_made_of(found.group(1))}"
        )
    if _SUBQUERY in text and (found := _QUERY.search(query)):
        whole = _WHOLE.match(found.group(1))
        return f"{corpus}: the corpus is named, as a text, and not a query: " + (
            f"give its name: '{whole.group(1)}'"
            if whole
            else "CREATE TEMP VIEW docs AS that query, and give its name: 'docs'"
        )
    if found := _QUERY_TABLE.search(text):
        return (
            f"{corpus}: the corpus is named, as a text ('docs'): {_CORPUS}; got {found.group(1)}. For token ids at "
            "hand: CREATE TEMP TABLE docs AS SELECT [17, 4, 256] AS tokens"
        )
    if _COLUMN.search(text):
        return f"{corpus}: {_without_tokens(table, given, connection)}"
    if found := _TEXT.search(text):
        return f"{corpus}: {_of_texts(table, given, found.group(1))}"
    if found := _LENGTH.search(text):
        return f"{corpus}: the column tokens of the corpus holds {found.group(1)}; it must hold lists of token ids"
    if (found := _MISSING.search(text)) and f"'{found.group(1)}'" in query:
        return f"{corpus}: there is no table or view '{found.group(1)}'; the corpus is {_CORPUS}"
    return None


def _arguments(query: str, questions: list[str]) -> tuple[str, str | None]:
    """The table as it is written, and the corpus as it is written behind FROM, if both can be told."""
    if len(questions) == 1:
        found = re.search(rf"\b{questions[0]}{_ARGUMENTS.pattern}", query, re.IGNORECASE)
        if found:
            return found["table"], found["name"] or _relation(found["text"].replace("''", "'"))
    return "'ple'", None


def _relation(name: str) -> str:
    """A name in a text as it is written behind FROM: a file in single quotes, anything else as a name."""
    from engramsql.quoting import identifier, literal

    if re.fullmatch(r"\w+(\.\w+)*", name) and not os.path.isfile(name):
        return name
    return literal(name) if os.path.isfile(name) or "/" in name or "." in name else identifier(name)


def _without_tokens(table: str, given: str | None, connection: duckdb.DuckDBPyConnection) -> str:
    """What to say of a corpus that has no column tokens: the columns that it has, and how one of them becomes it."""
    if given is not None and given.startswith("'") and _is_empty(given[1:-1]):
        return f"{given} is empty; the corpus is {_CORPUS}"
    columns = _columns(given, connection)
    shown = ", ".join(f"{name} ({kind})" for name, kind in columns[:_MOST_COLUMNS])
    more = f" and {len(columns) - _MOST_COLUMNS} more" if len(columns) > _MOST_COLUMNS else ""
    said = f"the corpus has no column tokens{f' but {shown}{more}' if shown else ''}; it must be {_CORPUS}"
    from engramsql.quoting import identifier

    lists = [name for name, kind in columns if _INTEGERS.fullmatch(kind)]
    texts = [name for name, kind in columns if kind == "VARCHAR"]
    name, relation = ("docs", given) if given != "docs" else ("corpus", given)
    if lists:
        chosen = f"SELECT {identifier(lists[0])} AS tokens FROM {relation}"
    elif texts:
        chosen = f"SELECT engram_tokens({table}, {identifier(texts[0])}) AS tokens FROM {relation}"
    else:
        return f"{said}. If yours has another name: CREATE TEMP VIEW docs AS SELECT ids AS tokens FROM ..."
    kind = "If that is the one" if lists else "If that is a text"
    return f"{said}. {kind}: CREATE TEMP VIEW {name} AS {chosen}; then its name: '{name}'"


def _of_texts(table: str, given: str | None, value: str) -> str:
    """What to say of a column tokens that holds texts, as a CSV file has lists."""
    relation, name = given or "...", "corpus" if given == "docs" else "docs"
    cast = value.lstrip().startswith("[")
    chosen = "tokens::BIGINT[]" if cast else f"engram_tokens({table}, tokens)"
    return (
        f"the column tokens of the corpus holds texts; it must hold lists of token ids"
        f"{' (a CSV file has none)' if cast else ''}: CREATE TEMP VIEW {name} AS SELECT {chosen} AS tokens "
        f"FROM {relation}; then its name: '{name}'"
    )


def _is_empty(file: str) -> bool:
    try:
        return os.path.getsize(file) == 0
    except OSError:
        return False


def _columns(relation: str | None, connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Name and type of its columns; none if they cannot be told, as of a temporary table."""
    if relation is None:
        return []
    try:
        # A cursor: the connection may hold a result that is not read to its end.
        with connection.cursor() as cursor:
            return [(name, kind) for name, kind, *_ in cursor.execute(f"DESCRIBE FROM {relation}").fetchall()]
    except Exception:  # what is to be told is the error itself
        return []


def _made_of(file: str) -> str:
    """How a file that DuckDB does not read becomes a corpus."""
    if re.search(r"\.(arrows?|ipc|feather|npy|npz|safetensors)$", file, re.IGNORECASE):
        return "read it in Python (pyarrow, numpy, ...) into a table docs with a column tokens, then its name: 'docs'"
    return (
        "of a text file with the ids of a sequence in each line: CREATE TEMP VIEW docs AS SELECT "
        f"string_split(trim(line), ' ')::BIGINT[] AS tokens FROM {_LINES.format(file=file)}; then its name: 'docs'"
    )
