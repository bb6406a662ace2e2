"""Output arrays as a careful caller reuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["aligned"]

_ALIGNMENT = 64


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array that starts on a cache line and whose pages are all there: fresh pages cost more than a gather."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.ones(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array: NDArray[Any] = memory[start : start + size].view(dtype).reshape(shape)
    return array
