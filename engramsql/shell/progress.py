"""How far a long statement is: a line on the terminal that is gone afterwards."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

import duckdb

from engramsql.progress import duration, size
from engramsql.shell.output import terminal_size

if TYPE_CHECKING:
    from engramsql.shell.reads import Reads

__all__ = ["QueryProgress", "progress_text"]

# Most statements have ended by then.
_QUIET_SECONDS = 0.5
_STEP_SECONDS = 0.2


class QueryProgress:
    """The line of one statement. It stays away once the result begins to appear."""

    def __init__(self, stream: TextIO | None, connection: duckdb.DuckDBPyConnection, reads: Reads) -> None:
        """Asks what was read so far, to tell the rate from.

        Args:
            stream: Where the line goes, if that is a terminal; None for nowhere.
            connection: What runs the statement.
            reads: What tells rows and bytes read.
        """
        self._stream = stream if stream is not None and stream.isatty() else None
        self._connection = connection
        self._reads = reads
        self._before = reads.now() if self._stream is not None else {}
        self._started = time.perf_counter()
        self._shown = float("-inf")
        self._visible = self._over = False
        # The line is drawn by one thread, and hidden by the one that writes the result.
        self._lock = threading.Lock()

    def tick(self, _: float) -> None:
        """Draws the line anew if it is time to."""
        now = time.perf_counter()
        seconds = now - self._started
        if self._stream is None or self._over or seconds < _QUIET_SECONDS or now - self._shown < _STEP_SECONDS:
            return
        self._shown = now
        text = progress_text(seconds, self._percentage(), *self._read())
        with self._lock:
            if not self._over:
                # A line that breaks could not be written over.
                self._stream.write(f"\r{text[: terminal_size(2).columns - 1]}\x1b[K")
                self._stream.flush()
                self._visible = True

    def hide(self) -> None:
        """Takes the line away for good."""
        with self._lock:
            self._over = True
            if self._visible and self._stream is not None:
                self._stream.write("\r\x1b[K")
                self._stream.flush()
            self._visible = False

    def _percentage(self) -> float:
        with suppress(duckdb.Error):
            return float(self._connection.query_progress())
        return -1.0

    def _read(self) -> tuple[int, int]:
        with suppress(duckdb.Error):
            read = self._reads.since(self._before)
            return read.rows, read.bytes
        return 0, 0


def progress_text(seconds: float, percentage: float, rows: int, bytes: int) -> str:
    """What the line says.

    Args:
        seconds: How long the statement has been running.
        percentage: How far DuckDB thinks it is; 0 or less if it does not know.
        rows: Rows read from tables so far.
        bytes: Bytes read so far.

    Example:
        >>> progress_text(4, 25, 8_000_000, 1_280_000_000)
        '4 s, 25 %, 2,000,000 rows/s, 320.0 MB/s, 12 s left; Ctrl-C ends it'
        >>> progress_text(2, -1, 0, 0)
        '2 s; Ctrl-C ends it'
    """
    parts = [duration(seconds)]
    if percentage > 0:
        parts.append(f"{min(percentage, 100):.0f} %")
    if rows:
        parts += [f"{rows / seconds:,.0f} rows/s", f"{size(bytes / seconds)}/s"]
    # Before that it is a guess.
    if percentage >= 1:
        parts.append(f"{duration(seconds * (100 - min(percentage, 100)) / percentage)} left")
    return f"{', '.join(parts)}; Ctrl-C ends it"
