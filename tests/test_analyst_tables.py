"""Macros that compare tables and look at their heads, against numpy."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import make_qwen, primes_from
from extension_support import FP8, connect
from golden_data import GOLDEN
from helpers import q, sql_refuses
from ngram_reference import SIZES
from oldest import answers_of_oldest
from test_inspect import decoded


def changed_copy(directory: Path) -> Path:
    """The small FP8 checkpoint with rows that changed a little, much, died, came to life, or hold a NaN."""
    shutil.copytree(FP8, directory)
    con = connect()
    con.execute(f"CALL engram_register('c', '{directory}')")
    places = q(con, "SELECT file, first_row, rows, \"offset\", bytes // rows FROM engram_shards('c')")
    draw = np.random.default_rng(1)

    def rewrite(rowid: int, change: Any) -> None:
        ((file, first, _, offset, width),) = [p for p in places if p[1] <= rowid < p[1] + p[2]]
        with open(file, "r+b") as handle:
            handle.seek(offset + (rowid - first) * width)
            row = np.frombuffer(handle.read(width), np.uint8).copy()
            handle.seek(offset + (rowid - first) * width)
            handle.write(change(row).tobytes())

    for rowid in draw.permutation(1392)[:200].tolist():
        # The last bit of a code: about a sixteenth of the value.
        rewrite(rowid, lambda row: np.where((row & 0x7F) == 0x7E, row, row ^ (draw.random(160) < 0.3)).astype(np.uint8))
    rewrite(5, lambda row: row * 0)
    rewrite(1400, lambda row: row ^ 0x80)
    rewrite(700, lambda row: draw.permutation(row))
    return directory


@pytest.fixture
def both(tmp_path: Path) -> Any:
    con = connect()
    con.execute(f"CALL engram_register('a', '{FP8}')")
    con.execute(f"CALL engram_register('b', '{changed_copy(tmp_path / 'changed')}')")
    return con


def measured(con: Any) -> dict[str, Any]:
    a, b = decoded(con, "a"), decoded(con, "b")
    x, y = a.values.astype(np.float64), b.values.astype(np.float64)
    norm_a, norm_b = np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)
    with np.errstate(all="ignore"):
        cosine = (x * y).sum(axis=1) / (norm_a * norm_b)
        return {
            "heads": a.heads, "changed": (x != y).any(axis=1), "l2": np.linalg.norm(x - y, axis=1), "cosine": cosine,
            "max_abs": np.abs(x - y).max(axis=1), "norm_a": norm_a, "norm_b": norm_b,
            "relative": np.linalg.norm(x - y, axis=1) / norm_a,
        }  # fmt: skip


def groups(heads: np.ndarray) -> list[tuple[int | None, np.ndarray]]:
    order = [*sorted(set(heads.tolist()) - {-1}), *([-1] if -1 in heads else [])]
    return [(None if head < 0 else head, heads == head) for head in order]


def test_distance(both: Any) -> None:
    m = measured(both)
    want = [
        (
            head, rows.sum(), m["changed"][rows].sum(), 0, pytest.approx(m["l2"][rows].mean()),
            pytest.approx(m["l2"][rows].max()), pytest.approx(np.nanmean(m["cosine"][rows])),
            pytest.approx(m["max_abs"][rows].max(), rel=1e-6),
        )
        for head, rows in groups(m["heads"])
    ]  # fmt: skip
    assert q(both, "FROM engram_distance('a', 'b')") == want
    assert sum(line[2] for line in want) > 150


def test_a_table_is_no_distance_from_itself(both: Any) -> None:
    lines = q(both, "FROM engram_distance('a', 'a')")
    assert {line[2:6] + line[7:] for line in lines} == {(0, 0, 0.0, 0.0, 0.0)}
    assert all(line[6] == pytest.approx(1) for line in lines)
    assert q(both, "FROM engram_changed_rows('a', 'a')") == []
    assert {line[2:] for line in q(both, "FROM engram_drift('a', 'a')")} == {
        (0, 0.0, 0, None, None, None, None, None, 0, 0)
    }


@pytest.mark.parametrize("reversed_", [False, True])
def test_changed_rows(both: Any, reversed_: bool) -> None:
    m = measured(both)
    if reversed_:
        m["norm_a"], m["norm_b"] = m["norm_b"], m["norm_a"]
    want = []
    for rowid in np.flatnonzero(m["changed"]).tolist():
        head = m["heads"][rowid]
        norm_a, norm_b = m["norm_a"][rowid], m["norm_b"][rowid]
        want.append(
            (
                rowid, None if head < 0 else head, pytest.approx(norm_a), pytest.approx(norm_b),
                pytest.approx(m["l2"][rowid]), pytest.approx(m["l2"][rowid] / norm_a) if norm_a else None,
                pytest.approx(m["cosine"][rowid]) if norm_a and norm_b else None,
                pytest.approx(m["max_abs"][rowid], rel=1e-6),
            )
        )  # fmt: skip
    pair = "'b', 'a'" if reversed_ else "'a', 'b'"
    assert q(both, f"FROM engram_changed_rows({pair}) ORDER BY rowid") == want


def test_drift(both: Any) -> None:
    m = measured(both)
    lines = q(both, "FROM engram_drift('a', 'b')")
    assert [line[0] for line in lines] == [head for head, _ in groups(m["heads"])]
    for line, (_, rows) in zip(lines, groups(m["heads"]), strict=True):
        changed = rows & m["changed"]
        relative = m["relative"][changed]
        assert line[1:5] == (rows.sum(), changed.sum(), pytest.approx(changed.sum() / rows.sum()), 0)
        if not changed.any():
            assert line[5:10] == (None,) * 5
            continue
        # Approximate: between the neighbours of the place that an exact quantile has.
        ordered = np.sort(relative)
        for found, share in zip(line[5:8], (0.5, 0.9, 0.99), strict=True):
            place = share * (len(ordered) - 1)
            low, high = ordered[max(0, math.floor(place) - 1)], ordered[min(len(ordered) - 1, math.ceil(place) + 1)]
            assert low * 0.999 <= found <= high * 1.001
        assert line[8] == pytest.approx(relative.max())
        assert line[9] == pytest.approx(np.nanmin(m["cosine"][changed]))
        assert line[10:] == (
            ((m["norm_a"] == 0) & (m["norm_b"] != 0) & rows).sum(),
            ((m["norm_a"] != 0) & (m["norm_b"] == 0) & rows).sum(),
        )
    assert sum(line[11] for line in lines) == 1
    assert sum(line[10] for line in q(both, "FROM engram_drift('b', 'a')")) == 1


def test_values_that_are_not_finite(tmp_path: Path) -> None:
    """They are no distance from themselves, and where they are from others the row is counted and left out."""
    nan, inf = math.nan, math.inf
    a = [[1.0, 0.0], [nan, 1.0], [2.0, 2.0], [nan, 3.0], [inf, 4.0], [5.0, inf], [0.0, 0.0], [3.0, 4.0], [-inf, 0.0]]
    b = [[1.0, 0.0], [7.0, 1.0], [2.0, nan], [nan, 3.0], [inf, 6.0], [5.0, 1.0], [nan, 0.0], [3.0, 0.0], [inf, 0.0]]
    con = connect()
    for name, rows in (("a", a), ("b", b)):
        values = ", ".join(f"{[str(value) for value in row]}::FLOAT[]" for row in rows)
        con.execute(f"COPY (SELECT unnest([{values}])) TO '{tmp_path / name}' (FORMAT engram, VALUE_FORMAT f32)")
        con.execute(f"CALL engram_register('{name}', '{tmp_path / name}')")
        assert q(con, f"SELECT * EXCLUDE (head, cosine_mean) FROM engram_distance('{name}', '{name}')") == [
            (9, 0, 0, 0.0, 0.0, 0.0)
        ]
        assert q(con, f"FROM engram_changed_rows('{name}', '{name}')") == []
    for pair in ("'a', 'b'", "'b', 'a'"):
        # Rows 4 and 7 differ by a finite distance, 2 and 4; rows 1, 2, 5, 6 and 8 by none.
        assert q(con, f"SELECT * EXCLUDE (head, cosine_mean) FROM engram_distance({pair})") == [
            (9, 7, 5, pytest.approx((2 + 4) / 4), 4.0, 4.0)
        ]
        lines = q(con, f"SELECT rowid, l2, relative, cosine FROM engram_changed_rows({pair}) ORDER BY rowid")
        assert [rowid for rowid, *_ in lines] == [1, 2, 4, 5, 6, 7, 8]
        assert [rowid for rowid, l2, *_ in lines if not math.isfinite(l2)] == [1, 2, 5, 6, 8]
        norm = 5 if pair == "'a', 'b'" else 3
        assert [line[1:] for line in lines if line[0] in (4, 7)] == [(2, None, None), (4, 4 / norm, pytest.approx(0.6))]
        assert all(relative is None for rowid, _, relative, _ in lines if rowid != 7)
        assert q(
            con, f"SELECT rows, changed, not_finite, relative_max, cosine_min, born, died FROM engram_drift({pair})"
        ) == [(9, 7, 5, 4 / norm, pytest.approx(0.6), 0, 0)]


def test_formats_may_differ(tmp_path: Path) -> None:
    """The same values as float32: nothing differs, whatever the bytes are."""
    con = connect()
    con.execute(f"CALL engram_register('a', '{FP8}')")
    rows = "SELECT embedding FROM engram_scan('a') ORDER BY rowid"
    con.execute(f"COPY ({rows}) TO '{tmp_path / 'f'}' (FORMAT engram, VALUE_FORMAT f32)")
    con.execute(f"CALL engram_register('f', '{tmp_path / 'f'}')")
    assert q(con, "SELECT sum(rows), sum(changed), max(max_abs) FROM engram_distance('a', 'f')") == [(1408, 0, 0.0)]
    # b has no spec: heads are those of a.
    assert len(q(con, "FROM engram_distance('a', 'f')")) == 17


def test_tables_that_cannot_be_compared(tmp_path: Path) -> None:
    con = connect()
    con.execute(f"CALL engram_register('a', '{FP8}')")
    con.execute(f"CALL engram_register('small', '{GOLDEN / 'ckpt_qwen4_exp_bf16'}')")
    make_qwen(tmp_path / "longer", dim=160, heads_per_ngram=8, base=60)
    con.execute(f"CALL engram_register('longer', '{tmp_path / 'longer'}')")
    con.execute(f"CALL engram_register('raw', '{GOLDEN / 'peer_store' / 'rows'}')")
    for name in ("distance", "drift", "changed_rows"):
        sql_refuses(
            con, f"FROM engram_{name}('a', 'small')", "'a' and 'small' cannot be compared", "160 values", "have 32"
        )
        sql_refuses(con, f"FROM engram_{name}('a', 'longer')", "'longer' cannot be compared", "1408 rows")
        sql_refuses(con, f"FROM engram_{name}('raw', 'raw')", "table 'raw' has no value format")
        sql_refuses(con, f"FROM engram_{name}('a', 'nope')", "nope")


def test_head_primes() -> None:
    con = connect()
    con.execute(f"CALL engram_register('a', '{FP8}')")
    want, first = [], 0
    for head, size in enumerate(SIZES):
        gap = size - SIZES[head - 1] if head else None
        want.append((head, 2 if head < 8 else 3, size, True, gap, first, size, 0))
        first += size
    assert q(con, "FROM engram_head_primes('a')") == want


def test_a_head_size_that_is_not_prime() -> None:
    con = connect()
    numbers = [-7, 0, 1, 2, 4, 49, 7919, 2**31 - 1, 2**31, 2**61 - 1, (2**31 - 1) * (2**31 + 11)]
    found = q(con, "SELECT _engram_is_prime(n) FROM (SELECT unnest(?::BIGINT[]) AS n)", numbers)
    assert [value for (value,) in found] == [False, False, False, True, False, False, True, True, False, True, False]
    first = primes_from(16_000_000, 3)
    assert q(con, "SELECT bool_and(_engram_is_prime(n)) FROM (SELECT unnest(?::BIGINT[]) AS n)", first) == [(True,)]


def test_the_oldest_duckdb_says_the_same(both: Any, tmp_path: Path) -> None:
    asked = [
        "SELECT head, rows, changed, l2_max, max_abs FROM engram_distance('a', 'b')",
        "FROM engram_changed_rows('a', 'b') ORDER BY rowid",
        "SELECT head, rows, changed, relative_max, born, died FROM engram_drift('a', 'b')",
        "FROM engram_head_primes('a')",
    ]
    prepare = [f"CALL engram_register('a', '{FP8}')", f"CALL engram_register('b', '{tmp_path / 'changed'}')"]
    assert answers_of_oldest(prepare, asked) == [str(q(both, sql)) for sql in asked]
