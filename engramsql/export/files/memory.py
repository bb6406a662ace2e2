"""Memory that the batches of an export are computed in, again and again: new pages cost more than most batches."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LastingMemory", "Memory"]

# Batches that wait for the writer or are computed, in bytes: enough that no thread waits for another.
_BUDGET = 48 << 20
# A batch of no bytes takes some too.
_LEAST = 1 << 20


class Memory:
    """Memory that is used again, of bounded size. One thread at a time may use this."""

    def __init__(self) -> None:
        self._used = 0
        self._free: list[NDArray[np.uint8]] = []

    def take(self, size: int) -> NDArray[np.uint8] | None:
        """Memory of at least ``size`` bytes, if there is some; what is larger than all comes alone.

        Raises:
            OSError: If the system has none.
        """
        size = max(size, _LEAST)
        if self._used and self._used + size > _BUDGET:
            return None
        found = self._found(size)
        self._used += len(found)
        return found

    def _found(self, size: int) -> NDArray[np.uint8]:
        for index, memory in enumerate(self._free):
            # Not a hundred megabytes for one: they would be kept forever.
            if size <= len(memory) <= 2 * size + _LEAST:
                return self._free.pop(index)
        self._free.clear()
        return _pages(size)

    def used(self, memory: NDArray[np.uint8]) -> None:
        """The caller is done with the batch in it."""
        self._used -= len(memory)
        self._free.append(memory)


class LastingMemory(Memory):
    """Memory that is used again when nobody has the batch in it any more; what the caller has is not bounded."""

    def __init__(self) -> None:
        super().__init__()
        # It comes back in any thread, at any moment.
        self._returned: deque[NDArray[np.uint8]] = deque(maxlen=_BUDGET // _LEAST)

    def _found(self, size: int) -> NDArray[np.uint8]:
        while self._returned:
            memory = self._returned.popleft()
            if sum(map(len, self._free)) + len(memory) <= _BUDGET:
                self._free.append(memory)
        memory = super()._found(size)
        # An object of its own for each use: it goes when the last array or buffer over it does.
        use: Any = (ctypes.c_uint8 * len(memory)).from_address(memory.ctypes.data)
        weakref.finalize(use, _give_back, memory, weakref.ref(self._returned)).atexit = False
        return np.frombuffer(use, np.uint8)

    def used(self, memory: NDArray[np.uint8]) -> None:
        """The caller may have it, and keep it."""
        self._used -= len(memory)


def _give_back(memory: NDArray[np.uint8], returned: weakref.ref[deque[NDArray[np.uint8]]]) -> None:
    """Has memory used again, while somebody computes: whoever keeps one batch then must not keep that of others too."""
    place = returned()
    if place is not None:
        place.append(memory)


def _pages(size: int) -> NDArray[np.uint8]:
    """Memory of its own pages: malloc would keep it for the thread that asked, long after that has ended."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):
        # A kernel without huge pages knows no such advice.
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)
