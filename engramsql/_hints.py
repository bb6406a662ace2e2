"""What to write instead, where DuckDB's own message does not say it."""

from __future__ import annotations

import re

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
# DuckDB's wording, up to 2.0; a message that no longer matches is passed on as it is.
_PUZZLES = ("Table function cannot contain subqueries", "does not support lateral join column parameters")


def hinted(query: object, error: Exception) -> Exception:
    """The error itself, or one of its class whose text also says what our table functions take, and what to write."""
    text = str(error)
    if "engram_" in str(query) and any(puzzle in text for puzzle in _PUZZLES):
        return type(error)(f"{text.rstrip()}\n\n{_LIST if _LISTS.search(str(query)) else _CONSTANT}")
    return error


# What DuckDB raises before a statement has begun to run.
_UNBOUND = {"BinderException", "CatalogException", "ParserException", "SyntaxException", "NotImplementedException"}


def must_run_as_written(unread: bool, error: Exception) -> bool:
    """Whether a planned statement failed before it ran, so that what the caller wrote can run.

    Args:
        unread: Whether nothing but binding can have happened.
        error: What DuckDB raised.
    """
    kind = type(error)
    return kind.__module__.split(".")[0] in ("_duckdb", "duckdb") and (unread or kind.__name__ in _UNBOUND)
