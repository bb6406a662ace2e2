"""The thin layer between completion and prompt_toolkit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.completion import Completion as Entry

from engramsql.export.visible import visible
from engramsql.shell.completion.candidates import Candidate, candidates
from engramsql.shell.completion.commands import Command, command_candidates, find
from engramsql.shell.completion.context import wanted
from engramsql.shell.completion.relations import files_of
from engramsql.shell.completion.want import Want, Wanted

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

    from engramsql.shell.completion.catalog import Snapshot

__all__ = ["SqlCompleter", "completions"]

# What is offered before a letter was typed.
_INVITING = frozenset({Want.RELATION, Want.FIELD, Want.STRING, Want.FILE, Want.CALLED, Want.SETTING_VALUE, Want.VALUE})
_META_WIDTH = 60


class SqlCompleter(Completer):
    """Offers names for SQL and dot commands, out of what ``snapshot`` returns; it is told whether somebody asked."""

    def __init__(
        self,
        snapshot: Callable[[bool], Snapshot],
        commands: Callable[[], Sequence[Command]],
        learn: Callable[[str], None] = lambda path: None,
    ) -> None:
        """Nothing is read yet.

        Args:
            snapshot: The names that there are; told whether somebody asked for them.
            commands: The dot commands.
            learn: Told of each file that the statement reads, whose columns a later snapshot is to have.
        """
        self._snapshot = snapshot
        self._commands = commands
        self._learn = learn

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Entry]:
        """The entries of the menu; while typing only where a name has begun or one must come."""
        found = _wanted(document.text, document.cursor_position, self._commands())
        for path in files_of([*found.sources, *(cte.source for cte in found.ctes)]):
            self._learn(path)
        return completions(
            document.text,
            document.cursor_position,
            self._snapshot(complete_event.completion_requested),
            self._commands(),
            typing=not complete_event.completion_requested,
        )


def completions(
    text: str, cursor: int, snapshot: Snapshot, commands: Sequence[Command], *, typing: bool = False
) -> list[Entry]:
    """The entries of the menu for ``cursor`` in ``text``.

    Args:
        text: All that was typed.
        cursor: Place in it, in characters.
        snapshot: The names that there are.
        commands: The dot commands.
        typing: Nobody asked: nothing is offered inside a word, and before one only where a name must come.
    """
    found = _wanted(text, cursor, commands)
    following = text[cursor : cursor + 1]
    if typing and (_is_letter(following) or not (found.word or _inviting(found))):
        return []
    if typing and not found.word and not found.qualifier:
        found = replace(found, kinds=found.kinds[:1])  # only what must come, until a letter says more
    if found.kinds in ((Want.COMMAND,), (Want.ARGUMENT,)):
        offered = command_candidates(found, snapshot, commands)
    else:
        offered = candidates(found, snapshot)
    entries = []
    for candidate in offered:
        inserted = _inserted(candidate, found.quote, following)
        if typing and inserted == found.word:
            continue
        entries.append(
            Entry(
                inserted,
                start_position=found.start - cursor,
                display=visible(candidate.label),
                display_meta=visible(_short(candidate.meta)),
            )
        )
    return entries


def _wanted(text: str, cursor: int, commands: Sequence[Command]) -> Wanted:
    """What is wanted, also behind a dot command that takes SQL."""
    found = wanted(text, cursor)
    if found.kinds != (Want.ARGUMENT,):
        return found
    command = find(found.subject, commands)
    if command is None or command.argument != "sql":
        return found
    start = text.index(found.subject) if found.subject in text else 0
    start += len(found.subject) + 1
    inner = wanted(text[start:], max(cursor - start, 0))
    return replace(inner, start=inner.start + start)


def _inviting(found: Wanted) -> bool:
    return bool(found.qualifier) or bool(found.kinds and found.kinds[0] in _INVITING) or found.kinds == (Want.ARGUMENT,)


def _inserted(candidate: Candidate, quote: str, following: str) -> str:
    """The text that is written: what stands behind the cursor already is not written again."""
    text = candidate.text
    if quote and candidate.quoted and following != quote:
        return text + quote
    if following == "(" and text.endswith(("(", "()")):
        return text.rstrip("()")
    return text


def _is_letter(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _short(meta: str) -> str:
    line = " ".join(meta.split())
    return line if len(line) <= _META_WIDTH else line[: _META_WIDTH - 3].rstrip() + "..."
