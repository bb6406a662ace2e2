"""Help, the session's memory, and its end."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from engramsql.errors import ArgumentError
from engramsql.quoting import literal
from engramsql.shell import config
from engramsql.shell.commands import registry
from engramsql.shell.commands.registry import command
from engramsql.shell.output import terminal_size
from engramsql.shell.settings import SETTINGS, number

if TYPE_CHECKING:
    from engramsql.shell.session import Session

__all__: list[str] = []


@command(
    ".help",
    "[COMMAND|FUNCTION]",
    summary="this list, or more about a command or an SQL function",
    argument="command",
    aliases=("\\?",),
)
def _help(session: Session, words: list[str]) -> None:
    if not words:
        known = registry.all()
        width = max(len(one.synopsis) for one in known)
        session.print("\n".join(f"{one.synopsis:<{width}}  {one.summary}" for one in known))
        return
    word = words[0]
    about = session.rows(
        f"SELECT signature, description, example FROM engram_functions() WHERE lower(name) = lower({literal(word)})"
    )
    if about:
        session.print("\n\n".join(f"{signature}\n{text}\n    {example};" for signature, text, example in about))
        return
    known_command = registry.find(word if word[0] in ".\\" else f".{word}")
    text = f"{known_command.summary[0].upper()}{known_command.summary[1:]}. {known_command.details}".rstrip()
    # As wide as it can be read, and no wider than the terminal.
    lines = textwrap.wrap(text, min(terminal_size().columns, 100), break_on_hyphens=False)
    same = [f"The same: {', '.join(known_command.aliases)}"] if known_command.aliases else []
    session.print("\n".join([known_command.synopsis, *lines, *same]))


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
