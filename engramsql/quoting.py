"""Names and texts as SQL writes them."""

from __future__ import annotations

__all__ = ["identifier", "literal"]


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
