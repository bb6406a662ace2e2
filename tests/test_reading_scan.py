"""``Table.scan``: rows in order, the bytes of ``fetch`` and the bits of ``vectors``, past the row cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_same_bits, f32_bits, refuses

from engramsql.engine import cache_usage, set_ram_budget

TABLES = ["fp8", "bf16", "nvfp4", "v41_l1"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("first", "count"), [(0, 1), (5, 100), (1400, 8), (0, None), (7, 0)])
def test_a_scan_gives_what_fetch_gives(golden_db: Any, name: str, first: int, count: int | None) -> None:
    table = golden_db.table(name)
    count = table.rows if count is None else count
    if first + count > table.rows:
        first = table.rows - count
    ids = np.arange(first, first + count)
    assert np.array_equal(table.scan(first, count), table.fetch(ids))
    assert_same_bits(table.scan(first, count, dtype="float32"), f32_bits(table.vectors(ids)))
    assert np.array_equal(table.scan(first, count, dtype="bfloat16"), table.vectors(ids, dtype="bfloat16"))


def test_a_scan_fills_memory_that_is_there(golden_db: Any) -> None:
    table = golden_db.table("fp8")
    out = np.zeros((10, 160), np.float32)
    assert table.scan(3, 10, out=out, dtype="float32") is out
    assert_same_bits(out, f32_bits(table.vectors(np.arange(3, 13))))
    refuses(lambda: table.scan(3, 11, out=out, dtype="float32"), "out must be of shape (11, 160)")
    refuses(lambda: table.scan(3, 10, out=out), "uint8")
    refuses(lambda: table.scan(3, 10, dtype="float64"), "float64")


@pytest.mark.parametrize(
    ("first", "count", "named"), [(1408, 1, 1408), (1400, 9, 1408), (-1, 2, -1), (5, -3, 2), (2**62, 2**62, None)]
)
def test_rows_outside_the_table_are_refused(golden_db: Any, first: int, count: int, named: int | None) -> None:
    fragments = ["fp8", "1408 rows"] + ([] if named is None else [str(named)])
    refuses(lambda: golden_db.table("fp8").scan(first, count), *fragments)


def test_a_scan_leaves_the_row_cache_alone(golden_db: Any, settings: None) -> None:
    set_ram_budget("64MB")
    table = golden_db.table("fp8")
    before = cache_usage().rows
    table.scan(0, table.rows)
    assert cache_usage().rows == before
    table.fetch(np.arange(10))
    assert cache_usage().rows > before
