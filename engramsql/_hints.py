"""What to write instead, where DuckDB's own message does not say it.

A question about a table or a corpus is a macro, and what DuckDB says of a wrong argument is about what the macro is
made of. Such messages are written anew, in the words of the statement. DuckDB's wording is that of 1.5 to 2.0; a
message that no longer matches is passed on as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engramsql._nearest import with_nearest_table

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
_PUZZLES = ("Table function cannot contain subqueries", "does not support lateral join column parameters")

_CALLS = re.compile(r"\b(engram_\w+)\s*\(", re.IGNORECASE)
#: The questions whose second argument is a corpus.
_OF_A_CORPUS = {
    "engram_collisions", "engram_coverage", "engram_head_load", "engram_hot_rows", "engram_reuse", "engram_row_ngrams",
}  # fmt: skip
_CORPUS = "a table or view with a column tokens (in each row a list of token ids)"
# The second argument is a query.
_QUERY = re.compile(r"\bengram_\w+\s*\(\s*(?:'[^']*'|\w+)\s*,\s*\((.*)", re.IGNORECASE | re.DOTALL)
_WHOLE = re.compile(r"\s*(?:SELECT\s+\*\s+)?FROM\s+(\w+)\s*\)", re.IGNORECASE)
_UNREADABLE = re.compile(r'No extension found that is capable of reading the file "(.+?)"')
_LINES = "read_csv('{file}', columns = {{'line': 'VARCHAR'}}, header = false, delim = '\\t', quote = '')"

_QUERY_TABLE = re.compile(r"argument types 'query_table\((.+?)\)'")
_COLUMN = re.compile(r'"_c" does not have a column named "tokens"')
_MISSING = re.compile(r"Table with name (.+) does not exist!")
_UNKNOWN = re.compile(r"Table Function with name (engram_\w+) does not exist!\s+Did you mean \"memory\.")
_INSIDE = re.compile(r"argument types '(?:_engram_\w+|engram_heads)\(")
_BARE = re.compile(r'Referenced column "(\w+)" not found in FROM clause')
_LENGTH = re.compile(r"argument types 'len\((\w+)")


def hinted(query: object, connection: duckdb.DuckDBPyConnection, error: Exception) -> Exception:
    """The error itself, or one of its class that says what our functions take, and what to write.

    Args:
        query: The statement.
        connection: Where it failed; asked for the names of tables.
        error: What DuckDB, or the engine, raised.
    """
    text = str(error)
    called = "engram_" in str(query).lower()
    message = _in_words_of(str(query), text) if called else None
    if message is None:
        if called and any(puzzle in text for puzzle in _PUZZLES):
            return type(error)(f"{text.rstrip()}\n\n{_LIST if _LISTS.search(str(query)) else _CONSTANT}")
        return _with_nearest_table(error, text, connection)
    # "Binder Error: ", as DuckDB begins its messages.
    kind = re.match(r"[A-Z]\w+(?: \w+)* Error: ", text)
    return type(error)(f"{kind.group() if kind else ''}{message}")


def _with_nearest_table(error: Exception, text: str, connection: duckdb.DuckDBPyConnection) -> Exception:
    try:
        named = with_nearest_table(text, connection)
    except Exception:  # of a connection that was closed meanwhile: what is to be told is the error itself
        return error
    return error if named == text else type(error)(named)


def _in_words_of(query: str, text: str) -> str | None:
    """What a message about the inside of a macro means for the call; None if it is not about that."""
    called = list(dict.fromkeys(name.lower() for name in _CALLS.findall(query)))
    of_a_corpus = [name for name in called if name in _OF_A_CORPUS]
    corpus = of_a_corpus[0] if len(of_a_corpus) == 1 else "a question about a corpus"
    if of_a_corpus:
        if found := _UNREADABLE.search(text):
            return (
                f"{corpus}: SQL cannot read '{found.group(1)}' as a corpus: it takes the name of {_CORPUS}, or of a "
                f"Parquet or JSON lines file with one; {_made_of(found.group(1))}"
            )
        if _PUZZLES[0] in text and (found := _QUERY.search(query)):
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
            return (
                f"{corpus}: the corpus has no column tokens; it must be {_CORPUS}. If yours has another name: "
                "CREATE VIEW docs AS SELECT ids AS tokens FROM ..."
            )
        if found := _LENGTH.search(text):
            return f"{corpus}: the column tokens of the corpus holds {found.group(1)}; it must hold lists of token ids"
        if (found := _MISSING.search(text)) and f"'{found.group(1)}'" in query:
            return f"{corpus}: there is no table or view '{found.group(1)}'; the corpus is {_CORPUS}"
    if found := _UNKNOWN.search(text):
        name = found.group(1)
        return (
            f"{name} is not found where you are: the questions about tables and corpora are in memory.main. Write "
            f"memory.main.{name}(...), or USE memory.main"
        )
    bare = _BARE.search(text)
    if called and (
        _INSIDE.search(text) or (bare and re.search(rf"\(\s*\"?{re.escape(bare.group(1))}\"?\s*[,)]", query))
    ):
        name = called[0] if len(called) == 1 else "a question about a table"
        return (
            f"{name}: a table is given by its name, as a text ('ple'), or by the path of a checkpoint or store; "
            f"SELECT signature, example FROM engram_functions() WHERE name = '{called[0]}' shows a call"
        )
    return None


def _made_of(file: str) -> str:
    """How a file that DuckDB does not read becomes a corpus."""
    if re.search(r"\.(arrows?|ipc|feather|npy|npz|safetensors)$", file, re.IGNORECASE):
        return "read it in Python (pyarrow, numpy, ...) into a table docs with a column tokens, then its name: 'docs'"
    return (
        "of a text file with the ids of a sequence in each line: CREATE TEMP VIEW docs AS SELECT "
        f"string_split(trim(line), ' ')::BIGINT[] AS tokens FROM {_LINES.format(file=file)}; then its name: 'docs'"
    )
