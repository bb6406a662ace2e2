"""Paths as they are typed behind a command."""

from __future__ import annotations

import os
from pathlib import Path

from engramsql.errors import ArgumentError

__all__ = ["path_of"]

# Whether something is there is for the command to say.
_NOT_THERE = (FileNotFoundError, NotADirectoryError)


def path_of(word: str) -> Path:
    r"""The path of a word, where ``~`` is the home directory.

    Raises:
        ArgumentError: If no file can have that path, or nobody may look whether one has.

    Example:
        >>> path_of("rows.csv").name
        'rows.csv'
        >>> path_of("")
        Traceback (most recent call last):
        ...
        engramsql.errors.ArgumentError: '' names no file
    """
    if not word or "\0" in word:
        raise ArgumentError(f"'{word}' names no file")
    path = os.path.expanduser(word)
    try:
        os.stat(path)
    except _NOT_THERE:
        pass
    except OSError as error:
        shown = word if len(word) <= 80 else f"{word[:77]}..."
        raise ArgumentError(f"cannot use '{shown}': {error.strerror or error}") from error
    return Path(path)
