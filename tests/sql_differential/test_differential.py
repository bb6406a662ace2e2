"""SQL over registered tables gives what DuckDB gives on copies of them: rows, order, names, types and errors.

``ENGRAMSQL_DIFFERENTIAL`` is how many random statements to try (3000 by default), ``ENGRAMSQL_DIFFERENTIAL_SEED`` the
first seed. A failure prints its seed and the smallest statement that shows it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from sql_differential.campaign import Tally, case_of, form_of, run
from sql_differential.statements import FORMS
from sql_differential.world import World, worlds

COUNT = int(os.environ.get("ENGRAMSQL_DIFFERENTIAL", "3000"))
FIRST = int(os.environ.get("ENGRAMSQL_DIFFERENTIAL_SEED", "0"))
CHUNKS = 10

pytestmark = pytest.mark.timeout(300 + COUNT)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with worlds() as both:
        yield both


def agreed(tally: Tally) -> None:
    assert not tally.failures, "\n\n" + "\n".join(tally.failures)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_queries(world: World, chunk: int) -> None:
    seeds = range(FIRST + chunk, FIRST + COUNT, CHUNKS)
    tally = run(world, seeds, case_of, stop_after=3)
    agreed(tally)
    # Statements that say nothing would agree on anything.
    if len(seeds) >= 100:
        assert tally.outcomes["rows"] > 0.4 * len(seeds), tally.outcomes
        assert tally.outcomes["error"] < 0.1 * len(seeds), tally.outcomes


def test_every_form_of_statement(world: World) -> None:
    repeats = 2 if COUNT < 10_000 else 20
    tally = run(world, range(FIRST, FIRST + repeats * len(FORMS)), form_of, stop_after=5)
    agreed(tally)
    assert tally.outcomes["error"] < 0.15 * repeats * len(FORMS), tally.outcomes
