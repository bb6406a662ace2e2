"""Arrow IPC files and streams, and Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from engramsql.export.arrow import CUT
from engramsql.export.files.sink import PipeSink

if TYPE_CHECKING:
    from collections.abc import Callable

    from engramsql.export.files.sink import Sink
    from engramsql.export.files.writer import Layout

__all__ = ["IpcFile", "IpcStream", "Parquet"]


class _Ipc:
    def __init__(self, open_writer: Callable[..., pa.ipc.RecordBatchStreamWriter], layout: Layout, sink: Sink) -> None:
        compression = None if layout.compression == "none" else layout.compression
        options = pa.ipc.IpcWriteOptions(compression=compression)
        self._writer = open_writer(sink, layout.schema, options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds records."""
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Writes the end marker, and the footer of a file."""
        self._writer.close()

    def abandon(self) -> None:
        """Nothing is held."""


class IpcFile(_Ipc):
    """An Arrow IPC file: with a footer that says where its batches are."""

    def __init__(self, layout: Layout, sink: Sink) -> None:
        super().__init__(pa.ipc.new_file, layout, sink)


class IpcStream(_Ipc):
    """An Arrow IPC stream, with its end marker."""

    def __init__(self, layout: Layout, sink: Sink) -> None:
        super().__init__(pa.ipc.new_stream, layout, sink)
        self._sink = sink

    def abandon(self) -> None:
        """Has a pipe end in the middle of a message; of a file nothing is left."""
        if isinstance(self._sink, PipeSink):
            self._sink.write_last(CUT)


class Parquet:
    """A Parquet file, a row group per batch."""

    def __init__(self, layout: Layout, sink: Sink) -> None:
        import pyarrow.parquet as pq

        # Vectors hardly repeat: a dictionary of them would be tried, filled and thrown away.
        small = [field.name for field in layout.schema if not _is_vector(field.type)]
        self._writer = pq.ParquetWriter(
            sink,
            layout.schema,
            compression=layout.compression,
            compression_level=1 if layout.compression == "zstd" else None,
            use_dictionary=small or False,
            write_statistics=small or False,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds records."""
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Writes the footer."""
        self._writer.close()

    def abandon(self) -> None:
        """Marks the writer as closed: it would write its footer when it is collected, and so would what is below it."""
        self._writer.is_open = False


def _is_vector(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_fixed_size_list(type_)
        or pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
    )
