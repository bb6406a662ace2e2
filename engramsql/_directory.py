"""A database directory as Python sees it: the names of its files, and what can become one. Layout: docs/format.md."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CATALOG_FILE", "CATALOG_TEMPORARY", "is_database"]

CATALOG_FILE = "engram.json"

# How the name of a catalog begins that is not published yet.
CATALOG_TEMPORARY = f".{CATALOG_FILE}."

# What the first change of a database leaves behind if it fails: a build makes its directory before the catalog.
_OURS = {"engram.lock", "tables", "views", "token_maps"}


def is_database(path: Path) -> bool:
    """Whether ``path`` is a database directory, or can become one: it is missing, empty, or was about to be one."""
    try:
        names = set(os.listdir(path))
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        return False
    return CATALOG_FILE in names or all(name in _OURS or name.startswith(CATALOG_TEMPORARY) for name in names)
