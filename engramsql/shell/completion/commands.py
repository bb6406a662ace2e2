"""Completion of dot commands and their arguments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from engramsql.export import FORMATS
from engramsql.shell.completion.candidates import Candidate, Match, match
from engramsql.shell.completion.files import matching
from engramsql.shell.completion.want import Want, Wanted

if TYPE_CHECKING:
    from engramsql.shell.completion.catalog import Snapshot

__all__ = ["Command", "command_candidates", "find"]

_WORD = re.compile(r"\b[a-z]+\b")


class Command(Protocol):
    """What completion needs to know of a dot command."""

    @property
    def name(self) -> str:
        """Its name, with or without the dot."""

    @property
    def usage(self) -> str:
        """Its arguments as help writes them: words in lower case stand for themselves."""

    @property
    def aliases(self) -> Iterable[str]:
        """Other names."""

    @property
    def argument(self) -> str:
        """What it takes: "", "table", "file", "mode", "setting", "sql", "command" or "text"."""

    @property
    def summary(self) -> str:
        """One line on what it does."""

    def options(self, words: Sequence[str]) -> dict[str, str]:
        """Its options behind these words, and what they are."""


def find(name: str, commands: Iterable[Command]) -> Command | None:
    """The command of a name or alias."""
    for command in commands:
        if _dotted(name) in (_dotted(known) for known in (command.name, *command.aliases)):
            return command
    return None


def command_candidates(wanted: Wanted, snapshot: Snapshot, commands: Iterable[Command]) -> list[Candidate]:
    """Names of commands, or what fits as argument of one; the best first."""
    command: Command | None = None
    offered: Iterable[Candidate]
    if wanted.kinds == (Want.COMMAND,):
        offered = _names(wanted, commands)
    else:
        command = find(wanted.subject, commands)
        offered = _arguments(wanted, command, snapshot, commands) if command is not None else ()
    named = wanted.kinds == (Want.COMMAND,) or (command is not None and command.argument == "command")
    dots = ".\\" if named else ""
    word = wanted.word.lstrip(dots)
    found = [(match(word, candidate.label.lstrip(dots)), candidate) for candidate in offered]
    # Sorted as they are listed, and letters anywhere only where nothing better fits.
    result = [candidate for fits, candidate in found if fits == Match.PREFIX]
    result += [candidate for fits, candidate in found if fits == Match.WORD]
    result = result or [candidate for fits, candidate in found if fits == Match.LETTERS]
    return [] if [candidate.text for candidate in result] == [wanted.word] else result


def _names(wanted: Wanted, commands: Iterable[Command]) -> Iterator[Candidate]:
    for command in sorted(commands, key=lambda command: command.name):
        if wanted.word.startswith("."):
            yield Candidate(_dotted(command.name), _dotted(command.name), command.summary)
        for alias in command.aliases:
            dotted = _dotted(alias)
            # An alias is offered to those who began it.
            if dotted.startswith("\\") == wanted.word.startswith("\\") and dotted.startswith(wanted.word):
                yield Candidate(dotted, dotted, command.summary)


def _dotted(name: str) -> str:
    return name if name.startswith((".", "\\")) else f".{name}"


def _arguments(
    wanted: Wanted, command: Command, snapshot: Snapshot, commands: Iterable[Command]
) -> Iterator[Candidate]:
    argument = command.argument
    if wanted.word.startswith("-") and not wanted.quote:
        yield from (Candidate(option, option, about) for option, about in command.options(wanted.before).items())
        return
    if argument == "file" or (wanted.argument > 0 and "FILE" in command.usage):
        yield from _files(wanted)
    if wanted.argument > 0:
        return  # what the others take is one word
    if argument == "table":
        for relation in snapshot.relations:
            yield Candidate(_quoted(relation.name, wanted), relation.name, relation.kind, bool(wanted.quote))
        for view, told in snapshot.views.items():
            yield Candidate(_quoted(view, wanted), view, f"materialised view, {told}", bool(wanted.quote))
    elif argument == "mode":
        yield from (Candidate(name, name, "mode") for name in FORMATS)
    elif argument in ("setting", "text"):
        yield from (Candidate(word, word) for word in _WORD.findall(command.usage))
    elif argument == "command":
        for other in sorted(commands, key=lambda command: command.name):
            name = _dotted(other.name)
            yield Candidate(name if wanted.word.startswith(".") else name[1:], name, other.summary)
        for function in snapshot.functions.values():
            if function.ours:
                yield Candidate(function.name, function.name, "function")


def _files(wanted: Wanted) -> Iterator[Candidate]:
    for file in matching(wanted.word):
        # A directory is not the end of a word yet: its quote stays open.
        path = file.path + "/" if file.directory else file.path
        meta = "directory" if file.directory else "file"
        yield Candidate(_quoted(path, wanted), path, meta, quoted=bool(wanted.quote) and not file.directory)


def _quoted(text: str, wanted: Wanted) -> str:
    """The text as one word of a command, by the rules of a POSIX shell, as the commands take their words."""
    if wanted.quote == '"':
        return text.replace("\\", "\\\\").replace('"', '\\"')
    if wanted.quote:
        return text.replace("'", "'\"'\"'")
    return shlex.quote(text) if any(letter.isspace() or letter in "'\"\\" for letter in text) else text
