"""Help, the session's memory, and its end."""

from __future__ import annotations

import difflib
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engramsql.errors import ArgumentError
from engramsql.shell import config
from engramsql.shell.commands import registry
from engramsql.shell.commands.registry import command
from engramsql.shell.settings import SETTINGS, number
from engramsql.shell.terminal import terminal_size

if TYPE_CHECKING:
    import argparse

    from engramsql.shell.session import Session

__all__: list[str] = []

_PREFIX = "engram_"
# Where the column of the list begins that says what a command does.
_COLUMN = 28
_CLOSING = (
    "A statement ends with ; or with \\G, which shows its rows one value per line. Ctrl-C clears what is typed, "
    "or ends what runs; Ctrl-D ends the session. .help FUNCTION explains an SQL function; "
    "SELECT name, description FROM engram_functions(); lists them."
)


@command(
    ".help",
    "[COMMAND|FUNCTION]",
    summary="this list, or more about a command or an SQL function",
    argument="command",
    aliases=("\\?",),
    most=2,
)
def _help(session: Session, words: list[str]) -> None:
    width = _readable()
    if not words:
        lines = [line for known in registry.all() for line in _listed(known.synopsis, known.summary, width)]
        session.print("\n".join([*lines, "", *textwrap.wrap(_CLOSING, width)]))
        return
    word = words[0]
    if not word:
        raise ArgumentError("write .help, or .help with the name of a command or function")
    if len(words) > 1 and registry.names().get(f".{word.lower().lstrip('.')}", registry.find(".help")).parser is None:
        raise ArgumentError("write .help [COMMAND|FUNCTION]")
    functions = _functions(session)
    name = word.lower()
    exact = word[0] in ".\\" or f".{name}" in registry.names()
    if not exact and name not in functions and f"{_PREFIX}{name}" in functions:
        name = f"{_PREFIX}{name}"
    if name in functions:
        session.print("\n\n".join("\n".join(_explained(one, width)) for one in functions[name]))
        return
    if not exact:
        raise ArgumentError(_unknown(word, [*registry.names(), *functions]))
    known_command = registry.find(word if word[0] in ".\\" else f".{name}")
    text = f"{known_command.summary[0].upper()}{known_command.summary[1:]}. {known_command.details}".rstrip()
    lines = textwrap.wrap(text, width, break_on_hyphens=False)
    same = [f"The same: {', '.join(known_command.aliases)}"] if known_command.aliases else []
    options = ["", options_help(known_command.parser(words[1:]), width)] if known_command.parser is not None else []
    session.print("\n".join([*_folded(known_command.synopsis, width), *lines, *same, *options]))


def options_help(parser: argparse.ArgumentParser, width: int) -> str:
    """The help of a parser, as wide as this."""
    formatter: Any = parser.formatter_class
    parser.formatter_class = lambda prog: formatter(prog, width=width)
    # Newer Pythons colour it where stdout is a terminal; what is printed here has no codes.
    parser.color = False  # type: ignore[attr-defined]
    return parser.format_help().rstrip()


def _readable() -> int:
    """Columns of prose: as many as can be read, and no more than the terminal has."""
    return max(20, min(terminal_size().columns, 100))


def _listed(synopsis: str, summary: str, width: int) -> list[str]:
    """A command in the list: what it does is a column of its own, as far as the terminal allows."""
    column = min(_COLUMN, width // 2)
    lines = textwrap.wrap(summary, width - column)
    if len(synopsis) + 2 > column:
        return [*_folded(synopsis, width), *(f"{' ' * column}{line}" for line in lines)]
    return [f"{synopsis:<{column}}{lines[0]}", *(f"{' ' * column}{line}" for line in lines[1:])]


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="    ", break_on_hyphens=False)


@dataclass(frozen=True)
class _Function:
    """What engram_functions() says of one form of a function."""

    signature: str
    description: str
    example: str


def _functions(session: Session) -> dict[str, list[_Function]]:
    found: dict[str, list[_Function]] = {}
    for name, *told in session.rows("SELECT name, signature, description, example FROM engram_functions()"):
        found.setdefault(name.lower(), []).append(_Function(*told))
    return found


def _explained(function: _Function, width: int) -> list[str]:
    text = [line for one in function.description.split("\n") for line in textwrap.wrap(one, width) or [""]]
    # An example is to be copied: it has no ends of lines that are not its own.
    return [*_folded(function.signature, width), *text, f"    {function.example};"]


def _unknown(word: str, known: list[str]) -> str:
    """What to say of a name that is neither; only what is nearly it is suggested."""
    bare = {one.lstrip(".\\").removeprefix(_PREFIX): one for one in reversed(known)}
    near = difflib.get_close_matches(word.lower().removeprefix(_PREFIX), bare, n=1, cutoff=0.75)
    if near:
        return f"no command or function '{word}'; did you mean {bare[near[0]]}?"
    return (
        f"no command or function '{word}'; "
        "SELECT name, description FROM engram_functions() lists the functions, .help the commands"
    )


@command(
    ".history",
    "[N|TEXT]",
    summary="the last statements, or those that contain a text",
    argument="text",
    whole=True,
    aliases=("\\s",),
    details="20 of them without an argument. Ctrl-R searches while typing.",
)
def _history(session: Session, words: list[str]) -> None:
    entries = session.entries()
    word = words[0] if words else "20"
    shown = entries[-number(word) :] if word.isdigit() else [one for one in entries if word.lower() in one.lower()]
    session.print("\n".join(shown) if shown else "nothing in the history")


@command(
    ".config",
    "[write]",
    summary="the settings, and where their file is; write makes that file",
    argument="text",
    details="The file is commented and says what the settings are now. It is read when the shell starts, unless with "
    "--no-init, and never written but by this command.",
)
def _config(session: Session, words: list[str]) -> None:
    path = config.config_path()
    if words == ["write"]:
        config.write(path, session.settings)
        session.say(f"written: {path}")
    elif words:
        raise ArgumentError("write .config, or .config write")
    else:
        lines = [f"{name} = {session.settings.text(name)}" for name in SETTINGS]
        session.print("\n".join([f"# {path}{'' if path.exists() else ' (not there: .config write)'}", *lines]))


@command(".quit", summary="end the session, as Ctrl-D does", aliases=(".exit", "\\q"))
def _quit(session: Session, words: list[str]) -> None:
    session.ended = True
