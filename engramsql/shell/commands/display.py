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


def _setting_command(name: str, usage: str, summary: str, details: str = "", aliases: tuple[str, ...] = ()) -> None:
    """The command of a setting of its name, which sets it or says what it is."""

    @command(f".{name}", usage, summary=summary, argument="setting", aliases=aliases, details=details)
    def _(session: Session, words: list[str]) -> None:
        _set_or_say(session, name, words)


_setting_command("maxrows", "[N]", "rows of a box at most")
_setting_command(
    "maxwidth",
    "[N]",
    "columns of a box at most",
    details="0 is the width of the terminal, whatever it is at the time.",
)
_setting_command(
    "vector",
    "[on|off|N]",
    "whether a box cuts vectors and bytes short, or to how many values",
    details="Only on a terminal: files and pipes get every value. Fewer than N are shown where the box "
    "would be too wide.",
)
_setting_command(
    "timer",
    "[on|off]",
    "time, rows, and what was read of the tables, after each statement",
    details="Rows and bytes are those that engram_stats() counted meanwhile, with the code paths that they came by: "
    "a row whose embedding and row are both selected was read twice. The line goes to stderr.",
    aliases=("\\timing",),
)
