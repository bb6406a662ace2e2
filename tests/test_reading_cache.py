"""The row cache: rows from the disk are found again, within a budget, and only rows that were proven."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import refuses
from readers import is_available
from reading import MIB, WIDTH, added, make_cold, random_store, require_cold

import engramsql
from engramsql.engine import cache_usage, set_ram_budget
from engramsql.errors import EngramError

pytestmark = [pytest.mark.usefixtures("settings"), pytest.mark.chooses_reader]


def test_a_cold_table_is_read_from_the_disk_once(db: Any, tmp_path: Path) -> None:
    """By io_uring where there is one, else, because a budget was set, by threads; the counters say which."""
    data = random_store(tmp_path)
    make_cold(tmp_path)
    db.set_ram_budget(64 * MIB)
    db.register("t", tmp_path, width=WIDTH)
    table = db.table("t")
    require_cold(table)
    ids = np.random.default_rng(3).choice(len(data), 300, replace=False)
    assert np.array_equal(table.fetch(ids), data[ids])
    assert added([], table.stats()) == {"io_uring" if is_available("io_uring") else "pread": 300}
    before, usage = table.stats(), cache_usage()
    assert np.array_equal(table.fetch(ids[::-1]), data[ids[::-1]])
    assert added(before, table.stats()) == {"cache": 300}
    assert cache_usage().hits - usage.hits == 300


def test_a_cold_table_stays_out_of_the_page_cache_by_default(db: Any, tmp_path: Path) -> None:
    if not is_available("io_uring"):
        pytest.skip("rows come through the page cache where io_uring is refused and no budget is set")
    data = random_store(tmp_path)
    make_cold(tmp_path)
    db.register("t", tmp_path, width=WIDTH)
    table = db.table("t")
    require_cold(table)
    ids = np.random.default_rng(4).choice(len(data), 300, replace=False)
    for _ in range(2):
        assert np.array_equal(table.fetch(ids), data[ids])
    assert added([], table.stats()) == {"io_uring": 300, "cache": 300}
    require_cold(table)


@pytest.mark.parametrize("budget", [0, 8 * MIB, 10 * MIB])
def test_a_budget_is_kept_and_shrinks_at_once(db: Any, tmp_path: Path, budget: int) -> None:
    data = random_store(tmp_path)
    db.register("t", tmp_path, width=WIDTH)
    table = db.table("t")
    db.set_ram_budget(16 * MIB)
    ids = np.random.default_rng(5).permutation(len(data))
    for part in np.array_split(ids, 10):
        assert np.array_equal(table.fetch(part), data[part])
        assert cache_usage().bytes <= 16 * MIB
    assert cache_usage().bytes > 6 * MIB
    db.set_ram_budget(budget)
    usage = cache_usage()
    assert (usage.budget, usage.explicit) == (budget, True)
    assert usage.bytes <= budget
    assert usage.rows * WIDTH <= usage.bytes
    for part in np.array_split(ids, 10):
        assert np.array_equal(table.fetch(part), data[part])
        assert cache_usage().bytes <= budget


def test_two_databases_share_one_cache(db: Any, tmp_path: Path) -> None:
    """What one has read the other finds, and the budget holds for both together."""
    data = {name: random_store(tmp_path / name, rows=20_000, seed=seed) for seed, name in enumerate(["a", "b"])}
    with engramsql.connect(ram_budget=8 * MIB) as other:
        db.register("a", tmp_path / "a", width=WIDTH)
        other.register("a", tmp_path / "a", width=WIDTH)
        other.register("b", tmp_path / "b", width=WIDTH)
        ids = np.arange(500)
        db.table("a").fetch(ids)
        before = other.table("a").stats()
        assert np.array_equal(other.table("a").fetch(ids), data["a"][ids])
        assert added(before, other.table("a").stats()) == {"cache": 500}
        # The same ids of another table are other rows.
        assert np.array_equal(other.table("b").fetch(ids), data["b"][ids])
        for _ in range(2):
            for database, name in ((db, "a"), (other, "b")):
                every = np.arange(40_000)
                assert np.array_equal(database.table(name).fetch(every), data[name])
                assert cache_usage().bytes <= 8 * MIB


def test_four_threads_on_one_table_and_a_small_budget(db: Any, tmp_path: Path) -> None:
    data = random_store(tmp_path)
    budget = 8 * MIB
    db.set_ram_budget(budget)
    db.register("t", tmp_path, width=WIDTH)
    table = db.table("t")
    wrong: list[str] = []
    seen: list[int] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(60):
            # Some rows are asked for by everybody, as frequent n-grams are.
            ids = np.where(
                random.random(2000) < 0.5, random.integers(0, 500, 2000), random.integers(0, len(data), 2000)
            )
            if not np.array_equal(table.fetch(ids), data[ids]):
                wrong.append(f"thread {seed}")
            seen.append(cache_usage().bytes)

    before = cache_usage()
    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    assert len(seen) == 240
    assert max(seen) <= budget
    assert cache_usage().hits > before.hits


def test_a_truncated_file_is_an_error_although_its_rows_are_cached(db: Any, tmp_path: Path) -> None:
    data = random_store(tmp_path)
    db.set_ram_budget(64 * MIB)
    db.register("t", tmp_path, width=WIDTH)
    table = db.table("t")
    first, second = np.arange(100), np.arange(90_000, 90_100)
    for _ in range(2):
        table.fetch(np.concatenate([first, second]))
    assert table.stats()[-1].path == "cache"
    os.truncate(tmp_path / "shard_001.bin", 40_000 * WIDTH)
    for ids in (second, second[:1], np.array([0, 90_000])):
        refuses(lambda ids=ids: table.fetch(ids), "shard_001.bin", "truncated")
    before = table.stats()
    assert np.array_equal(table.fetch(first), data[first])
    assert added(before, table.stats()) == {"cache": 100}


def test_a_failed_read_leaves_no_row_in_the_cache(db: Any, tmp_path: Path) -> None:
    """A file loses its last bytes while it is read, and gets them back after the read has failed.

    Behind its new end a mapped page holds zeros; a row of them in the cache would be handed out later, when the file is
    whole again.
    """
    data = random_store(tmp_path, rows=20_000, shards=1)
    file = tmp_path / "shard_000.bin"
    stamp = file.stat()
    db.register("t", tmp_path, width=WIDTH)
    table = db.table("t")
    every = np.arange(len(data))
    failures = 0
    random = np.random.default_rng(7)
    for _ in range(60):
        set_ram_budget(0)
        set_ram_budget(64 * MIB)
        damage = threading.Timer(random.random() * 0.004, os.truncate, (file, stamp.st_size - 100))
        damage.start()
        try:
            whole = np.array_equal(table.fetch(every), data)
            damage.join()
            assert whole
        except EngramError as e:
            damage.join()
            failures += 1
            assert "truncated" in str(e)
        with open(file, "r+b") as again:
            again.seek(stamp.st_size - 100)
            again.write(data[-1, -100:].tobytes())
        # To the engine it is the file that was opened.
        os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        assert np.array_equal(table.fetch(every[-50:]), data[-50:])
    assert failures
