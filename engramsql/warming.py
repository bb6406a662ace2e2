"""``engramsql warm``: a table's rows into the page cache, and a line that tells how far it is."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

from engramsql.commands import require
from engramsql.database import connect

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ProgressLine", "duration", "size", "warm"]

# More often than that nobody reads a line.
_STEP_SECONDS = 0.1
_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


def warm(path: str, name: str, budget: str | None) -> None:
    """Reads rows of table ``name`` of the database at ``path``, from the first on, and prints what is in memory then.

    Raises:
        ArgumentError: If ``budget`` is no size.
        UnknownTableError: If there is no table of that name.
        ReadError: If a row cannot be read.
    """
    require(path)
    # The row cache would end with this process: without one, rows go to the page cache, which stays.
    with connect(path, read_only=True, ram_budget=0) as database:
        table = database.table(name)
        started = time.perf_counter()
        with ProgressLine(name, sys.stderr) as line:
            done = table.warm(budget, line.show)
        seconds = time.perf_counter() - started
        held = [shard.resident_bytes for shard in table.shards()]
    known = [resident for resident in held if resident is not None]
    resident = f"{sum(known)} of {table.bytes} bytes" if len(known) == len(held) else "an unknown part"
    print(f"{name}: {done} bytes of rows read in {seconds:.1f} s; {resident} in the page cache")


class ProgressLine:
    """One line on a terminal that is written over and over, and gone at the end; nothing elsewhere."""

    def __init__(self, what: str, stream: TextIO | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._what = what
        self._stream = stream if stream is not None and stream.isatty() else None
        self._clock = clock
        self._started = clock()
        self._shown = float("-inf")

    def show(self, done: int, total: int) -> None:
        """Says that ``done`` of ``total`` bytes are done."""
        now = self._clock()
        if self._stream is None or now - self._shown < _STEP_SECONDS:
            return
        self._shown = now
        rate = done / max(now - self._started, 1e-9)
        left = duration((total - done) / rate) if rate else "?"
        text = f"{self._what}: {size(done)} of {size(total)}, {size(rate)}/s, {left} left"
        self._write(f"\r{text}\x1b[K")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown > float("-inf"):
            self._write("\r\x1b[K")


def size(count: float) -> str:
    """Bytes for people, with the units that a budget is written in.

    Example:
        >>> size(999), size(51_200_245_760)
        ('999 bytes', '51.2 GB')
    """
    unit = 0
    # Rounded first: 999.96 would be written as 1000.0.
    while round(count, 1) >= 1000 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:.0f} {_UNITS[0]}" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """A time to wait, for people.

    Example:
        >>> duration(7.2), duration(754)
        ('7 s', '12 min 34 s')
    """
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
