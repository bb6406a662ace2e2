"""The SQL functions: where the DuckDB extension lies, and how a connection gets it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engramsql.errors import ExtensionError

if TYPE_CHECKING:
    import duckdb

__all__ = ["EXTENSION_FILE", "extension_path", "load", "shares_engine"]

# DuckDB derives the name of the entry symbol from the file name.
EXTENSION_FILE = "engramsql.duckdb_extension"


def extension_path() -> Path:
    """Path of the DuckDB extension that belongs to this package, for ``LOAD`` in any DuckDB client.

    Raises:
        ExtensionError: If the package was installed without it.
    """
    path = Path(__file__).resolve().parent / EXTENSION_FILE
    if not path.is_file():
        raise ExtensionError(f"the DuckDB extension {path} is missing; reinstall engramsql")
    return path


def load(connection: duckdb.DuckDBPyConnection) -> None:
    """Gives ``connection`` and its database the SQL functions.

    The database must have been opened with ``config={"allow_unsigned_extensions": "true"}``.

    Raises:
        ExtensionError: If the extension is missing, or DuckDB refuses it.
    """
    import duckdb

    path = extension_path()
    try:
        connection.load_extension(str(path))
    except duckdb.Error as error:
        reason = " ".join(str(error).split())
        raise ExtensionError(
            f"DuckDB {duckdb.__version__} refuses {path}: {reason}; open the database with "
            "config={'allow_unsigned_extensions': 'true'}"
        ) from error


def shares_engine(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether SQL functions and Python tables are one library, with one row cache and one set of counters.

    They are where the functions were registered with DuckDB itself (2.0 and later), and not where the extension's file
    was loaded.
    """
    how = "SELECT install_mode FROM duckdb_extensions() WHERE extension_name = 'engramsql'"
    return connection.execute(how).fetchall() == [("STATICALLY_LINKED",)]
