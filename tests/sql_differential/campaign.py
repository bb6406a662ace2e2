"""Many random statements in both worlds, from the command line: ``python -m sql_differential.campaign FIRST COUNT``."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sql_differential.generator import Generator
from sql_differential.nodes import t
from sql_differential.oracle import Case, difference, tail_of
from sql_differential.shrink import shrunk
from sql_differential.statements import CLEAN, FORMS, form
from sql_differential.world import World, worlds

__all__ = ["Tally", "case_of", "form_of", "run"]


@dataclass
class Tally:
    """What came of a run: outcomes by name, and the report of every failure."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def case_of(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(-seed - 1)
    generator = Generator(seed)
    query = generator.query()
    method = "sql" if rng.random() < 0.8 else "execute"
    tail = tail_of(query)
    if rng.random() < 0.06 and tail is not None and (tail.total or not tail.limit):
        # Made into a table, which is then read.
        made = t("CREATE TABLE scratch AS @", query)
        return Case(made, generator.style, then="FROM scratch", after=CLEAN[:1], method=method, judge=generator.judge)
    return Case(query, generator.style, method=method, judge=generator.judge)


def form_of(seed: int) -> Case:
    """The case of a seed among the forms written by hand: all of them in turn, by both methods in turn."""
    made = form(seed % len(FORMS), random.Random(seed))
    made.method = ("sql", "execute")[seed // len(FORMS) % 2]
    return made


def run(
    world: World,
    seeds: Iterable[int],
    make: Callable[[int], Case] = case_of,
    *,
    stop_after: int = 10**9,
    show: bool = False,
) -> Tally:
    """Runs the cases of the seeds; every failure is made small."""
    tally = Tally()
    for seed in seeds:
        made = make(seed)
        what, expected, _ = difference(world, made)
        tally.outcomes["error" if expected.error else "rows" if expected.rows else "no rows"] += 1
        if what:
            tally.failures.append(report(world, seed, made, what))
            if show:
                print(tally.failures[-1], flush=True)
            if len(tally.failures) >= stop_after:
                break
    return tally


def report(world: World, seed: int, case: Case, what: str) -> str:
    """A failure as one reads it: the seed, the smallest statement, both answers."""
    _, expected, found = difference(world, case)
    kind = (what, expected.error, found.error)

    def fails(other: Case) -> bool:
        what, expected, found = difference(world, other)
        return (what, expected.error, found.error) == kind

    small = shrunk(case, fails)
    what, expected, found = difference(world, small)
    sql, params = small.written()
    original, _ = case.written()
    return (
        f"seed {seed}: {what} ({small.method}, judged by {small.judge})\n  {sql}\n  parameters: {params}\n"
        + "".join(f"  before: {statement}\n" for statement in small.before)
        + f"  DuckDB: {expected.shown()}\n  ours: {found.shown()}\n  first seen in: {original:.3000}\n"
    )


def main(first: int, count: int) -> int:
    started = time.monotonic()
    with worlds() as world:
        tallies = [run(world, range(first, first + count // 10), form_of, show=True)]
        tallies += [run(world, range(first, first + count), show=True)]
    outcomes = dict(tallies[0].outcomes + tallies[1].outcomes)
    failed = sum(len(tally.failures) for tally in tallies)
    print(f"{time.monotonic() - started:.0f} s: {outcomes}, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
