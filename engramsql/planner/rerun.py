"""When a statement that was planned and failed may run as it was written."""

from __future__ import annotations

import re

__all__ = ["may_run_as_written"]

# What DuckDB raises before a statement has begun to run.
_UNBOUND = {"BinderException", "CatalogException", "ParserException", "SyntaxException", "NotImplementedException"}
# What ends a statement, whoever wrote it.
_FINAL = {"InterruptException", "FatalException"}
# These alone change nothing, so that a second run is no second effect. (WITH before anything else is not planned.)
_QUERY = re.compile(r"\s*(?:EXPLAIN\b[^()']*)?(?:SELECT|FROM|WITH|\()", re.IGNORECASE)


def may_run_as_written(statement: object, bound_only: bool, error: Exception) -> bool:
    """Whether a planned statement failed for a reason that it may not have as it was written, and did nothing yet.

    Args:
        statement: The statement.
        bound_only: Whether a query was bound and not run yet: a relation, which fetches later.
        error: What DuckDB raised.
    """
    name = type(error).__name__
    if type(error).__module__.split(".")[0] not in ("_duckdb", "duckdb") or name in _FINAL:
        return False
    if name in _UNBOUND:
        return True
    return isinstance(statement, str) and bool(_QUERY.match(statement)) and (bound_only or name == "InternalException")
