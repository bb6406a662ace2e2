"""JSON: one array of objects per result, or one object per line."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING

from engramsql.export.columns import batches, columns_of, json_cells, unique_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from engramsql.export.style import Style

__all__ = ["write_json", "write_jsonl"]


def write_json(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """One array, an object per line."""
    separator = b"[\n"
    for rows in _objects(relation):
        for row in rows:
            sink.write(separator)
            sink.write(row.encode())
            separator = b",\n"
    sink.write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def write_jsonl(relation: duckdb.DuckDBPyRelation, sink: IO[bytes], style: Style | None = None) -> None:
    """One object per line."""
    for rows in _objects(relation):
        sink.write("".join(f"{row}\n" for row in rows).encode())


def _objects(relation: duckdb.DuckDBPyRelation) -> Iterator[list[str]]:
    columns = columns_of(relation)
    keys = [json.dumps(name, ensure_ascii=False) for name in unique_names(column.name for column in columns)]
    for arrays in batches(relation):
        cells = [json_cells(column, array) for column, array in zip(columns, arrays, strict=True)]
        yield [
            "{" + ",".join(f"{key}:{cell}" for key, cell in zip(keys, row, strict=True)) + "}"
            for row in zip(*cells, strict=True)
        ]
