"""Work that Ctrl-C ends: it has a thread of its own, and the main thread waits for it and hears of the signal.

DuckDB does not look for signals while it makes Arrow batches.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Generic, TypeVar

from engramsql.exit_codes import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

__all__ = ["Interrupts", "Worker", "interruptible"]

T = TypeVar("T")

# How long a wait lasts before Ctrl-C is looked for: a signal that the system gives to another thread does not end a
# wait, its handler runs after it.
_STEP_SECONDS = 0.05
# How long a query may take to stop after Ctrl-C before the process ends without it.
_STOP_SECONDS = 5.0


class Interrupts:
    """Counts Ctrl-C, which does nothing else within :meth:`counted`."""

    def __init__(self) -> None:
        self.count = 0
        self._exit_code: int | None = None
        self._waiting = False

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
            # Not from who has taken it since.
            if signal.getsignal(signal.SIGINT) == self._count:
                signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)

    def _count(self, number: int, frame: object) -> None:
        self.count += 1

    @contextmanager
    def terminated(self) -> Iterator[None]:
        """SIGTERM leaves the block by SystemExit, with the exit code that shells give it; only on the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, self._leave)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)

    def _leave(self, number: int, frame: object) -> None:
        self._exit_code = 128 + number
        self.count += 1
        if not self._waiting:
            raise SystemExit(self._exit_code)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While a thread is waited for, SIGTERM counts as Ctrl-C does, and leaves behind the block.

        Raised inside ``Thread.join``, an exception makes Python up to 3.12 take the thread for ended.
        """
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False
            if self._exit_code is not None:
                raise SystemExit(self._exit_code)


class Worker(Generic[T]):
    """One piece of work on a thread of its own."""

    def __init__(self, work: Callable[[], T], name: str) -> None:
        """Begins it, on a thread of that name."""
        self._work = work
        self._results: list[T] = []
        self._failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # handed to the waiting thread, which raises it
            _let_go(error)
            self._failures.append(error)

    @property
    def thread(self) -> int:
        """Python's number of the thread."""
        assert self._thread.ident is not None
        return self._thread.ident

    def goes_on(self) -> bool:
        """Waits a little, and says whether the work still goes on."""
        self._thread.join(_STEP_SECONDS)
        return self._thread.is_alive()

    def result(self) -> T:
        """What the work returned, or raised, once it has ended."""
        if self._failures:
            raise self._failures[0]
        return self._results[0]


def interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], None]) -> None:
    """Runs ``work`` for a process that ends with it, so that Ctrl-C stops its query at once.

    The connection is never closed under a running query: after Ctrl-C it is interrupted until the work has ended.

    Raises:
        KeyboardInterrupt: If Ctrl-C came, even if the work then ended by itself.
    """
    interrupts = Interrupts()
    # What a parent has set to be ignored stays ignored; None is a handler that Python did not set.
    ignored = signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None)
    with nullcontext() if ignored else interrupts.counted():
        worker = Worker(work, "engramsql-script")
        while worker.goes_on() and not interrupts.count:
            pass
        if interrupts.count:
            _stop(connection, worker, interrupts)
            # The process ends with its own exit code now; one more, while it closes, must not change that. A handler in
            # Python would be taken away too early.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            raise KeyboardInterrupt
    worker.result()


def _stop(connection: duckdb.DuckDBPyConnection, worker: Worker[None], interrupts: Interrupts) -> None:
    """Interrupts until the work has ended: one interrupt is lost if it falls between two statements.

    Work that waits for the reader of its output cannot end; the process then ends without it.
    """
    deadline = time.monotonic() + _STOP_SECONDS
    connection.interrupt()
    while worker.goes_on():
        connection.interrupt()
        if time.monotonic() > deadline or interrupts.count > 1:
            os._exit(INTERRUPTED)


def _let_go(error: BaseException) -> None:
    """Frees what the frames of an error hold: a reader that was not drained blocks its connection."""
    seen: BaseException | None = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__cause__ or seen.__context__
