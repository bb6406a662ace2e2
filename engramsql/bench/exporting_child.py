"""The process of one export of a whole table: prints its seconds, code path and most memory as JSON."""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from engramsql.bench.measure import drop_pages
from engramsql.bench.memory import OwnPeak, own_peak, peak_bytes
from engramsql.bench.target import paths_since_now
from engramsql.database import connect

__all__ = ["work"]


def work(database: str, name: str, out: str, values: Any, files: list[str], watch: bool) -> dict[str, Any]:
    """Exports table ``name`` to the Arrow file ``out``, none of whose rows are in memory at the beginning.

    Its memory is watched only if asked: who looks every millisecond is in the way of the threads that work.
    """
    Path(out).unlink(missing_ok=True)
    drop_pages(files)
    with connect(database, read_only=True) as opened:
        path = paths_since_now(opened.table(name))
        with own_peak() if watch else nullcontext(OwnPeak()) as peak:
            start = time.perf_counter()
            opened.export(name, out, values=values)
            seconds = time.perf_counter() - start
        return {"seconds": seconds, "path": path(), "peak_bytes": peak_bytes(), "own_peak_bytes": peak.bytes}


if __name__ == "__main__":
    print(json.dumps(work(**json.load(sys.stdin))))
