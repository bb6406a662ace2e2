"""The arguments of ``engramsql export``. Imports nothing heavy."""

from __future__ import annotations

import argparse
import shlex

from engramsql._arguments import count
from engramsql.export.files.formats import COMPRESSIONS, ENDINGS, FILE_FORMATS, STREAMED, VALUES

__all__ = ["STDOUT", "build", "settle"]

STDOUT = "-"
"""The output that is no file."""

_SHELL_EXAMPLES = (
    "ple rows.parquet",
    "ple e_t.arrow --tokens corpus.jsonl --per sequence",
    """--sql "SELECT rowid, embedding FROM engram_fetch('ple', [3, 5])" --output rows.npz""",
)
_EXAMPLES = (
    *(f"{example} --db mydb" for example in _SHELL_EXAMPLES),
    "ple - --tokens corpus.txt --values bfloat16 --db mydb | python train.py",
)


def build(parser: argparse.ArgumentParser, *, shell: bool = False) -> None:
    """``engramsql export``, or ``.export`` of the shell, which has its database already."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(map(len, FILE_FORMATS))
    lines = [f"  {kind.name:<{width}}  {kind.summary}: {', '.join(kind.endings)}" for kind in FILE_FORMATS.values()]
    parser.epilog = "\n".join(
        [
            "formats, and the endings of PATH that choose them:",
            *lines,
            "A file is there when its last byte is. With --rows-per-file what a failure or Ctrl-C leaves is completed",
            "by --resume and thrown away by --restart.",
            "",
            "examples:",
            *(f"  {parser.prog} {example}" for example in (_SHELL_EXAMPLES if shell else _EXAMPLES)),
        ]
    )
    database = "" if shell else "[--db DB] "
    parser.usage = (
        f"{parser.prog} TABLE PATH [--tokens FILE... | --ids FILE...] {database}[options]\n"
        f"       {parser.prog} --sql QUERY --output PATH {database}[options]"
    )
    parser.add_argument(
        "what",
        nargs="?",
        metavar="TABLE",
        help="table; or path of a checkpoint or store" + ("" if shell else ", without --db"),
    )
    parser.add_argument(
        "file",
        nargs="?",
        metavar="PATH",
        help="what is written, as with --output"
        + ("" if shell else "; - is standard output: an Arrow stream, csv or jsonl"),
    )
    parser.add_argument("--table", metavar="TABLE", help="the same")
    # The shell says where they belong instead.
    parser.add_argument(
        "--db",
        metavar="DB",
        help=argparse.SUPPRESS if shell else "database, checkpoint or store directory; not needed for a path",
    )
    parser.add_argument("-o", "--output", metavar="PATH", help="the file; with --rows-per-file a new directory")
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
        help=argparse.SUPPRESS
        if shell
        else "memory for rows read from the disk, which a corpus needs again: 8GB, 512MiB, 0 for none (64MiB)",
    )
    unfinished = parser.add_mutually_exclusive_group()
    unfinished.add_argument("--resume", action="store_true", help="go on with an unfinished export to PATH")
    unfinished.add_argument("--restart", action="store_true", help="throw an unfinished export to PATH away")
    parser.add_argument("--replace", action="store_true", help="replace what is there")
    parser.set_defaults(run=_run)


def settle(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Finds the output among the words: behind the table, behind a query, or with ``--output``.

    Ends with ``parser.error`` if it is not there, or there twice.
    """
    if options.file is None and options.sql is not None and options.output is None:
        # A query needs no table: the one word beside it is the output.
        options.what, options.file = None, options.what
    if options.file is None:
        if options.output is None:
            parser.error(_no_output(options, parser.prog))
    elif options.output is not None:
        parser.error(f"give the output once: '{options.file}' or --output {options.output}")
    else:
        options.output = options.file
    if options.output == STDOUT:
        _settle_stdout(options, parser)


def _settle_stdout(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    for option in ("rows_per_file", "resume", "restart", "replace"):
        if getattr(options, option):
            parser.error(f"--{option.replace('_', '-')} belongs to files, and '-' is standard output; name a path")
    # Where there is no file, it is the stream, as in --format arrow of a query.
    if options.format == "arrow":
        options.format = "arrows"
    if options.format not in (None, *STREAMED):
        parser.error(f"{options.format} needs a file; to standard output go {', '.join(STREAMED)}")


def _no_output(options: argparse.Namespace, prog: str) -> str:
    for option, files in (("--tokens", options.tokens), ("--ids", options.ids)):
        if files is not None and len(files) > 1:
            last = shlex.quote(files[-1])
            return (
                f"no output: '{files[-1]}' was taken as a file of {option}, which takes all that follow it; "
                f"write --output {last}, or {prog} TABLE {last} {option} ..."
            )
    return f"no output; write {prog} TABLE PATH, or --output PATH"


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
