"""What an export is made from: batches to compute, in order, and the schema of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from engramsql.errors import ArgumentError
from engramsql.export.files.values import Values, ValuesName

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engramsql.engine import Table
    from engramsql.export.columns import Column

__all__ = [
    "BATCH_BYTES",
    "MOST_VALUES",
    "Source",
    "Task",
    "chosen",
    "heads_of",
    "next_cut",
    "rows_of_batch",
    "vector_columns",
]

BATCH_BYTES = 12 << 20
"""Bytes of a batch: large enough that a call costs nothing beside it, and a few of them are little memory."""
MOST_VALUES = 2**31 - 1
"""Values in one batch of vectors: Arrow's lists have offsets of 32 bits, and readers multiply rows by width in them."""


class Task(NamedTuple):
    """One batch, not computed yet."""

    bytes: int
    """Memory that the batch is computed in."""
    compute: Callable[[NDArray[np.uint8]], pa.RecordBatch]
    """Computes it in memory of that size, or more; any thread may call it."""
    done: int
    """What the progress line counts: units of the source that are done with this batch."""


@dataclass(frozen=True)
class Source:
    """Something to export."""

    kind: str
    """``table``, ``ids``, ``tokens`` or ``query``."""
    schema: pa.Schema
    tasks: Callable[[int, int], Iterator[Task]]
    """The batches from a record on, cut where a file of so many records is full: a resumed export has the same ones."""
    total: int
    """What ``Task.done`` goes up to; 0 if that is not known."""
    identity: dict[str, Any]
    """What makes this export what it is; another one is not a continuation of it."""
    columns: list[Column] | None = None
    """What the columns are as text, where the Arrow types do not say it."""
    interrupt: Callable[[], None] = field(default=lambda: None)
    """Ends a computation that cannot be waited for."""
    resumable: bool = True
    check_unchanged: Callable[[], None] = field(default=lambda: None)
    """Refuses if the table or a file changed since the export began: what was written would be a bit of both."""


def chosen(columns: Sequence[str] | None, default: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    """The columns asked for, or the usual ones.

    Raises:
        ArgumentError: If one is not known, or given twice.
    """
    if columns is None:
        return list(default)
    names = list(columns)
    for position, name in enumerate(names):
        if name not in known:
            raise ArgumentError(f"no column '{name}' in the export of {what}; its columns: {', '.join(known)}")
        if name in names[:position]:
            raise ArgumentError(f"column '{name}' is given twice")
    if not names:
        raise ArgumentError(f"an export of {what} needs a column; choose from {', '.join(known)}")
    return names


def vector_columns(
    table: Table, names: Sequence[str], decoded: str, stored: str, values: ValuesName | None, rounded: bool, rows: int
) -> dict[str, Values]:
    """What the columns of vectors are made of: the one of decoded values and the one of stored bytes."""
    found: dict[str, Values] = {}
    for name in names:
        if name == decoded:
            if values == "row":
                raise ArgumentError(f"values 'row' is column '{stored}'; leave '{decoded}' out, or name other values")
            found[name] = Values(table, values or "float32", rounded, rows)
        elif name == stored:
            found[name] = Values(table, "row", False, rows)
    return found


def rows_of_batch(bytes_of_row: int, width: int) -> int:
    """Records in one batch."""
    return max(1, min(BATCH_BYTES // max(1, bytes_of_row), MOST_VALUES // max(1, width)))


def next_cut(record: int, rows_per_file: int) -> int:
    """The first record of the next file."""
    return (record // rows_per_file + 1) * rows_per_file


def heads_of(table: Table) -> Callable[[NDArray[np.int64]], pa.Array]:
    """Gives the head of each row id, NULL for a row that no head reaches."""
    heads = table.heads()
    ends = np.array([head.first_row + head.rows for head in heads], dtype=np.int64)

    def head(ids: NDArray[np.int64]) -> pa.Array:
        found = np.searchsorted(ends, ids, side="right").astype(np.int32)
        return pa.array(found, pa.int32(), mask=found >= len(ends))

    return head
