"""How wide the columns of a box are, and which of them have no room."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Layout", "Need", "layout"]

# Bars and spaces: one cell on each side of a column, a bar between two, a bar at each end.
_EDGE = 1
_BETWEEN = 3
# The column that stands for those left out shows an ellipsis.
_GAP = 1


@dataclass(frozen=True)
class Need:
    """Terminal cells of one column: what it would take, and the least that it can do with."""

    most: int
    least: int


@dataclass(frozen=True)
class Layout:
    """Columns shown, by position, with their widths; ``gap`` of them stand before those left out, if any are."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    gap: int | None = None


def layout(needs: list[Need], width: int) -> Layout:
    """The widths of columns in a box of at most ``width`` cells; 0 for no limit.

    Wide columns give way first. If that is not enough, columns are left out, from the middle on; the first one stays.

    Example:
        >>> layout([Need(4, 4), Need(40, 10)], 30)
        Layout(columns=(0, 1), widths=(4, 19), gap=None)
    """
    everything = tuple(range(len(needs)))
    if not width or _total([need.most for need in needs]) <= width:
        return Layout(everything, tuple(need.most for need in needs))
    if _total([need.least for need in needs]) <= width:
        return Layout(everything, _shrunk(needs, width))
    before, after = [0], list[int]()
    # From both ends to the middle, as long as there is room beside the gap.
    left, right = 1, len(needs) - 1
    while left <= right:
        column = right if len(after) < len(before) else left
        kept = [*before, *after, column]
        if _total([*(needs[position].least for position in kept), _GAP]) > width:
            break
        if column == right:
            after.insert(0, column)
            right -= 1
        else:
            before.append(column)
            left += 1
    shown = [*before, *after]
    room = max(width - _GAP - _BETWEEN, _total([_GAP])) if left <= right else width
    widths = _shrunk([needs[position] for position in shown], room)
    return Layout(tuple(shown), widths, len(before) if left <= right else None)


def _total(widths: list[int]) -> int:
    return sum(widths) + _BETWEEN * len(widths) + _EDGE


def _shrunk(needs: list[Need], width: int) -> tuple[int, ...]:
    """The widest columns get narrower until all fit; a lone first column even narrower than it should be."""
    widths = [min(need.most, max(need.least, width)) for need in needs]
    over = _total(widths) - width
    while over > 0:
        can = [position for position, need in enumerate(needs) if widths[position] > need.least]
        if not can:
            break
        widest = max(widths[position] for position in can)
        level = [position for position in can if widths[position] == widest]
        # Down to the next narrower one at once: a text of a million cells would take as many steps.
        others = [widths[position] for position in can if widths[position] < widest]
        floor = max([*others, *(needs[position].least for position in level)])
        step = max(1, min(widest - floor, over // len(level)))
        for position in level:
            taken = min(step, over)
            widths[position] -= taken
            over -= taken
    if over > 0 and len(widths) == 1:
        widths[0] = max(1, widths[0] - over)
    return tuple(widths)
