"""The arguments of ``engramsql plot`` and ``.plot``; what is heavy is imported when a picture is made."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any, NoReturn

from engramsql._arguments import count
from engramsql._nearest import nearest_choice, nearest_names, with_nearest_option
from engramsql.errors import ArgumentError
from engramsql.exit_codes import GOOD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["KINDS", "build", "parse", "shell_parser"]

KINDS = {
    "values": "histogram of the values of a table",
    "norms": "norms of the rows of a table, head by head",
    "residency": "which parts of a table are in memory",
    "plan": "what a fetch of some rows would read",
    "latency": "how the times of a bench are distributed",
}


class _ShellParser(argparse.ArgumentParser):
    """A parser for a line of the shell, where an error ends the line and not the program."""

    def error(self, message: str) -> NoReturn:
        told = with_nearest_option(nearest_choice(message), self)
        # A suggestion needs no example beside it.
        raise ArgumentError(f".plot: {told}" if told.endswith("?") else f".plot: {told}; as in: .plot values TABLE")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As ever, but that the kind of picture says what it does not know: it has the options."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            (shell_parser([found.kind]) if hasattr(found, "kind") else self).error(
                f"unrecognized arguments: {' '.join(unknown)}"
            )
        return found


def build(parser: argparse.ArgumentParser) -> None:
    """``engramsql plot``."""
    parser.epilog = (
        "In the terminal as text; with --output as PNG or SVG, drawn by matplotlib (pip install 'engramsql[plot]'). Of "
        "large tables a sample is looked at, and the picture says so."
    )

    def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
        if options.kind != "latency" and options.db is None and os.sep not in options.table:
            if not os.path.exists(options.table):
                parser.error(f"'{options.table}' is a name: give its database with --db DB; a path has a '{os.sep}'")
            options.table = os.path.join(os.curdir, options.table)
        from engramsql.plot.drawing import run_command

        run_command(options)
        return GOOD

    _add_kinds(parser, _with_database, lambda kind: parser.set_defaults(run=run))


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The words behind ``.plot``.

    Raises:
        ArgumentError: If they are no picture, with what is wrong.
    """
    if words and not words[0].startswith("-") and words[0] not in KINDS:
        near = nearest_names(words[0], KINDS)[:1]
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(KINDS)}"
        raise ArgumentError(f".plot: no picture '{words[0]}'; {hint}")
    found: argparse.Namespace = shell_parser().parse_args(list(words))
    return found


def shell_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of ``.plot``; with a kind of picture as first word, that of the kind. It raises what is wrong."""
    parser = _ShellParser(prog=".plot", add_help=False, allow_abbrev=False)
    kinds = _add_kinds(parser, lambda kind: None, lambda kind: None)
    return kinds.get(words[0], parser) if words else parser


def _with_database(kind: argparse.ArgumentParser) -> None:
    kind.add_argument(
        "--db", metavar="DB", help="database, checkpoint or store directory; not needed where TABLE is a path"
    )


def _add_kinds(
    parser: argparse.ArgumentParser,
    add_database: Callable[[argparse.ArgumentParser], None],
    finish: Callable[[argparse.ArgumentParser], None],
) -> dict[str, argparse.ArgumentParser]:
    kinds = parser.add_subparsers(
        dest="kind", metavar="|".join(KINDS), required=True, parser_class=type(parser), help="what to draw"
    )
    made: dict[str, argparse.ArgumentParser] = {}
    for name, summary in KINDS.items():
        shell = isinstance(parser, _ShellParser)
        kind = kinds.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            add_help=not shell,
            allow_abbrev=False,
        )
        if name == "latency":
            kind.add_argument("file", metavar="FILE", help="what engramsql bench --json wrote")
            kind.add_argument(
                "--result", metavar="NAME", help="only results with this in their name, or one measurement"
            )
        else:
            kind.add_argument("table", metavar="TABLE", help="table; or path of a checkpoint or store")
            add_database(kind)
        if name == "plan":
            kind.add_argument("ids", metavar="ID", nargs="*", help="row ids, with spaces or commas between them")
            files = kind.add_mutually_exclusive_group()
            files.add_argument(
                "--tokens", metavar="FILE", nargs="+", help="the rows that the tokens in these files need"
            )
            files.add_argument(
                "--ids", metavar="FILE", nargs="+", dest="id_files", help="the rows whose ids are in these files"
            )
            kind.add_argument("--column", metavar="C", help="column, array or member of these files, if several")
        if name in ("values", "norms"):
            kind.add_argument("--rows", metavar="N", type=count, help="rows to look at; all if there are no more")
        if name == "values":
            kind.add_argument("--log", action="store_true", help="logarithmic height, for what is rare")
        kind.add_argument("--output", metavar="FILE", help="write a picture instead: .png or .svg")
        kind.add_argument("--width", metavar="N", type=count, help="columns of the text (the terminal's, else 80)")
        finish(kind)
        made[name] = kind
    return made
