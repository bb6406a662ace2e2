"""New files and directories that are there whole or not at all."""

from __future__ import annotations

import glob
import os
import shutil
import tokenize
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from engramsql.errors import ArgumentError, EngramError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DAMAGED", "new_directory", "new_file", "sync_directory", "synced"]

DAMAGED = (ValueError, EOFError, OverflowError, RuntimeError, SyntaxError, tokenize.TokenError, zlib.error)
"""What NumPy, json, zipfile and pyarrow raise over damaged files, deeply nested ones (RecursionError) included."""


@contextmanager
def new_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A directory to fill, which gets its name once it is filled.

    Raises:
        ArgumentError: If something is there already.
        StorageError: If the system refuses.
    """
    path = Path(os.path.abspath(path))
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise ArgumentError(f"'{path}' exists already; name a new directory, or remove it first")
    unfinished = _unfinished(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.mkdir()
        yield unfinished
        sync_directory(unfinished)
        # Over an empty directory too.
        os.rename(unfinished, path)
        sync_directory(path.parent)
    except OSError as error:
        if isinstance(error, EngramError):
            raise
        raise StorageError(f"cannot write '{path}': {error.strerror or error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def new_file(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[IO[bytes]]:
    """A file to fill, which gets its name once it is filled and synced.

    Raises:
        ArgumentError: If something is there already and is not to be replaced.
        StorageError: If the system refuses.
    """
    path = Path(os.path.abspath(path))
    if not replace and os.path.lexists(path):
        raise ArgumentError(f"'{path}' exists already; name a new file, or remove it first")
    unfinished = _unfinished(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with synced(unfinished) as file:
            yield file
        os.replace(unfinished, path)
        sync_directory(path.parent)
    except OSError as error:
        if isinstance(error, EngramError):
            raise
        raise StorageError(f"cannot write '{path}': {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def synced(path: Path) -> Iterator[IO[bytes]]:
    """A new file that is on the disk when it is closed."""
    with open(path, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _unfinished(path: Path) -> Path:
    """Where ``path`` grows in this process; what processes that were killed left of it is removed."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.unfinished"):
        try:
            os.kill(int(left.name.split(".")[-2]), 0)
        except ProcessLookupError:
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
        except (ValueError, OSError):
            continue
    return path.with_name(f".{path.name}.{os.getpid()}.unfinished")


def sync_directory(path: Path) -> None:
    """Has the names in a directory on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
