"""The configuration file: written when asked for, commented, and never a reason not to start."""

from __future__ import annotations

import configparser
import os
from pathlib import Path

from engramsql.errors import ArgumentError
from engramsql.publishing import new_file
from engramsql.shell.settings import SETTINGS, Settings

__all__ = ["config_path", "history_path", "load", "template", "write"]

_SECTION = "shell"


def config_path() -> Path:
    """Where the configuration is: ``ENGRAMSQL_CONFIG``, or ``engramsql/config.ini`` below the user's configuration."""
    given = os.environ.get("ENGRAMSQL_CONFIG")
    return Path(given) if given else _below("XDG_CONFIG_HOME", ".config") / "config.ini"


def history_path() -> Path:
    """Where the history is: ``engramsql/history`` below the user's state."""
    return _below("XDG_STATE_HOME", ".local/state") / "history"


def _below(variable: str, otherwise: str) -> Path:
    # A relative one is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
    base = Path(os.environ.get(variable) or "")
    return (base if base.is_absolute() else Path(os.path.expanduser("~")) / otherwise) / "engramsql"


def load(path: Path, settings: Settings) -> list[str]:
    """Sets what the file says and returns warnings; what is wrong in it is left as it was."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        return [f"{path}: not read: {getattr(error, 'strerror', None) or error}"]
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=("#",), delimiters=("=",))
    try:
        parser.read_string(text, source=str(path))
    except configparser.Error as error:
        return [f"{path}: not read: {' '.join(str(error).split())}"]
    problems = [f"no section '{name}', write [{_SECTION}]" for name in parser.sections() if name != _SECTION]
    for name, value in parser.items(_SECTION) if parser.has_section(_SECTION) else ():
        try:
            settings.set(name, value)
        except ArgumentError as error:
            problems.append(str(error))
    return [f"{path}: {'; '.join(problems)}"] if problems else []


def template(settings: Settings) -> str:
    """The text of a configuration file that says what the session says; what is the default is commented out."""
    lines = ["# The shell of EngramSQL. A line that begins with '#' is a comment.", f"[{_SECTION}]"]
    for setting in SETTINGS.values():
        text = settings.text(setting.name)
        lines += ["", f"# {setting.summary[0].upper()}{setting.summary[1:]}: {setting.values}."]
        lines.append(f"{'# ' if text == setting.default else ''}{setting.name} = {text}")
    return "\n".join(lines) + "\n"


def write(path: Path, settings: Settings) -> None:
    """Writes the configuration file.

    Raises:
        ArgumentError: If there is one already, which may say more than we do.
        StorageError: If it cannot be written.
    """
    if os.path.lexists(path):
        raise ArgumentError(f"'{path}' exists already; edit it, or remove it to have it written anew")
    with new_file(path) as file:
        file.write(template(settings).encode())
