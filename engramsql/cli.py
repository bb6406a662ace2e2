"""The command line: ``engramsql [DB] [-c SQL | -f FILE]`` and the commands.

Data goes to stdout, messages go to stderr in one line each. Exit codes: 0 good, 1 error, 2 usage, 3 a
measurement that is void, 4 a verification that found a difference, 130 interrupted. What is heavy is imported by the
function that needs it, so that ``--version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from typing import TYPE_CHECKING, NoReturn, TextIO

from engramsql._arguments import format_of, is_terminal, number
from engramsql._nearest import nearest_choice, nearest_names, with_nearest_option
from engramsql._starting import leave_pandas_out
from engramsql.bench import options as bench
from engramsql.errors import ArgumentError, EngramError, EngramWarning
from engramsql.exit_codes import ERROR, GOOD, INTERRUPTED, USAGE
from engramsql.export import FORMATS
from engramsql.export.files import options as export
from engramsql.lifecycle import options as lifecycle
from engramsql.messages import say
from engramsql.plot import options as plot

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

# As many as the engine can count.
_MOST_THREADS = (1 << 31) - 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code."""
    if arguments is None:
        # The process is the command line's own.
        leave_pandas_out()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and (wrong := _misspelt(words[0])):
        say(f"engramsql: {wrong}")
        return USAGE
    parser = _command_parser(words[0]) if words and words[0] in COMMANDS else _script_parser()
    options = parser.parse_args(words[1:] if words and words[0] in COMMANDS else words)
    if sys.stdout is None:
        # Before any file is opened: it would get the descriptor of stdout, and the output.
        return _fail("stdout is closed; redirect it to a file or to /dev/null")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code: int = options.run(options, parser)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        # One more, while Python ends, would change the exit code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough. What is still buffered must not fail again when the interpreter exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR
    except (EngramError, OSError, UnicodeError) as error:
        return _fail(str(error))
    except Exception as error:
        if type(error).__module__.split(".")[0] in ("_duckdb", "duckdb"):
            return _fail(str(error))
        raise


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our warnings in one line, as every message; where they came from is nothing to a user of the command line."""
    if issubclass(category, EngramWarning):
        say(f"engramsql: warning: {message}")
    else:
        say(f"engramsql: {category.__name__}: {message}")


def _misspelt(word: str) -> str | None:
    """What to say of a first word that is no command and no path, but nearly a command."""
    if word in COMMANDS or word.startswith("-") or os.sep in word or os.path.exists(word):
        return None
    if word == "help":
        return (
            "no command or directory 'help'; engramsql --help lists the commands, engramsql COMMAND --help explains one"
        )
    near = nearest_names(word, COMMANDS)
    return f"no command or directory '{word}'; did you mean '{near[0]}'?" if near else None


def _fail(message: str) -> int:
    say(f"engramsql: {' '.join(message.split())}")
    return ERROR


class _Parser(argparse.ArgumentParser):
    """A parser that names the nearest choice."""

    def error(self, message: str) -> NoReturn:
        super().error(with_nearest_option(nearest_choice(message), *_with_commands(self)))


def _with_commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The parser, and those of the commands below it: what they do not know is said by the first."""
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [one for below in action.choices.values() for one in _with_commands(below)]
    return found


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    prog = f"engramsql {name}".strip()
    # An abbreviation that works today would change its meaning with the next option.
    return _Parser(prog=prog, description=description, allow_abbrev=False)


def _script_parser() -> argparse.ArgumentParser:
    parser = _parser("", "SQL over the n-gram memory tables of language models.")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, (summary, _) in COMMANDS.items()]
    parser.epilog = "\n".join(["commands (engramsql COMMAND --help):", *lines])
    parser.add_argument(
        "db", nargs="?", metavar="DB", help="database, checkpoint or store directory; in memory if left out"
    )
    # Only to say what is wrong with it.
    parser.add_argument("more", nargs="*", help=argparse.SUPPRESS)
    script = parser.add_mutually_exclusive_group()
    script.add_argument("-c", "--command", metavar="SQL", action="append", help="run these statements; may be repeated")
    script.add_argument("-f", "--file", metavar="FILE", help="run the statements in FILE")
    _add_format(parser)
    parser.add_argument("--read-only", action="store_true", help="write nothing, refuse changes of the catalog")
    parser.add_argument(
        "--ram-budget", metavar="SIZE", help="memory for rows read from the disk: 8GB, 512MiB, 0 for none"
    )
    parser.add_argument("--threads", metavar="N", type=_threads, help="threads of a query (one per processor)")
    parser.add_argument("--no-init", action="store_true", help="open the shell without its configuration file")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.set_defaults(run=_run_script)
    return parser


