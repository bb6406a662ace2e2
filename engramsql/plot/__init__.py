"""Pictures of tables and measurements: as text in a terminal, or as files drawn by matplotlib.

Each picture is a question to the database (``values``, ``norms``, ``residency``, ``plan``) or to a file (``latency``),
an answer as data (``figure``), and two ways to draw it (``text``, ``image``).
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engramsql.database import Database
    from engramsql.export.style import Style

__all__ = ["command"]


def command(database: Database, words: Sequence[str], sink: IO[bytes], style: Style | None = None) -> None:
    """``.plot KIND ...`` of the shell: writes a picture to ``sink``, or to the file of ``--output``.

    Args:
        database: The open database.
        words: The words behind ``.plot``.
        sink: Where the text goes.
        style: The terminal behind ``sink``, or None.

    Raises:
        ArgumentError: If the words are no picture.
        EngramError: If there is no such table, or no matplotlib for a file.
        duckdb.Error: If a query fails or is interrupted.
    """
    from engramsql.plot.drawing import command as run

    run(database, words, sink, style)
