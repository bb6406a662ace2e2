"""The measuring code itself: the cold rule, VOID and its exit code, A B B A order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers import TESTS

sys.path.insert(0, str(TESTS.parent))

from benchmarks import measure


@pytest.mark.parametrize(
    ("first", "again", "rows", "cold"),
    [
        (5.0, 1.0, 10**9, True),
        (4.9, 1.0, 10**9, False),
        (3e-6, 1e-6, 1, True),
        (2.9e-6, 1e-6, 1, False),
        (1.0, 0.97, 10**4, True),
    ],
)
def test_cold_rule(first: float, again: float, rows: int, cold: bool) -> None:
    assert measure.is_cold(first, again, rows) is cold


def test_void_exits_3(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        measure.void("not cold")
    assert e.value.code == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "VOID: not cold\n"


def test_a_b_b_a() -> None:
    order: list[str] = []
    a, b = measure.Sample("a", "row", 1), measure.Sample("b", "row", 1)
    measure.a_b_b_a((a, lambda: lambda: order.append("a")), (b, lambda: lambda: order.append("b")), 2)
    assert order[2:] == ["a", "b", "b", "a"] * 2
    assert len(a.seconds) == len(b.seconds) == 4


def test_results_are_kept_by_name(tmp_path: Path) -> None:
    measure.save(tmp_path / "r.json", {"hot": 1})
    measure.save(tmp_path / "r.json", {"cold": 2})
    text = (tmp_path / "r.json").read_text()
    assert '"hot": 1' in text
    assert '"cold": 2' in text
