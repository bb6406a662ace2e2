"""The text of SQL statements: where each ends, what it returns, and what DuckDB says of it in one line."""

from __future__ import annotations

import duckdb

__all__ = ["has_rows", "is_comment", "one_line", "parses", "split"]

_QUERY_RESULT = duckdb.ExpectedResultType.QUERY_RESULT
_NOTHING = duckdb.ExpectedResultType.NOTHING
# What DuckDB answers to a statement without a result of its own.
_STATUS_COLUMNS = (["Count"], ["Success"])


def split(script: str) -> list[str]:
    """The statements of ``script`` in order, without their semicolons; comments alone are no statement.

    The ends are found by DuckDB's tokenizer: a semicolon in a string, a comment or a dollar quote ends nothing, and a
    statement that does not parse leaves those before it whole.

    Example:
        >>> split("SELECT ';'; -- done; SELECT 1")
        ["SELECT ';'"]
    """
    text = script.encode()  # the tokenizer counts bytes
    pieces: list[str] = []
    start, empty = 0, True
    for offset, kind in duckdb.tokenize(script):
        if kind == duckdb.token_type.operator and text[offset : offset + 1] == b";":
            if not empty:
                pieces.append(text[start:offset].decode().strip())
            start, empty = offset + 1, True
        elif not is_comment(text, offset):
            empty = False
    rest = text[start:].decode().strip()
    # A comment that is not closed may hide statements: it is handed on, for DuckDB to refuse.
    if not empty or not parses(rest):
        pieces.append(rest)
    return pieces


def has_rows(statement: str, columns: list[str]) -> bool:
    """Whether what DuckDB returned is a result of ``statement``, not a count or a status."""
    expected = {kind for parsed in duckdb.extract_statements(statement) for kind in parsed.expected_result_type}
    if expected == {_QUERY_RESULT}:
        return True
    return expected != {_NOTHING} and columns not in _STATUS_COLUMNS


def one_line(message: str) -> str:
    r"""DuckDB's message without its picture of the statement.

    Example:
        >>> one_line('Parser Error: syntax error\n\nLINE 1: SELEC 1\n        ^')
        'Parser Error: syntax error'
    """
    text = message.split("\n\nLINE ", 1)[0]
    return " ".join(text.split())


def parses(statement: str) -> bool:
    """Whether DuckDB can read it as statements."""
    try:
        duckdb.extract_statements(statement)
    except duckdb.ParserException:
        return False
    return True


def is_comment(text: bytes, offset: int) -> bool:
    """Whether a comment begins at a byte that begins a token."""
    return text[offset : offset + 2] in (b"--", b"/*")
