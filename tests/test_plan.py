"""engram_plan: the reads it lists are those that the counters then count, on every path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_data import GOLDEN
from helpers import one, q, sql_refuses
from readers import forced
from reading import MIB, WIDTH, make_cold, random_store, require_cold

from engramsql.engine import set_reader

pytestmark = pytest.mark.usefixtures("settings")

# Golden source, options, and its tables.
SOURCES: dict[str, dict[str, Any]] = {
    "ckpt_qwen4_exp_fp8": {},
    "ckpt_qwen4_exp_bf16": {},
    "ckpt_qwen4_exp_nvfp4": {},
    "ckpt_deepseek_v41": {},
    "peer_store/rows": {},
}
PLAN = 'SELECT path, shard, file, "offset", bytes, rows, bytes_used, resident FROM engram_plan(?, ?)'


def batches(rows: int, seed: int) -> list[list[int]]:
    """Random ids, neighbours, duplicates, both ends, one alone."""
    draw = np.random.default_rng(seed)
    scattered = draw.integers(0, rows, 100)
    start = int(draw.integers(0, rows - 60))
    return [
        scattered.tolist(),
        np.repeat(scattered[:40], draw.integers(1, 4, 40)).tolist(),
        draw.permutation(np.concatenate([np.arange(start, start + 60), scattered])).tolist(),
        [rows - 1, 0, rows - 1],
        [start],
        np.arange(rows).tolist()[:2000],
    ]


def counted(table: Any, path: str) -> np.ndarray:
    """Rows, reads, bytes read and used on one path."""
    for stats in table.stats():
        if stats.path == path:
            return np.array([stats.rows, stats.reads, stats.bytes_read, stats.bytes_used])
    return np.zeros(4, np.int64)


@pytest.mark.parametrize("reader", ["io_uring", "pread", "sequential"])
@pytest.mark.parametrize("source", SOURCES)
def test_the_plan_is_what_the_counters_count(db: Any, source: str, reader: str) -> None:
    forced(reader)
    db.register("t", GOLDEN / source, **SOURCES[source])
    set_reader(reader)
    for name in [entry.name for entry in db.tables()]:
        table = db.table(name)
        for ids in batches(table.rows, seed=len(source)):
            plan = q(db, PLAN, name, ids)
            assert {line[0] for line in plan} == {reader}
            before = counted(table, reader)
            table.fetch(ids)
            rows, reads, bytes_read, used = (counted(table, reader) - before).tolist()
            assert (len(plan), sum(line[4] for line in plan)) == (reads, bytes_read)
            assert (sum(line[6] for line in plan), rows) == (used, len(ids))
            assert used == len(ids) * table.row_bytes


def test_every_row_lies_in_a_read_of_its_shard(db: Any) -> None:
    db.register("t", GOLDEN / "ckpt_deepseek_v41")
    forced("pread")
    set_reader("pread")
    name = db.tables()[0].name
    last = db.tables()[0].rows - 1
    ids = [3, 3, last, 4, 5]
    extents = q(db, 'SELECT shard, file, first_row, rows, "offset", bytes FROM engram_shards(?)', name)
    plan = q(db, PLAN, name, ids)
    for row in ids:
        holding = [extent for extent in extents if extent[2] <= row < extent[2] + extent[3]]
        assert len(holding) == 2  # values and scales
        for shard, file, first, rows, offset, size in holding:
            start = offset + (row - first) * (size // rows)
            (read,) = [r for r in plan if r[1:3] == (shard, file) and r[3] <= start < r[3] + r[4]]
            assert read[3] + read[4] >= start + size // rows
    assert sum(read[5] for read in plan) == 2 * len(ids)


@pytest.mark.chooses_reader
def test_path_and_residency_are_those_of_the_moment(db: Any, tmp_path: Path) -> None:
    data = random_store(tmp_path)
    make_cold(tmp_path)
    db.register("t", tmp_path, width=WIDTH)
    table = db.table("t")
    require_cold(table)
    ids = list(range(0, 100_000, 1000))
    before = q(db, PLAN, "t", ids)
    assert not any(line[7] for line in before)
    assert {line[0] for line in before} <= {"io_uring", "mapped"}
    # Through the page cache, which then holds their pages.
    set_reader("mapped")
    assert np.array_equal(table.fetch(ids), data[ids])
    mapped = q(db, PLAN, "t", ids)
    assert {line[0] for line in mapped} == {"mapped"}
    assert all(line[7] for line in mapped)
    assert sum(line[6] for line in mapped) == len(ids) * WIDTH
    # Pages of 4 KiB at least, and no page twice.
    assert all(line[4] % 4096 == 0 or line[3] + line[4] == 50_000 * WIDTH for line in mapped)
    places = sorted((line[2], line[3], line[4]) for line in mapped)
    assert all(a[0] != b[0] or a[1] + a[2] <= b[1] for a, b in zip(places, places[1:], strict=False))


@pytest.mark.chooses_reader
def test_rows_of_the_row_cache_are_no_reads(db: Any, tmp_path: Path) -> None:
    random_store(tmp_path, rows=1000)
    db.register("t", tmp_path, width=WIDTH)
    db.set_ram_budget(16 * MIB)
    db.table("t").fetch(range(100))
    lines = q(db, PLAN, "t", [5, 7, 7, 500])
    if lines[0][0] != "cache":
        pytest.skip("this DuckDB has the functions from the extension's file, an engine of its own")
    assert lines[0] == ("cache", None, None, None, 0, 3, 3 * WIDTH, True)
    assert sum(line[5] for line in lines[1:]) == 1


def test_ids_are_checked_and_nulls_are_no_reads(db: Any) -> None:
    db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
    sql_refuses(db, "FROM engram_plan('ple', [1408])", "row id 1408", "1408 rows")
    sql_refuses(db, "FROM engram_plan('ple', [1.5])", "row ids must be integers")
    sql_refuses(db, "FROM engram_plan('nope', [1])", "nope")
    assert q(db, "FROM engram_plan('ple', NULL)") == []
    assert one(db, "SELECT sum(rows) FROM engram_plan('ple', [1, NULL])") == 1
    nested = "SELECT sum(rows), sum(bytes) >= sum(bytes_used) FROM engram_plan('ple', rowids_for_seq('ple', [5, 6]))"
    assert q(db, nested) == [(32, True)]


def test_a_plan_reads_nothing(db: Any) -> None:
    db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
    # Whoever else of this process has the files open shares the counters.
    before = db.table("ple").stats()
    q(db, PLAN, "ple", [1, 2, 3])
    assert db.table("ple").stats() == before
