"""Makes a picture and writes it: ``engramsql plot`` and ``.plot``."""

from __future__ import annotations

import os
import re
import sys
from typing import IO, TYPE_CHECKING

from engramsql.errors import ArgumentError
from engramsql.export.style import Style, style_of
from engramsql.export.visible import visible_lines
from engramsql.plot.options import parse
from engramsql.plot.text import LEAST_WIDTH, lines
from engramsql.progress import size

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from engramsql.database import Database
    from engramsql.plot.figure import Figure

__all__ = ["command", "run_command"]

_PIPE_WIDTH = 80
_MOST_DIGITS = 19


def command(database: Database, words: Sequence[str], sink: IO[bytes], style: Style | None = None) -> None:
    """``.plot KIND ...`` of the shell.

    Args:
        database: The open database.
        words: The words behind ``.plot``.
        sink: Where the text goes; with ``--output`` a line that names the file.
        style: The terminal behind ``sink``, or None.

    Raises:
        ArgumentError: If the words are no picture.
        EngramError: If there is no such table, or no matplotlib for a file.
        duckdb.Error: If a query fails or is interrupted.
    """
    options = parse(words)
    _write(_figure(database, options), options, sink, style)


def run_command(options: argparse.Namespace) -> None:
    """``engramsql plot KIND ...``."""
    from engramsql.commands import output, require
    from engramsql.database import connect
    from engramsql.interrupting import interruptible

    path = getattr(options, "db", None)
    if path is not None:
        require(path)
    with connect(path, read_only=path is not None) as database:
        sink, style = output(), style_of(sys.stdout)

        def draw() -> None:
            _write(_figure(database, options), options, sink, style)
            sink.flush()

        interruptible(database.connection, draw)


def _figure(database: Database, options: argparse.Namespace) -> Figure:
    if options.kind == "latency":
        from engramsql.plot.latency import latency_figure

        return latency_figure(options.file, options.result)
    if options.kind == "plan":
        from engramsql.plot.plan import plan_figure

        return plan_figure(database, options.table, _wanted_ids(database, options))
    if options.kind == "residency":
        from engramsql.plot.residency import residency_figure

        return residency_figure(database, options.table)
    limit = {} if options.rows is None else {"rows": options.rows}
    if options.kind == "norms":
        from engramsql.plot.norms import norms_figure

        return norms_figure(database, options.table, **limit)
    from engramsql.plot.values import values_figure

    return values_figure(database, options.table, log=options.log, **limit)


def _write(figure: Figure, options: argparse.Namespace, sink: IO[bytes], style: Style | None) -> None:
    if options.output is not None:
        from engramsql.plot.image import save

        save(figure, options.output)
        sink.write(f"{visible_lines(options.output)}: {size(os.path.getsize(options.output))}\n".encode())
        return
    if options.width is not None and options.width < LEAST_WIDTH:
        raise ArgumentError(f"a picture of {options.width} columns cannot be read; --width is at least {LEAST_WIDTH}")
    width = options.width or (style.width if style is not None else 0) or _PIPE_WIDTH
    # A dumb terminal may have no blocks; what lies behind a pipe reads UTF-8, as in all formats.
    unicode = style is None or (style.unicode and os.environ.get("TERM") != "dumb")
    sink.write("".join(f"{line}\n" for line in lines(figure, width, unicode=unicode)).encode())


def _wanted_ids(database: Database, options: argparse.Namespace) -> list[int]:
    """The row ids that are typed, or that files name.

    Raises:
        ArgumentError: If it is not one of these.
        EngramError: If a file cannot be read, or names what is not in the table.
    """
    if options.tokens is None and options.id_files is None:
        if options.column is not None:
            raise ArgumentError("--column belongs to the files of --tokens or --ids")
        return _ids(options.ids)
    if options.ids:
        raise ArgumentError("give row ids, or files of them with --ids, or of tokens with --tokens: not both")
    from engramsql.named_rows import named_rows

    blocks = named_rows(database.table(options.table), options.tokens, options.id_files, options.column)
    return [int(row) for block in blocks for row in block]


def _ids(words: Sequence[str]) -> list[int]:
    """Row ids of words such as ``1,2 [3]``.

    Raises:
        ArgumentError: If one is no integer.
    """
    ids = []
    for word in re.split(r"[\s,\[\]]+", " ".join(words)):
        if not word:
            continue
        if not re.fullmatch(rf"-?[0-9]{{1,{_MOST_DIGITS}}}", word):
            raise ArgumentError(f"'{word}' is no row id; row ids are integers, with spaces or commas between them")
        ids.append(int(word))
    return ids
