"""EngramSQL: an embedded SQL database over the n-gram memory tables of language models.

Example:
    >>> import engramsql
    >>> db = engramsql.connect()
    >>> db.tables()
    []
    >>> db.close()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql import errors
from engramsql.udf import static as _static

if TYPE_CHECKING:
    from engramsql.database import Database, connect

    __version__: str

__all__ = ["Database", "__version__", "connect", "errors"]

# Before any database is opened, or it would not get the functions.
_static.register_with_duckdb()


def __getattr__(name: str) -> object:
    """Loads what is heavy on first use, so that ``engramsql --version`` answers at once."""
    if name in ("connect", "Database"):
        from engramsql import database

        return getattr(database, name)
    if name == "__version__":
        from engramsql.engine import ENGINE_VERSION

        return ENGINE_VERSION
    raise AttributeError(f"module 'engramsql' has no attribute {name!r}")
