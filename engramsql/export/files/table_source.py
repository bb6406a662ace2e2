"""The rows of a table, all of them or those of some ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from engramsql.export.files.identity import table_identity
from engramsql.export.files.source import Source, Task, chosen, heads_of, next_cut, rows_of_batch, vector_columns
from engramsql.id_files import IdBlock

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from engramsql.engine import Table
    from engramsql.export.files.values import Values, ValuesName

__all__ = ["ids_source", "table_source"]

# Columns that are made from the row ids, with the bytes of one value.
_SMALL = {"ord": (pa.int64(), 8), "rowid": (pa.int64(), 8), "head": (pa.int32(), 4)}


def table_source(
    table: Table, columns: Sequence[str] | None, values: ValuesName | None, rounded: bool, nulls: bool
) -> Source:
    """All rows of a table, in order.

    Args:
        table: The table.
        columns: Columns, in order.
        values: Type of the values.
        rounded: Whether float16 may round.
        nulls: Whether the files can hold NULL, which the head of a row is that no head reaches.

    Raises:
        ArgumentError: If a column is not known.
        FormatError: If the rows cannot be decoded and are asked to be.
    """
    known = ["rowid", "head", "embedding", "row"]
    usual = ["rowid", *(["head"] if nulls else []), "row" if values == "row" else "embedding"]
    names = chosen(columns, usual, known, f"table '{table.name}'")
    vectors = vector_columns(table, names, "embedding", "row", values, rounded, 1)
    build = _Batches(table, names, vectors, scanned=True)

    def tasks(first: int, rows_per_file: int) -> Iterator[Task]:
        begin = first
        while begin < table.rows:
            end = min(begin + build.rows, table.rows, next_cut(begin, rows_per_file))
            yield build.task(begin, IdBlock(np.arange(begin, end, dtype=np.int64)), end * table.row_bytes)
            begin = end

    return Source(
        kind="table",
        schema=build.schema,
        tasks=tasks,
        total=table.rows * table.row_bytes,
        identity={"table": table_identity(table), **_choices(names, values, rounded)},
    )


def ids_source(
    table: Table,
    blocks: Callable[[], Iterable[IdBlock]],
    origin: object,
    columns: Sequence[str] | None,
    values: ValuesName | None,
    rounded: bool,
    nulls: bool,
) -> Source:
    """The rows of some ids, in the order given, duplicates kept; a NULL id gives a record of NULLs.

    Args:
        table: The table.
        blocks: Makes the ids anew.
        origin: What tells them from others without reading them, or None.
        columns: Columns, in order.
        values: Type of the values.
        rounded: Whether float16 may round.
        nulls: Whether the files can hold NULL.
    """
    known = ["ord", "rowid", "head", "embedding", "row"]
    usual = ["ord", "rowid", *(["head"] if nulls else []), "row" if values == "row" else "embedding"]
    names = chosen(columns, usual, known, f"row ids of table '{table.name}'")
    vectors = vector_columns(table, names, "embedding", "row", values, rounded, 1)
    build = _Batches(table, names, vectors, scanned=False)

    def tasks(first: int, rows_per_file: int) -> Iterator[Task]:
        at = 0
        for ids, valid, *_ in blocks():
            begin = max(0, first - at)
            while begin < len(ids):
                end = min(begin + build.rows, len(ids), next_cut(at + begin, rows_per_file) - at)
                block = IdBlock(ids[begin:end], None if valid is None else valid[begin:end])
                yield build.task(at + begin, block, at + end)
                begin = end
            at += len(ids)

    return Source(
        kind="ids",
        schema=build.schema,
        tasks=tasks,
        total=0,
        identity={"table": table_identity(table), "ids": origin, **_choices(names, values, rounded)},
        resumable=origin is not None,
    )


def _choices(names: list[str], values: ValuesName | None, rounded: bool) -> dict[str, Any]:
    return {"columns": names, "values": values or "float32", "round": rounded}


class _Batches:
    """Batches of rows with some columns."""

    def __init__(self, table: Table, names: list[str], vectors: dict[str, Values], *, scanned: bool) -> None:
        self._names, self._vectors, self._scanned = names, vectors, scanned
        self._head = heads_of(table)
        self._vector_bytes = sum(value.vector_bytes for value in vectors.values())
        fields = []
        for name in names:
            if name in vectors:
                fields.append(pa.field(name, vectors[name].type, metadata=vectors[name].field_metadata))
            else:
                fields.append(pa.field(name, _SMALL[name][0]))
        self.schema = pa.schema(fields)
        # The ids themselves too.
        self._small_bytes = 8 + sum(_SMALL[name][1] for name in names if name in _SMALL)
        widest = max((value.width for value in vectors.values()), default=1)
        self.rows = rows_of_batch(self._vector_bytes + self._small_bytes, widest)

    def task(self, first: int, block: IdBlock, done: int) -> Task:
        """The batch of ids whose first is number ``first``."""
        ids, valid, *_ = block

        def compute(memory: NDArray[np.uint8]) -> pa.RecordBatch:
            mask = None if valid is None else ~valid
            arrays: list[pa.Array] = []
            used = 0
            for name in self._names:
                if name == "ord":
                    arrays.append(pa.array(np.arange(first, first + len(ids), dtype=np.int64)))
                elif name == "rowid":
                    arrays.append(pa.array(ids, pa.int64(), mask=mask))
                elif name == "head":
                    head = self._head(ids)
                    arrays.append(head if mask is None else _masked(head, mask))
                else:
                    vector = self._vectors[name]
                    arrays.append(vector.read(ids, memory[used:], valid, scanned=self._scanned))
                    # The next one begins where a cache line does.
                    used += -(-len(ids) * vector.vector_bytes // 64) * 64
            return pa.record_batch(arrays, schema=self.schema)

        return Task(len(ids) * (self._vector_bytes + self._small_bytes) + 64 * len(self._vectors), compute, done)


def _masked(array: pa.Array, mask: NDArray[np.bool_]) -> pa.Array:
    import pyarrow.compute as pc

    return pc.if_else(pa.array(mask), pa.scalar(None, array.type), array)
