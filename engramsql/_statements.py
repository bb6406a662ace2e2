"""Running SQL from the caller's point of view.

DuckDB finds Python variables by name in the frames of the call stack, first their locals, then their globals. Ours
stand nearer than the caller's, so this module keeps next to no names: a caller's table called ``errors`` or ``params``
must not be hidden by a variable of ours. For the same reason arguments are put away before DuckDB looks.
"""

from abc import ABC as _ABC
from abc import abstractmethod as _abstractmethod
from functools import partial as _partial
from typing import TYPE_CHECKING as _TYPE_CHECKING

from engramsql._hints import hinted as _hinted

if _TYPE_CHECKING:
    import duckdb


class Statements(_ABC):
    """The two ways to run SQL on a database."""

    @property
    @_abstractmethod
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """The DuckDB connection, with the catalog's tables and views as they are now."""

    def sql(self, query: str, params: object = None) -> "duckdb.DuckDBPyRelation":
        """Runs ``query`` and returns DuckDB's relation, which fetches when asked: ``.to_arrow_table()``, ...

        Args:
            query: One SQL statement, or several of which the last one's result is returned.
            params: Values for ``?`` (a list) or ``$name`` (a dict).

        Raises:
            duckdb.Error: If the statement fails.
            ClosedError: If the database is closed.
        """
        _run = _partial(self.connection.sql, query, params=params)
        _explain = _partial(_hinted, query)
        del self, query, params
        try:
            return _run()
        except Exception as _error:
            raise _explain(_error) from None

    def execute(self, query: str, params: object = None) -> "duckdb.DuckDBPyConnection":
        """Runs ``query`` at once and returns DuckDB's connection, which holds the result: ``.fetchone()``.

        Args:
            query: One SQL statement, or several of which the last one's result is kept.
            params: Values for ``?`` (a list) or ``$name`` (a dict).

        Raises:
            duckdb.Error: If the statement fails.
            ClosedError: If the database is closed.
        """
        _run = _partial(self.connection.execute, query, params)
        _explain = _partial(_hinted, query)
        del self, query, params
        try:
            return _run()
        except Exception as _error:
            raise _explain(_error) from None
