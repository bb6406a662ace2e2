"""An export into one file, which is there whole or not at all, or into a pipe."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql.errors import ArgumentError
from engramsql.export.files.pipeline import computed
from engramsql.export.files.sink import PipeSink, Sink
from engramsql.export.files.writer import open_writer
from engramsql.publishing import new_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engramsql.export.files.source import Source
    from engramsql.export.files.writer import FileWriter, Layout
    from engramsql.progress import Progress

__all__ = ["Written", "filling", "write_file", "write_pipe"]


@dataclass(frozen=True)
class Written:
    """What was written."""

    rows: int
    bytes: int


@dataclass
class Filling:
    """A file that is being filled."""

    writer: FileWriter
    sink: Sink


@contextmanager
def filling(layout: Layout, sink: Sink) -> Iterator[Filling]:
    """A writer for an open file: completed at the end of the block, abandoned by an exception."""
    writer = None
    try:
        writer = open_writer(layout, sink)
        yield Filling(writer, sink)
        writer.close()
    except BaseException:
        if writer is not None:
            writer.abandon()
        raise
    finally:
        sink.detach()


def write_file(path: Path, layout: Layout, source: Source, *, replace: bool, progress: Progress | None) -> Written:
    """Writes all records of a source into one file.

    Raises:
        ArgumentError: If it exists and is not to be replaced, or a value has no place in it.
        StorageError: If the system refuses.
    """
    if not replace and os.path.lexists(path):
        if not (path.is_file() or path.is_dir() or path.is_symlink()):
            raise ArgumentError(f"'{path}' is a device or a pipe; name a file, or '-' for standard output (engramsql)")
        raise ArgumentError(f"'{path}' exists already; name a new file, or replace it (--replace, replace=True)")
    if path.is_dir():
        raise ArgumentError(f"'{path}' is a directory; name a file, or write several into it with --rows-per-file")
    with new_file(path, replace=replace) as file:
        return _fill(Sink(file.fileno()), layout, source, progress)


def write_pipe(descriptor: int, layout: Layout, source: Source, progress: Progress | None) -> Written:
    """Writes all records of a source, in order, to what a descriptor leads to.

    Raises:
        BrokenPipeError: If nobody reads any longer.
        ArgumentError: If a value has no place in it.
        StorageError: If the table or a file changed meanwhile.
    """
    return _fill(PipeSink(descriptor), layout, source, progress)


def _fill(sink: Sink, layout: Layout, source: Source, progress: Progress | None) -> Written:
    rows = 0
    with filling(layout, sink) as filled, computed(source) as batches:
        for batch, done in batches:
            filled.writer.write(batch)
            rows += batch.num_rows
            if progress is not None:
                progress("writing", done, source.total)
        source.check_unchanged()
    return Written(rows, sink.size)
