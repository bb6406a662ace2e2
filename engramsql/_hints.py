"""What to write instead, where DuckDB's own message does not say it."""

from __future__ import annotations

_INSTEAD = (
    "a table function of EngramSQL takes its list as a constant, a parameter or a variable; for lists in columns or "
    "subqueries write FROM (SELECT unnest(ids) AS id FROM ...) with engram_row('table', id) or "
    "engram_vector('table', id) instead, or engram_e_t('table', ids) for whole lists"
)
# DuckDB's wording, up to 2.0; a message that no longer matches is passed on as it is.
_PUZZLES = ("Table function cannot contain subqueries", "does not support lateral join column parameters")


def hinted(query: object, error: Exception) -> Exception:
    """The error itself, or one of its class whose text also says how to pass a list to our table functions."""
    text = str(error)
    if "engram_" in str(query) and any(puzzle in text for puzzle in _PUZZLES):
        return type(error)(f"{text.rstrip()}\n\n{_INSTEAD}")
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
