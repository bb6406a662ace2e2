"""The process of one build or verification: prints its seconds and the most memory it ever had as JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from engramsql.bench.building import BUILT
from engramsql.bench.memory import peak_bytes
from engramsql.engine import Session

__all__ = ["work"]


def work(action: str, database: str, source: str, name: str) -> dict[str, Any]:
    """Builds table ``name`` of the database ``source`` into ``database``, or verifies what was built."""
    if action == "build":
        table = Session.open(source, read_only=True).table(name)
        session = Session.open(database, create=True)
        start = time.perf_counter()
        # Neither format nor spec matters for the bytes, and a store has no layers without a spec.
        layer = table.layer if (table.source / "config.json").exists() else None
        session.build(BUILT, table.source, width=table.row_bytes, layer=layer)
    else:
        session = Session.open(database)
        start = time.perf_counter()
        good, findings = session.verify(BUILT, "full")
        if not good:
            raise SystemExit(f"verification failed: {findings}")
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak_bytes": peak_bytes()}


if __name__ == "__main__":
    print(json.dumps(work(**json.load(sys.stdin))))
