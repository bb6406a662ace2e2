"""How results look to people: given to a writer only when they read on a terminal."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["Style", "style_of"]

MAX_ROWS = 40
"""Rows shown of a longer result."""


@dataclass(frozen=True)
class Style:
    """What a terminal can show.

    Args:
        width: Terminal cells of one line; 0 for no limit.
        max_rows: Rows shown of a longer result, its first and its last; 0 for all.
        color: Whether escape codes may be written.
        shorten: Whether vectors, lists and BLOBs are shown by their first values, their length and a small picture.
        values: How many first values of a list that is shortened.
        unicode: Whether more than ASCII can be shown.
    """

    width: int = 80
    max_rows: int = MAX_ROWS
    color: bool = False
    shorten: bool = True
    values: int = 3
    unicode: bool = True


def style_of(stream: TextIO | None) -> Style | None:
    """The style for what is written to ``stream``, or None if that is no terminal.

    The width is the terminal's, or COLUMNS. There is no colour with NO_COLOR (of any text but the empty one) or on a
    dumb terminal.
    """
    if stream is None or not stream.isatty():
        return None
    color = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return Style(width=shutil.get_terminal_size().columns, color=color, unicode=_takes_unicode(stream))


def _takes_unicode(stream: TextIO) -> bool:
    try:
        "\u2502\u2581\u2588\u2026".encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True
