"""Completion of dot commands and their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from engramsql.export import FORMATS
from engramsql.shell.completion.candidates import Candidate, match
from engramsql.shell.completion.files import matching
from engramsql.shell.completion.want import Want, Wanted

if TYPE_CHECKING:
    from engramsql.shell.completion.catalog import Snapshot

__all__ = ["Command", "command_candidates", "find"]


class Command(Protocol):
    """What completion needs to know of a dot command."""

    @property
    def name(self) -> str:
        """Its name, with or without the dot."""

    @property
    def aliases(self) -> Iterable[str]:
        """Other names."""

    @property
    def argument(self) -> str:
        """What it takes: "", "table", "file", "mode", "setting", "sql", "command" or "text"."""

    @property
    def summary(self) -> str:
        """One line on what it does."""


def find(name: str, commands: Iterable[Command]) -> Command | None:
    """The command of a name or alias."""
    for command in commands:
        if _dotted(name) in (_dotted(known) for known in (command.name, *command.aliases)):
            return command
    return None


def command_candidates(wanted: Wanted, snapshot: Snapshot, commands: Iterable[Command]) -> list[Candidate]:
    """Names of commands, or what fits as argument of one; the best first."""
    if wanted.kinds == (Want.COMMAND,):
        offered: Iterable[Candidate] = _names(wanted, commands)
    else:
        command = find(wanted.subject, commands)
        offered = _arguments(wanted, command.argument if command is not None else "", snapshot, commands)
    dots = ".\\" if wanted.kinds == (Want.COMMAND,) else ""
    word = wanted.word.lstrip(dots)
    found = [(match(word, candidate.label.lstrip(dots)), candidate) for candidate in offered]
    ranked = sorted(((fits, candidate) for fits, candidate in found if fits is not None), key=lambda entry: entry[0])
    result = [candidate for _, candidate in ranked]
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


def _arguments(wanted: Wanted, argument: str, snapshot: Snapshot, commands: Iterable[Command]) -> Iterator[Candidate]:
    if argument == "file":
        yield from _files(wanted)
    if wanted.argument > 0:
        return  # one name is all that the others take
    if argument == "table":
        for relation in snapshot.relations:
            yield Candidate(_quoted(relation.name, wanted), relation.name, relation.kind, bool(wanted.quote))
        for view, told in snapshot.views.items():
            yield Candidate(_quoted(view, wanted), view, f"materialised view, {told}", bool(wanted.quote))
    elif argument == "mode":
        yield from (Candidate(name, name, "mode") for name in FORMATS)
    elif argument == "setting":
        yield from (Candidate(setting.name, setting.name, setting.value) for setting in snapshot.settings)
    elif argument == "command":
        for command in sorted(commands, key=lambda command: command.name):
            name = _dotted(command.name)
            yield Candidate(name if wanted.word.startswith(".") else name[1:], name, command.summary)


def _files(wanted: Wanted) -> Iterator[Candidate]:
    for file in matching(wanted.word):
        # A directory is not the end of a word yet: its quote stays open.
        path = file.path + "/" if file.directory else file.path
        meta = "directory" if file.directory else "file"
        yield Candidate(_quoted(path, wanted), path, meta, quoted=bool(wanted.quote) and not file.directory)


def _quoted(text: str, wanted: Wanted) -> str:
    """The text as one word of a command."""
    if wanted.quote or not any(letter.isspace() or letter in "'\"\\" for letter in text):
        return text
    return '"' + text.replace('"', '""') + '"' if "'" in text else f"'{text}'"
