"""An export that is read while it is computed: an Arrow stream, without a file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from engramsql.errors import ClosedError
from engramsql.export.files.pipeline import computed

if TYPE_CHECKING:
    from engramsql.export.files.source import Source
    from engramsql.progress import Progress

__all__ = ["reader"]


def reader(source: Source, schema: pa.Schema, progress: Progress | None) -> pa.RecordBatchReader:
    """All records of a source, computed some batches ahead of whoever reads them.

    Nothing is computed before the first batch is asked for. A reader that is dropped early ends its threads.
    """
    return pa.RecordBatchReader.from_batches(schema, _Records(_batches(source, schema, progress)))


def _batches(source: Source, schema: pa.Schema, progress: Progress | None) -> Iterator[pa.RecordBatch]:
    with computed(source, lasting=True) as batches:
        for batch, done in batches:
            if progress is not None:
                progress("reading", done, source.total)
            yield batch.replace_schema_metadata(schema.metadata)
            del batch
        source.check_unchanged()


class _Records:
    """The batches, each given once, whatever number of threads ask for them.

    A generator that failed seems to be complete to whoever asks again: here what ended it is said once more.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        # Reentrant: a progress function that asks for a batch is refused by the generator, and does not hang.
        self._asking = threading.RLock()
        self._process = os.getpid()
        self._failed: str | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        # First: another thread may have had the lock when the process was forked.
        if os.getpid() != self._process:
            raise ClosedError("the stream belongs to the process that began it; begin one in this process")
        with self._asking:
            if self._failed is not None:
                raise ClosedError(f"the stream ended early ({self._failed}); begin a new one")
            try:
                return next(self._batches)
            except StopIteration:
                raise
            except BaseException as error:
                # Its text: the error itself has the frames with their batches.
                self._failed = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                raise
