"""Completion: what is wanted at the cursor, the names that fit, and the catalog they come from.

:mod:`context` is a pure function of text and cursor, :mod:`candidates` one of what that found and of a snapshot of the
catalog, which :mod:`catalog` renews in the background. Only :mod:`completer` knows prompt_toolkit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.completion import ThreadedCompleter

from engramsql.shell.completion.catalog import Catalog, Snapshot
from engramsql.shell.completion.completer import SqlCompleter
from engramsql.shell.completion.context import call_at
from engramsql.shell.completion.signatures import Hint, hint

if TYPE_CHECKING:
    from engramsql.database import Database
    from engramsql.shell.completion.commands import Command

__all__ = ["Completion", "Hint"]

# A Tab waits for the first names this long.
_PATIENCE_SECONDS = 10.0


class Completion:
    """Completion and hints for a prompt on one database.

    Args:
        database: The database; nothing is renewed any more when it is closed.
        commands: The dot commands; by default all of the shell.
    """

    def __init__(self, database: Database, commands: Sequence[Command] | None = None) -> None:
        self.catalog = Catalog(database)
        self._commands = commands
        # A directory on a slow disk must not hold up what is being typed.
        self.completer = ThreadedCompleter(SqlCompleter(self._snapshot, self._all_commands, self.catalog.learn))
        self.refresh()

    def refresh(self, statement: str = "") -> None:
        """Starts to renew the names, and returns at once; called after each statement, with its text.

        The result of the statement must have been read: temporary tables are known to its connection alone, which is
        asked about them after a statement that can have changed them.
        """
        self.catalog.refresh(statement)

    def hint(self, text: str, cursor: int) -> str:
        """Two lines on the function whose call the cursor is in: its signature and its purpose.

        The argument at the cursor is between asterisks. Empty if the cursor is in no call of a known function.
        """
        found = self.hint_parts(text, cursor)
        return "" if found is None else str(found)

    def hint_parts(self, text: str, cursor: int) -> Hint | None:
        """The same in parts, to be coloured; None if there is nothing to say."""
        call = call_at(text, cursor)
        if call is None:
            return None
        function = self.catalog.snapshot.functions.get(call.function.lower())
        if function is None:
            return None
        return hint(function.signature, function.description, call.index, call.named, call.text_first)

    def close(self) -> None:
        """Ends the thread that renews the names."""
        self.catalog.close()

    def _snapshot(self, asked: bool) -> Snapshot:
        # Who asks gets an answer, also in the first moment; who types is not answered late.
        return self.catalog.first(_PATIENCE_SECONDS) if asked else self.catalog.snapshot

    def _all_commands(self) -> Sequence[Command]:
        if self._commands is None:
            from engramsql.shell.commands import registry

            self._commands = tuple(registry.all())
        return self._commands
