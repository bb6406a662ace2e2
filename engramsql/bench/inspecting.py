"""Questions about a whole table or a corpus, each in a process of its own so that its memory shows."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql.bench.child import ask
from engramsql.bench.hot import bring_in, window_note
from engramsql.bench.measure import Result, Section, plural
from engramsql.bench.own_table import CHANGED, NAME, PLANTED, inspected_database
from engramsql.bench.progress import progress
from engramsql.bench.target import describe
from engramsql.quoting import literal

if TYPE_CHECKING:
    from engramsql.bench.target import Target

__all__ = ["CORPUS", "IDS", "Question", "questions", "run"]

CORPUS = "bench_corpus"
"""In the process of a question: a table with a column ``tokens``, one sequence per line."""
IDS = "bench_ids"
"""There too: a variable that holds a list of random row ids."""
TOKENS = 1_000_000
PLANNED = 100_000
MEMORY_LIMIT = "1GB"
"""DuckDB's, in each process: an answer that needs more goes to the disk and shows it in its time."""
SHAPE = PLANTED
_BATCH = 512
_SECONDS = 3.0
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
    tokens: int = 0
    """Tokens of the corpus, for a question about one."""
    ids: int = 0
    """Row ids of the list, for a question about one."""


def run(target: Target, threads: int, repeats: int, directory: Path) -> Section:
    """Every question beside a sum over a scan, hashing the corpus or fetching the list, A B B A in one process.

    The own table is one with dead, constant, NaN and duplicate rows, and has a changed one beside it.
    """
    if target.own:
        target = describe(str(inspected_database(directory, SHAPE)), NAME, "the table with planted rows", own=True)
    size = f"{plural(target.rows, 'row')} of {plural(target.row_bytes, 'byte')}"
    section = Section("inspect", f"inspect: questions about {size} and about a corpus of {plural(TOKENS, 'token')}")
    section.notes.append(
        f"each in a process of its own, DuckDB on {plural(threads, 'thread')} with memory_limit {MEMORY_LIMIT}; peak "
        "memory of the whole process (VmHWM), and without the pages of mapped files, which the system takes back"
    )
    if target.own:
        section.notes.append(
            f"one row in {SHAPE.planted_every} is dead, one constant, one has a NaN, one is a duplicate; the second "
            f"table has one changed row in {SHAPE.planted_every}"
        )
    window_note(section, target)
    for name in [NAME, CHANGED] if target.own else [target.name]:
        bring_in(describe(target.database, name, name, target.own))
    directory.mkdir(parents=True, exist_ok=True)
    for question in questions(target):
        progress(f"inspect: {question.name}")
        with tempfile.TemporaryDirectory(prefix="inspect-", dir=directory) as scratch:
            asked = {
                "database": target.database,
                "question": asdict(question),
                "rows": target.hot_rows,
                "threads": threads,
                "memory_limit": MEMORY_LIMIT,
                "scratch": scratch,
                "rounds": max(1, repeats // 2),
                "seconds": _SECONDS,
            }
            answer = ask("inspecting_child", asked, f"the question '{question.name}'")
        ours = Result(question.name, "engramsql", question.unit, question.units, answer["path"], answer["seconds"])
        ours.extra |= {key: answer[key] for key in ("answer", "peak_bytes", "own_peak_bytes")}
        beside = Result(
            f"limit: {question.limit}, for: {question.name}",
            "limit",
            question.unit,
            question.units,
            answer["beside_path"],
            answer["beside_seconds"],
        )
        ours.ratios[question.limit] = beside.median_us / ours.median_us
        section.results += [ours, beside]
    return section


def questions(target: Target) -> list[Question]:
    """What is asked of the table, of it and its changed copy, of a corpus under its spec, and of a list of ids."""
    table = literal(target.name)
    scan = f"SELECT sum({'embedding[1]' if target.dim is not None else 'octet_length(row)'}) FROM engram_scan({table})"
    of_rows = {"engram_duplicate_rows": f"SELECT count(*) FROM engram_duplicate_rows({table})"}
    if target.dim is not None:
        of_rows |= {
            "engram_profile": "SELECT sum(rows)::BIGINT, sum(dead)::BIGINT, sum(constant)::BIGINT, "
            f"sum(nan_rows)::BIGINT, max(norm_max) FROM engram_profile({table})",
            "engram_histogram": f"SELECT sum(count)::BIGINT FROM engram_histogram({table})",
            "engram_row_norms": f"SELECT count(norm), max(norm), max(stddev) FROM engram_row_norms({table})",
            "engram_dead_rows": f"SELECT count(*) FROM engram_dead_rows({table})",
            "engram_constant_rows": f"SELECT count(*), max(value) FROM engram_constant_rows({table})",
            "engram_nonfinite_rows": f"SELECT count(*), sum(nans)::BIGINT FROM engram_nonfinite_rows({table})",
            "engram_scale_ranges": f"SELECT sum(rows)::BIGINT, max(scale_max) FROM engram_scale_ranges({table})",
        }
    if target.own:
        both = f"{table}, {literal(CHANGED)}"
        of_rows |= {
            "engram_distance": f"SELECT sum(changed)::BIGINT, max(l2_max) FROM engram_distance({both})",
            "engram_drift": f"SELECT sum(changed)::BIGINT, max(relative_max) FROM engram_drift({both})",
            "engram_changed_rows": f"SELECT count(*), max(relative) FROM engram_changed_rows({both})",
        }
    found = [Question(name, text, scan, "the scan", "row", target.rows) for name, text in of_rows.items()]
    if target.heads:
        hashed = f"SELECT sum(len(rowids_for_seq({table}, tokens))) FROM {CORPUS}"
        given = f"{table}, {literal(CORPUS)}"
        of_tokens = {
            "engram_head_load": f"SELECT sum(lookups)::BIGINT, sum(collisions)::BIGINT FROM engram_head_load({given})",
            "engram_collisions": f"SELECT count(*), max(ngrams) FROM engram_collisions({given})",
            "engram_coverage": f"SELECT lookups, rows_used FROM engram_coverage({given})",
            "engram_reuse": f"SELECT batches, lookups, rows_used, batch_reuse FROM engram_reuse({given}, {_BATCH})",
            "engram_hot_rows": f"SELECT count(*), max(lookups) FROM engram_hot_rows({given})",
        }
        found += [Question(name, text, hashed, "hashing", "token", TOKENS, TOKENS) for name, text in of_tokens.items()]
    listed = f"{table}, getvariable('{IDS}')"
    planned = f"SELECT sum(rows)::BIGINT FROM engram_plan({listed})"
    fetched = f"SELECT count(row) FROM engram_fetch({listed})"
    found.append(Question("engram_plan", planned, fetched, "fetching them", "row", PLANNED, ids=PLANNED))
    return found
