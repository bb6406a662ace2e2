"""What is being measured now, on stderr and only on a terminal."""

from __future__ import annotations

import shutil
import sys

__all__ = ["clear", "progress"]


def progress(text: str) -> None:
    """Replaces the line on the terminal; does nothing elsewhere."""
    if sys.stderr is not None and sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)


def clear() -> None:
    """Takes the line away."""
    if sys.stderr is not None and sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
