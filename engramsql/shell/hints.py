"""What the prompt is told about the database that is open: names to complete, and hints on functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.application import get_app

from engramsql.shell.commands import registry
from engramsql.shell.completion import Completion
from engramsql.shell.statements import FORGOTTEN, is_forgotten

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples

    from engramsql.shell.session import Session

__all__ = ["Hints"]


class Hints:
    """Completion of one session, which may open one database after the other."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._database = session.database
        self.completion = Completion(session.database)
        # It uses the database from a thread of its own.
        session.leaving = self._close

    def follow(self, text: str) -> None:
        """Learns what was changed by the text that was run last."""
        if self._session.database is self._database:
            self.completion.refresh(text)
        else:
            self._database = self._session.database
            self.completion = Completion(self._database)

    def toolbar(self) -> StyleAndTextTuples:
        """The signature around the argument at the cursor, and what the function is for."""
        buffer = get_app().current_buffer
        if is_forgotten(buffer.text, registry.names()):
            return [("", FORGOTTEN)]
        found = self.completion.hint_parts(buffer.text, buffer.cursor_position)
        if found is None:
            return []
        return [
            ("", found.before),
            ("class:hint.argument", found.parameter),
            ("", f"{found.after}\n{found.description}".rstrip()),
        ]

    def _close(self) -> None:
        self.completion.close()
