"""A token's record beside its rows, cold: one read instead of 16 or 48. Every read proves itself, or the run is VOID.

Each read runs in a fresh process, as in :mod:`engramsql.bench.cold`. Keys and slot index are read before: they are what
is kept in memory, and the records are what is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engramsql.bench.child import ask
from engramsql.bench.measure import Result, Section, Void, drop_pages, is_cold, plural, refuse_holes
from engramsql.bench.own_table import ENGRAM, NAME, PLE, own_database
from engramsql.bench.progress import progress
from engramsql.engine import Session

if TYPE_CHECKING:
    from engramsql.bench.target import Target

__all__ = ["TOKENS", "VIEW", "run"]

TOKENS = (1, 16, 512)
VIEW = "bench_view"
_VIEW_TOKENS = 40_000
"""Tokens of the view: enough that random records of it lie apart."""


def run(target: Target, repeats: int, directory: Path) -> Section:
    """Records against rows, with known slots and with keys looked up, A B B A per number of tokens.

    The own test table gets a view, and so does one of 48 heads of 264 bytes; of any other table a view that its
    database has is measured.

    Raises:
        Void: If a read did not prove itself cold, or a table is not on the disk.
    """
    section = Section("views", "cold: the record of a token beside its rows, each read in a process of its own")
    section.notes.append(
        "each read was at least 5x or 2 us per token slower than the same read again; keys and slot index are in memory"
    )
    if target.own:
        for shape in (PLE, ENGRAM):
            database = own_database(directory, shape) if shape is not PLE else Path(target.database)
            _measure(section, database, NAME, _own_view(database), repeats)
        return section
    entries = Session.open(target.database, read_only=True).record_views()
    view = next((entry.name for entry in entries if entry.table == target.name), None)
    if view is None:
        section.notes.append(f"{target.label} has no view; make one with: engramsql view build")
    else:
        _measure(section, Path(target.database), target.name, view, repeats)
    return section


def _own_view(database: Path) -> str:
    """The view of an own test table, built on first use."""
    import numpy as np

    from engramsql.database import connect

    with connect(database) as opened:
        if VIEW not in [entry.name for entry in opened.record_views()]:
            progress(f"building a view of {_VIEW_TOKENS} tokens")
            tokens = np.random.default_rng(1).integers(0, 200_000, _VIEW_TOKENS)
            opened.build_view(VIEW, NAME, tokens)
    return VIEW


def _measure(section: Section, database: Path, name: str, view_name: str, repeats: int) -> None:
    session = Session.open(database, read_only=True)
    table, view = session.table(name), session.view(view_name)
    heads, row_bytes = len(table.heads()), table.row_bytes
    source = [{"file": shard.file, "offset": shard.offset, "bytes": shard.bytes} for shard in table.shards()]
    # Keys and index stay in memory; the records are dropped.
    records = sorted({shard.file for shard in view.shards()})
    section.notes.append(f"{heads} rows of {row_bytes} bytes, {view.slots} records of {view.record_bytes} bytes")
    del table, view, session
    refuse_holes(source)
    files = [*(str(part["file"]) for part in source), *records]
    for tokens in TOKENS:
        kinds = {
            "record": Result(f"record by slot, {plural(tokens, 'token')}", "engramsql", "token", tokens),
            "key": Result(f"record by key, {plural(tokens, 'token')}", "engramsql", "token", tokens),
            "rows": Result(f"{heads} rows, {plural(tokens, 'token')}", "rows", "token", tokens),
        }
        for done in range(max(1, repeats if tokens < 256 else repeats // 2)):
            for kind in (*kinds, *reversed(kinds)):
                progress(f"views: {heads} heads, {plural(tokens, 'token')}, round {done + 1}, {kind}")
                drop_pages(files)
                question = {"database": str(database), "table": name, "view": view_name, "kind": kind, "tokens": tokens}
                answer = ask("views_child", question, f"the cold read of {plural(tokens, 'token')}")
                if not is_cold(answer["first"], answer["again"], tokens):
                    raise Void(
                        f"{kind}, {plural(tokens, 'token')}: {answer['first'] / tokens * 1e6:.2f} us a token, then "
                        f"{answer['again'] / tokens * 1e6:.2f} again: it did not prove itself cold"
                    )
                kinds[kind].seconds.append(answer["first"])
                kinds[kind].code_path = answer["path"]
        kinds["record"].compare([kinds["rows"]])
        kinds["key"].compare([kinds["rows"]])
        section.results += kinds.values()
