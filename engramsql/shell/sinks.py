"""What takes the bytes of a result: the terminal with its pager, a file, or a command.

Every write can be ended by Ctrl-C, also one that waits for a reader that takes nothing.
"""

from __future__ import annotations

import io
import os
import re
import select
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from engramsql.errors import ArgumentError, EngramError, StorageError
from engramsql.pipes import open_to_write
from engramsql.publishing import GrowingFile, is_stream, storage_errors
from engramsql.shell.terminal import pager_command, terminal_size

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

__all__ = ["AppendingSink", "CommandSink", "FileSink", "Sink", "TerminalSink"]

# How long a write waits for its reader before Ctrl-C is looked for.
_WAIT_MILLISECONDS = 50
# What a pipe takes at once when it says that it can be written to.
_PIECE = 4096
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Sink(io.RawIOBase):
    """Takes bytes until it is finished, or aborted."""

    def __init__(self, cancelled: threading.Event) -> None:
        super().__init__()
        self._cancelled = cancelled
        self._stream: int | None = None

    def writable(self) -> bool:
        return True

    def finish(self) -> None:
        """Says that the result is complete."""

    def abort(self) -> None:
        """Says that there will be no more of a result that is not complete."""

    def unread(self) -> None:
        """Says that the reader wants no more of it."""
        self.abort()

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise KeyboardInterrupt

    def _write_all(self, descriptor: int, data: bytes) -> None:
        """Writes all of it to a descriptor that does not block.

        Raises:
            KeyboardInterrupt: If Ctrl-C came meanwhile.
            BrokenPipeError: If nobody reads any longer.
        """
        waiting = select.poll()
        waiting.register(descriptor, select.POLLOUT)
        view = memoryview(data)
        while view:
            self._check()
            if waiting.poll(_WAIT_MILLISECONDS):
                try:
                    view = view[os.write(descriptor, view[:_PIECE]) :]
                except BlockingIOError:
                    continue

    def _write_stream(self, place: Path, data: bytes) -> None:
        """Writes to a pipe or device, which is opened by the first write: the reader of a pipe may come late."""
        if self._stream is None:
            self._stream = open_to_write(place, self._check)
        self._write_all(self._stream, data)

    def _close_stream(self) -> None:
        if self._stream is not None:
            os.close(self._stream)
            self._stream = None


class TerminalSink(Sink):
    """The terminal. A result that is larger than it goes to the pager, if there is one.

    What is written is held back until it is known to be larger, or complete: for a pager that is the first screen.
    """

    def __init__(
        self, cancelled: threading.Event, before: Callable[[], None], *, paged: bool, folded: bool = False
    ) -> None:
        """Nothing is written yet.

        Args:
            cancelled: Ends every write.
            before: Called once, before the first byte goes out.
            paged: Whether there may be a pager.
            folded: Whether long lines are prose: folded and never cut, they alone need no pager.
        """
        super().__init__(cancelled)
        self._before = before
        self._folded = folded
        self._pager_command = pager_command() if paged else None
        self._size = terminal_size()
        self._held: list[bytes] = []
        self._lines = 0
        self._descriptor: int | None = None
        self._pager: subprocess.Popen[bytes] | None = None

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._check()
        if self._descriptor is not None:
            self._write_all(self._descriptor, data)
            return len(data)
        self._held.append(bytes(data))
        columns = self._size.columns
        self._lines += _folded_lines(data, columns) if self._folded else data.count(b"\n")
        if self._pager_command is None:
            self._open_terminal()
        # The prompt that follows needs a line too.
        elif self._lines >= self._size.lines or (not self._folded and _widest(data) > columns):
            self._open_pager(self._pager_command)
        return len(data)

    def finish(self) -> None:
        if self._held:
            self._open_terminal()
        self._close()

    def abort(self) -> None:
        # The first rows of what failed are no result.
        self._held.clear()
        self._close()

    def _open_terminal(self) -> None:
        # By a description of its own: not to block is nobody else's wish.
        try:
            descriptor = os.open(os.ttyname(1), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:  # a terminal of another container has no name here
            descriptor = os.dup(1)
        self._open(descriptor)

    def _open_pager(self, command: str) -> None:
        # Long lines of a result are cut, those of prose are not; it stays on the screen; colours are colours.
        environment = {"LESS": "RX" if self._folded else "SRX", **os.environ}
        self._pager = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)
        assert self._pager.stdin is not None
        os.set_blocking(self._pager.stdin.fileno(), False)
        self._open(os.dup(self._pager.stdin.fileno()))
        self._pager.stdin.close()

    def _open(self, descriptor: int) -> None:
        self._before()
        self._descriptor = descriptor
        held, self._held = b"".join(self._held), []
        self._write_all(descriptor, held)

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._pager is not None:
            self._pager.wait()
            self._pager = None


