"""What a process has in memory, by the kernel's own account."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["OwnPeak", "own_bytes", "own_peak", "peak_bytes"]

_PAUSE_SECONDS = 0.001


def peak_bytes() -> int:
    """The most memory this process ever had, pages of mapped files among it.

    Not getrusage's, which begins with what the parent had at the fork.
    """
    return _status("self", ("VmHWM:",))


def own_bytes(process: int | str = "self") -> int:
    """Memory that is the process's own: without pages of files, which the system takes back when it likes.

    0 once the process has ended.
    """
    try:
        return _status(process, ("RssAnon:", "RssShmem:"))
    except (OSError, ValueError):
        return 0


@dataclass
class OwnPeak:
    """Filled in when the block of :func:`own_peak` ends."""

    bytes: int = 0


@contextmanager
def own_peak() -> Iterator[OwnPeak]:
    """The most that :func:`own_bytes` was of this process inside the block, looked at every millisecond.

    The kernel keeps no such mark: VmHWM counts the pages of mapped files too.
    """
    peak, ended = OwnPeak(own_bytes()), threading.Event()

    def watch() -> None:
        while not ended.wait(_PAUSE_SECONDS):
            peak.bytes = max(peak.bytes, own_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()
        peak.bytes = max(peak.bytes, own_bytes())


def _status(process: int | str, fields: tuple[str, ...]) -> int:
    """Sum of the fields of /proc/PROCESS/status, in bytes."""
    with open(f"/proc/{process}/status", encoding="utf-8") as status:
        return sum(int(line.split()[1]) * 1024 for line in status if line.startswith(fields))
