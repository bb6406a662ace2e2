"""New files and directories that are there whole or not at all.

Each grows beside its place under a name of its own, and gets its name when every byte of it is on the disk. Until then,
and after a failure, Ctrl-C or a kill, what was there before is untouched and nothing looks complete that is not.
"""

from __future__ import annotations

import errno
import glob
import itertools
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from engramsql.errors import ArgumentError, EngramError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["GrowingFile", "is_stream", "new_directory", "new_file", "storage_errors", "sync_directory", "synced"]

# Bytes of a name that its growing file repeats: a name may have 255, and the growing one is longer.
_STEM_BYTES = 200
# Two threads of a process may write the same file, each from its beginning; the later one then stays.
_NUMBERS = itertools.count()
# What file systems without hard links answer.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class GrowingFile:
    """A file that has its name once it is published.

    A link keeps pointing where it does, and a file that is replaced keeps its permissions.
    """

    def __init__(self, path: str | os.PathLike[str], *, replace: bool = False, parents: bool = True) -> None:
        """Begins it.

        Args:
            path: Where it will be.
            replace: Whether a file that is there then is replaced; else it is refused.
            parents: Whether directories on the way are made.

        Raises:
            ArgumentError: If something is there already and is not to be replaced, or is no file.
            StorageError: If the system refuses.
        """
        self._given = os.fspath(path)
        self._replace = replace
        if not replace and os.path.lexists(path):
            raise self._exists_already()
        if os.path.isdir(path):
            raise ArgumentError(f"'{self._given}' is a directory; name a file")
        if is_stream(Path(path)):
            raise ArgumentError(f"'{self._given}' is a device or a pipe, which no file can replace; name a file")
        self._place = Path(os.path.realpath(path))
        with storage_errors(path):
            if parents:
                self._place.parent.mkdir(parents=True, exist_ok=True)
            mode = stat.S_IMODE(self._place.stat().st_mode) if self._place.exists() else None
            self._growing = _growing(self._place)
            # Nobody may read it before its permissions are those of what it replaces.
            opener = partial(os.open, mode=0o666 if mode is None else mode)
            self.file: IO[bytes] = open(self._growing, "xb", opener=opener)  # noqa: SIM115 (closed by both ends)
            if mode is not None:
                os.fchmod(self.file.fileno(), mode)

    def publish(self) -> None:
        """Gives it its name; it is closed then.

        Raises:
            ArgumentError: If something came to be there meanwhile and is not to be replaced.
            StorageError: If the system refuses.
        """
        with storage_errors(self._given):
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            if self._replace:
                os.replace(self._growing, self._place)
            else:
                self._link()
            sync_directory(self._place.parent)

    def _link(self) -> None:
        # A rename would replace what another process has put there since the name was free.
        try:
            os.link(self._growing, self._place)
        except FileExistsError:
            raise self._exists_already() from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.rename(self._growing, self._place)
        self._growing.unlink(missing_ok=True)

    def _exists_already(self) -> ArgumentError:
        return ArgumentError(f"'{self._given}' exists already; name a new file, or remove it first")

    def discard(self) -> None:
        """Removes what is not published, and closes it."""
        # What is in the buffer may have no room on the disk.
        with suppress(OSError):
            self.file.close()
        self._growing.unlink(missing_ok=True)


@contextmanager
def new_file(path: str | os.PathLike[str], *, replace: bool = False, parents: bool = True) -> Iterator[IO[bytes]]:
    """A file to fill, which gets its name once it is filled and synced; see :class:`GrowingFile`.

    Raises:
        ArgumentError: If something is there already and is not to be replaced, or is no file.
        StorageError: If the system refuses, also within the block.
    """
    growing = GrowingFile(path, replace=replace, parents=parents)
    try:
        with storage_errors(path):
            yield growing.file
        growing.publish()
    finally:
        growing.discard()


@contextmanager
def new_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A directory to fill, which gets its name once it is filled.

    Raises:
        ArgumentError: If something is there already.
        StorageError: If the system refuses, also within the block.
    """
    place = Path(os.path.abspath(path))
    if os.path.lexists(place) and not (place.is_dir() and not any(place.iterdir())):
        raise ArgumentError(f"'{os.fspath(path)}' exists already; name a new directory, or remove it first")
    growing = _growing(place)
    try:
        with storage_errors(path):
            growing.mkdir(parents=True)
            yield growing
            sync_directory(growing)
            # Over an empty directory too.
            os.rename(growing, place)
            sync_directory(place.parent)
    finally:
        shutil.rmtree(growing, ignore_errors=True)


@contextmanager
def synced(path: Path) -> Iterator[IO[bytes]]:
    """A new file that is on the disk when it is closed."""
    with open(path, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Has the names in a directory on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_stream(path: Path) -> bool:
    """Whether ``path`` is a device, a pipe or an open descriptor: a file must never take its place."""
    return Path(os.path.abspath(path)).parent in (Path("/dev"), Path("/dev/fd")) or (
        path.exists() and not path.is_file() and not path.is_dir()
    )


@contextmanager
def storage_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Says of which file it is what the system refuses; errors of EngramSQL say it already.

    Raises:
        StorageError: For any other OSError of the block.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, EngramError):
            raise
        raise StorageError(f"cannot write '{os.fspath(path)}': {error.strerror or error}") from error


def _growing(place: Path) -> Path:
    """A name to grow under; what processes that were killed left of ``place`` is removed."""
    stem = os.fsdecode(os.fsencode(place.name)[:_STEM_BYTES])
    for left in place.parent.glob(f".{glob.escape(stem)}.*.unfinished"):
        try:
            os.kill(int(left.name.split(".")[-2].partition("-")[0]), 0)
        except ProcessLookupError:
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
        except (ValueError, OSError):
            continue
    names = (place.with_name(f".{stem}.{os.getpid()}-{number}.unfinished") for number in _NUMBERS)
    # A process that was killed may have had the number of this one, as the first ones of a container do.
    return next(name for name in names if not os.path.lexists(name))
