"""Pictures as PNG and SVG files, drawn by matplotlib without a display."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engramsql.errors import ArgumentError, EngramError
from engramsql.plot.figure import Bars, Ranges, Strips
from engramsql.plot.numbers import short
from engramsql.publishing import new_file

if TYPE_CHECKING:
    from engramsql.plot.figure import Figure

__all__ = ["save"]

_SUFFIXES = (".png", ".svg")
_INCH_PER_LINE = 0.28
_COLOR, _DARK = "#4292c6", "#08306b"


def save(figure: Figure, path: str) -> None:
    """Draws the figure into a file, which appears when it is complete.

    Raises:
        ArgumentError: If the name ends in neither ``.png`` nor ``.svg``.
        StorageError: If the file cannot be written.
        EngramError: If matplotlib is not installed.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _SUFFIXES:
        raise ArgumentError(f"'{path}' ends in neither {' nor '.join(_SUFFIXES)}; name the picture so")
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise EngramError(
            "pictures as files need matplotlib, which is not installed: pip install 'engramsql[plot]'"
        ) from error
    # Names are text: the same picture is the same file, and a title is no formula.
    settings: Any = {"svg.hashsalt": "engramsql", "svg.fonttype": "none", "text.parse_math": False}
    with mpl.rc_context(settings):
        canvas = Canvas(figsize=(9, _height(figure)), layout="constrained")
        FigureCanvasAgg(canvas)
        _draw(figure, canvas.add_subplot())
        canvas.suptitle(figure.title, fontsize="medium", wrap=True)
        canvas.supxlabel("\n".join(figure.notes), fontsize="x-small", wrap=True)
        _write(canvas, target, suffix[1:])


def _write(canvas: Any, target: Path, format: str) -> None:
    with new_file(target, replace=True, parents=False) as file:
        canvas.savefig(file, format=format, dpi=120, metadata={"Date": None} if format == "svg" else None)


def _height(figure: Figure) -> float:
    if isinstance(figure, (Ranges, Strips)):
        return 2.4 + _INCH_PER_LINE * len(figure.lines)
    return 5.0


def _draw(figure: Figure, axes: Any) -> None:
    if isinstance(figure, Bars):
        _bars(figure, axes)
    elif isinstance(figure, Ranges):
        _ranges(figure, axes)
    elif isinstance(figure, Strips):
        _strips(figure, axes)


def _bars(figure: Bars, axes: Any) -> None:
    count = len(figure.heights)
    axes.bar(range(count), figure.heights, width=0.9, align="edge", color=_COLOR)
    places = sorted({step * count // 6 for step in range(7)})
    axes.set_xticks(places, [figure.edges[place] for place in places])
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)
    if figure.log:
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(0, 2 * max(figure.heights))
    axes.yaxis.set_major_formatter(_short)


def _short(value: float, _: int) -> str:
    return short(value)


def _ranges(figure: Ranges, axes: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    places = range(len(figure.lines))
    axes.hlines(places, [line.low for line in figure.lines], [line.high for line in figure.lines], color=_DARK)
    axes.barh(
        places, [line.third - line.first for line in figure.lines], left=[line.first for line in figure.lines],
        height=0.6, color=_COLOR,
    )  # fmt: skip
    axes.plot([line.median for line in figure.lines], places, "|", color=_DARK, markersize=10)
    if figure.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(_short)
    axes.set_yticks(places, [line.label for line in figure.lines])
    axes.invert_yaxis()
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)


def _strips(figure: Strips, axes: Any) -> None:
    from matplotlib.patches import Patch

    for place, line in enumerate(figure.lines):
        colors = [figure.marks[cell].color for cell in line.cells]
        axes.barh([place] * len(colors), [1] * len(colors), left=range(len(colors)), height=0.8, color=colors)
        axes.text(len(colors) + 0.5, place, line.remark, va="center", fontsize="small")
    axes.set_yticks(range(len(figure.lines)), [line.label for line in figure.lines])
    axes.set_xticks([])
    axes.invert_yaxis()
    axes.set_xlabel(figure.x)
    axes.set_frame_on(False)
    patches = [Patch(facecolor=mark.color, label=mark.meaning) for mark in figure.marks]
    axes.legend(
        handles=patches, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4, fontsize="small", frameon=False
    )
