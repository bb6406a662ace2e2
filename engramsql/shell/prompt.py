"""The lines that a person types: the one module that touches prompt-toolkit, and its plain replacement."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from engramsql.errors import ArgumentError
from engramsql.export.visible import visible_lines
from engramsql.shell.commands import registry
from engramsql.shell.editor import edited
from engramsql.shell.plain import read_line
from engramsql.shell.statements import FORGOTTEN, finished, is_forgotten, meant
from engramsql.shell.terminal import is_dumb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prompt_toolkit.history import History

    from engramsql.shell.history import HistoryFile
    from engramsql.shell.session import Session

__all__ = ["interact"]

_PROMPT = "engram> "
_CONTINUATION = "   ...> "


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
            session.execute(meant(_told(text)))


def _is_finished(text: str) -> bool:
    return finished(meant(text))


def _told(text: str) -> str:
    """What was typed, as UTF-8: in a locale that has ASCII alone, Python keeps the bytes of all else as no text."""
    return text.encode(errors="surrogateescape").decode(errors="surrogateescape")


def _plain(session: Session) -> Callable[[], str]:
    """Lines as the terminal itself edits them; what was typed is remembered until the end."""
    typed: list[str] = []
    session.entries = lambda: typed

    def read() -> str:
        lines = [session.draft] if session.draft else []
        if session.draft:
            print(visible_lines(session.draft))
        session.draft = ""
        try:
            while not lines or not _is_finished("\n".join(lines)):
                lines.append(read_line(_CONTINUATION if lines else _PROMPT))
                if is_forgotten("\n".join(lines), registry.names()):
                    print(FORGOTTEN)
        except KeyboardInterrupt:
            print()
            raise
        except EOFError:
            print()
            if not lines:
                raise
        typed.append("\n".join(lines))
        return typed[-1]

    return read


def _edited(session: Session, history: HistoryFile | None) -> Callable[[], str]:
    """Lines as prompt-toolkit edits them."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import DynamicCompleter
    from prompt_toolkit.history import InMemoryHistory

    from engramsql.shell import highlight, keys
    from engramsql.shell.hints import Hints

    def edit(text: str) -> str | None:
        try:
            return edited(text)
        except (ArgumentError, OSError) as error:
            session.say(str(error))
            return None

    hints = Hints(session)
    kept, warn = (InMemoryHistory(), lambda: None) if history is None else _history(session, history)
    editor: PromptSession[str] = PromptSession(
        message=_PROMPT,
        multiline=True,
        prompt_continuation=_CONTINUATION,
        history=kept,
        completer=DynamicCompleter(lambda: hints.completion.completer),
        complete_while_typing=True,
        lexer=highlight.LEXER,
        style=highlight.style(not os.environ.get("NO_COLOR")),
        include_default_pygments_style=False,
        key_bindings=keys.bindings(_is_finished, edit),
        bottom_toolbar=hints.toolbar,
        enable_suspend=True,
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
        warn()
        # The session counts Ctrl-C itself; here it is a key.
        text = editor.prompt(default=draft, handle_sigint=False)
        return text

    return read


def _history(session: Session, file: HistoryFile) -> tuple[History, Callable[[], None]]:
    """The history of the prompt, and what warns, once, if its file is no good; the session goes on without."""
    from prompt_toolkit.history import History

    # Loading and storing go on while the prompt is on the screen, where a warning would be in the way.
    problems: list[OSError] = []
    told = False
    try:
        found = file.load()
    except OSError as error:
        found = []
        problems.append(error)

    class FileHistory(History):
        def load_history_strings(self) -> Iterable[str]:
            return reversed(found)

        def store_string(self, string: str) -> None:
            try:
                file.append(string)
            except OSError as error:
                problems.append(error)

    def warn() -> None:
        nonlocal told
        if problems and not told:
            told = True
            error = problems[0]
            session.say(f"engramsql: warning: the history is not kept: {error.filename}: {error.strerror}")

    return FileHistory(), warn
