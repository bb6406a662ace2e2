"""A result on its way to a writer: how many rows it had, and plans, which are text already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["Counted", "plan_text"]

_PLAN = ["explain_key", "explain_value"]
# Under this key the planner says what is read.
_OURS = "engramsql"


class Counted:
    """A relation that counts the rows which are read from it in batches; everything else is the relation's own."""

    def __init__(self, relation: duckdb.DuckDBPyRelation, above: Counted | None = None) -> None:
        self._relation = relation
        self._above = above
        #: Rows read so far; None before the first batch.
        self.rows: int | None = None

    def project(self, *expressions: object) -> Counted:
        """The same rows with other columns."""
        return Counted(self._relation.project(*expressions), self)  # type: ignore[arg-type]

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


def plan_text(relation: duckdb.DuckDBPyRelation) -> str | None:
    """The plans of an EXPLAIN as text, what is read of the tables first; None if it is something else."""
    if list(relation.columns) != _PLAN:
        return None
    parts = []
    for key, value in relation.fetchall():
        text = str(value).strip("\n")
        parts.append("\n".join(f"{key}: {line}" for line in text.split("\n")) if key == _OURS else text)
    return "\n".join(parts) + "\n"
