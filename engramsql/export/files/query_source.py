"""The rows of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from engramsql.errors import ArgumentError
from engramsql.export.arrow import REFUSED, checked, exact
from engramsql.export.columns import Column, unique_names
from engramsql.export.files.source import BATCH_BYTES, Source, Task, next_cut
from engramsql.export.types import cast_type, contains, shape_of, text_leaf
from engramsql.quoting import identifier
from engramsql.relation_rows import rows_of

if TYPE_CHECKING:
    import duckdb
    from duckdb.sqltypes import DuckDBPyType

    from engramsql.export.files.formats import FileFormat

__all__ = ["query_source"]

# DuckDB hands out whole vectors of 2048 rows.
_VECTOR = 2048
_MOST_BATCH_ROWS = 1 << 16


def query_source(
    relation: duckdb.DuckDBPyRelation,
    format: FileFormat,
    columns: Sequence[str] | None,
    interrupt: Any,
    sql: str | None,
) -> Source:
    """The rows of a relation, in the order they come.

    Args:
        relation: The relation.
        format: What is written: text has types of its own.
        columns: Columns, in order; by default those of the relation.
        interrupt: Ends the running query.
        sql: The statement, for the manifest.

    Raises:
        ArgumentError: If a column has no place in files of this format.
    """
    relation = _projected(relation, columns)
    texts = None
    if format.name in ("csv", "jsonl"):
        texts = [Column(name, shape_of(type_)) for name, type_ in zip(relation.columns, relation.types, strict=True)]
        relation = _cast(relation)
    else:
        _refuse(relation, REFUSED.get(format.name, REFUSED["arrow"]), format.name)
        relation = exact(relation)
    # The query itself begins in the thread that reads it: DuckDB does not look for Ctrl-C meanwhile.
    fields = relation.limit(0).to_arrow_table().schema
    # Of columns `a` and `A`, DuckDB gives the second another name there, and in the batches it does not.
    schema = pa.schema([field.with_name(name) for field, name in zip(fields, relation.columns, strict=True)])

    def tasks(first: int, rows_per_file: int) -> Iterator[Task]:
        done = first
        with rows_of(relation, _batch_rows(relation)) as rows:
            for found in rows.batches:
                batch = pa.RecordBatch.from_arrays(found.columns, schema=schema)
                if texts is None:
                    checked(batch, relation, format.name)
                begin = 0
                while begin < batch.num_rows:
                    part = batch.slice(begin, min(batch.num_rows, next_cut(done, rows_per_file) - done))
                    begin += part.num_rows
                    done += part.num_rows
                    yield Task(part.nbytes, lambda memory, part=part: part, done)  # type: ignore[misc]

    return Source(
        kind="query",
        schema=schema,
        tasks=tasks,
        total=0,
        identity={"sql": sql, "columns": list(relation.columns)},
        columns=texts,
        interrupt=interrupt,
        # Rows have no order that a second run must repeat.
        resumable=False,
    )


def _projected(relation: duckdb.DuckDBPyRelation, columns: Sequence[str] | None) -> duckdb.DuckDBPyRelation:
    names = list(relation.columns)
    if columns is None:
        return relation
    positions = []
    for name in columns:
        if names.count(name) != 1:
            found = "no" if name not in names else "more than one"
            raise ArgumentError(f"the query has {found} column '{name}'; its columns: {', '.join(names)}")
        positions.append(names.index(name) + 1)
    if not positions:
        raise ArgumentError(f"an export needs a column; choose from {', '.join(names)}")
    return relation.project(", ".join(f"#{position}" for position in positions))


def _cast(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The relation with the text of what is no plain number, and a name of its own for each column."""
    casts = [cast_type(type_, text_leaf) for type_ in relation.types]
    names = unique_names(relation.columns)
    return relation.project(
        ", ".join(
            f"{f'#{position}' if cast is None else f'CAST(#{position} AS {cast})'} AS {identifier(name)}"
            for position, (name, cast) in enumerate(zip(names, casts, strict=True), start=1)
        )
    )


def _refuse(relation: duckdb.DuckDBPyRelation, ids: tuple[str, ...], format: str) -> None:
    for name, type_ in zip(relation.columns, relation.types, strict=True):
        if contains(type_, ids):
            raise ArgumentError(
                f"column '{name}' ({type_}) cannot be written as {format}; cast it in the query: "
                f"CAST({identifier(name)} AS VARCHAR)"
            )


def _batch_rows(relation: duckdb.DuckDBPyRelation) -> int:
    """Rows of one batch: whole vectors, as many as are worth a call."""
    width = sum(_width(type_) for type_ in relation.types)
    return max(_VECTOR, min(_MOST_BATCH_ROWS, BATCH_BYTES // max(1, width) // _VECTOR * _VECTOR))


def _width(type_: DuckDBPyType) -> int:
    """About the bytes of one value; of lists and texts, which have any size, the least that is likely."""
    if type_.id == "array":
        parts: dict[str, Any] = dict(type_.children)
        return int(parts["size"]) * _width(parts["child"])
    return {"blob": 256, "varchar": 64, "list": 4096, "struct": 256, "map": 4096}.get(type_.id, 8)
