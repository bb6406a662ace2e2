"""A database directory as Python sees it: the names of its files, and what can become one. Layout: docs/format.md."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CATALOG_BACKUP", "CATALOG_FILE", "CATALOG_TEMPORARY", "is_database"]

CATALOG_FILE = "engram.json"

# Where it is alone, opening the database says what to do.
CATALOG_BACKUP = f"{CATALOG_FILE}.bak"

# How the name of a catalog begins that is not published yet.
CATALOG_TEMPORARY = f".{CATALOG_FILE}."

# Left behind by the first change or build of a database that then failed.
_LEFT_BEHIND = {"engram.lock", "tables", "views", "token_maps"}


def is_database(path: Path) -> bool:
    """Whether ``path`` is a database directory, damaged or not, or can become one: it is missing or empty."""
    try:
        names = set(os.listdir(path))
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        return False
    if not names.isdisjoint({CATALOG_FILE, CATALOG_BACKUP}):
        return True
    return all(name in _LEFT_BEHIND or name.startswith(CATALOG_TEMPORARY) for name in names)
