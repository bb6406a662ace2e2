"""Output arrays: as a careful caller reuses them, and new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["aligned"]

_ALIGNMENT = 64


def aligned(shape: tuple[int, ...], dtype: Any, *, new: bool = False) -> NDArray[Any]:
    """An array that starts on a cache line.

    Args:
        shape: Its shape.
        dtype: Its type.
        new: Whether its pages come when they are first written, as of any large new array. Otherwise all are there:
            they cost more than a gather.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = (np.empty if new else np.ones)(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array: NDArray[Any] = memory[start : start + size].view(dtype).reshape(shape)
    return array
