"""What arguments of commands are read with. Imports nothing heavy."""

from __future__ import annotations

import argparse
import sys

__all__ = ["MOST", "count", "format_of", "is_terminal", "number"]

MOST = (1 << 63) - 1
"""The largest number that is taken: the engine counts in 64 bits."""


def number(text: str, least: int = 0, most: int = MOST) -> int:
    """A whole number of decimal digits within limits, for argparse.

    Raises:
        argparse.ArgumentTypeError: If it is none.

    Example:
        >>> number("0"), number("17", 1)
        (0, 17)
        >>> number("1e3", 1)
        Traceback (most recent call last):
        ...
        argparse.ArgumentTypeError: '1e3' is no number of at least 1
    """
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of at least {least}")
    digits = text.lstrip("0") or "0"
    # More digits than that Python refuses to read.
    if len(digits) > len(str(most)) or int(digits) > most:
        raise argparse.ArgumentTypeError(f"'{text}' is more than {most}")
    if int(digits) < least:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of at least {least}")
    return int(digits)


def count(text: str) -> int:
    """A whole number of at least 1.

    Raises:
        argparse.ArgumentTypeError: If it is none.
    """
    return number(text, 1)


def format_of(options: argparse.Namespace) -> str:
    """The output format asked for, else the one for where stdout goes."""
    return str(options.format or ("box" if is_terminal(sys.stdout) else "csv"))


def is_terminal(stream: object) -> bool:
    """Whether a stream is there and goes to a terminal."""
    return stream is not None and bool(stream.isatty())  # type: ignore[attr-defined]
