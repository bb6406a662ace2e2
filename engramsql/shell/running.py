"""Work on a thread of its own, so that Ctrl-C ends it at once and the terminal says meanwhile how far it is."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    T = TypeVar("T")

__all__ = ["Interrupts", "Runner"]

# How long a wait lasts before Ctrl-C is looked for.
_STEP_SECONDS = 0.05
# DuckDB's and the engine's own work has ended by then; what has not is Python's.
_PATIENCE_SECONDS = 0.4


class Interrupts:
    """Counts Ctrl-C, which does nothing else while the session lasts."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Takes Ctrl-C until the end of the block; only on the main thread, where Python hears of it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, self._count)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)

    def _count(self, number: int, frame: object) -> None:
        self.count += 1


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
        results: list[T] = []
        failures: list[BaseException] = []

        def body() -> None:
            try:
                results.append(work())
            except BaseException as error:  # handed to the waiting thread, which raises it
                _let_go(error)
                failures.append(error)

        self.cancelled.clear()
        before, started = self._interrupts.count, time.perf_counter()
        thread = threading.Thread(target=body, name="engramsql-statement", daemon=True)
        thread.start()
        while _runs(thread):
            if self._interrupts.count > before:
                self._stop(thread, stop)
                raise KeyboardInterrupt
            tick(time.perf_counter() - started)
        if self._interrupts.count > before:
            # It ended what the work was talking to, before this thread looked.
            raise KeyboardInterrupt
        if failures:
            raise failures[0]
        return results[0]

    def _stop(self, thread: threading.Thread, stop: Callable[[], None]) -> None:
        """Returns when the thread has ended: what its frames hold would block the connection."""
        self.cancelled.set()
        asked = time.perf_counter()
        stop()
        while _runs(thread):
            stop()
            if time.perf_counter() - asked > _PATIENCE_SECONDS and thread.ident is not None:
                asked = time.perf_counter()
                # Raised in that thread at its next step in Python; a call into native code ends first.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped))


class _Stopped(SystemExit):
    """What ends Python code on another thread; a thread that it catches on its way out says nothing of it."""


def _runs(thread: threading.Thread) -> bool:
    thread.join(_STEP_SECONDS)
    return thread.is_alive()


def _let_go(error: BaseException) -> None:
    """Frees what the frames of an error hold: a reader that was not drained blocks its connection."""
    seen: BaseException | None = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__cause__ or seen.__context__
