"""Query results as text and as files, one writer per format, streamed batch by batch."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from engramsql.errors import ArgumentError, EngramError

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    Writer = Callable[[duckdb.DuckDBPyRelation, IO[bytes]], None]

__all__ = ["FORMATS", "write"]

# Name to module and function: a format's libraries are imported when it is used.
FORMATS = {
    "box": ("engramsql.export.box", "write_box"),
    "markdown": ("engramsql.export.text", "write_markdown"),
    "csv": ("engramsql.export.text", "write_csv"),
    "tsv": ("engramsql.export.text", "write_tsv"),
    "json": ("engramsql.export.json", "write_json"),
    "jsonl": ("engramsql.export.json", "write_jsonl"),
    "vertical": ("engramsql.export.text", "write_vertical"),
    "arrow": ("engramsql.export.arrow", "write_arrow"),
    "parquet": ("engramsql.export.arrow", "write_parquet"),
}


def write(relation: duckdb.DuckDBPyRelation, format: str, sink: IO[bytes]) -> None:
    """Writes the rows of ``relation`` to ``sink`` in one of FORMATS.

    Raises:
        ArgumentError: If there is no such format, or a value has no place in it.
        duckdb.Error: If the query fails while it runs; what was written until then stays.
    """
    import importlib

    if format not in FORMATS:
        raise ArgumentError(f"unknown format '{format}'; one of {', '.join(FORMATS)}")
    module, function = FORMATS[format]
    writer: Writer = getattr(importlib.import_module(module), function)
    try:
        writer(relation, sink)
    except (EngramError, UnicodeError, OSError):
        raise
    except (ValueError, ArithmeticError, NotImplementedError, TypeError) as error:
        # Types that pyarrow or Python cannot hold, should one be left; pyarrow's errors derive from these.
        names = ", ".join(f"'{name}' ({type_})" for name, type_ in zip(relation.columns, relation.types, strict=True))
        raise ArgumentError(
            f"cannot write the result as {format}: {error}; its columns: {names}; cast the one it is about to VARCHAR"
        ) from error
