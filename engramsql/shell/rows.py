"""A result on its way to a writer, which counts its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["Counted"]


class Counted:
    """A relation that counts the rows which are read from it in batches; everything else is the relation's own.

    A box reads no more rows than it needs: they are not counted, and it says itself how many there are.
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation, above: Counted | None = None) -> None:
        self._relation = relation
        self._above = above
        #: Rows read so far; None before the first batch.
        self.rows: int | None = None

    def project(self, *expressions: object) -> Counted:
        """The same rows with other columns."""
        return Counted(self._relation.project(*expressions), self)

    def to_arrow_reader(self, batch_size: int = 1_000_000) -> pa.RecordBatchReader:
        """The rows in batches."""
        import pyarrow as pa

        reader = self._relation.to_arrow_reader(batch_size)
        self._add(0)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                self._add(batch.num_rows)
                yield batch

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    def _add(self, rows: int) -> None:
        self.rows = (self.rows or 0) + rows
        if self._above is not None:
            self._above._add(rows)

    def __getattr__(self, name: str) -> object:
        return getattr(self._relation, name)
