"""Macros about the rows of a table, against numpy over rows decoded by the golden tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from extension_support import connect
from golden_data import GOLDEN
from helpers import one, q, sql_refuses
from oldest import run_oldest
from test_extension_copy import SPEC
from test_inspect import CHECKPOINTS, FORMATS, ROWS, Decoded, decoded, odd_store

from engramsql.udf import extension_path


def golden_table(name: str) -> tuple[duckdb.DuckDBPyConnection, str]:
    """A connection and the name of a golden table."""
    con = connect()
    table, directory = CHECKPOINTS[name]
    con.execute(f"CALL engram_register('{table.split('_')[0]}', '{GOLDEN / directory}')")
    return con, table


@pytest.fixture(params=[*CHECKPOINTS, *(f"odd {name}" for name in FORMATS if name != "e8m0")])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[duckdb.DuckDBPyConnection, str, Decoded]:
    """Golden checkpoints, and stores of every format with dead, constant, NaN and infinite rows, which have heads."""
    if not request.param.startswith("odd "):
        con, name = golden_table(request.param)
        return con, name, decoded(con, name)
    con = connect()
    format_ = request.param.removeprefix("odd ")
    store = odd_store(tmp_path / "odd", format_)
    (tmp_path / "small.toml").write_text(SPEC)
    scale = FORMATS[format_]
    options = f"format := '{format_}', spec := '{tmp_path / 'small.toml'}', layer := 1"
    options += "" if scale is None else f", scale := {scale}"
    con.execute(f"CALL engram_register('odd', '{store}', width := {len_of(store)}, {options})")
    return con, "odd", decoded(con, "odd")


def len_of(store: Path) -> int:
    return (store / "shard_000.bin").stat().st_size // ROWS


def heads(data: Decoded) -> list[int | None]:
    return [None if head < 0 else head for head in data.heads.tolist()]


def test_norms(table: tuple[duckdb.DuckDBPyConnection, str, Decoded]) -> None:
    con, name, data = table
    lines = q(con, f"FROM engram_row_norms('{name}') ORDER BY rowid")
    assert len(lines) == len(data.values)
    for rowid, (line, head, row) in enumerate(zip(lines, heads(data), data.values.astype(np.float64), strict=True)):
        finite = row[np.isfinite(row)]
        assert line[:2] == (rowid, head)
        assert line[7:] == ((row == 0).sum(), np.isnan(row).sum(), np.isinf(row).sum())
        assert line[5:7] == ((finite.min(), finite.max()) if len(finite) else (None, None))
        if len(finite) < len(row):
            assert line[2:5] == (None,) * 3
            continue
        assert line[2] == pytest.approx(np.sqrt((finite**2).sum()), rel=1e-12)
        size = np.abs(finite).max()
        assert line[3] == pytest.approx(finite.mean(), rel=1e-12, abs=1e-12 * size)
        assert line[4] == pytest.approx(finite.std(), rel=1e-12, abs=1e-14 * size)


def test_dead_constant_and_nan_rows(table: tuple[duckdb.DuckDBPyConnection, str, Decoded]) -> None:
    con, name, data = table
    values, of = data.values, heads(data)
    dead = (values == 0).all(axis=1)
    assert q(con, f"FROM engram_dead_rows('{name}') ORDER BY rowid") == [(i, of[i]) for i in np.flatnonzero(dead)]
    constant = (values == values[:, :1]).all(axis=1) & ~dead
    want = [(i, of[i], values[i, 0].item()) for i in np.flatnonzero(constant)]
    assert q(con, f"FROM engram_constant_rows('{name}') ORDER BY rowid") == want
    nans, infs = np.isnan(values).sum(axis=1), np.isinf(values).sum(axis=1)
    want = [(i, of[i], nans[i], infs[i]) for i in np.flatnonzero(nans + infs)]
    assert q(con, f"FROM engram_nonfinite_rows('{name}') ORDER BY rowid") == want
    if name == "odd":
        # Every kind is there to be found.
        assert dead.any()
        assert constant.any()
        assert nans.any()


def test_duplicates(table: tuple[duckdb.DuckDBPyConnection, str, Decoded]) -> None:
    con, name, data = table
    first: dict[bytes, int] = {}
    rows = [row.tobytes() for row in data.rows]
    copies = {row: rows.count(row) for row in set(rows)}
    want = []
    for rowid, row in enumerate(rows):
        if first.setdefault(row, rowid) != rowid:
            want.append((first[row], rowid, heads(data)[rowid], copies[row]))
    assert q(con, f"FROM engram_duplicate_rows('{name}') ORDER BY rowid") == want
    assert name != "odd" or want


def test_scale_ranges(table: tuple[duckdb.DuckDBPyConnection, str, Decoded]) -> None:
    con, name, data = table
    lines = q(con, f"FROM engram_scale_ranges('{name}')")
    order = [*sorted(set(data.heads.tolist()) - {-1}), *([-1] if -1 in data.heads else [])]
    assert [line[0] for line in lines] == [None if head < 0 else head for head in order]
    for head, (_, count, low, high, widest) in zip(order, lines, strict=True):
        rows = data.heads == head
        assert count == rows.sum()
        if data.scales is None:
            assert (low, high, widest) == (None, None, None)
            continue
        scales = data.scales[rows].astype(np.float64)
        assert (low, high) == (np.nanmin(scales), np.nanmax(scales))
        with np.errstate(all="ignore"):
            known = ~np.isnan(scales).all(axis=1)
            lows, highs = np.nanmin(scales[known], axis=1), np.nanmax(scales[known], axis=1)
            ratios = (highs / lows)[(lows > 0) & np.isfinite(lows)]
        ratios = ratios[~np.isnan(ratios)]
        assert widest == (pytest.approx(ratios.max()) if len(ratios) else None)


def test_duplicates_of_many_rows_within_a_small_memory_limit(tmp_path: Path) -> None:
    """Half a million rows of which one in five repeats an earlier one: what does not fit goes to the disk."""
    rows = 500_000
    draw = np.random.default_rng(0)
    data = draw.integers(0, 256, (rows, 16), dtype=np.uint8)
    copied = draw.permutation(rows)[: rows // 5]
    sources = draw.integers(0, rows, len(copied))
    data[copied] = data[sources]
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "shard_000.bin").write_bytes(data.tobytes())
    con = connect()
    con.execute(f"SET memory_limit = '48MB'; SET temp_directory = '{tmp_path / 'spilled'}'")
    con.execute(f"CALL engram_register('t', '{tmp_path / 'store'}', width := 16)")
    _, first, counts = np.unique(data.view("V16").ravel(), return_index=True, return_counts=True)
    found = one(con, "SELECT count(*) FROM engram_duplicate_rows('t')")
    assert found == rows - len(first)
    assert one(
        con, "SELECT sum(copies) FROM (SELECT DISTINCT first_rowid, copies FROM engram_duplicate_rows('t'))"
    ) == (counts[counts > 1].sum())


def test_a_table_without_a_format_or_a_spec(tmp_path: Path) -> None:
    (tmp_path / "shard_000.bin").write_bytes(bytes(32) + b"x" * 32)
    con = connect()
    con.execute(f"CALL engram_register('t', '{tmp_path}', width := 16)")
    assert q(con, "FROM engram_duplicate_rows('t') ORDER BY rowid") == [(0, 1, None, 2), (2, 3, None, 2)]
    for name in ("row_norms", "dead_rows", "constant_rows", "nonfinite_rows", "scale_ranges"):
        sql_refuses(con, f"FROM engram_{name}('t')", "table 't' has no value format")
        sql_refuses(con, f"FROM engram_{name}('nope')", "nope")


def test_the_oldest_duckdb_says_the_same(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "odd", "f32")
    register = f"CALL engram_register('odd', '{store}', width := {len_of(store)}, format := 'f32')"
    asked = [
        "SELECT count(*), max(norm), sum(zeros), sum(nans), sum(infs) FROM engram_row_norms('odd')",
        "FROM engram_dead_rows('odd') ORDER BY rowid",
        "FROM engram_constant_rows('odd') ORDER BY rowid",
        "FROM engram_nonfinite_rows('odd') ORDER BY rowid",
        "FROM engram_duplicate_rows('odd') ORDER BY rowid",
        "FROM engram_scale_ranges('odd')",
    ]
    code = """
import duckdb, sys
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.load_extension(sys.argv[1])
con.execute(sys.argv[2])
for sql in sys.argv[3:]:
    print(con.execute(sql).fetchall())
"""
    con = connect()
    con.execute(register)
    said = run_oldest(code, str(extension_path()), register, *asked)
    assert said.splitlines() == [str(q(con, sql)) for sql in asked]


def test_a_path_names_a_table_too() -> None:
    con: Any = connect()
    assert one(con, f"SELECT count(*) FROM engram_dead_rows('{GOLDEN / 'ckpt_qwen4_exp_fp8'}')") == 0
