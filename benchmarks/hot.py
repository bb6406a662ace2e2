"""Hot: rows that are in memory. Says that the code path is cheap, never what a cold read costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import ROW_BYTES, rows_of, shard_files
from benchmarks.measure import Sample, a_b_b_a, repeat

SCALE = 209 / 2**20


def run(store: Path, repeats: int) -> dict[str, Any]:
    """Native gather, decode and SQL over the same hot table, beside a NumPy gather of the same ids."""
    import engramsql

    rng = np.random.default_rng()
    total = rows_of(store)
    maps = [np.memmap(p, np.uint8, "r").reshape(-1, ROW_BYTES) for p in shard_files(store)]
    shard_rows = len(maps[0])
    for m in maps:
        int(m[:, 0].sum())  # every page of the table is in memory now
    samples: list[Sample] = []
    with engramsql.connect() as db:
        db.register("t", store, width=ROW_BYTES, format="fp8_e4m3", scale=SCALE)
        table = db.table("t")
        for rows in (16, 256, 8192, 65536, 1_000_000):
            out = np.empty((rows, ROW_BYTES), np.uint8)
            limit = Sample(f"probe: numpy take per shard, {rows} rows", "row", rows)
            ours = Sample(f"fetch(ids, out=), {rows} rows", "row", rows)

            def probe(out: Any = out, rows: int = rows) -> Callable[[], object]:
                ids = rng.integers(0, total, rows)
                return lambda: _numpy_gather(maps, shard_rows, ids, out)

            def fetch(out: Any = out, rows: int = rows) -> Callable[[], object]:
                ids = rng.integers(0, total, rows)
                return lambda: table.fetch(ids, out=out)

            a_b_b_a((limit, probe), (ours, fetch), max(repeats, 2_000_000 // rows if rows < 10_000 else repeats) // 2)
            samples += [limit, ours]
        samples.append(_vectors(table, rng, total, repeats))
        samples += _sql(db, rng, total, repeats)
        path = _code_path(db)
    print(f"hot; code path: {path}")
    for s in samples:
        print("  " + s.line())
    return {"hot": {"code_path": path, "rows_in_table": total, "samples": [s.record() for s in samples]}}


def _numpy_gather(maps: list[Any], shard_rows: int, ids: Any, out: Any) -> None:
    """The limit probe: NumPy's own gather from mappings, shard by shard."""
    shard = ids // shard_rows
    for k, m in enumerate(maps):
        where = np.flatnonzero(shard == k)
        out[where] = m[ids[where] - k * shard_rows]


def _vectors(table: Any, rng: Any, total: int, repeats: int) -> Sample:
    rows = 1_000_000
    out = np.empty((rows, ROW_BYTES), np.float32)

    def prepare() -> Callable[[], object]:
        ids = rng.integers(0, total, rows)
        return lambda: table.vectors(ids, out=out)

    return repeat(Sample("vectors(ids, out=), float32, 1000000 rows", "row", rows), prepare, repeats)


def _sql(db: Any, rng: Any, total: int, repeats: int) -> list[Sample]:
    """1e6 ids from a DuckDB column; every statement is prepared with fresh ids."""
    rows = 1_000_000
    con = db.connection

    def fresh(sql: str, drain: Callable[[Any], object]) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            ids = rng.integers(0, total, rows)
            con.register("ids_in", {"i": ids})
            con.execute("CREATE OR REPLACE TEMP TABLE ids AS SELECT i FROM ids_in")
            con.unregister("ids_in")
            return lambda: drain(con.sql(sql))

        return prepare

    fetchall = lambda r: r.fetchall()  # noqa: E731
    arrow = lambda r: r.to_arrow_table()  # noqa: E731
    statements = [
        ("SQL count(engram_row('t', i)), 1000000 rows", "SELECT count(engram_row('t', i)) FROM ids", fetchall),
        ("SQL sum(engram_vector('t', i)[1]), 1000000 rows", "SELECT sum(engram_vector('t', i)[1]) FROM ids", fetchall),
        ("SQL SELECT i, engram_row to Arrow, 1000000 rows", "SELECT i, engram_row('t', i) AS row FROM ids", arrow),
        ("SQL SELECT i, engram_vector to Arrow, 1000000 rows", "SELECT i, engram_vector('t', i) AS v FROM ids", arrow),
    ]
    return [repeat(Sample(name, "row", rows), fresh(sql, drain), repeats) for name, sql, drain in statements]


def run_peer(store: Path, repeats: int) -> dict[str, Any]:
    """Fetch against engramdb-python at 65536 rows, A B B A in one process, with the same fresh ids for both."""
    import engramdb

    import engramsql

    rows, total = 65536, rows_of(store)
    rng = np.random.default_rng()
    files = shard_files(store)
    peer = engramdb.Store(str(store), shards=len(files), rows_per_shard=total // len(files), width=ROW_BYTES)
    ours, theirs = (
        Sample("engramsql fetch, 65536 rows", "row", rows),
        Sample("engramdb-python fetch, 65536 rows", "row", rows),
    )
    out = np.empty((rows, ROW_BYTES), np.uint8)
    with engramsql.connect() as db:
        db.register("t", store, width=ROW_BYTES)
        table = db.table("t")
        check = rng.integers(0, total, 1000)
        assert table.fetch(check).tobytes() == bytes(peer.fetch(check.tolist())), "the two readers disagree"

        def mine() -> Callable[[], object]:
            ids = rng.integers(0, total, rows)
            return lambda: table.fetch(ids, out=out)

        def peers() -> Callable[[], object]:
            # The peer takes a list; making it is not counted against it.
            ids = rng.integers(0, total, rows).tolist()
            return lambda: peer.fetch(ids)

        a_b_b_a((ours, mine), (theirs, peers), repeats)
        path = _code_path(db)
    peer.close()
    ratio = theirs.median_us / ours.median_us
    print(f"hot against engramdb-python, A B B A; code path: {path}")
    for s in (ours, theirs):
        print("  " + s.line())
    print(f"  {ratio:.1f}x")
    return {"peer": {"code_path": path, "ratio": ratio, "samples": [ours.record(), theirs.record()]}}


def _code_path(db: Any) -> str:
    """The readers that the engine says it used."""
    try:
        rows = db.sql("SELECT DISTINCT path FROM engram_stats() ORDER BY 1").fetchall()
    except Exception:
        return str(getattr(db.table("t"), "reader", "not reported"))
    return ", ".join(str(p) for (p,) in rows)
