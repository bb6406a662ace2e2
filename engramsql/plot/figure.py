"""What a picture shows, as data: drawn as text in ``text.py``, into files in ``image.py``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bars", "Figure", "Line", "Mark", "Range", "Ranges", "Strips"]


@dataclass(frozen=True)
class Figure:
    """What all pictures have: a title that says of what it is, and notes on what was left out or only sampled."""

    title: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Bars(Figure):
    """A histogram of equally wide bars.

    Args:
        x: What the bars are of, with its unit.
        y: What their height is.
        edges: Texts of the borders between bars, one more than there are bars.
        heights: Their heights.
        log: Whether the height is logarithmic.
    """

    x: str
    y: str
    edges: tuple[str, ...]
    heights: tuple[float, ...]
    log: bool = False


@dataclass(frozen=True)
class Range:
    """One line of a picture of ranges: lowest, quartiles, highest."""

    label: str
    low: float
    first: float
    median: float
    third: float
    high: float


@dataclass(frozen=True)
class Ranges(Figure):
    """Ranges one below the other on a common axis, from the lowest value to the highest."""

    x: str
    y: str
    lines: tuple[Range, ...]
    log: bool = False


@dataclass(frozen=True)
class Mark:
    """What a cell of a strip may be: its meaning, how it is drawn as text, in ASCII, and its colour in a file."""

    meaning: str
    text: str
    ascii: str
    color: str


@dataclass(frozen=True)
class Line:
    """One strip: a label, cells as positions in the marks, and what there is to say of it."""

    label: str
    cells: tuple[int, ...]
    remark: str


@dataclass(frozen=True)
class Strips(Figure):
    """A map: strips of equally many cells, each of one mark."""

    x: str
    y: str
    marks: tuple[Mark, ...]
    lines: tuple[Line, ...]
