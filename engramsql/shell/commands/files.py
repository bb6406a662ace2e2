"""Where results go, and where statements come from."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from engramsql.errors import ArgumentError
from engramsql.export.visible import visible_lines
from engramsql.pipes import read_bytes
from engramsql.shell import statements
from engramsql.shell.commands.registry import command
from engramsql.shell.paths import path_of

if TYPE_CHECKING:
    import argparse

    from engramsql.shell.results import Destination
    from engramsql.shell.session import Session

__all__: list[str] = []

# A file that reads itself would go on until Python gives up.
_DEEPEST = 20


@command(
    ".output",
    "[FILE|stdout]",
    summary="where all results go from now on",
    argument="file",
    aliases=("\\o",),
    details="They are written one after the other, in the mode that is set, or that FILE's ending names if none was "
    "set. With stdout results go to the terminal again. Without FILE it says where they go.",
)
def _output(session: Session, words: list[str]) -> None:
    if not words:
        session.say(f"results go to {session.results.output}")
        return
    if words[0] != "stdout":
        path_of(words[0])
    session.results.set_output(None if words[0] == "stdout" else words[0])
    session.say_contradiction()


@command(
    ".once",
    "FILE | |COMMAND",
    summary="where the next result goes: a file, or a command of the system",
    argument="file",
    whole=True,
    fewest=1,
    details="The file appears when the result is complete; until then, and if the statement fails, what was there "
    "stays. Its ending names the mode (.csv, .tsv, .json, .jsonl, .md, .html, .arrow, .arrows, .parquet), unless .mode "
    "has set another. A command that stops reading is no error: .once | head -1",
)
def _once(session: Session, words: list[str]) -> None:
    if words[0].startswith("|"):
        text = words[0][1:].strip()
        if not text:
            raise ArgumentError("write .once | COMMAND")
        session.results.once_to_command(text)
        return
    try:
        names = shlex.split(words[0].removesuffix(";"))
    except ValueError as error:
        raise ArgumentError(f".once: {str(error).lower()}") from error
    if len(names) != 1:
        raise ArgumentError("write .once FILE; put a name with blanks between quotes")
    path_of(names[0])
    session.results.once_to_file(names[0])
    session.say_contradiction()


@command(
    ".read",
    "FILE",
    summary="run the statements and commands of a file, up to the first that fails",
    argument="file",
    aliases=("\\i",),
    fewest=1,
)
def _read(session: Session, words: list[str]) -> None:
    from engramsql.shell.session import FailedError

    path = path_of(words[0])
    try:
        # Without the mark that some editors put before a text.
        text = session.wait(lambda: read_bytes(path)).decode("utf-8-sig")
    except OSError as error:
        raise ArgumentError(f"cannot read '{path}': {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"cannot read '{path}': {error}") from error
    if session.depth >= _DEEPEST:
        raise ArgumentError(f"'{path}' is read by a file that is read by another, {_DEEPEST} deep")
    session.depth += 1
    try:
        for piece in statements.parse(text).all:
            try:
                session.run(piece)
            except FailedError as failure:
                raise FailedError(f"{os.path.basename(path)}:{piece.line + 1}: {failure}") from failure
            if session.ended:
                return
    finally:
        session.depth -= 1


@command(
    ".export",
    'TABLE FILE ... | --sql "QUERY" --output FILE',
    summary="write a table, a query or the e_t of a corpus to files",
    argument="table",
    fewest=1,
    most=1000,
    details="The arguments are those of `engramsql export`. A query is one word between double quotes; the single "
    "quotes of SQL stay as they are in it.",
    parser=lambda words: _export_parser(),
)
def _export(session: Session, words: list[str]) -> None:
    from engramsql.export.files.command import command as export

    def work(to: Destination) -> None:
        # The name of a file may hold an escape code.
        to.file.write(f"{visible_lines(export(session.database, words))}\n".encode())

    session.work(work, says=True)


def _export_parser() -> argparse.ArgumentParser:
    from engramsql.export.files.command import shell_parser

    return shell_parser()
