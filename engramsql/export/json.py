"""JSON: one array of objects per result, or one object per line."""

from __future__ import annotations

import json
from itertools import chain
from typing import IO, TYPE_CHECKING

from engramsql.export.columns import batches, columns_of, json_cells, unique_names, write_texts
from engramsql.export.fragments import joined

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    import pyarrow as pa

    from engramsql.export.style import Style

__all__ = ["write_json", "write_jsonl"]


def write_json(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """One array, an object per line."""
    opening = b"[\n"
    for objects in _objects(relation):
        # All but the first of them stand behind a comma.
        sink.write(opening)
        write_texts(sink, objects.slice(0, 1))
        write_texts(sink, joined(",\n", objects.slice(1)))
        opening = b",\n"
    sink.write(b"[]\n" if opening == b"[\n" else b"\n]\n")


def write_jsonl(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """One object per line."""
    for objects in _objects(relation):
        write_texts(sink, joined(objects, "\n"))


def _objects(relation: duckdb.DuckDBPyRelation) -> Iterator[pa.Array]:
    """The objects of a number of rows, at least one."""
    columns = columns_of(relation)
    keys = [json.dumps(name, ensure_ascii=False) for name in unique_names(column.name for column in columns)]
    starts = [f"{',' if position else '{'}{key}:" for position, key in enumerate(keys)]
    for arrays in batches(relation):
        cells = [json_cells(column, array) for column, array in zip(columns, arrays, strict=True)]
        yield joined(*chain.from_iterable(zip(starts, cells, strict=True)), "}")
