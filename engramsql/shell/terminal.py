"""What there is to know of the terminal: its size, what it can do, and the pager that goes with it."""

from __future__ import annotations

import os
import shutil

__all__ = ["is_dumb", "pager_command", "terminal_size"]


def terminal_size(descriptor: int = 1) -> os.terminal_size:
    """Columns and lines of the terminal now; 80 x 24 if it does not say."""
    try:
        found = os.get_terminal_size(descriptor)
    except OSError:
        found = os.terminal_size((0, 0))
    return os.terminal_size((found.columns or 80, found.lines or 24))


def is_dumb() -> bool:
    """Whether the terminal cannot move its cursor, or nobody knows what it can."""
    return os.environ.get("TERM", "dumb").lower() in ("", "dumb", "unknown")


def pager_command() -> str | None:
    """The pager: ``PAGER`` if it is set, else ``less``; None if that is empty, ``cat`` or not there."""
    given = os.environ.get("PAGER")
    if given is not None:
        return None if given.strip() in ("", "cat") else given
    return "less" if shutil.which("less") else None
