"""The history file: one for all sessions of a user, each of which only adds to it.

An entry is a comment with the time and a line beginning with ``+`` per line of it, which is the format of
prompt-toolkit's own history files.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql.errors import StorageError
from engramsql.publishing import new_file

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HistoryFile"]


class HistoryFile:
    """The entries of earlier sessions, and of this one."""

    def __init__(self, path: Path, keep: int) -> None:
        """Nothing is opened yet.

        Args:
            path: The file.
            keep: Entries that are kept when the file is read; the oldest go once there are half as many more.
        """
        self._path = path
        self._keep = keep

    def load(self) -> list[str]:
        """The entries, oldest first. Bytes that are no UTF-8 show as U+FFFD and stay in the file as they are.

        Raises:
            OSError: If there is a file that cannot be read.
        """
        try:
            self._require_file()
            content = self._path.read_bytes()
        except FileNotFoundError:
            return []
        entries = _entries(content)
        if len(entries) > self._keep + self._keep // 2:
            entries = self._shorten()
        return [entry.decode(errors="replace") for entry in entries[-self._keep :]]

    def append(self, text: str) -> None:
        """Adds an entry.

        Raises:
            OSError: If it cannot be written.
        """
        lines = "".join(f"+{line}\n" for line in text.split("\n"))
        record = f"\n# {time.strftime('%Y-%m-%d %H:%M:%S')}\n{lines}".encode(errors="replace")
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._path.exists():
            self._require_file()
        with self._locked() as descriptor:
            # In one piece: another session may be adding one of its own.
            while record:
                record = record[os.write(descriptor, record) :]

    def _require_file(self) -> None:
        """Refuses a pipe, whose other end would be waited for; a device such as the null one takes and gives."""
        if stat.S_ISFIFO(self._path.stat().st_mode):
            raise OSError(errno.EINVAL, "it is a pipe", str(self._path))

    def _shorten(self) -> list[bytes]:
        """Writes the file anew with what is kept, and returns that."""
        with self._locked():
            entries = _entries(self._path.read_bytes())[-self._keep :]
            # Where no new file can be made the old one stays, longer than it need be, and is still added to.
            with suppress(StorageError), new_file(self._path, replace=True, parents=False) as file:
                file.write(b"".join(b"\n#\n" + _marked(entry) for entry in entries))
        return entries

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file to append to, which is still the one of that name and no one else's meanwhile."""
        while True:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.path.exists(self._path) and os.path.samestat(os.fstat(descriptor), os.stat(self._path)):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)


def _entries(content: bytes) -> list[bytes]:
    entries: list[bytes] = []
    lines: list[bytes] = []
    for line in content.split(b"\n"):
        if line.startswith(b"+"):
            lines.append(line[1:])
        elif lines:
            entries.append(b"\n".join(lines))
            lines = []
    if lines:
        entries.append(b"\n".join(lines))
    return entries


def _marked(entry: bytes) -> bytes:
    return b"".join(b"+" + line + b"\n" for line in entry.split(b"\n"))
