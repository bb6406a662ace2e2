"""What verification and comparison found, as Python and SQL see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from engramsql.engine import Comparison, Finding

__all__ = ["LEVELS", "Verification", "difference_table", "finding_line", "finding_table"]

LEVELS = {
    "headers": "manifests, files, sizes, and three blocks of each file that has checksums",
    "sample": "the same, some more blocks, and some rows by two readers",
    "full": "every byte, and some rows by two readers",
}


@dataclass(frozen=True)
class Verification:
    """The outcome of :meth:`Database.verify`."""

    name: str
    """What was looked at."""
    good: bool
    """Whether nothing was found wrong."""
    findings: list[Finding]
    """One per check, in the order of the checks; empty where rows were compared with another table."""
    comparison: Comparison | None = None
    """Where rows were compared with another table: how many differ, and the first of them."""


def finding_table(found: list[tuple[str, list[Finding]]]) -> pa.Table:
    """Findings of one or several names as a table; the name is a column if there are several.

    What matters most comes first: a box that is too wide for a terminal loses its last columns but one.
    """
    import pyarrow as pa

    rows = [(name, finding) for name, findings in found for finding in findings]
    columns = {
        "name": pa.array([name for name, _ in rows], pa.string()),
        "ok": pa.array([finding.ok for _, finding in rows], pa.bool_()),
        "check": pa.array([finding.check for _, finding in rows], pa.string()),
        "shard": pa.array([finding.shard for _, finding in rows], pa.int64()),
        "detail": pa.array([finding.detail for _, finding in rows], pa.string()),
        "expected": pa.array([finding.expected for _, finding in rows], pa.string()),
        "found": pa.array([finding.found for _, finding in rows], pa.string()),
    }
    if len(found) == 1:
        del columns["name"]
    return pa.table(columns)


def finding_line(name: str, finding: Finding) -> str:
    """A finding in one line, for people."""
    where = "" if finding.shard is None else f"shard {finding.shard}: "
    values = "" if finding.expected is None else f"; expected {finding.expected}, found {finding.found or 'nothing'}"
    return f"{name}: {where}{finding.check}: {finding.detail}{values}"


def difference_table(name: str, comparison: Comparison) -> pa.Table:
    """The first rows that differ as a table: row id, first byte that differs, and its two values."""
    import pyarrow as pa

    first = comparison.first
    columns = {
        "name": pa.array([name] * len(first), pa.string()),
        "rowid": pa.array([difference.rowid for difference in first], pa.int64()),
        "byte": pa.array([difference.byte for difference in first], pa.int64()),
        "a": pa.array([difference.a for difference in first], pa.uint8()),
        "b": pa.array([difference.b for difference in first], pa.uint8()),
    }
    return pa.table(columns)
