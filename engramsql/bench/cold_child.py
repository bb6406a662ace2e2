"""The process of one cold read: opens, reads fresh random rows, reads them again, prints both times as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from engramsql.bench.arrays import aligned
from engramsql.bench.measure import timed
from engramsql.bench.peers import fresh_ids, make_peer
from engramsql.bench.target import Target, paths_since_now
from engramsql.engine import Probe

__all__ = ["read_twice"]

_OTHER_ROWS = 16


def read_twice(target: Target, reader: str, rows: int) -> dict[str, Any]:
    """Seconds of the first read and of the same again, and the code path of the first."""
    import numpy as np

    ids = fresh_ids(reader, target, rows, target.rows)
    # Rings, threads and buffers are made on first use, which a process that serves pays once.
    others = fresh_ids(reader, target, _OTHER_ROWS, target.rows)
    spare = aligned((_OTHER_ROWS, target.row_bytes), np.uint8)
    out = aligned((rows, target.row_bytes), np.uint8)
    if reader == "engramsql":
        table = target.open()
        table.fetch(others, out=spare)
        paths = paths_since_now(table)
        first = timed(lambda: table.fetch(ids, out=out))
        path = paths()
        again = timed(lambda: table.fetch(ids, out=out))
    elif reader == "probe":
        probe = Probe(target.extents())
        probe.random(others, spare)
        reading = probe.random(ids, out)
        first, path = reading.seconds, reading.path
        again = probe.random(ids, out).seconds
    else:
        peer = make_peer(reader, target)
        peer.fetch(others, spare)()
        call = peer.fetch(ids, out)
        first = timed(call)
        path = peer.path
        again = timed(call)
    return {"first": first, "again": again, "path": path}


if __name__ == "__main__":
    question = json.load(sys.stdin)
    print(json.dumps(read_twice(Target(**question["target"]), question["reader"], question["rows"])))
