"""A line on a terminal that says how far a long operation is."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, TextIO, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Progress", "ProgressLine", "duration", "elapsed", "size"]

Progress: TypeAlias = "Callable[[str, int, int], object]"
"""Called now and then with a stage, what is done of it, and what is to do; 0 to do is not known."""

# More often than that nobody reads a line.
_STEP_SECONDS = 0.1
_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


class ProgressLine:
    """One line on a terminal that is written over and over, and gone at the end; nothing elsewhere."""

    def __init__(self, what: str, stream: TextIO | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._what = what
        self._stream = stream if stream is not None and stream.isatty() else None
        self._clock = clock
        self._stage = ""
        self._started = clock()
        self._from = 0
        self._shown = float("-inf")

    def show(self, done: int, total: int) -> None:
        """Says that ``done`` of ``total`` bytes are done."""
        self._show(self._what, done, total)

    def show_stage(self, stage: str, done: int, total: int) -> None:
        """Says that ``done`` of ``total`` bytes of a stage are done; each stage has a rate of its own.

        A total of 0 is not known, and what is done then is a count.
        """
        if stage != self._stage:
            # What a resumed operation finds done already was not done at any rate of this run.
            self._stage, self._started, self._from = stage, self._clock(), done
        self._show(f"{self._what}: {stage}", done, total)

    def show_count(self, noun: str, done: int, total: int) -> None:
        """Says that ``done`` of ``total`` things are done; a total of 0 is not known."""
        now = self._clock()
        if self._stream is None or now - self._shown < _STEP_SECONDS:
            return
        if self._stage != noun:
            self._stage, self._started, self._from = noun, now, done
        self._shown = now
        rate = (done - self._from) / max(now - self._started, 1e-9)
        pace = f", {rate:,.0f} {noun}/s" if rate >= 1 else ""
        if pace and total > done:
            pace += f", {duration((total - done) / rate)} left"
        amount = f"{done:,} of {total:,}" if total else f"{done:,}"
        self._line(f"{self._what}: {amount} {noun}{pace}")

    def _show(self, label: str, done: int, total: int) -> None:
        now = self._clock()
        if self._stream is None or now - self._shown < _STEP_SECONDS:
            return
        self._shown = now
        rate = (done - self._from) / max(now - self._started, 1e-9)
        if total:
            # Before the first bytes there is nothing to tell the rate from.
            pace = f", {size(rate)}/s, {duration((total - done) / rate)} left" if rate > 0 else ""
            text = f"{label}: {size(done)} of {size(total)}{pace}"
        else:
            # A corpus that is streamed says at its end how long it was.
            text = f"{label}: {done:,}"
        self._line(text)

    def _line(self, text: str) -> None:
        # A line that breaks could not be written over.
        self._write(f"\r{text[: shutil.get_terminal_size().columns - 1]}\x1b[K")

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


def elapsed(seconds: float) -> str:
    """A time that something took, for people.

    Example:
        >>> elapsed(0.28), elapsed(7.2)
        ('280 ms', '7 s')
    """
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else duration(seconds)


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
