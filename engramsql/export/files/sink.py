"""The file or pipe that an export writes to: what was written goes to the disk while more is computed.

Left to itself, the system would keep gigabytes of it: the sync at the end would take seconds that Ctrl-C cannot end,
and the pages would take the place of those of the table.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import sys
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PipeSink", "Sink"]

# Writing out begins for each of these, and is waited for when there are a few of them.
_WINDOW = 16 << 20
_BEHIND = 4
_INTERRUPTED_MILLISECONDS = 500
_NOT_KNOWN = frozenset({errno.ENOSYS, errno.EINVAL, errno.ESPIPE, errno.EOPNOTSUPP})
# linux/fs.h: wait for what is being written, begin to write, wait for that.
_WAIT_BEFORE, _WRITE, _WAIT_AFTER = 1, 2, 4


class Sink:
    """A file opened for writing, as far as Arrow, zipfile and NumPy need one.

    Args:
        descriptor: The open file; the caller closes it.
        keep: Whether its pages stay in memory: somebody will read it again soon.
    """

    def __init__(self, descriptor: int, *, keep: bool = False) -> None:
        self._descriptor, self._keep = descriptor, keep
        self._position = self._size = self._begun = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Writes all of ``data``.

        Raises:
            OSError: If it cannot be written; of a pipe that nobody reads any longer it is BrokenPipeError.
        """
        if self._descriptor < 0:
            raise ValueError("write to a file that was given up")
        view = memoryview(data).cast("B")
        count = len(view)
        while len(view):
            # Some file systems take 2 GiB at most in one call, and all may take a part.
            done = self._write(view)
            self._position += done
            view = view[done:]
        self._size = max(self._size, self._position)
        while self._size - self._begun >= _WINDOW:
            self._push(self._begun)
            self._begun += _WINDOW
        return count

    def _write(self, view: memoryview) -> int:
        """Writes some of it where the sink is, and says how much."""
        return os.pwrite(self._descriptor, view, self._position)

    def _push(self, start: int) -> None:
        """Begins to write out the window at ``start``, and ends that of one before."""
        _range_to_disk(self._descriptor, start, _WINDOW, _WRITE)
        behind = start - _BEHIND * _WINDOW
        if behind >= 0:
            _range_to_disk(self._descriptor, behind, _WINDOW, _WAIT_BEFORE | _WRITE | _WAIT_AFTER)
            if not self._keep:
                os.posix_fadvise(self._descriptor, behind, _WINDOW, os.POSIX_FADV_DONTNEED)

    def detach(self) -> None:
        """Writes nothing any more: a writer that is collected late would write into what has its descriptor then."""
        self._descriptor, self.closed = -1, True

    def tell(self) -> int:
        """Bytes from the beginning."""
        return self._position

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        """Goes to another place."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + position
        return self._position

    def seekable(self) -> bool:
        """It is."""
        return True

    def writable(self) -> bool:
        """It is."""
        return True

    def readable(self) -> bool:
        """It is not."""
        return False

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """The descriptor stays open, for whoever opened it."""

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._size


class PipeSink(Sink):
    """Standard output, which is written in order; where it leads is not for an export to sync."""

    def _write(self, view: memoryview) -> int:
        return os.write(self._descriptor, view)

    def _push(self, start: int) -> None:
        """Nothing: what was written is on its way."""

    def write_last(self, data: bytes) -> None:
        """Writes a few bytes after a failure, unless nobody reads any longer; after Ctrl-C it waits half a second."""
        interrupted = isinstance(sys.exc_info()[1], KeyboardInterrupt)
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLOUT)
        if waiting.poll(_INTERRUPTED_MILLISECONDS if interrupted else None):
            with suppress(OSError):
                os.write(self._descriptor, data)

    def seekable(self) -> bool:
        """It is not."""
        return False


@lru_cache(maxsize=1)
def _sync_file_range() -> Callable[..., int] | None:
    function: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]  # type: ignore[attr-defined]
    return function


def _range_to_disk(descriptor: int, start: int, length: int, flags: int) -> None:
    """Has some bytes on the disk early.

    Raises:
        OSError: If writing out failed: the system tells each failure once, so the sync at the end would not hear of it.
    """
    function = _sync_file_range()
    if function is not None and function(descriptor, start, length, flags) != 0:
        number = ctypes.get_errno()
        # What is not known of this system, or of this file, is only not done early.
        if number not in _NOT_KNOWN:
            raise OSError(number, os.strerror(number))
