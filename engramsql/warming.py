"""``engramsql warm``: a table's rows into the page cache."""

from __future__ import annotations

import sys
import time

from engramsql.commands import require
from engramsql.database import connect
from engramsql.progress import ProgressLine

__all__ = ["warm"]


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
