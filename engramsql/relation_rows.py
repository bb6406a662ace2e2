"""The rows of a DuckDB relation as Arrow batches, which end with the last row or with an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

__all__ = ["RelationRows", "refuse_busy", "rows_of"]

# Before DuckDB 2 a second statement on a connection ends the result of the first, which then only seems to be complete,
# and a statement waits for one that is being run, instead of being refused.
_BEFORE_2 = int(duckdb.__version__.partition(".")[0]) < 2
_PATIENCE_SECONDS = 5
# Those that were not answered yet: when they are, they end the result of whoever began another query meanwhile.
_asking: list[threading.Thread] = []


class RelationRows(NamedTuple):
    """The result of a relation."""

    schema: pa.Schema
    """With the names of the relation: of columns ``a`` and ``A``, DuckDB gives the second another one in Arrow."""
    batches: Iterator[pa.RecordBatch]
    """Batches of that schema.

    Raises:
        duckdb.Error: If the query fails, or is ended before its last row.
    """


@contextmanager
def rows_of(relation: DuckDBPyRelation, batch_rows: int) -> Iterator[RelationRows]:
    """Runs a relation; the result is closed at the end of the block, for the connection has one at a time.

    Args:
        relation: The relation.
        batch_rows: Rows of a batch.
    """
    names = list(relation.columns)
    with _marked(relation).to_arrow_reader(batch_rows) as stream:
        found = list(stream.schema)[: len(names)]
        schema = pa.schema([field.with_name(name) for field, name in zip(found, names, strict=True)])
        yield RelationRows(schema, _batches(stream, schema))


def _batches(stream: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    whole = not _BEFORE_2
    while True:
        try:
            batch = stream.read_next_batch()
        except StopIteration:
            break
        except OSError as error:
            # A query that fails after its first rows is an OSError of pyarrow.
            raise duckdb.Error(str(error)) from error
        marks = batch.column(batch.num_columns - 1) if _BEFORE_2 else None
        if marks is not None and pc.any(marks).as_py():
            whole = True
            # It comes last, unless preserve_insertion_order is off.
            last = pc.index(marks, True).as_py() == batch.num_rows - 1
            batch = batch.slice(0, batch.num_rows - 1) if last else batch.filter(pc.invert(marks))
        yield pa.RecordBatch.from_arrays(batch.columns[: len(schema)], schema=schema)
    if not whole:
        raise duckdb.InvalidInputException(
            "another statement on the same connection ended the query before its last row; give each thread a "
            "connection of its own (cursor())"
        )


def _marked(relation: DuckDBPyRelation) -> DuckDBPyRelation:
    """The relation with a last row that says that all were there, where DuckDB does not say it."""
    if not _BEFORE_2:
        return relation
    count = len(relation.columns)
    rows = relation.project(", ".join([*(f"#{position}" for position in range(1, count + 1)), "false"]))
    end = relation.limit(0).aggregate("count(*)").project(", ".join(["NULL"] * count + ["true"]))
    return rows.union(end)


def refuse_busy(relation: DuckDBPyRelation) -> None:
    """Refuses a relation whose connection runs a query, which may be the very one that waits for these rows.

    Raises:
        ArgumentError: If the connection does not take a query that has nothing to do.
    """
    if not _BEFORE_2:
        return  # DuckDB does.
    nothing = relation.limit(0)

    def ask() -> None:
        try:
            nothing.to_arrow_reader().close()
        except Exception:
            # Whatever it is, the relation itself says it where it is read.
            return

    # No daemon: it is waited for at the end of the program, where DuckDB's code cannot be left.
    asking = threading.Thread(target=ask, name="engramsql-ask")
    asking.start()
    _asking.append(asking)
    for thread in tuple(_asking):
        thread.join(_PATIENCE_SECONDS)
    _asking[:] = [thread for thread in _asking if thread.is_alive()]
    if asking.is_alive():
        raise ArgumentError(
            "the connection of the relation is busy with another query, which may be the one that reads these rows; "
            "run that on another connection (cursor())"
        )
