"""``engramsql warm``: a table's rows into the page cache."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from engramsql.commands import require
from engramsql.database import connect
from engramsql.engine import set_reader
from engramsql.named_rows import named_rows
from engramsql.progress import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["warm", "warm_some"]

# Rows announced at a time and then read: a few megabytes.
_ROWS = 1 << 15


def warm(path: str, name: str, budget: str | None) -> None:
    """Reads rows of table ``name`` of the database at ``path``, from the first on, and prints what is in memory then.

    Raises:
        ArgumentError: If ``budget`` is no size.
        UnknownTableError: If there is no table of that name.
        ReadError: If a row cannot be read.
    """
    require(path)
    # The row cache would end with this process: without one, rows go to the page cache, which stays.
    with connect(path, read_only=True, ram_budget=0) as database:
        table = database.table(name)
        started = time.perf_counter()
        with ProgressLine(name, sys.stderr) as line:
            done = table.warm(budget, line.show)
        seconds = time.perf_counter() - started
        held = [shard.resident_bytes for shard in table.shards()]
    known = [resident for resident in held if resident is not None]
    resident = f"{sum(known)} of {table.bytes} bytes" if len(known) == len(held) else "an unknown part"
    print(f"{name}: {done} bytes of rows read in {seconds:.1f} s; {resident} in the page cache")


def warm_some(
    path: str, name: str, tokens: Sequence[str] | None, ids: Sequence[str] | None, column: str | None
) -> None:
    """Reads the rows that files of tokens, or of row ids, name into the page cache, and prints how many those are.

    Raises:
        UnknownTableError: If there is no table of that name.
        SpecError: If tokens have no row ids in it.
        ArgumentError, TokenIdError, RowIdError: If a file cannot be read, or what it names is not in the table.
        ReadError: If a row cannot be read.
    """
    require(path)
    with connect(path, read_only=True, ram_budget=0) as database:
        table = database.table(name)
        # Into the page cache, where other processes find them.
        set_reader("mapped")
        started = time.perf_counter()
        seen = np.zeros(-(-table.rows // 8), np.uint8)
        count = 0
        with ProgressLine(name, sys.stderr) as line:
            for block in named_rows(table, tokens, ids, column):
                new = np.unique(block)
                new = new[seen[new >> 3] & (1 << (new & 7)).astype(np.uint8) == 0]
                np.bitwise_or.at(seen, new >> 3, (1 << (new & 7)).astype(np.uint8))
                for first in range(0, len(new), _ROWS):
                    part = new[first : first + _ROWS]
                    table.prefetch(part).wait()
                    table.fetch(part)
                count += len(new)
                line.show_count("rows", count, 0)
        seconds = time.perf_counter() - started
    print(f"{name}: {count} different rows, {count * table.row_bytes} bytes, read in {seconds:.1f} s")
