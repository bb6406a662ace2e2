"""Arrow IPC and Parquet. A query that fails midway leaves no footer, or a cut stream: nothing that looks whole.

Every value arrives as it was, or the result is refused: HUGEINT and UHUGEINT are DECIMAL(38,0); BIGNUM, BIT and TIMETZ,
which Arrow has no types for, are text. A VARIANT is refused: its text would not tell 1 from '1'.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

import duckdb
import pyarrow as pa

from engramsql.errors import ArgumentError
from engramsql.export.columns import unique_names
from engramsql.export.types import cast_type, contains, exact_leaf
from engramsql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engramsql.export.style import Style

__all__ = ["CUT", "REFUSED", "checked", "exact", "write_arrow", "write_arrow_file", "write_parquet"]

#: Types whose values have no place in a format.
REFUSED = {"arrow": ("type", "variant"), "parquet": ("type", "variant", "interval", "union")}

CUT = b"\xff\xff\xff\xff\x08\0\0\0"
"""What a stream that failed ends with: the beginning of a message of 8 bytes, which do not come. Arrow's readers take
the end of the bytes, without an end marker, for the end of the stream."""
_BATCH_ROWS = 8192
# A row group of Parquet: as many rows as DuckDB's own, or fewer wide ones.
_GROUP_ROWS = 122_880
_GROUP_BYTES = 32 << 20
_TIMES = ("time", "time_ns")
_TOO_WIDE = re.compile(r"ould not cast value (\S+) to DECIMAL\(38,0\)")


def write_arrow(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """An IPC stream with its end marker.

    Raises:
        ArgumentError: If a value has no place in Arrow, with its column and type.
    """
    _write_ipc(relation, sink, pa.ipc.new_stream)


def write_arrow_file(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """An IPC file: with a footer that says where its batches are, as readers of ``.arrow`` files look for it.

    Raises:
        ArgumentError: If a value has no place in Arrow, with its column and type.
    """
    _write_ipc(relation, sink, pa.ipc.new_file)


def _write_ipc(
    relation: duckdb.DuckDBPyRelation,
    sink: IO[bytes],
    open_writer: Callable[[IO[bytes], pa.Schema], pa.ipc.RecordBatchStreamWriter],
) -> None:
    _refuse(relation, "arrow")
    with _named_overflow(relation, "arrow"):
        reader = exact(relation).to_arrow_reader(_BATCH_ROWS)
        writer = open_writer(sink, reader.schema)
        try:
            for batch in reader:
                writer.write_batch(checked(batch, relation, "arrow"))
        except BaseException:
            with suppress(OSError):
                sink.write(CUT)
            raise
        writer.close()


def write_parquet(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """A Parquet file.

    Raises:
        ArgumentError: If a value has no place in Parquet, with its column and type.
    """
    import pyarrow.parquet as pq

    _refuse(relation, "parquet")
    with _named_overflow(relation, "parquet"):
        reader = exact(relation).to_arrow_reader(_BATCH_ROWS)
        writer = pq.ParquetWriter(sink, reader.schema)
        for group in _row_groups(checked(batch, relation, "parquet") for batch in reader):
            writer.write_table(group, row_group_size=max(1, group.num_rows))
        writer.close()


def _row_groups(reader: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together as far as memory is worth it: a reader of the file looks at each row group by itself."""
    pending: list[pa.RecordBatch] = []
    rows, size = 0, 0
    for batch in reader:
        pending.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield pa.Table.from_batches(pending)


def exact(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The relation with names of its own per column, and casts where DuckDB's Arrow export would change values."""
    casts = [cast_type(type_, exact_leaf) for type_ in relation.types]
    names = unique_names(relation.columns)
    if not any(casts) and names == list(relation.columns):
        return relation
    columns = enumerate(zip(names, casts, strict=True), start=1)
    return relation.project(
        ", ".join(
            f"{f'#{position}' if cast is None else f'CAST(#{position} AS {cast})'} AS {identifier(name)}"
            for position, (name, cast) in columns
        )
    )


def checked(batch: pa.RecordBatch, relation: duckdb.DuckDBPyRelation, format: str) -> pa.RecordBatch:
    """The batch, if Arrow has all of its values: DuckDB hands out the end of a day, 24:00:00, of which it has none.

    Raises:
        ArgumentError: If not, with the column and its type.
    """
    for array, name, type_ in zip(batch.columns, relation.columns, relation.types, strict=True):
        if contains(type_, _TIMES):
            try:
                array.validate(full=True)
            except pa.ArrowInvalid as error:
                raise ArgumentError(
                    f"column '{name}' ({type_}) has the time 24:00:00, which {format} cannot hold; {_remedy(name)}"
                ) from error
    return batch


def _refuse(relation: duckdb.DuckDBPyRelation, format: str) -> None:
    for name, type_ in zip(relation.columns, relation.types, strict=True):
        if contains(type_, REFUSED[format]):
            raise ArgumentError(f"column '{name}' ({type_}) cannot be written as {format}; {_remedy(name)}")


@contextmanager
def _named_overflow(relation: duckdb.DuckDBPyRelation, format: str) -> Iterator[None]:
    """The columns in an error about a number of more than 38 digits."""
    try:
        yield
    except (duckdb.Error, OSError) as error:  # a query that fails after its first rows is an OSError of pyarrow
        found = _TOO_WIDE.search(str(error))
        columns = zip(relation.columns, relation.types, strict=True)
        wide = [(name, type_) for name, type_ in columns if contains(type_, ("hugeint", "uhugeint"))]
        if found is None or not wide:
            raise
        names = ", ".join(f"'{name}' ({type_})" for name, type_ in wide)
        raise ArgumentError(
            f"column {names}: {found[1]} has more than the 38 digits that {format} can hold; {_remedy(wide[0][0])}"
        ) from error


def _remedy(name: str) -> str:
    return f"cast it in the query: CAST({identifier(name)} AS VARCHAR)"
