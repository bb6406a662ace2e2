"""Histogram of the values of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engramsql.errors import FormatError
from engramsql.plot.figure import Bars
from engramsql.plot.numbers import short
from engramsql.plot.tables import DEFAULT_ROWS, ask, sample_of, table_info

if TYPE_CHECKING:
    from engramsql.database import Database

__all__ = ["values_figure"]

_BARS = 64
# Formats whose rows store scales, of which engram_histogram counts the codes alone.
_BLOCK_FORMATS = frozenset(["fp8_e4m3_e8m0", "nvfp4"])


@dataclass(frozen=True)
class _Bin:
    low: float
    high: float
    count: int


def values_figure(database: Database, name: str, rows: int = DEFAULT_ROWS, *, log: bool = False) -> Bars:
    """How often values occur: all rows, or a sample of so many.

    Values of formats with codes of at most 8 bits lie on a linear axis; of wider ones there is a bar per sign and power
    of two, as ``engram_histogram`` counts them.

    Raises:
        UnknownTableError: If there is no such table.
        FormatError: If the table has no value format.
    """
    table = table_info(database, name)
    if table.format is None:
        raise FormatError(f"table '{name}' has no value format; register it with one to see its values")
    sample = sample_of(table.rows, rows)
    runs = " UNION ALL ".join(
        f"SELECT code, low, high, count FROM engram_histogram({table.sql}, {first}, {count})"
        for first, count in sample.runs
    )
    found = ask(database, f"SELECT any_value(code), low, high, sum(count)::BIGINT FROM ({runs}) GROUP BY low, high")
    blocks = table.format in _BLOCK_FORMATS
    coded = any(code is not None for code, *_ in found)
    scale = 1.0 if blocks or table.scale is None else table.scale
    bins = [_Bin(low * scale, high * scale, count) for _, low, high, count in found if _is_finite(low, high)]
    odd = sum(count for _, low, high, count in found if not _is_finite(low, high))
    notes = []
    if odd:
        notes.append(f"{odd:,} values are NaN or infinite, and not shown")
    if blocks:
        notes.append("the rows store scales of their own, which are not applied")
    if not coded:
        notes.append("a bar per sign and power of two; beside zero all that is smaller")
    total = sum(bin_.count for bin_ in bins)
    title = f"values of {table.name}, {sample.words}: {total:,} {table.format} values"
    x = "stored value, before block scales" if blocks else "value"
    edges, heights = _linear(bins) if coded else _powers(bins)
    return Bars(title, tuple(notes), x, "values", tuple(edges), tuple(heights), log)


def _is_finite(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and math.isfinite(low) and math.isfinite(high)


def _linear(bins: list[_Bin]) -> tuple[list[str], list[float]]:
    """Equally wide parts of the range; a value on a border counts to the right."""
    if not bins:
        return ["", ""], [0]
    low, high = min(bin_.low for bin_ in bins), max(bin_.high for bin_ in bins)
    if low == high:
        return [short(low), short(high)], [float(bins[0].count)]
    count = min(_BARS, max(2, len({bin_.low for bin_ in bins})))
    heights = [0.0] * count
    for bin_ in bins:
        heights[min(count - 1, int((bin_.low - low) / (high - low) * count))] += bin_.count
    return [short(low + (high - low) * edge / count) for edge in range(count + 1)], heights


def _powers(bins: list[_Bin]) -> tuple[list[str], list[float]]:
    """A bar per power of two, from the largest negative ones to the largest positive ones, and one for zero.

    What lies next to zero is the smallest power that is shown: of small powers there are hundreds.
    """
    negative = sorted((bin_ for bin_ in bins if bin_.low < 0), key=lambda bin_: bin_.low)
    positive = sorted((bin_ for bin_ in bins if bin_.high > 0), key=lambda bin_: bin_.high)
    zero = sum(bin_.count for bin_ in bins if bin_.low == bin_.high == 0)
    side = (_BARS - 1) // 2
    negative = _merged(negative, side)
    positive = _merged(positive[::-1], side)[::-1]
    edges = [*(short(bin_.low) for bin_ in negative), short(negative[-1].high) if negative else "0"]
    heights = [float(bin_.count) for bin_ in negative]
    heights.append(float(zero))
    edges.append(short(positive[0].low) if positive else "0")
    for bin_ in positive:
        heights.append(float(bin_.count))
        edges.append(short(bin_.high))
    return edges, heights


def _merged(bins: list[_Bin], most: int) -> list[_Bin]:
    """The outermost ``most`` bars; the last of them has all that lies nearer to zero."""
    if len(bins) <= most:
        return bins
    rest = bins[most - 1 :]
    last = _Bin(min(bin_.low for bin_ in rest), max(bin_.high for bin_ in rest), sum(bin_.count for bin_ in rest))
    return [*bins[: most - 1], last]
