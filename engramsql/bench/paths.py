"""Code paths by which rows came in SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engramsql.bench.measure import Contender

if TYPE_CHECKING:
    import duckdb

    from engramsql.bench.measure import Result
    from engramsql.database import Database

__all__ = ["Paths", "rows_by_path"]


def rows_by_path(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Rows that have come in SQL until now, by code path."""
    counted = connection.execute("SELECT path, sum(rows)::BIGINT FROM engram_stats() GROUP BY path").fetchall()
    return dict(counted)


class Paths:
    """Which code paths each of several contenders of one connection took, from its counters before and after."""

    def __init__(self, database: Database) -> None:
        self._connection = database.connection
        self._before = rows_by_path(self._connection)
        self._last: set[str] = set()

    def contender(self, result: Result, prepare: Callable[[], Callable[[], object]]) -> Contender:
        """The contender, whose calls are told from the others'."""
        mine: set[str] = set()

        def counted() -> Callable[[], object]:
            call = prepare()
            self._settle(mine)
            return call

        def path() -> str:
            self._settle(set())
            return ", ".join(sorted(mine))

        return Contender(result, counted, path)

    def _settle(self, following: set[str]) -> None:
        """What has come until now is the last one's."""
        now = rows_by_path(self._connection)
        self._last |= {path for path, rows in now.items() if rows > self._before.get(path, 0)}
        self._before, self._last = now, following
