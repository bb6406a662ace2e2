"""An export that is read while it is computed: an Arrow stream, without a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from engramsql.export.files.pipeline import computed

if TYPE_CHECKING:
    from engramsql.export.files.source import Source
    from engramsql.progress import Progress

__all__ = ["reader"]


def reader(source: Source, schema: pa.Schema, progress: Progress | None) -> pa.RecordBatchReader:
    """All records of a source, computed some batches ahead of whoever reads them.

    Nothing is computed before the first batch is asked for. A reader that is dropped early ends its threads.
    """
    return pa.RecordBatchReader.from_batches(schema, _batches(source, schema, progress))


def _batches(source: Source, schema: pa.Schema, progress: Progress | None) -> Iterator[pa.RecordBatch]:
    with computed(source, lasting=True) as batches:
        for batch, done in batches:
            if progress is not None:
                progress("reading", done, source.total)
            yield batch.replace_schema_metadata(schema.metadata)
            del batch
        source.check_unchanged()
