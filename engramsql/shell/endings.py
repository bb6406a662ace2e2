"""The mode that the name of a file asks for, and the form that a mode has in it."""

from __future__ import annotations

import os
import shlex

from engramsql.errors import ArgumentError
from engramsql.export import ARROW_FILE
from engramsql.export.files.formats import ENDINGS as EXPORTED

__all__ = ["ENDINGS", "format_in", "mode_of", "unknown_ending"]

ENDINGS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".html": "html",
    ".htm": "html",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".arrows": "arrow",
    ".parquet": "parquet",
    ".pq": "parquet",
}


# Names for what people read.
_TEXTS = ("", ".txt", ".text", ".log", ".out")
# Formats of an export that are the IPC file.
_IPC_FILES = ("arrow", "feather")


def mode_of(path: str) -> str | None:
    """The mode that a file of this name is read as; None if its ending says nothing.

    Raises:
        ArgumentError: If it is one of the files that only an export writes.

    Example:
        >>> mode_of("out/rows.CSV"), mode_of("rows.txt")
        ('csv', None)
    """
    ending = _ending(path)
    if ending not in ENDINGS and ending in EXPORTED:
        raise ArgumentError(
            f'no mode writes {ending} files; .export --sql "QUERY" --output {shlex.quote(path)} writes one'
        )
    return ENDINGS.get(ending)


def unknown_ending(path: str) -> str:
    """The ending of a file that is read as something else than what any mode writes; empty if it says no such thing.

    Example:
        >>> unknown_ending("rows.xlsx"), unknown_ending("rows.txt"), unknown_ending("rows.csv"), unknown_ending("rows")
        ('.xlsx', '', '', '')
    """
    ending = _ending(path)
    return "" if ending in ENDINGS or ending in _TEXTS else ending


def format_in(path: str | None, mode: str) -> str:
    """What a result is written as in a file: an ending is the same file here as of an export.

    Args:
        path: The file; None if it is none.
        mode: The mode of the result.

    Example:
        >>> format_in("rows.arrow", "arrow"), format_in("rows.arrows", "arrow"), format_in("rows.arrow", "csv")
        ('arrow file', 'arrow', 'csv')
    """
    if path is not None and mode == "arrow" and EXPORTED.get(_ending(path)) in _IPC_FILES:
        return ARROW_FILE
    return mode


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()
