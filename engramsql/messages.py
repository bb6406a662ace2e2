"""What is said beside results: lines on stderr, and warnings."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress

from engramsql.errors import EngramWarning

__all__ = ["say", "warn"]

_PACKAGE = os.path.dirname(__file__) + os.sep


def say(text: str) -> None:
    """A message on stderr; none if that is closed, where print would take stdout.

    Control characters are escapes: a message may quote a value, which must not send codes to a terminal.
    """
    if sys.stderr is not None:
        if not text.isprintable():
            from engramsql.export.visible import visible_lines

            text = visible_lines(text)
        # Nobody is left to be told that it could not be written.
        with suppress(OSError):
            print(text, file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """An :class:`EngramWarning` at the line that called into the package, however deep in it the reason was found."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, EngramWarning, stacklevel=level)
