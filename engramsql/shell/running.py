"""One piece of work of a session at a time: Ctrl-C ends it at once, and the terminal says meanwhile how far it is."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from engramsql.interrupting import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from engramsql.interrupting import Interrupts

    T = TypeVar("T")

__all__ = ["Runner"]

# DuckDB's and the engine's own work has ended by then; what has not is Python's.
_PATIENCE_SECONDS = 0.4


class Runner:
    """Runs one piece of work at a time."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        #: Set from Ctrl-C to the end of the work: whatever waits for something else than DuckDB looks at it.
        self.cancelled = threading.Event()

    def run(self, work: Callable[[], T], stop: Callable[[], None], tick: Callable[[float], None]) -> T:
        """The result of ``work``.

        Args:
            work: Runs on a thread of its own.
            stop: Interrupts it, from this thread; called until it has ended, for one interrupt is lost if it falls
                between two queries.
            tick: Called now and then meanwhile, from this thread, with the seconds that have gone.

        Raises:
            KeyboardInterrupt: If Ctrl-C ended it.
        """
        if threading.current_thread() is not threading.main_thread():
            # A script runs beside the main thread already, which hears of Ctrl-C.
            return work()
        self.cancelled.clear()
        before, started = self._interrupts.count, time.perf_counter()
        with self._interrupts.waiting():
            worker = Worker(work, "engramsql-statement")
            while worker.goes_on() and self._interrupts.count == before:
                tick(time.perf_counter() - started)
            if self._interrupts.count > before:
                # It may have ended by itself already: it ended what the work was talking to.
                self._stop(worker, stop)
                raise KeyboardInterrupt
            return worker.result()

    def _stop(self, worker: Worker[Any], stop: Callable[[], None]) -> None:
        """Returns when the work has ended: what its frames hold would block the connection."""
        self.cancelled.set()
        asked = time.perf_counter()
        stop()
        while worker.goes_on():
            stop()
            if time.perf_counter() - asked > _PATIENCE_SECONDS:
                asked = time.perf_counter()
                # Raised in that thread at its next step in Python; a call into native code ends first.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.thread), ctypes.py_object(_Stopped))


class _Stopped(SystemExit):
    """What ends Python code on another thread; a thread that it catches on its way out says nothing of it."""
