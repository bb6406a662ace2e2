"""What can be set in the shell, by a command or in the configuration file; both read this list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engramsql._nearest import nearest_names
from engramsql.errors import ArgumentError
from engramsql.export import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SETTINGS", "Setting", "Settings", "number", "switch"]

Value = bool | int | str


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        name: As it is written in the configuration file; the command of that name, if there is one, sets it too.
        default: Its text.
        values: What it takes, for people.
        summary: What it does, in a line.
        read: Makes the value of a text, or raises ArgumentError.
    """

    name: str
    default: str
    values: str
    summary: str
    read: Callable[[str], Value]


def switch(text: str) -> bool:
    """``on`` or ``off``.

    Raises:
        ArgumentError: If it is neither.
    """
    if text.lower() in ("on", "true", "yes", "1"):
        return True
    if text.lower() in ("off", "false", "no", "0"):
        return False
    raise ArgumentError(f"'{text}' is neither on nor off")


def number(text: str, least: int = 0, most: int = 1_000_000) -> int:
    """A whole number within limits.

    Raises:
        ArgumentError: If it is none.
    """
    if text.isascii() and text.isdigit() and least <= int(text) <= most:
        return int(text)
    raise ArgumentError(f"'{text}' is no number from {least} to {most}")


def nearest(word: str, known: list[str]) -> str:
    """What to say after a name that is not known: the one that is nearly it, or all."""
    near = nearest_names(word, known)
    return f"did you mean '{near[0]}'?" if near else f"one of {', '.join(known)}"


def _mode(text: str) -> str:
    if text.lower() in FORMATS:
        return text.lower()
    raise ArgumentError(f"no mode '{text}'; {nearest(text, list(FORMATS))}")


def _vector(text: str) -> Value:
    return number(text, 1, 100) if text.isdigit() else switch(text)


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("mode", "box", ", ".join(FORMATS), "how results are written", _mode),
        Setting("maxrows", "40", "a number", "rows of a box at most", lambda text: number(text, 1)),
        Setting(
            "maxwidth", "0", "a number", "columns of a box at most; 0 for the width of the terminal",
            lambda text: number(text, 0, 100_000),
        ),
        Setting("vector", "on", "on, off or a number", "vectors and bytes cut short, to so many values", _vector),
        Setting("timer", "off", "on or off", "time, rows and bytes read after each statement", switch),
        Setting("progress", "on", "on or off", "how far a long statement is", switch),
        Setting("pager", "on", "on or off", "results larger than the terminal go to $PAGER", switch),
        Setting("history", "10000", "a number", "entries that the history keeps; 0 for no history", number),
    )
}  # fmt: skip


class Settings:
    """The settings of one session."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        for setting in SETTINGS.values():
            self.set(setting.name, setting.default)

    def set(self, name: str, text: str) -> None:
        """Sets one from its text.

        Raises:
            ArgumentError: If there is none of that name, or the text is no value of it.
        """
        if name not in SETTINGS:
            raise ArgumentError(f"no setting '{name}'; {nearest(name, list(SETTINGS))}")
        try:
            self._values[name] = SETTINGS[name].read(text)
        except ArgumentError as error:
            raise ArgumentError(f"{name}: {error}") from error

    def text(self, name: str) -> str:
        """The value as it is written."""
        value = self._values[name]
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)

    @property
    def mode(self) -> str:
        """The output mode, one of FORMATS."""
        return str(self._values["mode"])

    @property
    def max_rows(self) -> int:
        """Rows of a box at most."""
        return int(self._values["maxrows"])

    @property
    def max_width(self) -> int:
        """Columns of a box at most; 0 for the terminal's."""
        return int(self._values["maxwidth"])

    @property
    def vector(self) -> bool | int:
        """Whether vectors are cut short, or to how many values."""
        value = self._values["vector"]
        return value if isinstance(value, bool) else int(value)

    @property
    def timer(self) -> bool:
        """Whether each statement is followed by what it took."""
        return bool(self._values["timer"])

    @property
    def progress(self) -> bool:
        """Whether long statements say how far they are."""
        return bool(self._values["progress"])

    @property
    def pager(self) -> bool:
        """Whether large results go to the pager."""
        return bool(self._values["pager"])

    @property
    def history(self) -> int:
        """Entries that the history keeps: a statement of many lines is one."""
        return int(self._values["history"])
