"""The arguments of ``engramsql export``. Imports nothing heavy."""

from __future__ import annotations

import argparse

from engramsql._arguments import count
from engramsql.export.files.formats import COMPRESSIONS, ENDINGS, FILE_FORMATS, VALUES

__all__ = ["build"]


def build(parser: argparse.ArgumentParser) -> None:
    """``engramsql export``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(map(len, FILE_FORMATS))
    lines = [f"  {kind.name:<{width}}  {kind.summary}: {', '.join(kind.endings)}" for kind in FILE_FORMATS.values()]
    parser.epilog = "\n".join(
        [
            "formats, and the endings of PATH that choose them:",
            *lines,
            "A file is there when its last byte is. With --rows-per-file what a failure or Ctrl-C leaves is completed",
            "by --resume and thrown away by --restart.",
        ]
    )
    parser.usage = (
        "engramsql export TABLE [--tokens FILE... | --ids FILE...] --output PATH [--db DB] [options]\n"
        "       engramsql export --sql QUERY --output PATH [--db DB] [options]"
    )
    parser.add_argument(
        "what", nargs="?", metavar="TABLE", help="table; or path of a checkpoint or store, without --db"
    )
    parser.add_argument("--table", metavar="TABLE", help="the same")
    parser.add_argument("--db", metavar="DB", help="database, checkpoint or store directory; not needed for a path")
    parser.add_argument(
        "-o", "--output", metavar="PATH", required=True, help="the file; with --rows-per-file a new directory"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--tokens", metavar="FILE", nargs="+", help="write e_t of the tokens in these files, not the rows of the table"
    )
    which.add_argument(
        "--ids", metavar="FILE", nargs="+", help="write the rows whose ids are in these files, not ids themselves"
    )
    which.add_argument("--sql", metavar="QUERY", help="write the rows of a query")
    parser.add_argument(
        "--column", metavar="C", help="column, array or member of the files of tokens or ids, if there are several"
    )
    parser.add_argument(
        "--format", choices=tuple(FILE_FORMATS), help=f"kind of file, if the ending is none of {', '.join(ENDINGS)}"
    )
    parser.add_argument("--compression", choices=COMPRESSIONS, help="of arrow, arrows, feather and parquet")
    parser.add_argument(
        "--values",
        choices=VALUES,
        help="of the vectors: float32 (default), float16, bfloat16 (rounded once), or row: the stored bytes",
    )
    parser.add_argument("--round", action="store_true", help="let float16 round; else what it does not have is refused")
    parser.add_argument("--columns", metavar="A,B,...", type=_names, help="columns to write, in order")
    parser.add_argument(
        "--per", choices=("token", "sequence"), default="token", help="what a record of --tokens is (%(default)s)"
    )
    parser.add_argument(
        "--history", metavar="ID,...", type=_ids, help="token ids before every sequence of --tokens, newest last"
    )
    parser.add_argument(
        "--rows-per-file", metavar="N", type=count, help="write files of N records into the directory PATH"
    )
    parser.add_argument(
        "--ram-budget",
        metavar="SIZE",
        help="memory for rows read from the disk, which a corpus needs again: 8GB, 512MiB, 0 for none (64MiB)",
    )
    unfinished = parser.add_mutually_exclusive_group()
    unfinished.add_argument("--resume", action="store_true", help="go on with an unfinished export to PATH")
    unfinished.add_argument("--restart", action="store_true", help="throw an unfinished export to PATH away")
    parser.add_argument("--replace", action="store_true", help="replace what is there")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from engramsql.export.files.command import run

    return run(options, parser)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _ids(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not (word.isascii() and word.isdigit() and int(word) < 1 << 63):
            raise argparse.ArgumentTypeError(f"'{word}' is no token id; give ids with commas: 17,4,256")
    return [int(word) for word in words]
