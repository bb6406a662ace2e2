"""A line from a terminal that cannot move its cursor, which edits the line itself."""

from __future__ import annotations

import os
import select
import signal
import sys

__all__ = ["read_line"]


def read_line(prompt: str) -> str:
    """The line that follows ``prompt``, without its end. Bytes that are no UTF-8 are kept as Python keeps them.

    Python's own ``input`` would miss a Ctrl-C that comes just before it waits, and one that the system gives to another
    thread; here it ends the wait whenever it comes.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
        EOFError: If there is no more.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    before = signal.getsignal(signal.SIGINT)
    descriptor = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # Not before: who sees it may press Ctrl-C.
        sys.stdout.write(prompt)
        sys.stdout.flush()
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([sys.stdin, woken], [], [])
            if woken in ready:
                # What a signal does has been done by now; not every one ends the line.
                os.read(woken, 64)
            if sys.stdin not in ready:
                continue
            more = os.read(sys.stdin.fileno(), 65536)
            if not more and not line:
                raise EOFError
            line += more or b"\n"
        return line[:-1].decode(errors="surrogateescape")
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(descriptor)
        os.close(woken)
        os.close(wake)
