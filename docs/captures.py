"""Writes the captures of the shell into the pages: ``python docs/captures.py [FILE ...]``.

A page says where a capture goes by a line ``<!-- capture: NAME -->``, up to ``<!-- end -->``; so do the lists of
commands and settings of docs/shell.md, by ``<!-- commands -->`` and ``<!-- settings -->``. The shell runs in a terminal
of its own, as in the tests, on a golden checkpoint, and what it shows is copied. tests/test_shell_commands.py holds the
lists against the program.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])

from terminal import PROMPT, Terminal, shell  # noqa: E402 (a program of its own has no package)

PAGES = (ROOT / "docs" / "shell.md", ROOT / "README.md")
CHECKPOINT = "tests/golden/ckpt_qwen4_exp_fp8"
_PLACE = re.compile(
    r"^<!-- (?P<kind>capture: (?P<name>\S+)|commands|settings) -->\n(?P<text>.*?)^<!-- end -->\n",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Capture:
    """What is typed, line by line, and on what.

    Attributes:
        lines: Each is typed, and then waited for; a text of several lines is one statement.
        words: Arguments of the program.
        columns: Width of the terminal.
        greeting: Whether the first lines are part of it.
    """

    lines: tuple[str, ...]
    words: tuple[str, ...] = (CHECKPOINT,)
    columns: int = 100
    greeting: bool = False


CAPTURES = {
    "shell.first": Capture(
        (
            "SELECT rowid, embedding\nFROM engram_fetch('ple', rowids_for_seq('ple', [17, 4, 256]))\nWHERE head < 2;",
            "SELECT rowid, embedding, row FROM ple WHERE rowid = 55 \\G",
        ),
        greeting=True,
    ),
    "shell.plan": Capture(
        (".plan SELECT head FROM ple WHERE rowid IN (3, 5, 7)", ".plan ple rowids_for_seq('ple', [17, 4])")
    ),
    "shell.errors": Capture(
        (
            "SELECT rowid, embeding\nFROM ple;",
            "SELECT * FROM engram_fetch('plee', [1]);",
            "SELECT * FROM engram_fetch('ple', [1408]);",
            ".tabels",
        )
    ),
    "shell.output": Capture(
        (
            ".once heads.parquet",
            "SELECT rowid, head FROM ple;",
            ".mode csv",
            ".once | head -3",
            "SELECT head, count(*) AS rows FROM ple GROUP BY head ORDER BY head;",
        )
    ),
    "shell.timer": Capture(
        (".timer on", ".mode csv", "SELECT octet_length(row) AS bytes FROM ple WHERE rowid IN (3, 5);")
    ),
    "shell.param": Capture(
        (".param ids [55, 17, 55]", "SELECT ord, rowid, embedding FROM engram_fetch('ple', $ids) ORDER BY ord;")
    ),
}


def taken(capture: Capture) -> str:
    """What the terminal shows, as an indented block."""
    before = os.getcwd()
    with TemporaryDirectory() as home, TemporaryDirectory() as directory:
        # The words of a capture name files from the root of the repository, and what it writes goes elsewhere.
        os.symlink(ROOT / "tests", Path(directory) / "tests")
        os.chdir(directory)
        try:
            with shell(Path(home), *capture.words, columns=capture.columns, lines=60) as terminal:
                for line in capture.lines:
                    terminal.run(line.replace("\n", "\r"))
                lines = _lines(terminal)
        finally:
            os.chdir(before)
    if not capture.greeting:
        lines = lines[next(number for number, line in enumerate(lines) if line.startswith(PROMPT)) :]
    else:
        lines.insert(0, f"$ engramsql {' '.join(capture.words)}")
    return "".join(f"    {line}".rstrip() + "\n" for line in lines)


def _lines(terminal: Terminal) -> list[str]:
    lines = terminal.text().rstrip().split("\n")
    assert lines[-1].rstrip() == PROMPT.rstrip()
    return lines[:-1]


def commands() -> str:
    """The table of the dot commands."""
    from engramsql.shell.commands import registry

    lines = ["| command | | the same |\n|---|---|---|\n"]
    for command in registry.all():
        synopsis, summary = (text.replace("|", "\\|") for text in (command.synopsis, command.summary))
        aliases = ", ".join(f"`{alias}`" for alias in command.aliases)
        lines.append(f"| `{synopsis}` | {summary} | {aliases} |\n")
    return "".join(lines)


def settings() -> str:
    """The table of the settings."""
    from engramsql.shell.settings import SETTINGS

    lines = ["| setting | default | |\n|---|---|---|\n"]
    lines += [
        f"| `{setting.name}` | {setting.default} | {setting.summary}: {setting.values} |\n"
        for setting in SETTINGS.values()
    ]
    return "".join(lines)


def filled(page: str, *, captures: bool = True) -> str:
    """A page with what belongs between its marks; without ``captures`` only the lists are written anew."""

    def place(found: re.Match[str]) -> str:
        text = found["text"]
        if found["kind"] == "commands":
            text = f"\n{commands()}\n"
        elif found["kind"] == "settings":
            text = f"\n{settings()}\n"
        elif captures:
            text = f"\n{taken(CAPTURES[found['name']])}\n"
        return f"<!-- {found['kind']} -->\n{text}<!-- end -->\n"

    return _PLACE.sub(place, page)


def main(words: list[str]) -> None:
    """Fills the pages named, or all."""
    for path in map(Path, words) if words else PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(path, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
