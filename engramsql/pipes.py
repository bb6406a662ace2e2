"""Files that may be pipes, whose other end may come late or never: every wait for it is made of short ones.

A thread that waits in the system cannot be told that its work was ended; one that waits in Python can.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["open_to_write", "read_bytes"]

_WAIT_MILLISECONDS = 50
_PIECE = 1 << 20


def read_bytes(path: Path) -> bytes:
    """All bytes of a file; of a pipe, all that its writers write until the last of them closes it.

    Raises:
        OSError: If it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return file.read()
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        pieces: list[bytes] = []
        while True:
            if not waiting.poll(_WAIT_MILLISECONDS):
                continue
            try:
                piece = os.read(descriptor, _PIECE)
            except BlockingIOError:
                continue
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


def open_to_write(path: Path, check: Callable[[], None]) -> int:
    """A descriptor of a pipe or device that does not block; of a pipe, once somebody reads it.

    Args:
        path: Where it is.
        check: Called while nobody reads; what it raises ends the wait.

    Raises:
        OSError: If it cannot be written.
    """
    while True:
        try:
            # What is behind a descriptor may be a file after all, to which others write too.
            return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO or not stat.S_ISFIFO(os.stat(path).st_mode):
                raise
        check()
        time.sleep(_WAIT_MILLISECONDS / 1000)
