"""Batches computed by some threads while others are written or read, in order and in bounded memory."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

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

    What fails in a thread is raised where the batch would have come. When the block is left, no thread is left.

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
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="engramsql-export")
        self._results: queue.SimpleQueue[tuple[int, _Ready | BaseException | None]] = queue.SimpleQueue()
        # Held by whoever takes the next task, for as long as a query takes to give its next rows.
        self._taking = threading.Lock()
        self._next: Task | None = None
        self._taken = 0
        self._ended = False
        self._threads: set[int] = set()
        # Held for a moment; what follows is used by the caller's thread too.
        self._changing = threading.Lock()
        self._memory = memory
        self._working = 0

    def _work(self) -> None:
        self._threads.add(threading.get_ident())
        while (taken := self._take()) is not None:
            try:
                result: _Ready | BaseException = _Ready(taken.task.compute(taken.memory), taken.task.done, taken.memory)
            except BaseException as error:  # handed to the caller's thread, which raises it
                result = error
            self._results.put((taken.number, result))
            # The batch is to go when the caller lets go of it.
            del taken, result

    def _take(self) -> _Taken | None:
        """The next task, with memory for it; None ends the thread."""
        with self._taking:
            try:
                if self._next is None and not self._ended:
                    self._next = next(self._tasks, None)
                if self._next is None or self._ended:
                    self._end(None)
                    return None
                with self._changing:
                    memory = self._memory.take(self._next.bytes)
                    if memory is None:
                        # Under the same lock: whoever gives some back finds this thread gone, and begins another.
                        self._working -= 1
                        return None
            except BaseException as error:  # handed to the caller's thread, which raises it
                self._end(error)
                return None
            taken = _Taken(self._taken, self._next, memory)
            self._next = None
            self._taken += 1
            return taken

    def _end(self, error: BaseException | None) -> None:
        """No task is taken any more; the caller hears of it behind those that were."""
        if not self._ended:
            self._ended = True
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
        self._pool.submit(self._work)

    def _result(self) -> tuple[int, _Ready | BaseException | None]:
        while True:
            try:
                return self._results.get(timeout=_STEP_SECONDS)
            except queue.Empty:
                continue

    def stop(self) -> None:
        # What has come to its end is not interrupted: that would end what others run on its connection.
        running = not self._ended
        self._ended = True
        if threading.get_ident() in self._threads:
            # Python collects what a caller forgot in any thread. This one ends by itself, and the tasks with the line.
            self._pool.shutdown(wait=False, cancel_futures=True)
            return
        while not self._taking.acquire(timeout=_STEP_SECONDS):
            # One is lost if it falls between two statements.
            if running:
                self._source.interrupt()
        self._taking.release()
        self._pool.shutdown(wait=True, cancel_futures=True)
        # A query ends with its reader.
        self._tasks.close()  # type: ignore[attr-defined]


def waited_for(future: Future[T]) -> T:
    """What a thread makes, as soon as it is there; Ctrl-C ends the wait."""
    while True:
        try:
            return future.result(_STEP_SECONDS)
        except FutureTimeout:
            # Since 3.11 that is the TimeoutError of a computation too.
            if future.done():
                return future.result()
