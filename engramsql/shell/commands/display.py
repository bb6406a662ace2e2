"""How results are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql.shell.commands.registry import command
from engramsql.shell.settings import SETTINGS

if TYPE_CHECKING:
    from engramsql.shell.session import Session

__all__: list[str] = []


def _set_or_say(session: Session, name: str, words: list[str]) -> None:
    if words:
        session.settings.set(name, words[0])
    else:
        session.print(f"{name} {session.settings.text(name)} ({SETTINGS[name].values})")


@command(
    ".mode",
    "[MODE]",
    summary="how results are written: box, csv, json, ...",
    argument="mode",
    details="Without MODE it says which there are. `\\G` instead of a semicolon shows one result as vertical. The "
    "binary modes need .once or .output. As long as no other mode than box is set, the ending of their file chooses.",
)
def _mode(session: Session, words: list[str]) -> None:
    _set_or_say(session, "mode", words)
    if words:
        session.results.mode_chosen = True
        session.say_contradiction()


@command(".maxrows", "[N]", summary="rows of a box at most", argument="setting")
def _max_rows(session: Session, words: list[str]) -> None:
    _set_or_say(session, "maxrows", words)


@command(
    ".maxwidth",
    "[N]",
    summary="columns of a box at most",
    argument="setting",
    details="0 is the width of the terminal, whatever it is at the time.",
)
def _max_width(session: Session, words: list[str]) -> None:
    _set_or_say(session, "maxwidth", words)


@command(
    ".vector",
    "[on|off|N]",
    summary="whether a box cuts vectors and bytes short, or to how many values",
    argument="setting",
    details="Only on a terminal: files and pipes get every value. Fewer than N are shown where the box "
    "would be too wide.",
)
def _vector(session: Session, words: list[str]) -> None:
    _set_or_say(session, "vector", words)


@command(
    ".timer",
    "[on|off]",
    summary="time, rows, and what was read of the tables, after each statement",
    argument="setting",
    aliases=("\\timing",),
    details="Rows and bytes are those that engram_stats() counted meanwhile, with the code paths that they came by: "
    "a row whose embedding and row are both selected was read twice. The line goes to stderr.",
)
def _timer(session: Session, words: list[str]) -> None:
    _set_or_say(session, "timer", words)
