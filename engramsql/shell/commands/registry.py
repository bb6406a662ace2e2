"""The list of dot commands. Help, completion, the documentation and the tests read it."""

from __future__ import annotations

import argparse
import difflib
import itertools
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engramsql.shell.session import Session

    Run = Callable[[Session, list[str]], None]
    ParserOf = Callable[[Sequence[str]], argparse.ArgumentParser]
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
        parser: Of a command with options: their parser, given the words before them.
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
    parser: ParserOf | None

    @property
    def synopsis(self) -> str:
        """The name and its arguments."""
        return f"{self.name} {self.usage}".rstrip()

    def options(self, words: Sequence[str]) -> dict[str, str]:
        """Its options behind these words, and what they are; for completion."""
        if self.parser is None:
            return {}
        return {
            option: action.help or ""
            for action in self.parser(words)._actions
            for option in action.option_strings
            if option.startswith("--") and action.help != argparse.SUPPRESS
        }


_HELP = {"--help", "-h"}
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
    parser: ParserOf | None = None,
) -> Callable[[Run], Run]:
    """Puts the decorated function into the list.

    Raises:
        ValueError: If the name or an alias is taken.
    """

    def register(run: Run) -> Run:
        taken = {word for known in _COMMANDS.values() for word in (known.name, *known.aliases)}
        if twice := taken & {name, *aliases}:
            raise ValueError(f"{twice} is there already")
        known = Command(
            name, usage, summary, aliases, argument, details, run, whole, fewest, most if usage else 0, parser
        )
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
    """The command of a line and its words; with ``--help`` among them that is ``.help``, asked about the command.

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
    if _HELP & set(words) and (known.parser is not None or len(words) == 1):
        return find(".help"), [known.name, *itertools.takewhile(lambda word: not word.startswith("-"), words)][:2]
    if not known.fewest <= len(words) <= known.most:
        raise ArgumentError(f"write {known.synopsis}")
    return known, words
