"""The lines that a person types: the one module that touches prompt-toolkit, and its plain replacement."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from engramsql.shell.statements import finished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prompt_toolkit.history import History

    from engramsql.shell.history import HistoryFile
    from engramsql.shell.session import Session

__all__ = ["interact", "is_dumb"]

_PROMPT = "engram> "
_CONTINUATION = "   ...> "


def is_dumb() -> bool:
    """Whether the terminal cannot move its cursor, or nobody knows what it can."""
    return os.environ.get("TERM", "dumb").lower() in ("", "dumb", "unknown")


def interact(session: Session, history: HistoryFile | None) -> None:
    """Reads and runs until the session ends, or its input does."""
    read = _plain(session) if is_dumb() else _edited(session, history)
    while not session.ended:
        try:
            text = read()
        except KeyboardInterrupt:
            # Of an empty line nothing is left to clear.
            continue
        except EOFError:
            return
        if text.strip():
            session.execute(text)


def _plain(session: Session) -> Callable[[], str]:
    """Lines as the terminal itself edits them."""

    def read() -> str:
        lines = [session.draft] if session.draft else []
        if session.draft:
            print(session.draft)
        session.draft = ""
        # Only while it waits Ctrl-C has something to end here.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            while not lines or not finished("\n".join(lines)):
                lines.append(input(_CONTINUATION if lines else _PROMPT))
        except KeyboardInterrupt:
            print()
            raise
        except EOFError:
            print()
            if not lines:
                raise
        finally:
            signal.signal(signal.SIGINT, before)
        return "\n".join(lines)

    return read


def _edited(session: Session, history: HistoryFile | None) -> Callable[[], str]:
    """Lines as prompt-toolkit edits them."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import DynamicCompleter
    from prompt_toolkit.history import InMemoryHistory

    from engramsql.shell import highlight, keys
    from engramsql.shell.hints import Hints

    hints = Hints(session)
    editor: PromptSession[str] = PromptSession(
        message=_PROMPT,
        multiline=True,
        prompt_continuation=_CONTINUATION,
        history=InMemoryHistory() if history is None else _history(session, history),
        completer=DynamicCompleter(lambda: hints.completion.completer),
        complete_while_typing=True,
        lexer=highlight.LEXER,
        style=highlight.style(not os.environ.get("NO_COLOR")),
        include_default_pygments_style=False,
        key_bindings=keys.bindings(finished),
        bottom_toolbar=hints.toolbar,
        enable_open_in_editor=True,
        tempfile_suffix=".sql",
        search_ignore_case=True,
    )
    editor.app.timeoutlen = editor.app.ttimeoutlen = keys.ESCAPE_SECONDS

    def entries() -> list[str]:
        return list(editor.history.get_strings())

    session.entries = entries

    text = ""

    def read() -> str:
        nonlocal text
        draft, session.draft = session.draft, ""
        hints.follow(text)
        # The session counts Ctrl-C itself; here it is a key.
        text = editor.prompt(default=draft, handle_sigint=False)
        return text

    return read


def _history(session: Session, file: HistoryFile) -> History:
    from prompt_toolkit.history import History

    class FileHistory(History):
        """The history file, which warns once if it is no good; the session goes on without."""

        warned = False

        def load_history_strings(self) -> Iterable[str]:
            try:
                return reversed(file.load())
            except OSError as error:
                self._warn(error)
                return []

        def store_string(self, string: str) -> None:
            try:
                file.append(string)
            except OSError as error:
                self._warn(error)

        def _warn(self, error: OSError) -> None:
            if not self.warned:
                self.warned = True
                session.say(f"engramsql: warning: the history is not kept: {error.filename}: {error.strerror}")

    return FileHistory()
