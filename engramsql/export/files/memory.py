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
# Usual batches have 12 MB. What holds a long sequence may have a hundred, and is not kept for another.
_LARGEST_AGAIN = 16 << 20
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

    def close(self) -> None:
        """Keeps nothing for later batches: there will be none."""
        self._free.clear()


class _Use(weakref.ref[Any]):
    """Tells when nobody has memory any more that was given away, and has it then."""

    __slots__ = ("memory",)
    memory: NDArray[np.uint8]


class LastingMemory(Memory):
    """Memory that is used again when nobody has the batch in it any more; what the caller has is not bounded."""

    def __init__(self) -> None:
        super().__init__()
        # What comes back between two batches is used again; what is more goes. Whoever keeps a single batch keeps this.
        self._returned: deque[_Use] = deque(maxlen=_BUDGET // _LARGEST_AGAIN + 1)

    def _found(self, size: int) -> NDArray[np.uint8]:
        if size > _LARGEST_AGAIN:
            return _pages(size)
        while self._returned:
            memory = self._returned.popleft().memory
            if sum(map(len, self._free)) + len(memory) <= _BUDGET:
                self._free.append(memory)
        memory = super()._found(size)
        # An object of its own for each use: it goes when the last array or buffer over it does.
        holder: Any = (ctypes.c_uint8 * len(memory)).from_address(memory.ctypes.data)
        # It comes back in any thread, at any moment. No line of Python may run then: in the main thread, Ctrl-C would
        # be noticed there, where nobody can be told.
        use = _Use(holder, self._returned.append)
        use.memory = memory
        # Nobody else has it: of what is collected with its user, or comes back to a full deque, the memory goes.
        holder.use = use
        return np.frombuffer(holder, np.uint8)

    def used(self, memory: NDArray[np.uint8]) -> None:
        """The caller may have it, and keep it."""
        self._used -= len(memory)

    def close(self) -> None:
        super().close()
        self._returned.clear()


def _pages(size: int) -> NDArray[np.uint8]:
    """Memory of its own pages: malloc would keep it for the thread that asked, long after that has ended."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):
        # A kernel without huge pages knows no such advice.
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)
