"""How far a long statement is: a line on the terminal that is gone afterwards."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

import duckdb

from engramsql.progress import duration, size
from engramsql.shell.terminal import terminal_size

if TYPE_CHECKING:
    from engramsql.shell.reads import Reads

__all__ = ["Estimate", "Estimates", "QueryProgress", "progress_text"]

# Most statements have ended by then.
_QUIET_SECONDS = 0.5
_STEP_SECONDS = 0.2
_ALL = 100.0


@dataclass(frozen=True)
class Estimate:
    """How far a statement is."""

    percentage: float | None = None
    """None if DuckDB does not know, or what it says cannot be."""
    left: float | None = None
    """Seconds to the end at the rate so far; None before there is one."""


class Estimates:
    """What to make of the percentages that DuckDB gives of one statement.

    DuckDB weighs the parts of a plan without knowing how long each takes: a statement may begin at 35 % (what a join
    builds its table of is read), reach 100 % long before its end, or fall back. So the time left is told from the rate
    since the first percentage, and a percentage that falls, or has no room to grow, is shown no more.
    """

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None
        self._last = 0.0
        self._wrong = False

    def after(self, seconds: float, percentage: float) -> Estimate:
        """The estimate after so many seconds.

        Args:
            seconds: How long the statement has been running.
            percentage: What DuckDB says; 0 or less if it does not know.

        Example:
            >>> estimates = Estimates()
            >>> estimates.after(1, 35), estimates.after(3, 45)
            (Estimate(percentage=35, left=None), Estimate(percentage=45, left=11.0))
            >>> estimates.after(4, 40)
            Estimate(percentage=None, left=None)
        """
        self._wrong = self._wrong or 0 < percentage < self._last or percentage >= _ALL
        if self._wrong or percentage <= 0:
            return Estimate()
        self._last = percentage
        if self._first is None:
            self._first = (seconds, percentage)
        since, begun = self._first
        # Before that it is a guess.
        if percentage - begun < 1:
            return Estimate(percentage)
        return Estimate(percentage, (seconds - since) * (_ALL - percentage) / (percentage - begun))


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
        self._estimates = Estimates()
        # The line is drawn by one thread, and hidden by the one that writes the result.
        self._lock = threading.Lock()

    def tick(self, _: float) -> None:
        """Draws the line anew if it is time to."""
        now = time.perf_counter()
        seconds = now - self._started
        if self._stream is None or self._over or seconds < _QUIET_SECONDS or now - self._shown < _STEP_SECONDS:
            return
        self._shown = now
        text = progress_text(seconds, self._estimates.after(seconds, self._percentage()), *self._read())
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


def progress_text(seconds: float, estimate: Estimate, rows: int, bytes: int) -> str:
    """What the line says.

    Args:
        seconds: How long the statement has been running.
        estimate: How far it is.
        rows: Rows read from tables so far.
        bytes: Bytes read so far.

    Example:
        >>> progress_text(4, Estimate(25, 12), 8_000_000, 1_280_000_000)
        '4 s, 25 %, 2,000,000 rows/s, 320.0 MB/s, 12 s left; Ctrl-C ends it'
        >>> progress_text(2, Estimate(), 0, 0)
        '2 s; Ctrl-C ends it'
    """
    parts = [duration(seconds)]
    if estimate.percentage is not None:
        parts.append(f"{estimate.percentage:.0f} %")
    if rows:
        parts += [f"{rows / seconds:,.0f} rows/s", f"{size(bytes / seconds)}/s"]
    if estimate.left is not None:
        parts.append(f"{duration(estimate.left)} left")
    return f"{', '.join(parts)}; Ctrl-C ends it"
