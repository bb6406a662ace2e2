"""Batches computed by some threads while others are written, in order and in bounded memory."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from engramsql.export.files.source import Source

__all__ = ["Computed", "computed", "waited_for"]

T = TypeVar("T")

WORKERS = 2
# Batches that wait for the writer or are computed, in bytes: enough that no thread waits for another.
_BUDGET = 48 << 20
# A batch of no bytes takes some too.
_LEAST = 1 << 20
# How long a wait lasts before Ctrl-C is looked for: a signal that the system gives to another thread ends no wait.
_STEP_SECONDS = 0.05


class Computed(NamedTuple):
    """A batch that was computed."""

    batch: pa.RecordBatch
    """Valid until the next one is asked for."""
    done: int
    """Units of the source that are done with it."""


@contextmanager
def computed(source: Source, first: int, rows_per_file: int) -> Iterator[Iterator[Computed]]:
    """The batches of a source from record ``first`` on, in order, none of them in two files.

    What fails in a thread is raised where the batch would have come. When the block is left, no thread is left.
    """
    line = _Line(source, first, rows_per_file)
    try:
        # Inside: Ctrl-C may come as soon as the thread runs.
        line.start()
        yield line.batches()
    finally:
        line.stop()


class _Memory:
    """Memory that is used again, of bounded size."""

    def __init__(self, budget: int) -> None:
        self._budget, self._used = budget, 0
        self._free: list[NDArray[np.uint8]] = []
        self._changed = threading.Condition()
        self._stopped = False

    def take(self, size: int) -> NDArray[np.uint8] | None:
        """Memory of at least that size as soon as there is some; what is larger than all comes alone. None: stopped."""
        size = max(size, _LEAST)
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._used == 0 or self._used + size <= self._budget)
            if self._stopped:
                return None
            for index, memory in enumerate(self._free):
                # Not a hundred megabytes for one: they would be kept forever.
                if size <= len(memory) <= 2 * size + _LEAST:
                    found = self._free.pop(index)
                    break
            else:
                self._free.clear()
                found = _aligned(size)
            self._used += len(found)
            return found

    def give(self, memory: NDArray[np.uint8]) -> None:
        with self._changed:
            self._used -= len(memory)
            self._free.append(memory)
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class _Started(NamedTuple):
    future: Future[pa.RecordBatch]
    memory: NDArray[np.uint8]
    done: int


class _Line:
    """One thread walks through the tasks, some compute them, and the caller takes the batches."""

    def __init__(self, source: Source, first: int, rows_per_file: int) -> None:
        self._source = source
        self._memory = _Memory(_BUDGET)
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="engramsql-export")
        self._started: queue.SimpleQueue[_Started | BaseException | None] = queue.SimpleQueue()
        self._tasks = source.tasks(first, rows_per_file)
        self._feeder = threading.Thread(target=self._feed, name="engramsql-export-tasks", daemon=True)
        self._stopped = threading.Event()

    def start(self) -> None:
        self._feeder.start()

    def _feed(self) -> None:
        try:
            # A thread that comes late finds nobody who would wait for it.
            for task in self._tasks if not self._stopped.is_set() else ():
                memory = self._memory.take(task.bytes)
                if memory is None:
                    break
                self._started.put(_Started(self._pool.submit(task.compute, memory), memory, task.done))
        except BaseException as error:  # handed to the caller's thread, which raises it
            self._started.put(error)
        finally:
            # A query ends with its reader, in the thread that read it.
            self._tasks.close()  # type: ignore[attr-defined]
            self._started.put(None)

    def batches(self) -> Iterator[Computed]:
        while (item := self._next()) is not None:
            if isinstance(item, BaseException):
                raise item
            batch = waited_for(item.future)
            yield Computed(batch, item.done)
            del batch
            self._memory.give(item.memory)
        # It has nothing to do any more: to interrupt it would interrupt what others run on its connection.
        self._feeder.join()

    def _next(self) -> _Started | BaseException | None:
        while True:
            try:
                return self._started.get(timeout=_STEP_SECONDS)
            except queue.Empty:
                continue

    def stop(self) -> None:
        self._stopped.set()
        self._memory.stop()
        while self._feeder.is_alive():
            # One is lost if it falls between two statements.
            self._source.interrupt()
            self._feeder.join(_STEP_SECONDS)
        self._pool.shutdown(wait=True, cancel_futures=True)


def waited_for(future: Future[T]) -> T:
    """What a thread makes, as soon as it is there; Ctrl-C ends the wait."""
    while True:
        try:
            return future.result(_STEP_SECONDS)
        except FutureTimeout:
            # Since 3.11 that is the TimeoutError of a computation too.
            if future.done():
                return future.result()


def _aligned(size: int) -> NDArray[np.uint8]:
    """Memory that begins where a cache line does."""
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]
