"""DuckDB's own box, for people."""

from __future__ import annotations

import contextlib
import io
import shutil
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["write_box"]

# Rows shown of a longer result; the box says how many there are.
_MAX_ROWS = 40


def write_box(relation: duckdb.DuckDBPyRelation, sink: IO[bytes]) -> None:
    """A box as wide as the terminal; long results and cells are cut and say so."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        relation.show(max_width=shutil.get_terminal_size().columns, max_rows=_MAX_ROWS)
    sink.write(text.getvalue().rstrip("\n").encode() + b"\n")
