"""How far a statement is: what is made of DuckDB's percentages."""

from __future__ import annotations

from engramsql.shell.progress import Estimate, Estimates


def test_the_time_left_is_told_from_the_rate_since_the_first_percentage() -> None:
    estimates = Estimates()
    # A join that has read one side begins there, and not at nothing.
    assert estimates.after(0.5, 35.6) == Estimate(35.6)
    assert estimates.after(0.9, 36.0) == Estimate(36.0)
    found = estimates.after(2.5, 40.6)
    assert found.percentage == 40.6
    assert found.left is not None
    assert round(found.left, 1) == 23.8


def test_a_percentage_that_falls_is_not_shown_again() -> None:
    estimates = Estimates()
    assert estimates.after(1, 60) == Estimate(60)
    assert estimates.after(2, 30) == Estimate()
    assert estimates.after(3, 70) == Estimate()


def test_a_statement_that_goes_on_is_not_at_its_end() -> None:
    estimates = Estimates()
    assert estimates.after(1, 99.5) == Estimate(99.5)
    assert estimates.after(2, 100) == Estimate()
    assert estimates.after(3, 100) == Estimate()


def test_what_duckdb_does_not_know_is_no_percentage() -> None:
    estimates = Estimates()
    assert estimates.after(1, -1) == Estimate()
    assert estimates.after(2, 0) == Estimate()
    assert estimates.after(3, 5) == Estimate(5)
    assert estimates.after(4, -1) == Estimate()
    assert estimates.after(5, 25) == Estimate(25, 7.5)
