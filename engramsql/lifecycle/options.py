"""The arguments of ``build``, ``view``, ``index``, ``verify`` and ``check``. Imports nothing heavy."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from engramsql._arguments import count, number
from engramsql.export import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["add_database", "add_register", "build", "check", "database_of", "index", "verify", "view"]

# As in verification.LEVELS, which needs more than --help may import.
_LEVELS = ("headers", "sample", "full")
_INDEX_FORMATS = ("v1", "v2", "v3", "npz")
_DIFFERENCE = "exit code 4: something is not what it should be"


def add_register(parser: argparse.ArgumentParser) -> None:
    """Adds what files do not say and the caller does."""
    parser.add_argument("--spec", help="name of a released spec, or path of a spec file")
    parser.add_argument("--format", metavar="FORMAT", help="value format of the rows")
    parser.add_argument("--scale", type=float, help="scale of the value format")
    parser.add_argument("--width", type=int, metavar="BYTES", help="bytes of one row")
    parser.add_argument("--rows-per-shard", type=int, metavar="ROWS", help="for a store without a manifest")
    parser.add_argument("--layer", type=int, help="decoder layer (0-based), to take one of several")
    parser.add_argument(
        "--tokenizer", metavar="FILE", help="tokenizer.json, for text and for specs that hash compressed tokens"
    )


def build(parser: argparse.ArgumentParser) -> None:
    """``engramsql build``."""
    parser.epilog = (
        "Rows are written around the page cache, with checksums, and compared by a second reader. The table is there "
        "when its last byte is; what a failure or Ctrl-C leaves is completed by --resume and thrown away by --restart."
    )
    parser.add_argument("name", metavar="NAME", help="table name; several hash layers make NAME_l1, NAME_l14, ...")
    parser.add_argument("source", metavar="SOURCE", help="checkpoint or store directory, or name of a table")
    _add_db(parser)
    _add_shard_size(parser, "rows")
    parser.add_argument("--jobs", metavar="N", type=count, help="files written at a time (1)")
    _add_unfinished(parser, "table")
    parser.add_argument(
        "--sample-rows",
        metavar="N",
        type=number,
        help="rows that the second reader compares, besides the first and last of every file (4096)",
    )
    add_register(parser)
    parser.set_defaults(run=_runner("build"))


def view(parser: argparse.ArgumentParser) -> None:
    """``engramsql view``."""
    actions = parser.add_subparsers(metavar="build|list|drop|import|export", required=True)

    made = _action(actions, "build", "materialise the e_t records of a corpus")
    made.add_argument("name", metavar="NAME", help="view name")
    _add_db(made)
    made.add_argument("--table", metavar="T", required=True, help="table whose rows the records hold")
    corpus = made.add_mutually_exclusive_group(required=True)
    corpus.add_argument(
        "--tokens",
        metavar="FILE",
        nargs="+",
        help="files of token sequences: .parquet, .pq, .arrow, .arrows, .ipc, .feather, .npy, .npz, .safetensors, "
        ".csv, .jsonl, .ndjson, or .txt with a sequence per line",
    )
    corpus.add_argument("--sql", metavar="QUERY", help="a query with a column of lists, a sequence per row")
    corpus.add_argument(
        "--keys", metavar="FILE", help="row ids instead of tokens: a keys file, or another of these files"
    )
    made.add_argument("--heads", metavar="N", type=count, help="row ids per key, for --keys of a table without a spec")
    made.add_argument("--column", metavar="C", help="list column of the files or query, if there are several")
    made.add_argument("--order", choices=("key", "access"), default="key", help="order of the records (%(default)s)")
    made.add_argument("--form", choices=("rows", "float32"), default="rows", help="what a record holds (%(default)s)")
    most = made.add_mutually_exclusive_group()
    most.add_argument("--top", metavar="N", type=count, help="only the N keys that the corpus needs most often")
    most.add_argument("--budget", metavar="SIZE", help="only as many of them as fit, such as 8GB of records")
    _add_memory(made)
    _add_shard_size(made, "records")
    _add_unfinished(made, "view")
    made.set_defaults(run=_runner("build_view"))

    listed = _action(actions, "list", "list the materialised views")
    add_database(listed)
    listed.add_argument(
        "--format", choices=tuple(FORMATS), help="how results are written (a terminal gets box, anything else csv)"
    )
    listed.set_defaults(run=_runner("list_views"))

    dropped = _action(actions, "drop", "forget a view; its files stay, unless --data")
    dropped.add_argument("name", metavar="NAME", help="view name")
    _add_db(dropped)
    dropped.add_argument("--data", action="store_true", help="remove the directory that it has inside the database")
    dropped.set_defaults(run=_runner("drop_view"))

    taken = _action(actions, "import", "make a view of a file of records that engramdb-python wrote, where it lies")
    taken.add_argument("name", metavar="NAME", help="view name")
    taken.add_argument("file", metavar="FILE", help="the records: NAME.bin, beside its NAME.manifest.json")
    _add_db(taken)
    taken.add_argument("--table", metavar="T", required=True, help="table whose rows the records hold")
    keys = taken.add_mutually_exclusive_group()
    keys.add_argument("--keys", metavar="FILE", help="its keys: a keys file, or .npy")
    keys.add_argument("--index", metavar="PATH", help="or a slot index of it: a directory, or .npz")
    taken.add_argument("--replace", action="store_true", help="replace a view of that name")
    taken.set_defaults(run=_runner("import_view"))

    given = _action(actions, "export", "write a view as engramdb-python reads it")
    given.add_argument("name", metavar="NAME", help="view name")
    given.add_argument("directory", metavar="DIR", help="a new directory")
    _add_db(given)
    given.add_argument("--slot-bytes", metavar="BYTES", type=count, help="from one record to the next, such as 4096")
    given.add_argument(
        "--index",
        metavar="FORMAT",
        nargs="+",
        action="extend",
        default=[],
        choices=_INDEX_FORMATS,
        help="slot indexes to write: v1, v2, v3, npz; with one, a bundle.json where the peer can hash so",
    )
    given.set_defaults(run=_runner("export_view"))


def index(parser: argparse.ArgumentParser) -> None:
    """``engramsql index``."""
    actions = parser.add_subparsers(metavar="build", required=True)
    made = _action(actions, "build", "build the slot index of a view anew, or one of engramdb-python's beside it")
    made.add_argument("view", metavar="VIEW", help="view name")
    _add_db(made)
    made.add_argument("--format", choices=_INDEX_FORMATS, help="a format of engramdb-python's, written to --to")
    made.add_argument("--to", metavar="PATH", help="new directory, or .npz file, for --format")
    _add_memory(made)
    made.set_defaults(run=_runner("build_index"))


def verify(parser: argparse.ArgumentParser) -> None:
    """``engramsql verify``."""
    parser.epilog = (
        f"{_DIFFERENCE}; what and where is on stdout. A terminal sees what is bad and a closing line; with --format, "
        "and elsewhere, every finding is written and the closing line goes to stderr."
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="table or view; or path of a checkpoint, store or database; without it all of DB",
    )
    parser.add_argument("--db", metavar="DB", help="database directory; not needed for a path")
    parser.add_argument("--level", choices=_LEVELS, default="full", help="how much is looked at (%(default)s)")
    parser.add_argument("--against", metavar="SOURCE", help="compare every row with this table or path instead")
    parser.add_argument("--resume", action="store_true", help="keep what was found good, and go on from there")
    _add_format(parser)
    parser.set_defaults(run=_runner("verify"))


def check(parser: argparse.ArgumentParser) -> None:
    """``engramsql check``."""
    parser.epilog = f"exit code 1: a table cannot be used; {_DIFFERENCE}"
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="checkpoint, store or database directory; with --db the name of a table or view",
    )
    parser.add_argument("--db", metavar="DB", help="database directory")
    parser.set_defaults(run=_runner("check"))


def _runner(name: str) -> Callable[[argparse.Namespace, argparse.ArgumentParser], int]:
    """Runs the function of that name in ``commands``, which imports what is heavy."""

    def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
        from engramsql.lifecycle import commands

        function: Callable[[argparse.Namespace, argparse.ArgumentParser], int] = getattr(commands, name)
        return function(options, parser)

    return run


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, what: str
) -> argparse.ArgumentParser:
    return actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.", allow_abbrev=False)


def add_database(parser: argparse.ArgumentParser, what: str = "database directory") -> None:
    """Adds the database as DB or as ``--db DB``; ``database_of`` tells which."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("path", nargs="?", metavar="DB", help=what)
    where.add_argument("--db", metavar="DB", help="the same")


def database_of(options: argparse.Namespace) -> str:
    """The database that ``add_database`` took."""
    return str(options.path or options.db)


def _add_db(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--db", metavar="DB", required=True, help="database directory")


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=tuple(FORMATS), help="how findings are written (a terminal gets the bad ones, else csv)"
    )


def _add_shard_size(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--shard-size", metavar="SIZE", help=f"bytes of one file of {what} at most (1GiB)")


def _add_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--memory", metavar="SIZE", help="memory for sorting; what does not fit is sorted on the disk")


def _add_unfinished(parser: argparse.ArgumentParser, what: str) -> None:
    unfinished = parser.add_mutually_exclusive_group()
    unfinished.add_argument("--resume", action="store_true", help="go on with an unfinished build of that name")
    unfinished.add_argument("--restart", action="store_true", help="throw an unfinished build of that name away")
    parser.add_argument("--replace", action="store_true", help=f"replace a {what} of that name")


def looks_like_path(name: str) -> bool:
    """Whether a name on the command line is a path, as in SQL: it has a separator."""
    return os.sep in name
