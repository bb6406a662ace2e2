"""The program in a terminal of its own: what a person types goes in, what a person would see comes out.

A pseudo-terminal from the standard library, and pyte's screen. Nothing sleeps: every step waits for what it expects to
see, and fails with the screen when that does not come.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte
from program import PROGRAM

__all__ = [
    "CTRL_C",
    "CTRL_D",
    "CTRL_E",
    "CTRL_R",
    "CTRL_U",
    "CTRL_X",
    "ENTER",
    "ESCAPE",
    "PROMPT",
    "TAB",
    "UP",
    "Terminal",
    "shell",
]

ENTER, TAB, ESCAPE, UP = "\r", "\t", "\x1b", "\x1b[A"
CTRL_C, CTRL_D, CTRL_E, CTRL_R, CTRL_U, CTRL_X = "\x03", "\x04", "\x05", "\x12", "\x15", "\x18"
PROMPT = "engram> "
_PATIENCE = 60.0
_LINES_KEPT = 5000


class Terminal:
    """A program on a terminal. Use it in a ``with`` block, which ends the program."""

    def __init__(
        self,
        words: Sequence[object],
        *,
        columns: int = 100,
        lines: int = 30,
        environment: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=_LINES_KEPT, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        # A real terminal answers when it is asked where its cursor is.
        self.screen.write_process_input = self._answer
        #: Every byte the program has written.
        self.written = b""
        self._leader, follower = pty.openpty()
        self._resize(columns, lines)
        #: The local modes of the terminal, before the program has it.
        self.modes_before = self.modes()
        kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR", "PAGER")}
        self.process = subprocess.Popen(
            list(map(str, words)),
            stdin=follower, stdout=follower, stderr=follower, cwd=cwd,
            env={**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(environment or {})},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )  # fmt: skip
        os.close(follower)
        self._open = True

    # What a person does

    def type(self, text: str) -> None:
        """Keys, as a terminal sends them."""
        self.type_bytes(text.encode())

    def type_bytes(self, data: bytes) -> None:
        """Bytes that may be no text."""
        while data:
            # The program may be writing what nobody has read yet.
            ready, writable, _ = select.select([self._leader], [self._leader], [], _PATIENCE)
            if ready:
                self._read()
            if writable:
                data = data[os.write(self._leader, data[:1024]) :]

    def type_unread(self, text: str) -> None:
        """Keys, while what the program writes stays unread."""
        os.write(self._leader, text.encode())

    def paste(self, text: str) -> None:
        """Text in one piece, as a terminal pastes it."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def run(self, text: str, *expected: str) -> None:
        """Types a line, and waits for what it shows and for the next prompt."""
        *first, last = text.split(ENTER)
        for line in first:
            self.type(line)
            self.wait_typed(line)
            self.type(ENTER)
            self.wait_until(lambda: self.screen.display[self.screen.cursor.y].strip() == "...>", "another line")
        self.type(last)
        # Before it has arrived the prompt may be drawn once more.
        self.wait_typed(last)
        before = self.mark()
        self.type(ENTER)
        for one in expected:
            self.wait(one, since=before)
        self.wait_prompt(since=before)

    def resize(self, columns: int, lines: int) -> None:
        """Changes the size of the window, of which the program hears."""
        self._resize(columns, lines)
        self.screen.resize(lines, columns)

    def interrupt(self) -> None:
        """A SIGINT from somewhere else than the keyboard."""
        os.kill(self.process.pid, signal.SIGINT)

    # What a person sees

    def mark(self) -> int:
        """How much has been written up to now."""
        self._drain()
        return len(self.written)

    def text(self) -> str:
        """The lines of the screen, and those that have left it at the top."""
        history = ["".join(line[x].data for x in range(self.screen.columns)) for line in self.screen.history.top]
        return "\n".join(line.rstrip() for line in [*history, *self.screen.display])

    def plain(self, since: int = 0) -> str:
        """What was written, without escape codes."""
        return re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|[=>78])", "", self.written[since:].decode(errors="replace"))

    def wait(self, expected: str, *, since: int | None = None) -> None:
        """Waits for a text on the screen; with ``since`` in what was written from that mark on."""
        self.wait_until(lambda: expected in (self.text() if since is None else self.plain(since)), expected)

    def wait_typed(self, text: str) -> None:
        """Waits until the end of what was typed stands before the cursor."""
        end = text[-8:]

        def there() -> bool:
            cursor = self.screen.cursor
            return self.screen.display[cursor.y][: cursor.x].endswith(end)

        self.wait_until(there, f"{end!r} before the cursor")

    def wait_prompt(self, *, since: int) -> None:
        """Waits for a prompt, written after a mark, behind which the cursor stands."""
        prompt = PROMPT.rstrip()

        def there() -> bool:
            line = self.screen.display[self.screen.cursor.y]
            return prompt in self.plain(since) and line.rstrip() == prompt and self.screen.cursor.x == len(PROMPT)

        self.wait_until(there, "the prompt")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Waits until what is on the screen meets a condition."""
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if not self._open or time.monotonic() > deadline:
                raise AssertionError(f"{what!r} did not come; the screen:\n{self.text()}")
            if select.select([self._leader], [], [], 0.5)[0]:
                self._read()

    def modes(self) -> int:
        """The local modes of the terminal: whether it echoes, edits lines, makes signals."""
        return int(termios.tcgetattr(self._leader)[3])

    def wait_full(self) -> None:
        """Waits, without reading, until the program writes no more: what it has written fills the terminal."""
        before = -1
        while (now := self._waiting()) != before:
            before = now
            select.select([], [], [], 0.3)

    def _waiting(self) -> int:
        """Bytes that were written and not read."""
        return int(struct.unpack("i", fcntl.ioctl(self._leader, termios.FIONREAD, b"\0\0\0\0"))[0])

    def end(self) -> int:
        """Waits until the program has ended; its exit code."""
        deadline = time.monotonic() + _PATIENCE
        while self._open and time.monotonic() < deadline:
            if select.select([self._leader], [], [], 0.5)[0]:
                self._read()
        return self.process.wait(_PATIENCE)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(_PATIENCE)
        os.close(self._leader)

    def _read(self) -> None:
        try:
            data = os.read(self._leader, 65536)
        except OSError:  # nobody has the terminal open any longer
            data = b""
        if not data:
            self._open = False
            return
        self.written += data
        self._stream.feed(data)

    def _drain(self) -> None:
        while self._open and select.select([self._leader], [], [], 0)[0]:
            self._read()

    def _answer(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._leader, text.encode())

    def _resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._leader, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def shell(
    home: Path, *words: object, columns: int = 100, lines: int = 30, cwd: Path | None = None, **environment: str
) -> Terminal:
    """The shell at its first prompt, with a home directory of its own."""
    terminal = Terminal(
        [*PROGRAM, *words],
        columns=columns,
        lines=lines,
        cwd=cwd,
        environment={
            "HOME": str(home),
            "XDG_CONFIG_HOME": "",
            "XDG_STATE_HOME": "",
            "ENGRAMSQL_CONFIG": "",
            "PAGER": "cat",
            **environment,
        },
    )
    try:
        terminal.wait_prompt(since=0)
    except BaseException:
        terminal.__exit__()
        raise
    return terminal
