"""The arguments of ``engramsql bench``. Imports nothing heavy: ``--help`` answers at once."""

from __future__ import annotations

import argparse
import math
import os

from engramsql._arguments import count, number

__all__ = ["ASKED", "MEASUREMENTS", "PEERS", "build"]

# Sixty times the largest batch measured by default; its ids and rows of 160 bytes take 10 GB.
_MOST_ROWS = 1 << 26

# In the order they run: cold first, while nothing else has mapped or warmed the files.
MEASUREMENTS = {
    "cold": "fetch of rows that are not in memory, each in a process of its own",
    "limits": "what the disk and memory of this machine can do",
    "hot": "fetch and vectors of rows in memory",
    "hash": "tokens to row ids",
    "decode": "bytes to float32, tokens to e_t",
    "sql": "the SQL functions beside the native gather",
    "build": "a build and a full verification beside the disk's own rate; needs room for two copies of the table",
    "views": "a token's record in a view beside its rows, cold",
    "index": "the slot index of a view: build and lookup",
    "keyed": "SQL that names its rows by key, on a table of released size too",
    "export": "e_t of a corpus and the whole table to files; needs room for the table as float32 and its copy",
    "inspect": "questions about a whole table or a corpus, each in a process of its own",
}
# Left out unless they are asked for, by name or by "all": they write gigabytes or take minutes.
ASKED = ("build", "views", "index", "keyed", "export", "inspect")
# Name to the pip package.
PEERS = {"engramdb": "engramdb-python", "torch": "torch", "numpy": "numpy", "arrow": "pyarrow"}


def build(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments and the function that runs them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    width = max(map(len, MEASUREMENTS))
    lines = [f"  {name:<{width}}  {what}" for name, what in MEASUREMENTS.items()]
    parser.epilog = "\n".join(
        [
            "measurements:",
            *lines,
            f"without any: all but {', '.join(ASKED)}, which write gigabytes below --dir or take minutes",
            "exit code 3: a cold read did not prove itself, or the files are sparse; nothing is published",
        ]
    )
    parser.usage = "engramsql bench [MEASUREMENT[,...]|all] [TABLE] [options]"
    parser.add_argument("words", nargs="*", metavar="MEASUREMENT TABLE", help=argparse.SUPPRESS)
    parser.add_argument("--db", metavar="DB", help="database, checkpoint or store; TABLE is then a name in it")
    parser.add_argument(
        "--against",
        metavar="PEER",
        action="append",
        default=[],
        choices=tuple(PEERS),
        help="measure a peer too: %(choices)s; may be repeated",
    )
    parser.add_argument("--rows", metavar="N,...", type=_counts, help="batch sizes of hot and cold")
    parser.add_argument(
        "--threads",
        metavar="N",
        type=count,
        default=min(2, os.cpu_count() or 1),
        help="most threads of fetch and vectors (hot), of the copy loops beside them, and of SQL (%(default)s)",
    )
    parser.add_argument(
        "--repeats",
        metavar="N",
        type=count,
        default=7,
        help="rounds of A B B A per figure, two calls of each in a round; hot rounds of small batches are many times "
        "as many, cold rounds of large ones fewer (%(default)s)",
    )
    parser.add_argument("--json", metavar="FILE", help="write every sample too")
    parser.add_argument("--budget-us", metavar="US", type=_positive, help="time that the rows of one token may take")
    parser.add_argument("--layer-us", metavar="US", type=_positive, help="time that one layer of the model takes")
    parser.add_argument(
        "--layer", metavar="L", type=number, help="layer that needs the rows (0-based), with --layer-us"
    )
    parser.add_argument(
        "--dir",
        metavar="D",
        default=os.path.join("build", "benchmarks"),
        help="where the test table is kept if no TABLE is given (%(default)s)",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    options.measurements, options.table = _split(options.words, parser)
    if (options.layer_us is None) != (options.layer is None):
        parser.error("--layer-us and --layer belong together: how long a layer takes, and which layer needs the rows")
    if "cold" not in options.measurements and (options.budget_us or options.layer_us):
        parser.error("a hot figure is no budget for a cold read; measure cold (or all) with --budget-us and --layer-us")
    if options.against and not {"hot", "cold", "hash", "index"} & set(options.measurements):
        parser.error("--against belongs to hot, cold, hash and index; the others have no peers")
    from engramsql.bench.run import run

    return run(options)


def _split(words: list[str], parser: argparse.ArgumentParser) -> tuple[list[str], str | None]:
    """Measurements, in the order they run, and the table: the first word may name measurements, the last the table."""
    chosen, table = [name for name in MEASUREMENTS if name not in ASKED], None
    if words:
        named = words[0].split(",")
        if words[0] == "all" or set(named) <= MEASUREMENTS.keys():
            chosen = [name for name in MEASUREMENTS if words[0] == "all" or name in named]
            words = words[1:]
        elif len(words) > 1 or "," in words[0]:
            parser.error(f"no measurement '{words[0]}'; choose from all, {', '.join(MEASUREMENTS)}")
    if len(words) > 1:
        parser.error(f"unexpected '{words[1]}'; give measurements with commas, then one table")
    if words:
        table = words[0]
    return chosen, table


def _counts(text: str) -> list[int]:
    return sorted({number(part, 1, _MOST_ROWS) for part in text.split(",")})


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and value > 0:
        return value
    raise argparse.ArgumentTypeError(f"'{text}' is no positive number of microseconds")
