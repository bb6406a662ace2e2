"""Questions about a whole table or a corpus, each in a process of its own so that its memory shows."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql.bench.child import ask
from engramsql.bench.hot import bring_in
from engramsql.bench.measure import Result, Section, plural
from engramsql.bench.own_table import CHANGED, NAME, PLANTED, inspected_database
from engramsql.bench.progress import progress
from engramsql.bench.target import describe
from engramsql.quoting import literal

if TYPE_CHECKING:
    from engramsql.bench.target import Target

__all__ = ["MEMORY_LIMIT", "TOKENS", "Question", "questions", "run"]

TOKENS = 1_000_000
"""Tokens of the corpus."""
MEMORY_LIMIT = "1GB"
"""DuckDB's, in each process: an answer that needs more goes to the disk and shows it in its time."""
SHAPE = PLANTED
_SECONDS = 4.0
"""What the rounds of one question may take in its process, beside the first answer."""


@dataclass(frozen=True)
class Question:
    """One question as SQL, which returns one row: what the answer comes to."""

    name: str
    statement: str
    beside: str
    """What it is compared with, and what that is called."""
    limit: str
    unit: str
    units: int


def run(target: Target, threads: int, repeats: int, directory: Path) -> Section:
    """Every question beside a sum over a scan of the table, or beside hashing the corpus, A B B A in one process.

    The own table is one with dead, constant, NaN and duplicate rows, and has a changed one beside it.
    """
    if target.own:
        target = describe(str(inspected_database(directory, SHAPE)), NAME, "the table with planted rows", own=True)
    section = Section(
        "inspect",
        f"inspect: questions about a table of {plural(target.rows, 'row')} of {plural(target.row_bytes, 'byte')}",
    )
    section.notes.append(
        f"each in a process of its own, DuckDB on {plural(threads, 'thread')} with memory_limit {MEMORY_LIMIT}; peak "
        "memory of the whole process (VmHWM), and without the pages of mapped files, which the system takes back"
    )
    if target.own:
        section.notes.append(
            f"one row in {SHAPE.planted_every} is dead, one constant, one has a NaN, one is a duplicate; the second "
            f"table has one changed row in {SHAPE.planted_every}"
        )
    bring_in(target)
    directory.mkdir(parents=True, exist_ok=True)
    for question in questions(target):
        progress(f"inspect: {question.name}")
        with tempfile.TemporaryDirectory(prefix="inspect-", dir=directory) as scratch:
            asked = {
                "database": target.database,
                "statement": question.statement,
                "beside": question.beside,
                "tokens": TOKENS if question.unit == "token" else None,
                "threads": threads,
                "memory_limit": MEMORY_LIMIT,
                "scratch": scratch,
                "rounds": max(1, repeats // 2),
                "seconds": _SECONDS,
            }
            answer = ask("inspecting_child", asked, f"the question '{question.name}'")
        ours = Result(question.name, "engramsql", question.unit, question.units, answer["path"], answer["seconds"])
        ours.extra |= {key: answer[key] for key in ("answer", "peak_bytes", "own_peak_bytes")}
        name = f"limit: {question.limit} beside {question.name}"
        beside = Result(name, "limit", question.unit, question.units, answer["beside_path"], answer["beside_seconds"])
        ours.ratios[question.limit] = beside.median_us / ours.median_us
        section.results += [ours, beside]
    return section


def questions(target: Target) -> list[Question]:
    """What is asked of the table, alone and beside its changed copy, and of a corpus under its spec."""
    table, corpus = literal(target.name), "bench_corpus"
    found: list[Question] = []

    def of_rows(name: str, statement: str) -> None:
        scan = f"SELECT sum(embedding[1]) FROM engram_scan({table})"
        found.append(Question(name, statement, scan, "the scan", "row", target.rows))

    def of_tokens(name: str, statement: str) -> None:
        hashed = f"SELECT sum(len(rowids_for_seq({table}, tokens))) FROM (SELECT list(token) AS tokens FROM {corpus})"
        found.append(Question(name, statement, hashed, "hashing", "token", TOKENS))
    QUESTIONS
    return found