def _command_parser(name: str) -> argparse.ArgumentParser:
    summary, build = COMMANDS[name]
    parser = _parser(name, f"{summary[0].upper()}{summary[1:]}.")
    build(parser)
    return parser


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=tuple(FORMATS), help="how results are written (a terminal gets box, anything else csv)"
    )


def _add_db(parser: argparse.ArgumentParser, what: str = "database directory") -> None:
    parser.add_argument("--db", metavar="DB", required=True, help=what)


def _run_script(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if options.version:
        from engramsql import __version__

        print(f"engramsql {__version__}")
        return GOOD
    if options.more:
        parser.error(f"unexpected '{options.more[0]}'; SQL is given with -c SQL, or -f FILE")
    if options.db is not None and _looks_like_sql(options.db):
        parser.error(f"no directory '{options.db}'; SQL is given with -c SQL, or -f FILE")
    if options.command is None and options.file is None and is_terminal(sys.stdin):
        if not is_terminal(sys.stdout):
            say(f"{parser.prog}: stdout is no terminal for the shell; give -c SQL, -f FILE, or pipe SQL in (--help)")
            return USAGE
        from engramsql import shell

        shell.run(
            options.db,
            read_only=options.read_only,
            ram_budget=options.ram_budget,
            threads=options.threads,
            mode=options.format,
            read_config=not options.no_init,
        )
        return GOOD
    from engramsql.commands import run_script

    run_script(
        options.db,
        _script_text(options),
        format_of(options),
        read_only=options.read_only,
        ram_budget=options.ram_budget,
        threads=options.threads,
        chosen=options.format is not None,
    )
    return GOOD


def _threads(text: str) -> int:
    return number(text, 1, _MOST_THREADS)


def _looks_like_sql(word: str) -> bool:
    return any(map(str.isspace, word)) and os.sep not in word and not os.path.exists(word)


def _script_text(options: argparse.Namespace) -> str:
    if options.command is not None:
        for text in options.command:
            try:
                text.encode()
            except UnicodeEncodeError as error:
                shown = text.encode(errors="backslashreplace").decode()
                raise ArgumentError(f"-c is not UTF-8: {shown[:60]!r}") from error
        # On lines of their own: a comment at the end of one must not hide the semicolon.
        return "\n;\n".join(options.command)
    name = "stdin" if options.file in (None, "-") else f"'{options.file}'"
    try:
        if name != "stdin":
            with open(options.file, "rb") as file:
                script = file.read()
        else:
            script = b"" if sys.stdin is None else sys.stdin.buffer.read()  # None: closed
        # Without the mark that some editors put before a text.
        return script.decode("utf-8-sig")
    except OSError as error:
        raise ArgumentError(f"cannot read {name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"cannot read {name}: {error}") from error


def _build_register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="table name; several hash layers make NAME_l1, NAME_l14, ...")
    parser.add_argument("source", metavar="SOURCE", help="checkpoint or store directory")
    _add_db(parser)
    lifecycle.add_register(parser)

    def run(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
        from engramsql.commands import register

        register(options)
        return GOOD

    parser.set_defaults(run=run)


def _build_relocate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="table whose files were moved")
    parser.add_argument("source", metavar="SOURCE", help="checkpoint or store directory where they are now")
    _add_db(parser)

    def run(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
        from engramsql.maintenance import relocate

        relocate(options.db, options.name, options.source)
        return GOOD

    parser.set_defaults(run=run)


def _build_drop(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="table or view to forget; its files stay")
    _add_db(parser)
    parser.add_argument("--data", action="store_true", help="remove the directory that it has inside the database")

    def run(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
        from engramsql.maintenance import drop

        drop(options.db, options.name, data=options.data)
        return GOOD

    parser.set_defaults(run=run)


def _build_orphans(parser: argparse.ArgumentParser) -> None:
    lifecycle.add_database(parser)
    parser.add_argument("--remove", action="store_true", help="remove them, but for what is foreign or being written")

    def run(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
        from engramsql.maintenance import orphans

        orphans(lifecycle.database_of(options), remove=options.remove)
        return GOOD

    parser.set_defaults(run=run)


def _build_tables(parser: argparse.ArgumentParser) -> None:
    lifecycle.add_database(parser, "database, checkpoint or store directory")
    _add_format(parser)

    def run(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
        from engramsql.commands import run_script

        path = lifecycle.database_of(options)
        run_script(path, "SELECT * FROM engram_tables()", format_of(options), read_only=True)
        return GOOD

    parser.set_defaults(run=run)


def _build_profile(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "One line per head, from one pass over all rows: dead and constant rows, what is no number, range, mean and "
        "deviation of the values, norms of the rows; the last line, without a head, has the rows that no head reaches."
    )
    parser.add_argument("name", metavar="NAME", help="table; or path of a checkpoint or store")
    parser.add_argument("--db", metavar="DB", help="database, checkpoint or store directory; not needed for a path")
    _add_format(parser)

    def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
        name = options.name
        if options.db is None and not lifecycle.looks_like_path(name):
            if not os.path.exists(name):
                parser.error(f"'{name}' is a name: give its database with --db DB; a path has a '{os.sep}'")
            name = os.path.join(os.curdir, name)
        from engramsql.inspection import profile

        profile(options.db, name, format_of(options))
        return GOOD

    parser.set_defaults(run=run)


def _build_warm(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Other programs may read the files out of the page cache again. The row cache ends with its process: to fill "
        "it, call Table.warm() in Python, or engram_warm() in SQL, where the rows are needed."
    )
    parser.add_argument("name", metavar="NAME", help="table to read, from its first row on")
    _add_db(parser, "database, checkpoint or store directory")
    parser.add_argument(
        "--budget", metavar="SIZE", help="bytes of rows at most: 8GB, 512MiB; half of the memory if left out"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--tokens", metavar="FILE", nargs="+", help="only the rows that the tokens in these files need")
    which.add_argument("--ids", metavar="FILE", nargs="+", help="only the rows whose ids are in these files")
    parser.add_argument("--column", metavar="C", help="column, array or member of these files, if there are several")

    def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
        some = options.tokens is not None or options.ids is not None
        if some and options.budget is not None:
            parser.error("--budget bounds the rows from the first on; leave it out where --tokens or --ids name rows")
        if options.column is not None and not some:
            parser.error("--column belongs to the files of --tokens or --ids")
        from engramsql.warming import warm, warm_some

        if some:
            warm_some(options.db, options.name, options.tokens, options.ids, options.column)
        else:
            warm(options.db, options.name, options.budget)
        return GOOD

    parser.set_defaults(run=run)


def _build_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", nargs="?", metavar="DIR", default="engramsql-demo", help="default: %(default)s")

    def run(options: argparse.Namespace, _: argparse.ArgumentParser) -> int:
        from pathlib import Path

        from engramsql import demo

        demo.run(Path(options.directory))
        return GOOD

    parser.set_defaults(run=run)


def _build_extension_path(parser: argparse.ArgumentParser) -> None:
    def run(_: argparse.Namespace, __: argparse.ArgumentParser) -> int:
        from engramsql.udf import extension_path

        print(extension_path())
        return GOOD

    parser.set_defaults(run=run)


# Name to summary and parser builder. `engramsql ./demo` opens a database directory of such a name.
COMMANDS = {
    "demo": ("make a database of released size in sparse files and query it", _build_demo),
    "register": ("give a checkpoint or store a table name", _build_register),
    "relocate": ("point a table to the place where its files are now", _build_relocate),
    "drop": ("forget a table or view; its files stay, unless --data", _build_drop),
    "orphans": ("list or remove what belongs to no table or view", _build_orphans),
    "tables": ("list the tables of a database", _build_tables),
    "build": ("copy a checkpoint or store into the database, with checksums", lifecycle.build),
    "view": ("materialise the records of a corpus; exchange views with engramdb-python", lifecycle.view),
    "index": ("build the index from keys to records of a view", lifecycle.index),
    "verify": ("prove that a table or view is what it was, or equals another", lifecycle.verify),
    "check": ("look at headers, manifests, sizes, and missing or stray files", lifecycle.check),
    "export": ("write a table, e_t of a corpus or a query to Arrow, Parquet, NumPy, ... files", export.build),
    "profile": ("say what is in a table: dead rows, range, norms, head by head", _build_profile),
    "plot": ("draw what is in a table, where it lies, what a read costs", plot.build),
    "bench": ("measure reads, hashing, decoding and SQL on this machine", bench.build),
    "warm": ("read a table into the page cache of the system", _build_warm),
    "extension-path": ("print the path of the DuckDB extension", _build_extension_path),
}
