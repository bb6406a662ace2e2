"""The mode that the name of a file asks for."""

from __future__ import annotations

import os
import shlex

from engramsql.errors import ArgumentError
from engramsql.export.files.formats import ENDINGS as EXPORTED

__all__ = ["ENDINGS", "mode_of"]

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
    ".arrows": "arrow",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def mode_of(path: str) -> str | None:
    """The mode that a file of this name is read as; None if its ending says nothing.

    Raises:
        ArgumentError: If it is one of the files that only an export writes.

    Example:
        >>> mode_of("out/rows.CSV"), mode_of("rows.txt")
        ('csv', None)
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in ENDINGS and ending in EXPORTED:
        raise ArgumentError(
            f"no mode writes {ending} files; .export --sql 'QUERY' --output {shlex.quote(path)} writes one"
        )
    return ENDINGS.get(ending)
