"""Every error that EngramSQL raises derives from EngramError; the native engine raises these classes too.

A class also derives from the builtin that a caller would expect (an id out of range is an IndexError). Errors inside a
SQL statement are DuckDB's own exceptions with the same text.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "CancelledError",
    "CatalogError",
    "CatalogLockedError",
    "ClosedError",
    "EngramError",
    "EngramWarning",
    "ExtensionError",
    "FormatError",
    "InternalError",
    "ReadError",
    "RowIdError",
    "RowIdTypeError",
    "SourceError",
    "SpecError",
    "StorageError",
    "TokenIdError",
    "TokenIdTypeError",
    "UnknownTableError",
]


class EngramError(Exception):
    """Base of all errors. The text is one line that names the thing and the remedy."""


class RowIdError(EngramError, IndexError):
    """A row id that is outside the table."""


class RowIdTypeError(RowIdError, TypeError):
    """A row id that is no integer."""


class TokenIdError(EngramError, ValueError):
    """A token id that is outside the vocabulary."""


class TokenIdTypeError(TokenIdError, TypeError):
    """A token id that is no integer."""


class UnknownTableError(EngramError, LookupError):
    """A name that the catalog does not know."""


class SpecError(EngramError, ValueError):
    """A hash spec that is missing, unknown or contradicts the files."""


class FormatError(EngramError, ValueError):
    """A value format that is missing, unknown or contradicts the files."""


class SourceError(EngramError, ValueError):
    """Files of a checkpoint or store that are missing, malformed or contradictory."""


class ReadError(EngramError, OSError):
    """A read that failed, or a file that changed under an open table."""


class StorageError(EngramError, OSError):
    """A disk that is full or fails, or files of a built table, view or index that are damaged."""


class CancelledError(EngramError):
    """An operation that was cancelled before it was complete."""


class CatalogError(EngramError):
    """A catalog that cannot be read, written or changed."""


class CatalogLockedError(CatalogError):
    """Another process is changing the catalog."""


class ArgumentError(EngramError, ValueError):
    """An argument of the wrong value or shape."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of the wrong type."""


class ClosedError(EngramError):
    """A database that was closed."""

    @classmethod
    def of(cls, label: str) -> ClosedError:
        """The error for using the closed database called ``label``."""
        return cls(f"database {label} is closed; open it again with engramsql.connect()")


class ExtensionError(EngramError):
    """The DuckDB extension is not there or could not be loaded."""


class InternalError(EngramError):
    """A bug in EngramSQL, stopped at the boundary; the database stays usable."""


class EngramWarning(UserWarning):
    """Something was left out that the caller may miss, such as a view that no longer binds."""