class FileSink(Sink):
    """A file that appears when the result is complete; what was there until then is left alone.

    What is no ordinary file, such as a named pipe, is written to as it is.
    """

    def __init__(self, cancelled: threading.Event, path: str) -> None:
        """Opens it.

        Raises:
            ArgumentError: If it is a directory.
            StorageError: If it cannot be written.
        """
        super().__init__(cancelled)
        self._path = path
        self._place = Path(os.path.expanduser(path))
        self._growing = None if is_stream(self._place) else GrowingFile(self._place, replace=True, parents=False)

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._check()
        with _named(self._path):
            if self._growing is None:
                self._write_stream(self._place, data)
            else:
                self._growing.file.write(data)
        return len(data)

    def finish(self) -> None:
        if self._growing is None:
            self._close_stream()
            return
        try:
            self._growing.publish()
        finally:
            self._growing.discard()

    def abort(self) -> None:
        if self._growing is None:
            self._close_stream()
        else:
            self._growing.discard()


class AppendingSink(Sink):
    """A file that results are added to, one after the other, from its beginning on."""

    def __init__(self, cancelled: threading.Event, path: str) -> None:
        """Opens the file, and empties it; a pipe or device is opened by the first result.

        Raises:
            StorageError: If it cannot be written.
        """
        super().__init__(cancelled)
        self._place = Path(os.path.expanduser(path))
        self._file: IO[bytes] | None = None
        if not is_stream(self._place):
            with storage_errors(path):
                self._file = self._place.open("wb")
        self.path = path
        #: Whether anything was written.
        self.used = False
        #: The mode of a result that nothing can be added to; empty if there is none.
        self.filled = ""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._check()
        self.used = True
        with _named(self.path):
            if self._file is None:
                self._write_stream(self._place, data)
            else:
                self._file.write(data)
        return len(data)

    def finish(self) -> None:
        if self._file is not None:
            with _named(self.path):
                self._file.flush()

    def abort(self) -> None:
        self.finish()

    def close(self) -> None:
        self._close_stream()
        if self._file is not None:
            with _named(self.path):
                self._file.close()
        super().close()


@contextmanager
def _named(path: str) -> Iterator[None]:
    """The file in what the system refuses; that nobody reads any longer is no refusal."""
    try:
        yield
    except (BrokenPipeError, EngramError):
        raise
    except OSError as error:
        raise StorageError(f"cannot write '{path}': {error.strerror or error}") from error


class CommandSink(Sink):
    """The standard input of a command of the system's shell."""

    def __init__(self, cancelled: threading.Event, command: str, before: Callable[[], None]) -> None:
        """Starts the command, whose output goes where ours goes.

        Args:
            cancelled: Ends every write.
            command: A line for ``/bin/sh``.
            before: Called before the command can write.
        """
        super().__init__(cancelled)
        before()
        self._process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE)
        assert self._process.stdin is not None
        self._pipe = self._process.stdin
        os.set_blocking(self._pipe.fileno(), False)

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._write_all(self._pipe.fileno(), data)
        return len(data)

    def finish(self) -> None:
        self._pipe.close()
        code = self._process.wait()
        if code == -signal.SIGINT:
            # Ctrl-C went to the command too.
            raise KeyboardInterrupt
        if code:
            raise ArgumentError(f"the command ended with exit code {code}")

    def abort(self) -> None:
        self._pipe.close()
        self._process.wait()

    def unread(self) -> None:
        # It may have failed.
        self.finish()


def _widths(data: bytes) -> list[int]:
    """Columns of each line."""
    from prompt_toolkit.utils import get_cwidth

    text = _ESCAPE.sub("", data.decode(errors="replace"))
    return [get_cwidth(line) for line in text.split("\n")]


def _widest(data: bytes) -> int:
    """Columns of the widest line."""
    return max(_widths(data))


def _folded_lines(data: bytes, columns: int) -> int:
    """Lines of the terminal that the text takes, whose last line is finished."""
    return sum(max(1, -(-width // columns)) for width in _widths(data.removesuffix(b"\n")))
