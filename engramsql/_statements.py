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
from engramsql.planner.rerun import may_run_as_written as _may_run_as_written

if _TYPE_CHECKING:
    import duckdb

    from engramsql.planner.explain import Explanation


class Statements(_ABC):
    """The two ways to run SQL on a database."""

    @property
    @_abstractmethod
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """The DuckDB connection, with the catalog's tables and views as they are now."""

    @property
    @_abstractmethod
    def label(self) -> str:
        """What was opened."""

    @_abstractmethod
    def _planned(self, query: str, at_once: bool) -> "tuple[duckdb.DuckDBPyConnection, str | Explanation | None]":
        """The connection, and what to run instead of a statement, if there is something better."""

    def sql(self, query: str, params: object = None) -> "duckdb.DuckDBPyRelation":
        """Runs ``query`` and returns DuckDB's relation, which fetches when asked: ``.to_arrow_table()``, ...

        Where the statement names row ids, by constants, parameters, lists, ranges, subqueries or joins, only those rows
        are read; ``EXPLAIN`` says so in its first lines.

        Args:
            query: One SQL statement, or several of which the last one's result is returned.
            params: Values for ``?`` (a list) or ``$name`` (a dict).

        Raises:
            duckdb.Error: If the statement fails.
            ClosedError: If the database is closed.
        """
        _connection, _plan = self._planned(query, False)
        _run = _partial(_connection.sql, query, params=params)
        _better = None
        if isinstance(_plan, str):
            _better = _partial(_connection.sql, _plan, params=params)
        elif _plan is not None:
            _better = _partial(_plan.relation, _connection, params)
        _explain = _partial(_hinted, query, _connection, self.label)
        _again = _partial(_may_run_as_written, query, params is None and isinstance(_plan, str))
        del self, query, params, _connection, _plan
        if _better is not None:
            try:
                return _better()
            except Exception as _error:
                if not _again(_error):
                    raise _explain(_error) from None
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
        _connection, _plan = self._planned(query, True)
        _run = _partial(_connection.execute, query, params)
        _better = None
        if isinstance(_plan, str):
            _better = _partial(_connection.execute, _plan, params)
        elif _plan is not None:
            _better = _partial(_plan.execute, _connection, params)
        _explain = _partial(_hinted, query, _connection, self.label)
        _again = _partial(_may_run_as_written, query, False)
        del self, query, params, _connection, _plan
        if _better is not None:
            try:
                return _better()
            except Exception as _error:
                if not _again(_error):
                    raise _explain(_error) from None
        try:
            return _run()
        except Exception as _error:
            raise _explain(_error) from None
