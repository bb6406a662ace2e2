"""How the times of a bench are distributed."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

from engramsql.errors import ArgumentError
from engramsql.pipes import read_bytes
from engramsql.plot.figure import Bars, Range, Ranges
from engramsql.plot.numbers import short

__all__ = ["latency_figure"]

_BARS = 40


def latency_figure(path: str, result: str | None = None) -> Ranges | Bars:
    """Ranges of the samples of each result; a histogram where it is one.

    Args:
        path: What ``engramsql bench --json`` wrote.
        result: Only results with this in their name, or the measurement of this name.

    Raises:
        ArgumentError: If the file is none of those, or has no such result.
    """
    measurements = _measurements(path)
    results = [
        (measurement, entry)
        for measurement, content in measurements
        for entry in content
        if result is None or result == measurement or result.lower() in entry["name"].lower()
    ]
    if not results:
        names = ", ".join(f"'{measurement}'" for measurement, _ in measurements)
        raise ArgumentError(f"'{path}' has no result called '{result}'; its measurements: {names or 'none'}")
    name = Path(path).name
    if len(results) == 1:
        ((measurement, entry),) = results
        return _histogram(name, measurement, entry)
    lines = []
    for measurement, entry in results:
        samples = _samples(entry)
        quartiles = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
        first, median, third = quartiles
        lines.append(Range(f"{measurement}: {entry['name']}", min(samples), first, median, third, max(samples)))
    units = sorted({entry["unit"] for _, entry in results})
    calls = sorted({len(entry["seconds"]) for _, entry in results})
    count = f"{calls[0]}" if len(calls) == 1 else f"{calls[0]} to {calls[-1]}"
    how = "a line from the shortest to the longest, a bar for the middle half, a mark for the median"
    notes = (f"{count} calls of each; {how}",)
    # A clock that stands still makes a time of 0, which has no logarithm.
    log = min(line.low for line in lines) > 0
    x = f"microseconds per {' or '.join(units)}{', logarithmic' if log else ''}"
    return Ranges(f"times of {name}", notes, x, "result", tuple(lines), log=log)


def _measurements(path: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """The results of each measurement of the file."""
    try:
        document = json.loads(read_bytes(Path(path)))
    except OSError as error:
        raise ArgumentError(f"cannot read '{path}': {error.strerror or error}") from error
    except ValueError as error:
        raise ArgumentError(f"'{path}' is no JSON: {error}") from error
    try:
        if document["schema"] != 1:
            raise ArgumentError(f"'{path}' has schema {document['schema']}; this version reads schema 1")
        found = [(name, content["results"]) for name, content in document["measurements"].items()]
        for _, entries in found:
            for entry in entries:
                _check(entry)
    except (KeyError, TypeError, AttributeError, ValueError, ZeroDivisionError) as error:
        raise ArgumentError(f"'{path}' is not what engramsql bench --json writes: {error!r}") from error
    return [(name, [entry for entry in entries if entry["seconds"]]) for name, entries in found]


def _check(entry: dict[str, Any]) -> None:
    """Looks at what a picture uses of a result, so that it is refused before anything is drawn."""
    if not all(isinstance(entry[key], str) for key in ("name", "unit")):
        raise TypeError("name and unit of a result are texts")
    if not all(math.isfinite(sample) for sample in _samples(entry)):
        raise ValueError("a time is not finite")


def _samples(entry: dict[str, Any]) -> list[float]:
    """Microseconds per unit, of each call."""
    return [float(seconds) / entry["units"] * 1e6 for seconds in entry["seconds"]]


def _histogram(name: str, measurement: str, entry: dict[str, Any]) -> Bars:
    samples = _samples(entry)
    low, high = min(samples), max(samples)
    count = 1 if low == high else min(_BARS, max(4, 2 * math.isqrt(len(samples))))
    heights = [0.0] * count
    for sample in samples:
        heights[min(count - 1, int((sample - low) / (high - low) * count)) if high > low else 0] += 1
    edges = tuple(short(low + (high - low) * edge / count) for edge in range(count + 1))
    return Bars(
        f"times of {name}: {measurement}, {entry['name']}",
        (f"{len(samples)} calls, median {short(statistics.median(samples))}",),
        f"microseconds per {entry['unit']}",
        "calls",
        edges,
        tuple(heights),
    )
