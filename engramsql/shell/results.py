"""Where the results of a session go, and what they are written as there: ``.output``, ``.once``, the terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, cast

from engramsql.errors import ArgumentError
from engramsql.export import BINARY
from engramsql.export.style import Style, style_of
from engramsql.shell.endings import format_in, mode_of, unknown_ending
from engramsql.shell.sinks import AppendingSink, CommandSink, FileSink, Sink, TerminalSink
from engramsql.shell.terminal import terminal_size

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from engramsql.shell.settings import Settings

__all__ = ["Destination", "Results"]


@dataclass(frozen=True)
class Destination:
    """Where a result goes, and what the terminal there can show; None if there is none."""

    file: IO[bytes]
    style: Style | None


class Results:
    """The places where results go: one for all, and one for the next alone."""

    def __init__(
        self, settings: Settings, cancelled: threading.Event, *, sink: IO[bytes] | None, mode_chosen: bool
    ) -> None:
        """Results go to the terminal, or to the output of a script.

        Args:
            settings: The mode, and what the terminal is to show.
            cancelled: Ends every write.
            sink: Where the results of a script go; None is the terminal.
            mode_chosen: Whether the user asked for the mode; else the ending of a file has precedence.
        """
        self._settings = settings
        self._cancelled = cancelled
        self._sink = sink
        #: Whether the mode was chosen by the user, and is no default.
        self.mode_chosen = mode_chosen
        self._once: Callable[[Callable[[], None]], Sink] | None = None
        self._once_path: str | None = None
        self._output: AppendingSink | None = None

    def once_to_file(self, path: str) -> None:
        """The next result goes to a file."""
        mode_of(path)
        self._once = lambda before: FileSink(self._cancelled, path)
        self._once_path = path

    def once_to_command(self, command: str) -> None:
        """The next result goes to a command of the system's shell."""
        self._once = lambda before: CommandSink(self._cancelled, command, before)
        self._once_path = None

    def set_output(self, path: str | None) -> None:
        """All results go to a file from now on, or, again, to where they went at first."""
        if path is not None:
            mode_of(path)
        if self._output is not None:
            self._output.close()
        self._output = None if path is None else AppendingSink(self._cancelled, path)

    @property
    def output(self) -> str:
        """Where all results go: a path, or ``stdout``."""
        return "stdout" if self._output is None else self._output.path

    @property
    def on_screen(self) -> bool:
        """Whether the next result is shown on the terminal."""
        return self._sink is None and self._once is None and self._output is None

    @property
    def _path(self) -> str | None:
        """The file that the next result goes to, if it is one."""
        if self._once is not None:
            return self._once_path
        return None if self._output is None else self._output.path

    def mode(self) -> str:
        """The mode of the next result: what the ending of its file says, unless another was chosen.

        A box is for people: it is never what a file of such a name is to hold.
        """
        return self._mode_in(self._path)

    def _mode_in(self, path: str | None) -> str:
        mode, named = self._settings.mode, None if path is None else mode_of(path)
        return mode if named is None or (self.mode_chosen and mode != "box") else named

    def format(self, mode: str) -> str:
        """What the next result is written as in a mode: where it goes says which form of it."""
        return format_in(self._path, mode)

    def contradiction(self) -> str | None:
        """What to say if the file that is waited for will hold something else than its ending says."""
        path, mode = self._path, self.mode()
        if path is None:
            return None
        named = mode_of(path)
        if named is None and (ending := unknown_ending(path)):
            return f"'{path}' will be written as {mode}: no mode writes {ending} files"
        if named is None or named == mode:
            return None
        return f"'{path}' will be written as {mode}, the mode that was set; .mode {named} is what its name says"

    def check_place_for(self, mode: str) -> None:
        """Refuses what the place where results go cannot hold.

        Raises:
            ArgumentError: If it is bytes for the terminal, or a second result beside one that fills its file.
        """
        if self.on_screen and mode in BINARY:
            raise ArgumentError(
                f"{mode} is not for terminals: .once FILE writes the next result to a file, "
                ".mode box shows results here again"
            )
        if self._once is None and self._output is not None:
            output = self._output
            if output.filled or (mode in BINARY and output.used):
                raise ArgumentError(
                    f"'{output.path}' can hold one {output.filled or mode} result and nothing else; "
                    ".output another file, or write each result with .once FILE"
                )
            output.filled = mode if mode in BINARY else ""

    @contextmanager
    def opened(self, before: Callable[[], None]) -> Iterator[Destination]:
        """Where the next result is written; a reader that has seen enough is no error.

        Args:
            before: Called once, before the first byte goes to the terminal.
        """
        once, self._once = self._once, None
        with self._written(None if once is None else once(before), before, prose=False) as to:
            yield to

    @contextmanager
    def opened_for_text(self) -> Iterator[Destination | None]:
        """Where text of ours is written: what ``.once`` waits for is still to come. None if it has no place there."""
        if self._output is not None and (self._output.filled or self._mode_in(self._output.path) in BINARY):
            yield None
            return
        with self._written(None, lambda: None, prose=True) as to:
            yield to

    @contextmanager
    def _written(self, sink: Sink | None, before: Callable[[], None], *, prose: bool) -> Iterator[Destination]:
        if sink is None and self._output is None and self._sink is not None:
            yield Destination(self._sink, style_of(sys.stdout))
            self._sink.flush()
            return
        if sink is None:
            sink = self._output
        if sink is None:
            sink = TerminalSink(self._cancelled, before, paged=self._settings.pager, folded=prose)
        style = self._style() if isinstance(sink, TerminalSink) else None
        try:
            yield Destination(cast("IO[bytes]", sink), style)
        except BrokenPipeError:
            sink.unread()
        except BaseException:
            sink.abort()
            raise
        else:
            sink.finish()

    def _style(self) -> Style | None:
        """What the terminal can show, and is to show."""
        found = style_of(sys.stdout)
        if found is None:
            return None
        vector = self._settings.vector
        return replace(
            found,
            width=self._settings.max_width or terminal_size().columns,
            max_rows=self._settings.max_rows,
            shorten=vector is not False,
            values=found.values if isinstance(vector, bool) else vector,
        )
