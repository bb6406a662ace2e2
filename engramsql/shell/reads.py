"""What statements read from the tables: differences of engram_stats()."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from engramsql.progress import duration, size

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Counts", "Read", "Reads"]

_QUESTION = "SELECT table_name, path, rows, bytes_read FROM engram_stats()"


@dataclass(frozen=True)
class Counts:
    """Rows and bytes read."""

    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Read:
    """What was read in between; ``paths`` are the code paths that rows came by."""

    rows: int
    bytes: int
    paths: tuple[str, ...]

    def line(self, seconds: float, rows: int | None) -> str:
        """What a statement took, in a line.

        Args:
            seconds: How long it ran.
            rows: Rows of its result, if they were counted.

        Example:
            >>> Read(16, 2560, ("mapped",)).line(0.0021, 1)
            'Time: 2.1 ms, 1 row; read 16 rows, 2.6 KB by mapped'
        """
        time = (
            f"{seconds * 1000:.1f} ms"
            if seconds < 0.9995
            else f"{seconds:.2f} s"
            if seconds < 60
            else duration(seconds)
        )
        result = "" if rows is None else f", {rows:,} row{'' if rows == 1 else 's'}"
        if not self.rows:
            return f"Time: {time}{result}"
        return f"Time: {time}{result}; read {self.rows:,} rows, {size(self.bytes)} by {', '.join(self.paths)}"


class Reads:
    """Asks on a cursor of its own, which may be done while the connection runs a query."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._cursor = connection.cursor()

    def now(self) -> Mapping[tuple[str, str], Counts]:
        """Counts so far, by table and code path."""
        return {
            (table, path): Counts(rows, size) for table, path, rows, size in self._cursor.execute(_QUESTION).fetchall()
        }

    def since(self, before: Mapping[tuple[str, str], Counts]) -> Read:
        """What was read since then."""
        rows = bytes = 0
        paths = []
        for key, counts in self.now().items():
            earlier = before.get(key, Counts())
            if counts.rows > earlier.rows:
                paths.append(key[1])
            rows += counts.rows - earlier.rows
            bytes += counts.bytes - earlier.bytes
        return Read(rows, bytes, tuple(dict.fromkeys(paths)))

    def close(self) -> None:
        """Closes the cursor."""
        self._cursor.close()
