"""What every kind of file has in common."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

    from engramsql.export.columns import Column
    from engramsql.export.files.formats import FileFormat
    from engramsql.export.files.sink import Sink

__all__ = ["FileWriter", "Layout", "open_writer"]


@dataclass(frozen=True)
class Layout:
    """What is the same for all files of one export."""

    format: FileFormat
    schema: pa.Schema
    """With the metadata of the schema and its fields."""
    compression: str
    columns: list[Column] | None
    """What the columns are as text, where their types do not say it."""
    directory: Path
    """Where columns may wait that come after others in the file."""


class FileWriter(Protocol):
    """Fills one file with batches."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds records, whose memory is another's when this returns."""

    def close(self) -> None:
        """Completes the file; without this it does not look whole."""

    def abandon(self) -> None:
        """Lets go of everything, and completes nothing."""


def open_writer(layout: Layout, sink: Sink) -> FileWriter:
    """A writer for one file.

    Raises:
        ArgumentError: If a column has no place in files of this format.
    """
    module, name = layout.format.writer
    make: Callable[[Layout, Sink], Any] = getattr(importlib.import_module(module), name)
    writer: FileWriter = make(layout, sink)
    return writer


def refused(format: str, name: str, type_: object, remedy: str) -> ArgumentError:
    """The error for a column that has no place in a format."""
    return ArgumentError(f"column '{name}' ({type_}) cannot be written as {format}; {remedy}")
