"""The command line in a process of its own, with pipes or a terminal at its ends."""

from __future__ import annotations

import fcntl
import os
import pty
import random
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PROGRAM", "Killer", "in_terminal", "interrupted", "killed", "moments", "on_terminal", "run"]

# Whoever runs the tests may ignore Ctrl-C, which a child inherits.
PROGRAM = [
    sys.executable,
    "-c",
    (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from engramsql.cli import main; sys.exit(main())"
    ),
]


def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *map(str, words)],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def in_terminal(*words: object) -> tuple[str, str]:
    """stdout, and what a terminal on stderr got."""
    parent, child = pty.openpty()
    with subprocess.Popen([*PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=child, text=True) as process:
        os.close(child)
        seen = _drained(parent)
        assert process.stdout is not None
        out = process.stdout.read()
        assert process.wait(60) == 0
    return out, seen


def interrupted(*words: object) -> tuple[int, str]:
    """Exit code and stdout of a command that gets Ctrl-C when a terminal on stderr has its first line of progress."""
    parent, child = pty.openpty()
    with subprocess.Popen([*PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=child, text=True) as process:
        os.close(child)
        try:
            assert os.read(parent, 4096)
            process.send_signal(signal.SIGINT)
            code = process.wait(60)
            assert process.stdout is not None
            return code, process.stdout.read()
        finally:
            process.kill()
            os.close(parent)


def killed(words: Sequence[object], seconds: float) -> bool:
    """Runs a command and kills it after a while; whether it was still running then."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen([*PROGRAM, *map(str, words)], stdout=quiet, stderr=quiet) as process:
        try:
            # The random moment is what is tested: nothing is waited for.
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait() == -signal.SIGKILL
    return False


def moments(count: int, seed: int, *, start: float) -> list[float]:
    """Random moments as parts of a whole run, one in each of ``count`` stretches from ``start`` on."""
    rng = random.Random(seed)
    return [start + (index + rng.random()) / count * (1.05 - start) for index in range(count)]


@dataclass
class Killer:
    """Kills a command at moments of its run; the shortest run that was seen is the whole."""

    words: Sequence[object]
    whole: float
    hits: int = 0

    def kill(self, moment: float) -> None:
        started = time.perf_counter()
        if killed(self.words, moment * self.whole):
            self.hits += 1
        else:
            # The machine was busier when the run was measured.
            self.whole = min(self.whole, time.perf_counter() - started)


def on_terminal(*words: object) -> tuple[int, str]:
    """Exit code of a command, and what a terminal of 80 columns on stdout got."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "COLUMNS": "80"}
    with subprocess.Popen(
        [*PROGRAM, *map(str, words)], stdout=child, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        os.close(child)
        seen = _drained(parent)
        code = process.wait(60)
    return code, seen.replace("\r\n", "\n")


def _drained(parent: int) -> str:
    """All that a terminal got until its last writer closed it."""
    seen = b""
    try:
        while chunk := os.read(parent, 4096):
            seen += chunk
    except OSError:  # the terminal's other side is closed
        pass
    finally:
        os.close(parent)
    return seen.decode()
