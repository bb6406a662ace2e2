"""The kinds of files that an export writes: their names, endings, and what each can hold. Imports nothing heavy."""

from __future__ import annotations

import os
from typing import NamedTuple

from engramsql.errors import ArgumentError

__all__ = ["COMPRESSIONS", "ENDINGS", "FILE_FORMATS", "STREAMED", "VALUES", "FileFormat", "format_of"]

COMPRESSIONS = ("lz4", "zstd", "none")
VALUES = ("float32", "float16", "bfloat16", "row")


class FileFormat(NamedTuple):
    """One kind of file."""

    name: str
    endings: tuple[str, ...]
    writer: tuple[str, str]
    """Module and class: a format's libraries are imported when it is used."""
    compressions: tuple[str, ...]
    """The first is the default."""
    nulls: bool
    """Whether a value may be NULL."""
    summary: str
    record_bytes: int = 96 << 20
    """Vectors of one record at most: writing takes a multiple of them, which the memory of an export bounds."""


_ARROW = "engramsql.export.files.arrow_files"
_ARRAYS = "engramsql.export.files.array_files"
_TEXT = "engramsql.export.files.text_files"
_IPC = ("none", "lz4", "zstd")

FILE_FORMATS = {
    kind.name: kind
    for kind in (
        FileFormat("arrow", (".arrow", ".ipc"), (_ARROW, "IpcFile"), _IPC, True, "Arrow IPC file"),
        FileFormat("arrows", (".arrows",), (_ARROW, "IpcStream"), _IPC, True, "Arrow IPC stream"),
        FileFormat("feather", (".feather",), (_ARROW, "IpcFile"), _IPC, True, "Feather V2, the Arrow IPC file"),
        FileFormat(
            "parquet", (".parquet", ".pq"), (_ARROW, "Parquet"), ("zstd", "lz4", "none"), True, "Parquet", 24 << 20
        ),
        FileFormat("npy", (".npy",), (_ARRAYS, "Npy"), ("none",), False, "one column as a NumPy array"),
        FileFormat("npz", (".npz",), (_ARRAYS, "Npz"), ("none",), False, "a NumPy array per column"),
        FileFormat("safetensors", (".safetensors",), (_ARRAYS, "Safetensors"), ("none",), False, "a tensor per column"),
        FileFormat("csv", (".csv",), (_TEXT, "Csv"), ("none",), True, "CSV with a header"),
        FileFormat("jsonl", (".jsonl", ".ndjson"), (_TEXT, "JsonLines"), ("none",), True, "a JSON object per line"),
    )
}

STREAMED = ("arrows", "csv", "jsonl")
"""Formats that are read as they come, which is what a pipe is for; the first is what a pipe gets by itself."""

ENDINGS = {ending: kind.name for kind in FILE_FORMATS.values() for ending in kind.endings}


def format_of(path: str, format: str | None) -> FileFormat:
    """The format asked for, else the one that the path's ending names.

    Raises:
        ArgumentError: If there is no such format, or the ending names none.

    Example:
        >>> format_of("out/rows.parquet", None).name, format_of("rows.bin", "npy").name
        ('parquet', 'npy')
    """
    if format is not None:
        if format not in FILE_FORMATS:
            raise ArgumentError(f"no file format '{format}'; one of {', '.join(FILE_FORMATS)}")
        return FILE_FORMATS[format]
    ending = os.path.splitext(path)[1].lower()
    if ending not in ENDINGS:
        raise ArgumentError(
            f"'{path}': the ending names no file format; end it with one of {', '.join(ENDINGS)}, or give --format "
            "(format=)"
        )
    return FILE_FORMATS[ENDINGS[ending]]
