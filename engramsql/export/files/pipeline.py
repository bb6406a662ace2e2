"""Batches computed by some threads while others are written or read, in order and in bounded memory."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from engramsql.errors import ClosedError
from engramsql.export.files.memory import LastingMemory, Memory

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from engramsql.export.files.source import Source, Task

__all__ = ["Computed", "computed", "waited_for"]

T = TypeVar("T")

WORKERS = 2
# Records of a file that takes all.
_ONE_FILE = 1 << 62
# How long a wait lasts before Ctrl-C is looked for: a signal that the system gives to another thread ends no wait.
_STEP_SECONDS = 0.05
# How often somebody who reads what the caller gave is told to stop, and for how long that is waited for.
_PAUSE_SECONDS = 0.002
_PATIENCE_SECONDS = 0.8


class Computed(NamedTuple):
    """A batch that was computed."""

    batch: pa.RecordBatch
    """Valid until the next one is asked for, unless they last."""
    done: int
    """Units of the source that are done with it."""


@contextmanager
def computed(
    source: Source, first: int = 0, rows_per_file: int = _ONE_FILE, *, lasting: bool = False
) -> Iterator[Iterator[Computed]]:
    """The batches of a source from record ``first`` on, in order, none of them in two files.

    What fails in a thread is raised where the batch would have come. When the block is left, no thread is left, but for
    one that waits for an iterator of the caller's, or a query of a connection that is not known: it ends with that.

    Args:
        source: What they are made from.
        first: The first record.
        rows_per_file: Records of a file.
        lasting: Whether a batch is valid as long as somebody has it, or a part of it. Its memory is used again after
            that; whoever keeps all of them has all of it in memory.
    """
    line = _Line(source, first, rows_per_file, LastingMemory() if lasting else Memory())
    try:
        # Inside: Ctrl-C may come as soon as a thread runs.
        yield line.batches()
    finally:
        line.stop()


class _Taken(NamedTuple):
    number: int
    task: Task
    memory: NDArray[np.uint8]


class _Ready(NamedTuple):
    batch: pa.RecordBatch
    done: int
    memory: NDArray[np.uint8]


class _Line:
    """Some threads take the tasks in order and compute them, as long as there is memory; the caller takes the batches.

    A thread never waits for the caller: it ends, and the caller has another begin when it gives memory back.
    """

    def __init__(self, source: Source, first: int, rows_per_file: int, memory: Memory) -> None:
        self._source = source
        self._tasks = source.tasks(first, rows_per_file)
        # No pool: those refuse as soon as the main thread has ended, while another may still be reading.
        self._threads: list[threading.Thread] = []
        self._results: queue.SimpleQueue[tuple[int, _Ready | BaseException | None]] = queue.SimpleQueue()
        # Held by whoever takes the next task, for as long as a query takes to give its next rows.
        self._taking = threading.Lock()
        self._next: Task | None = None
        self._taken = 0
        self._ended = False
        # Held for a moment; what follows is used by the caller's thread too.
        self._changing = threading.Lock()
        self._memory = memory
        self._working = 0
        # Those that have something to do, by themselves: Ctrl-C may come while one is begun.
        self._busy: set[int] = set()
        self._stopped = False
        self._process = os.getpid()

    def _work(self) -> None:
        self._busy.add(threading.get_ident())
        try:
            while (taken := self._take()) is not None:
                try:
                    done = taken.task.done
                    result: _Ready | BaseException = _Ready(taken.task.compute(taken.memory), done, taken.memory)
                except BaseException as error:  # handed to the caller's thread, which raises it
                    result = error
                self._results.put((taken.number, result))
                # The batch is to go when the caller lets go of it.
                del taken, result
        finally:
            self._busy.discard(threading.get_ident())

    def _take(self) -> _Taken | None:
        """The next task, with memory for it; None ends the thread."""
        with self._taking:
            if self._stopped:
                return None
            if self._next is None and not self._ended:
                self._next = self._following()
            memory = None
            with self._changing:
                try:
                    if self._next is not None:
                        memory = self._memory.take(self._next.bytes)
                except BaseException as error:  # as above: the system has no more memory, for instance
                    self._end(error)
                if self._next is None or memory is None:
                    self._working -= 1
                    return None
            task, self._next = self._next, None
            self._taken += 1
            return _Taken(self._taken - 1, task, memory)

    def _following(self) -> Task | None:
        """The next task of the source."""
        try:
            task = next(self._tasks, None)
        except BaseException as error:  # handed to the caller's thread, which raises it
            self._end(error)
            return None
        if task is None:
            self._end(None)
        return task

    def _end(self, error: BaseException | None) -> None:
        """There is no task after those that were taken."""
        self._ended, self._next = True, None
        self._results.put((self._taken, error))

    def batches(self) -> Iterator[Computed]:
        for _ in range(WORKERS):
            self._begin()
        early: dict[int, _Ready | BaseException | None] = {}
        number = 0
        while True:
            while number not in early:
                early.update([self._result()])
            ready = early.pop(number)
            number += 1
            if ready is None:
                return
            if isinstance(ready, BaseException):
                raise ready
            memory = ready.memory
            yield Computed(ready.batch, ready.done)
            del ready
            with self._changing:
                self._memory.used(memory)
            del memory
            self._begin()

    def _begin(self) -> None:
        """One more thread, if there may be one."""
        with self._changing:
            if self._working == WORKERS or self._ended:
                return
            self._working += 1
        _refuse_at_the_end()
        thread = threading.Thread(target=self._work, name="engramsql-export")
        self._threads = [*(thread for thread in self._threads if thread.is_alive()), thread]
        thread.start()

    def _result(self) -> tuple[int, _Ready | BaseException | None]:
        while True:
            try:
                return self._results.get(timeout=_STEP_SECONDS)
            except queue.Empty:
                _refuse_at_the_end()

    def stop(self) -> None:
        """Ends the threads. Ctrl-C may come anywhere in here, so that it leaves no lock taken: it takes none."""
        # What has come to its end is not interrupted: that would end what others run on its connection.
        running = not self._ended
        self._stopped = self._ended = True
        if os.getpid() != self._process or sys.is_finalizing():
            # The threads, and what they hold, are in the process that this one was forked from; or they are gone.
            return
        if threading.get_ident() in self._busy:
            # A reader that was part of a cycle is dropped wherever it is found, and no thread can wait for itself.
            return
        patience = time.monotonic() + _PATIENCE_SECONDS
        while self._busy:
            if self._taking.locked():
                if time.monotonic() > patience:
                    return
                if running:
                    # One is lost if it falls between two statements.
                    self._source.interrupt()
            time.sleep(_PAUSE_SECONDS)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        # A query ends with its reader.
        self._tasks.close()  # type: ignore[attr-defined]
        self._memory.close()


def _refuse_at_the_end() -> None:
    """Refuses to wait for threads that the end of the program ends.

    Raises:
        ClosedError: If all that is left of it are daemon threads, or not even those.
    """
    ending = threading.current_thread().daemon and not threading.main_thread().is_alive()
    if ending or sys.is_finalizing():
        raise ClosedError("the program is ending, and with it the threads that compute batches")


def waited_for(future: Future[T]) -> T:
    """What a thread makes, as soon as it is there; Ctrl-C ends the wait."""
    while True:
        try:
            return future.result(_STEP_SECONDS)
        except FutureTimeout:
            # Since 3.11 that is the TimeoutError of a computation too.
            if future.done():
                return future.result()
