"""Arrow IPC and Parquet. A query that fails midway leaves no end marker and no footer: nothing that looks whole."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import duckdb

__all__ = ["write_arrow", "write_parquet"]

_BATCH_ROWS = 8192


def write_arrow(relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    """An IPC stream with its end marker."""
    reader = relation.to_arrow_reader(_BATCH_ROWS)
    writer = pa.ipc.new_stream(sink, reader.schema)
    for batch in reader:
        writer.write_batch(batch)
    writer.close()


def write_parquet(relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    """A Parquet file."""
    import pyarrow.parquet as pq

    reader = relation.to_arrow_reader(_BATCH_ROWS)
    writer = pq.ParquetWriter(sink, reader.schema)
    for batch in reader:
        writer.write_batch(batch)
    writer.close()
