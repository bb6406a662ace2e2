"""Cold: rows that are not in memory. Every read proves itself, or the run is VOID.

Each read runs in a fresh process: the parent drops the files' pages while nothing maps them, the child opens the table,
reads 16 other rows to have its rings and threads made, reads fresh random rows, and reads these again at once. Only the
two times say that the first was cold. The probe reads around the page cache, has nothing to be hot in, and is exempt.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from engramsql.bench.child import ask
from engramsql.bench.measure import Result, Section, Void, drop_pages, is_cold, plural, refuse_holes
from engramsql.bench.progress import progress

if TYPE_CHECKING:
    from engramsql.bench.target import Target

__all__ = ["BATCHES", "PROBE", "run"]

BATCHES = (16, 48, 256, 8192, 65536, 1_000_000)
PROBE = "limit: single sectors"
# A batch of more of the table than this takes about as long as reading all of it, and whoever is slow when hot cannot
# show that it was cold (engramdb, 10 % of the rows: 2.4 us per row against 0.5).
_DENSE = 0.05
_SMALL = 64_000_000


def run(target: Target, batches: list[int] | None, peers: list[str], repeats: int) -> Section:
    """engramsql, the probe and the peers, A B B A per batch size. Peers sit dense batches out that nobody asked for.

    Raises:
        Void: If a read did not prove itself cold, or the table is not on the disk.
    """
    refuse_holes(target.parts)
    section = Section("cold", "cold: first read after the pages were dropped, each in a process of its own")
    section.notes.append(
        "each read was at least 5x or 2 us per row slower than the same read again; the limit reads around the page "
        "cache (O_DIRECT), has nothing to be hot in, and is exempt"
    )
    for rows in batches or BATCHES:
        present = peers
        if batches is None and peers and rows > _DENSE * target.rows:
            present = []
            share = f"{rows / target.rows:.0%} of the table"
            section.notes.append(f"{rows} rows are {share}, so without peers; ask for them with --rows")
        results = {
            "engramsql": Result(f"Table.fetch, {plural(rows, 'row')}", "engramsql", "row", rows),
            "probe": Result(f"{PROBE}, {plural(rows, 'row')}", "limit", "row", rows),
            **{peer: Result(f"{peer}, {plural(rows, 'row')}", peer, "row", rows) for peer in present},
        }
        paths: dict[str, set[str]] = {reader: set() for reader in results}
        for done in range(_rounds(repeats, rows)):
            for reader in (*results, *reversed(results)):
                progress(f"cold: {rows} rows, round {done + 1} of {_rounds(repeats, rows)}, {reader}")
                answer = _read(target, reader, rows)
                result = results[reader]
                result.seconds.append(answer["first"])
                result.extra.setdefault("again_us", []).append(answer["again"] / rows * 1e6)
                paths[reader].add(answer["path"])
        for reader, result in results.items():
            result.code_path = "; ".join(sorted(paths[reader]))
            result.extra["proved_cold"] = "exempt: O_DIRECT" if reader == "probe" else "every read"
        ours = results["engramsql"]
        ours.compare(result for reader, result in results.items() if reader != "engramsql")
        section.results += results.values()
    return section


def _rounds(repeats: int, rows: int) -> int:
    """A small batch takes a millisecond, so one read says little; a million rows take many seconds."""
    return repeats if rows < 1000 else max(1, repeats // 2) if rows < 500_000 else max(1, repeats // 4)


def _too_small(target: Target) -> str:
    """What else may be wrong: the kernel's read-ahead brings a small table in with a few reads."""
    size = target.rows * target.row_bytes
    if size >= _SMALL:
        return ""
    return (
        f"; with {size / 1e6:.1f} MB the table may be too small to be read cold row by row: take one of at least "
        f"{_SMALL / 1e6:.0f} MB, or leave TABLE and --db out for a test table"
    )


def _read(target: Target, reader: str, rows: int) -> dict[str, Any]:
    """One proven read of a fresh process."""
    drop_pages(target.files())
    question = {"target": asdict(target), "reader": reader, "rows": rows}
    answer = ask("cold_child", question, f"the cold read of {rows} rows by {reader}")
    first, again = answer["first"], answer["again"]
    if reader != "probe" and not is_cold(first, again, rows):
        raise Void(
            f"{reader}, {rows} rows: first read {first / rows * 1e6:.2f} us/row, the same again "
            f"{again / rows * 1e6:.2f} us/row; the first was not cold, or the second not hot{_too_small(target)}"
        )
    return answer
