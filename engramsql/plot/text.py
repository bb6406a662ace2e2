"""Pictures as lines of text, in blocks or in ASCII, of a given number of terminal cells."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from engramsql.export.visible import cut, pad, visible, width_of
from engramsql.plot.figure import Bars, Ranges, Strips
from engramsql.plot.numbers import linear, logarithmic, short

if TYPE_CHECKING:
    from engramsql.plot.figure import Figure, Range

__all__ = ["LEAST_WIDTH", "lines"]

LEAST_WIDTH = 40
_HEIGHT = 12
_EIGHTHS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_LABEL = 20
_TICK = 10


class _Set:
    """The characters to draw with."""

    def __init__(self, unicode: bool) -> None:
        self.unicode = unicode
        self.side, self.floor, self.corner = ("\u2502", "\u2500", "\u2514") if unicode else ("|", "-", "+")
        self.tick = "\u252c" if unicode else "+"
        self.whisker, self.box, self.median = ("\u2500", "\u2588", "\u2503") if unicode else ("-", "=", "#")
        self.ends = ("\u251c", "\u2524") if unicode else ("|", "|")
        self.ellipsis = "\u2026" if unicode else "..."

    def safe(self, text: str) -> str:
        """A text from outside, such as a name, as it can be shown."""
        shown = visible(text)
        return shown if self.unicode else shown.encode("ascii", "backslashreplace").decode()

    def column(self, fill: float, row: int) -> str:
        """A bar of height ``fill`` (rows) in row ``row`` from the bottom; what is not zero is seen."""
        if not self.unicode:
            return "#" if fill - row >= 0.5 or (row == 0 and fill > 0) else " "
        eighths = round((fill - row) * 8)
        if row == 0 and fill > 0:
            eighths = max(1, eighths)
        return _EIGHTHS[min(8, max(0, eighths))]


def lines(figure: Figure, width: int, *, unicode: bool = True) -> list[str]:
    """The picture in lines of at most ``width`` cells, at least LEAST_WIDTH."""
    width = max(width, LEAST_WIDTH)
    drawn = _Set(unicode)
    out = _wrapped(drawn.safe(figure.title), width)
    if isinstance(figure, Bars):
        out += _bars(figure, width, drawn)
    elif isinstance(figure, Ranges):
        out += _ranges(figure, width, drawn)
    elif isinstance(figure, Strips):
        out += _strips(figure, width, drawn)
    out += [line for note in figure.notes for line in _wrapped(drawn.safe(f"({note})"), width)]
    return [line.rstrip() for line in out]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _bars(figure: Bars, width: int, drawn: _Set) -> list[str]:
    if max(figure.heights, default=0) <= 0:
        return ["nothing to show"]
    # As wide as any number of the axis may be.
    heights, edges = _joined(figure, width - _TICK - 3)
    top = max(heights)
    middle = math.sqrt(top + 1) - 1 if figure.log else top / 2
    ticks = {_HEIGHT - 1: short(top), _HEIGHT // 2 - 1: short(middle)}
    margin = max(map(len, ticks.values())) + 1
    each = (width - margin - 2) // len(heights)
    out = [f"{figure.y}, logarithmic" if figure.log else figure.y]
    for row in range(_HEIGHT - 1, -1, -1):
        bars = "".join(drawn.column(_share(height, top, figure.log) * _HEIGHT, row) * each for height in heights)
        out.append(f"{ticks.get(row, ''):>{margin - 1}} {drawn.side}{bars}")
    out.append(f"{'0':>{margin - 1}} {drawn.corner}{drawn.floor * (each * len(heights))}")
    texts = {position * each: edges[position] for position in range(len(heights) + 1)}
    out.append(" " * (margin + 1) + _ticks(texts, each * len(heights)))
    return [*out, _centred(drawn.safe(figure.x), margin + 1, each * len(heights))]


def _joined(figure: Bars, room: int) -> tuple[list[float], list[str]]:
    """Heights and borders; neighbours become one bar where there is no room for each."""
    each = -(-len(figure.heights) // room)
    starts = range(0, len(figure.heights), each)
    return [sum(figure.heights[start : start + each]) for start in starts], [
        *(figure.edges[start] for start in starts),
        figure.edges[-1],
    ]


def _share(height: float, top: float, log: bool) -> float:
    """The part of the full height; a logarithmic one starts at 0 all the same, and a bar of 1 can be seen."""
    return math.log1p(height) / math.log1p(top) if log else height / top


def _ticks(texts: dict[int, str], room: int) -> str:
    """Texts of some positions of an axis in one line: the ends, then what finds room between, evenly."""
    line = [" "] * (room + 1)
    positions = sorted(texts)
    widest = max(map(len, texts.values()))
    count = max(2, min(6, room // (widest + 4) + 1))
    for step in range(count):
        place = positions[step * (len(positions) - 1) // (count - 1)]
        text = texts[place]
        start = min(max(0, place - len(text) // 2), max(0, room + 1 - len(text)))
        if all(character == " " for character in line[max(0, start - 1) : start + len(text) + 1]):
            line[start : start + len(text)] = text
    return "".join(line).rstrip()


def _centred(text: str, start: int, room: int) -> str:
    return " " * (start + max(0, (room - width_of(text)) // 2)) + text


def _ranges(figure: Ranges, width: int, drawn: _Set) -> list[str]:
    if not figure.lines:
        return ["nothing to show"]
    label = min(max(width_of(drawn.safe(line.label)) for line in figure.lines), max(_LABEL, width // 2))
    low = min(line.low for line in figure.lines)
    high = max(line.high for line in figure.lines)
    values = max(len(short(line.median)) for line in figure.lines)
    room = width - label - values - 3
    place = logarithmic if figure.log else linear

    def at(value: float) -> int:
        return round(place(value, low, high) * (room - 1))

    out = [f"{figure.y}{'median':>{max(0, label + 1 + room + 1 + values - width_of(figure.y))}}"]
    for line in figure.lines:
        name = pad(cut(drawn.safe(line.label), label, drawn.ellipsis, count=False), label)
        out.append(
            f"{name} {_range(line, [at(value) for value in _points(line)], room, drawn)} {short(line.median):>{values}}"
        )
    texts = {step: short(_back(step / (room - 1), low, high, figure.log)) for step in range(room)}
    out.append(" " * (label + 1) + drawn.floor * room)
    out.append(" " * (label + 1) + _ticks(texts, room - 1))
    return [*out, _centred(drawn.safe(figure.x), label + 1, room)]


def _points(line: Range) -> tuple[float, ...]:
    return (line.low, line.first, line.median, line.third, line.high)


def _range(line: Range, places: list[int], room: int, drawn: _Set) -> str:
    low, first, median, third, high = places
    cells = [" "] * room
    cells[low : high + 1] = drawn.whisker * (high + 1 - low)
    cells[low], cells[high] = drawn.ends if high > low else (drawn.median, drawn.median)
    cells[first : third + 1] = drawn.box * (third + 1 - first)
    cells[median] = drawn.median
    return "".join(cells)


def _back(share: float, low: float, high: float, log: bool) -> float:
    if log and low > 0:
        return float(low * (high / low) ** share)
    return low + share * (high - low)


def _strips(figure: Strips, width: int, drawn: _Set) -> list[str]:
    if not figure.lines:
        return ["nothing to show"]
    label = min(max(width_of(drawn.safe(line.label)) for line in figure.lines), _LABEL)
    remark = max(width_of(drawn.safe(line.remark)) for line in figure.lines)
    room = max(8, width - label - remark - 5)
    marks = [mark.text if drawn.unicode else mark.ascii for mark in figure.marks]
    legend = "  ".join(f"{mark} {meaning.meaning}" for mark, meaning in zip(marks, figure.marks, strict=True))
    out = [figure.y]
    for line in figure.lines:
        name = pad(cut(drawn.safe(line.label), label, drawn.ellipsis, count=False), label)
        cells = "".join(marks[_strongest(line.cells, cell, room)] for cell in range(min(room, len(line.cells))))
        out.append(f"{name} {drawn.side}{cells}{drawn.side} {drawn.safe(line.remark)}")
    cells_drawn = min(room, max(len(line.cells) for line in figure.lines))
    out.append(_centred(drawn.safe(figure.x), label + 2, cells_drawn))
    return [*out, *_wrapped(legend, width)]


def _strongest(cells: tuple[int, ...], cell: int, room: int) -> int:
    """The mark of a part of a strip that has more cells than there is room for: none of its marks gets lost."""
    if len(cells) <= room:
        return cells[cell]
    start, end = cell * len(cells) // room, (cell + 1) * len(cells) // room
    return max(cells[start:end])
