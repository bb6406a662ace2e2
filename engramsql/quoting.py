"""Names and texts as SQL writes them."""

from __future__ import annotations

__all__ = ["folded", "identifier", "literal"]

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def folded(name: str) -> str:
    """``name`` as DuckDB and the catalog compare names: ASCII letters without case, all others as they are.

    Example:
        >>> folded("PLE") == folded("ple"), folded("\u00c4") == folded("\u00e4")
        (True, False)
    """
    return name.translate(_LOWER)


def identifier(name: str) -> str:
    """``name`` as a quoted SQL identifier.

    Example:
        >>> identifier('a "b" c')
        '"a ""b"" c"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """``text`` as a SQL string.

    Example:
        >>> literal("it's")
        "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
