"""Query results as text and as files, one writer per format, streamed batch by batch."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from engramsql.errors import ArgumentError, EngramError

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from engramsql.export.style import Style

    Writer = Callable[[duckdb.DuckDBPyRelation, IO[bytes], Style | None], None]

__all__ = ["ARROW_FILE", "BINARY", "FORMATS", "write"]

# Name to module and function: a format's libraries are imported when it is used.
FORMATS = {
    "box": ("engramsql.export.box", "write_box"),
    "markdown": ("engramsql.export.text", "write_markdown"),
    "csv": ("engramsql.export.text", "write_csv"),
    "tsv": ("engramsql.export.text", "write_tsv"),
    "json": ("engramsql.export.json", "write_json"),
    "jsonl": ("engramsql.export.json", "write_jsonl"),
    "vertical": ("engramsql.export.vertical", "write_vertical"),
    "hex": ("engramsql.export.hexdump", "write_hex"),
    "html": ("engramsql.export.html", "write_html"),
    "arrow": ("engramsql.export.arrow", "write_arrow"),
    "parquet": ("engramsql.export.arrow", "write_parquet"),
}
# What `arrow` is in a file whose name says so; a stream everywhere else, which nobody need seek in.
ARROW_FILE = "arrow file"
_WRITERS = {**FORMATS, ARROW_FILE: ("engramsql.export.arrow", "write_arrow_file")}
# Formats that no terminal can show.
BINARY = frozenset(["arrow", "parquet"])
# Those that show values in a way of their own on a terminal; the others write the same lines everywhere.
_FOR_PEOPLE = frozenset(["box", "vertical"])


def write(relation: duckdb.DuckDBPyRelation, format: str, sink: IO[bytes], style: Style | None = None) -> None:
    """Writes the rows of ``relation`` to ``sink`` in one of FORMATS, or as ARROW_FILE.

    Args:
        relation: The result.
        format: One of FORMATS, or ARROW_FILE.
        sink: Where the bytes go; text is UTF-8.
        style: What the terminal behind ``sink`` can show; None if there is none. With a style ``box`` and ``vertical``
            shorten values and results, and control characters in values are written as escapes in every text format.

    Raises:
        ArgumentError: If there is no such format, a value has no place in it, or it is no text and there is a terminal.
        duckdb.Error: If the query fails while it runs; what was written until then stays.
    """
    import importlib

    if format not in _WRITERS:
        raise ArgumentError(f"unknown format '{format}'; one of {', '.join(FORMATS)}")
    if style is not None and format in (*BINARY, ARROW_FILE):
        raise ArgumentError(f"{format} is not for terminals; write it to a file or a pipe, or choose another format")
    module, function = _WRITERS[format]
    writer: Writer = getattr(importlib.import_module(module), function)
    if style is not None and format not in _FOR_PEOPLE:
        from engramsql.export.visible import VisibleSink, json_escape

        # What is copied from the terminal is to be the same JSON.
        sink = VisibleSink(sink, json_escape if format in ("json", "jsonl") else None).as_file()
    try:
        writer(relation, sink, style)
    except (EngramError, UnicodeError, OSError):
        raise
    except (ValueError, ArithmeticError, NotImplementedError, TypeError) as error:
        # Types that pyarrow or Python cannot hold, should one be left; pyarrow's errors derive from these.
        names = ", ".join(f"'{name}' ({type_})" for name, type_ in zip(relation.columns, relation.types, strict=True))
        raise ArgumentError(
            f"cannot write the result as {format}: {error}; its columns: {names}; cast the one it is about to VARCHAR"
        ) from error
