"""Files that can be named where the cursor is. Only the one directory is read that the path so far names."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["FileName", "matching"]

# A directory with more entries is not for a menu.
LIMIT = 2000


@dataclass(frozen=True)
class FileName:
    """A path that begins as typed."""

    path: str
    name: str
    directory: bool


def matching(typed: str) -> list[FileName]:
    """Files whose path begins with ``typed``; directories first, hidden ones only when asked for by their dot.

    ``~`` stands for the home directory and stays as it was typed. What cannot be read has no files.

    Example:
        >>> matching("no such directory/")
        []
    """
    head, tail = os.path.split(typed)
    prefix = typed[: len(typed) - len(tail)]
    directory = os.path.expanduser(head) if head else "."
    found: list[FileName] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if len(found) >= LIMIT:
                    break
                hidden = entry.name.startswith(".") and not tail.startswith(".")
                # A name that no terminal can show cannot be picked from a menu.
                if hidden or not entry.name.startswith(tail) or not entry.name.isprintable():
                    continue
                found.append(FileName(prefix + entry.name, entry.name, _is_directory(entry)))
    except (OSError, ValueError):  # a NUL in the path
        return []
    return sorted(found, key=lambda file: (not file.directory, file.name))


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
