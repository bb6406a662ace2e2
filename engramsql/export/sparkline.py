"""A row of blocks that shows the course of some numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["sparkline"]

_BLOCKS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


def sparkline(values: Sequence[float | None], width: int) -> str:
    r"""The means of ``width`` equal parts of ``values`` from the lowest block (the smallest mean) to the highest.

    NULL, NaN and infinities count for nothing; a part without a number is a space.

    Example:
        >>> sparkline([0, 1, 2, 3], 4) == "\u2581\u2583\u2586\u2588"
        True
    """
    width = min(width, len(values))
    means: list[float | None] = []
    for part in range(width):
        piece = values[part * len(values) // width : (part + 1) * len(values) // width]
        numbers = [value for value in piece if value is not None and math.isfinite(value)]
        # Each is divided first: the sum of large numbers could be infinite.
        means.append(sum(number / len(numbers) for number in numbers) if numbers else None)
    known = [mean for mean in means if mean is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    if low == high:
        return "".join(" " if mean is None else _BLOCKS[3] for mean in means)
    steps = len(_BLOCKS) - 1
    span = high / 2 - low / 2
    return "".join(" " if mean is None else _BLOCKS[round((mean / 2 - low / 2) / span * steps)] for mean in means)
