"""The process of one cold read of records or rows: reads those of random tokens twice, prints both times as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from engramsql.bench.arrays import aligned
from engramsql.bench.measure import timed
from engramsql.engine import Session, Table, View

__all__ = ["read_twice"]

_OTHER_TOKENS = 4


def read_twice(database: str, table: str, view: str, kind: str, tokens: int) -> dict[str, Any]:
    """Seconds of the first read and of the same again; ``kind``: "record" by slot, "key" (looked up), or "rows"."""
    session = Session.open(database, read_only=True)
    opened, records = session.table(table), session.view(view)
    slots = np.random.default_rng().choice(records.slots, tokens + _OTHER_TOKENS, replace=False)
    keys = records.keys(slots)
    # Keys and index are in memory: it is the records that are cold.
    assert np.array_equal(records.lookup(keys), slots)
    others, slots = slots[:_OTHER_TOKENS], slots[_OTHER_TOKENS:]
    other_keys, keys = keys[:_OTHER_TOKENS], keys[_OTHER_TOKENS:]
    width = records.record_bytes
    counters: Table | View
    if kind == "rows":
        rows = aligned((keys.size, opened.row_bytes), np.uint8)
        # Rings, threads and buffers are made on first use, which a process that serves pays once.
        opened.fetch(other_keys.ravel(), out=aligned((other_keys.size, opened.row_bytes), np.uint8))
        read = lambda: opened.fetch(keys.ravel(), out=rows)  # noqa: E731
        counters = opened
    else:
        out = aligned((tokens, width), np.uint8)
        records.records(others, out=aligned((_OTHER_TOKENS, width), np.uint8))
        if kind == "record":
            read = lambda: records.records(slots, out=out)  # noqa: E731
        else:
            read = lambda: records.records(records.lookup(keys), out=out)  # noqa: E731
        counters = records
    before = {stats.path: stats.rows for stats in counters.stats()}
    first = timed(read)
    path = ", ".join(stats.path for stats in counters.stats() if stats.rows > before.get(stats.path, 0))
    return {"first": first, "again": timed(read), "path": path}


if __name__ == "__main__":
    print(json.dumps(read_twice(**json.load(sys.stdin))))
