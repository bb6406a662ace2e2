"""The list of dot commands. Help, completion, the documentation and the tests read it."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engramsql.shell.session import Session

    Run = Callable[[Session, list[str]], None]
    Argument = Literal["", "table", "file", "mode", "setting", "sql", "command", "text"]

__all__ = ["Command", "all", "command", "find", "names", "parse"]


@dataclass(frozen=True)
class Command:
    r"""One dot command.

    Attributes:
        name: With its dot, such as ``.tables``.
        usage: Its arguments as help writes them.
        summary: What it does, in a line.
        aliases: Other names, such as ``\dt``.
        argument: What its first argument is, for completion; empty if it takes none.
        details: What else there is to know; may be empty.
        run: Does it, with the words behind the name.
        whole: Whether all that follows is one word, quotes and all.
        fewest: Words that it needs.
        most: Words that it takes.
    """

    name: str
    usage: str
    summary: str
    aliases: tuple[str, ...]
    argument: Argument
    details: str
    run: Run
    whole: bool
    fewest: int
    most: int

    @property
    def synopsis(self) -> str:
        """The name and its arguments."""
        return f"{self.name} {self.usage}".rstrip()


_COMMANDS: dict[str, Command] = {}


def command(
    name: str,
    usage: str = "",
    *,
    summary: str,
    aliases: tuple[str, ...] = (),
    argument: Argument = "",
    details: str = "",
    whole: bool = False,
    fewest: int = 0,
    most: int = 1,
) -> Callable[[Run], Run]:
    """Puts the decorated function into the list.

    Raises:
        ValueError: If the name or an alias is taken.
    """

    def register(run: Run) -> Run:
        taken = {word for known in _COMMANDS.values() for word in (known.name, *known.aliases)}
        if twice := taken & {name, *aliases}:
            raise ValueError(f"{twice} is there already")
        known = Command(name, usage, summary, aliases, argument, details, run, whole, fewest, most if usage else 0)
        _COMMANDS[name] = known
        return run

    return register


def all() -> list[Command]:
    """Every command, by name."""
    return [_COMMANDS[name] for name in sorted(_COMMANDS)]


def names() -> dict[str, Command]:
    """Every command by its name and by its aliases."""
    return {name: known for known in _COMMANDS.values() for name in (known.name, *known.aliases)}


def find(word: str) -> Command:
    """The command of a name or alias.

    Raises:
        ArgumentError: If there is none, with the nearest.
    """
    known = names()
    if word in known:
        return known[word]
    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else ".help lists them"
    raise ArgumentError(f"no command {word}; {hint}")


def parse(line: str) -> tuple[Command, list[str]]:
    """The command of a line and its words.

    Raises:
        ArgumentError: If there is no such command, a quote is not closed, or the number of words is wrong.
    """
    word, *rest_of_line = line.split(maxsplit=1)
    known = find(word.removesuffix(";"))
    rest = "".join(rest_of_line).strip()
    if known.whole:
        words = [rest] if rest else []
    else:
        try:
            words = shlex.split(rest.removesuffix(";"))
        except ValueError as error:
            raise ArgumentError(f"{known.name}: {str(error).lower()}; write {known.synopsis}") from error
    if not known.fewest <= len(words) <= known.most:
        raise ArgumentError(f"write {known.synopsis}")
    return known, words
