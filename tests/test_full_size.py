"""Released geometry in sparse files: registering reads headers only, and every row is found past 2^31 and 2^32."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import one, q, run_python, sql_refuses

from engramsql.demo import checkpoints
from engramsql.demo.sparse import Part, SparseError, SparseRows, pseudo_rows, set_length

QWEN_ROWS = 320_001_536
SHARD_ROWS = 2_500_012

MEASURE = """
import sys, time
import engramsql
engramsql.connect().sql("SELECT 1").fetchall()
def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024
db = engramsql.connect()
before, start = peak(), time.perf_counter()
db.register("t", sys.argv[1])
print(time.perf_counter() - start, peak() - before)
"""


@pytest.fixture(autouse=True)
def _linux_only() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory is read from /proc")


def marked_ids() -> list[int]:
    """Both ends of the first, a middle and the last shard, and their neighbours."""
    ids = []
    for shard in (0, 1, 63, 64, 126, 127):
        first = shard * SHARD_ROWS
        ids += [first, first + 1, first + SHARD_ROWS - 2, first + SHARD_ROWS - 1]
    return ids


def test_registering_the_ple_reads_headers_only(full_size: Any) -> None:
    seconds, megabytes = map(float, run_python(MEASURE, args=[str(full_size.qwen)]).stdout.split())
    assert seconds < 1
    assert megabytes < 100


def test_registering_v41_with_its_token_map(full_size: Any) -> None:
    seconds, _ = map(float, run_python(MEASURE, args=[str(full_size.v41)]).stdout.split())
    assert seconds < 4


def test_rows_at_both_ends_of_shards(full_size: Any, db: Any) -> None:
    ids = marked_ids()
    want = pseudo_rows(7, ids, 160)
    full_size.qwen_rows.write(ids, want)
    db.register("ple", full_size.qwen)
    assert q(db, "SELECT rows, dim, row_bytes, heads, shards, bytes FROM engram_tables()") == [
        (QWEN_ROWS, 160, 160, 16, 128, 51_200_245_760)
    ]
    assert np.array_equal(db.table("ple").fetch(ids), want)
    shuffled = np.random.default_rng(0).permutation(np.repeat(np.arange(len(ids)), 3))
    got = q(db, "SELECT rowid, row FROM engram_fetch('ple', ?::BIGINT[])", [ids[k] for k in shuffled])
    assert [i for i, _ in got] == [ids[k] for k in shuffled]
    assert b"".join(r for _, r in got) == want[shuffled].tobytes()
    sql_refuses(db, f"SELECT engram_row('ple', {QWEN_ROWS})", QWEN_ROWS, "ple")
    # A hole is what the file says it is: zero bytes, which are really there.
    assert one(db, "SELECT engram_row('ple', 200000000)") == bytes(160)


def test_shards_as_the_catalog_tells_them(full_size: Any, db: Any) -> None:
    db.register("ple", full_size.qwen)
    shards = q(
        db, "SELECT shard, file, first_row, rows, \"offset\", bytes, present FROM engram_shards('ple') ORDER BY shard"
    )
    assert len(shards) == 128
    for s, file, first, rows, offset, nbytes, present in shards:
        part = full_size.qwen_rows.parts[s]
        assert (Path(file).name, first, rows, offset, nbytes, present) == (
            part.path.name, s * SHARD_ROWS, SHARD_ROWS, part.offset, SHARD_ROWS * 160, True,
        )  # fmt: skip
    heads = q(db, "SELECT head, ngram_order, size, first_row, rows FROM engram_heads('ple') ORDER BY head")
    assert [h[2] for h in heads] == list(checkpoints.QWEN_HEAD_SIZES)
    assert [h[1] for h in heads] == [2] * 8 + [3] * 8


def test_v41_rows_have_two_extents(full_size: Any, db: Any) -> None:
    total = checkpoints.V41_ROWS[1]
    ids = [0, 1, total // 2, 2**28, total - 2, total - 1]
    values, scales = pseudo_rows(3, ids, 256), 100 + pseudo_rows(4, ids, 8) % 40
    full_size.v41_values[1].write(ids, values)
    full_size.v41_scales[1].write(ids, scales)
    db.register("v41", full_size.v41)
    assert {n for (n,) in q(db, "SELECT name FROM engram_tables()")} == {"v41_l1", "v41_l14"}
    t = db.table("v41_l14")
    assert (t.rows, t.dim, t.row_bytes) == (total, 256, 264)
    assert np.array_equal(t.fetch(ids), np.concatenate([values, scales], axis=1))
    got = q(db, "SELECT row FROM engram_fetch('v41_l14', ?::BIGINT[])", ids)
    assert b"".join(r for (r,) in got) == np.concatenate([values, scales], axis=1).tobytes()
    sql_refuses(db, f"SELECT engram_row('v41_l14', {total})", total, "v41_l14")


def test_rows_past_2_to_the_32(tmp_path: Path, db: Any) -> None:
    """4.4 billion rows of 8 bytes in four sparse shards: neither row ids nor byte offsets are cut to 32 bits."""
    per_shard, shards = 1_100_000_000, 4
    rows = SparseRows(8)
    for s in range(shards):
        path = tmp_path / f"shard_{s:03d}.bin"
        with open(path, "wb") as f:
            try:
                set_length(f.fileno(), per_shard * 8, path)
            except SparseError as e:
                pytest.skip(str(e))
        rows.parts.append(Part(path, 0, s * per_shard, per_shard))
    ids = [0, 2**29 - 1, 2**29, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 5, shards * per_shard - 1]
    want = pseudo_rows(5, ids, 8)
    rows.write(ids, want)
    db.register("wide", tmp_path, width=8, format="f32")
    assert np.array_equal(db.table("wide").fetch(ids), want)
    got = q(db, "SELECT rowid, row FROM engram_fetch('wide', ?::BIGINT[])", ids)
    assert [i for i, _ in got] == ids
    assert b"".join(r for _, r in got) == want.tobytes()
    # The aliases of a 32-bit cut are holes.
    assert not db.table("wide").fetch([5 + 1]).any()
    assert q(db, "SELECT rowid, row FROM engram_scan('wide', ?, 1)", 2**32 + 5) == [(2**32 + 5, want[8].tobytes())]
    sql_refuses(db, f"SELECT engram_row('wide', {shards * per_shard})", shards * per_shard)


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT rowid, row FROM ple LIMIT 7", 7),
        ("SELECT rowid, row FROM engram_scan('ple', 319999000, 100)", 100),
        ("SELECT * FROM engram_fetch('ple', rowids_for_seq('ple', [248044, 1000, 99999, 42]))", 64),
    ],
)
def test_a_narrow_query_never_scans(ple: Any, sql: str, count: int) -> None:
    ple.sql("SELECT 1").fetchall()
    start = time.perf_counter()
    assert len(ple.sql(sql).fetchall()) == count
    assert time.perf_counter() - start < 1.0


def test_the_readme_query(ple: Any) -> None:
    got = q(
        ple, "SELECT ord, token, head, rowid FROM engram_fetch('ple', rowids_for_seq('ple', [248044, 1000, 99999, 42]))"
    )
    assert [(r[0], r[1], r[2]) for r in got] == [(16 * t + h, t, h) for t in range(4) for h in range(16)]
    assert got[16][3] == 1876085
    assert got[17][3] == 31308566
    assert got[32][3] == 4504090
    assert got[40][3] == 172823072
