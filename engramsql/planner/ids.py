"""Row ids as SQL: the relation that stands for a table, over the ids that a statement can use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engramsql.planner.constraints import Both, Constraint, Listed, Points, Range, Scalar
from engramsql.quoting import literal

if TYPE_CHECKING:
    from engramsql.planner.filters import Filter

__all__ = ["EVERY", "FILTERED", "ROW", "Relation", "by_key", "by_range", "by_set", "source_of"]

ROW = "_engram_r"
#: The alias of the ids where a filter is tested.
FILTERED = "_engram_f"
#: All row ids.
EVERY = Range(None, None)
# A user's macro of the same name must not be taken for the function.
_NATIVE = "system.main"
_FAR = (1 << 62) - 1


@dataclass(frozen=True)
class Relation:
    """A registered table as the planner writes it."""

    name: str
    rows: int
    row_bytes: int
    #: The expression of the embedding of the row ``_engram_r.rowid``.
    embedding: str
    columns: tuple[str, ...] = ("rowid", "head", "embedding", "row")
    #: What is tested among the ids of one reference.
    filter: Filter | None = None

    def select(self, ids: str, *, has_head: bool = False, nulls: bool = False) -> str:
        """A derived table with the columns of the table, over ``ids``, which has a column ``rowid``."""
        table = literal(self.name)
        if self.filter is not None and not nulls:
            if self.filter.uses_head and not has_head:
                head = f"{_NATIVE}.engram_head({table}, rowid)"
                ids, has_head = f"(SELECT rowid, {head} AS head FROM {ids} WHERE rowid IS NOT NULL)", True
            columns, none = ("rowid, head", "NULL, NULL") if has_head else ("rowid", "NULL")
            # DuckDB moves a filter up through a projection, above what reads the rows, but not out of a union.
            ids = (
                f"(SELECT {columns} FROM {ids} AS {FILTERED} WHERE {self.filter.text} "
                f"UNION ALL SELECT {none} WHERE false)"
            )
        head = f"{ROW}.head" if has_head else f"{_NATIVE}.engram_head({table}, {ROW}.rowid)"
        kept = "" if nulls or has_head else f" WHERE {ROW}.rowid IS NOT NULL"
        return (
            f"(SELECT {ROW}.rowid, {head} AS head, "
            f"{self.embedding} AS embedding, "
            f'{_NATIVE}.engram_row({table}, {ROW}.rowid) AS "row" FROM {ids} AS {ROW}{kept})'
        )


def by_key(relation: Relation, key: str) -> str:
    """The row of one key, which may use columns to the left; a NULL row if the table has no such row.

    Written without a FROM of its own, which DuckDB plans without a join.
    """
    return relation.select(f"(SELECT {_NATIVE}._engram_key({literal(relation.name)}, {key}) AS rowid)", nulls=True)


def by_range(relation: Relation, low: str, high: str) -> str:
    """The rows from ``low`` to ``high``, in order."""
    return relation.select(_between(literal(relation.name), low, high), has_head=True)


def by_set(relation: Relation, constraint: Constraint) -> str:
    """The rows of a set without columns."""
    if isinstance(constraint, Range):
        low, high = _bounds(constraint)
        return by_range(relation, low, high)
    return relation.select(f"({source_of(relation, constraint)})")


def source_of(relation: Relation, constraint: Constraint) -> str:
    """A SELECT of the distinct row ids of a set, as ``rowid``, in order."""
    table = literal(relation.name)
    if isinstance(constraint, Points):
        # A single id goes through a list too: a constant row would be read whenever the statement is optimised.
        return _unnested(table, _distinct(constraint.ids))
    if isinstance(constraint, Listed):
        texts = constraint.lists
        joined = texts[0] if len(texts) == 1 else f"{_NATIVE}.list_concat({', '.join(texts)})"
        return _unnested(table, f"{_NATIVE}.list_sort({_NATIVE}.list_distinct({joined}))")
    if isinstance(constraint, Range):
        low, high = _bounds(constraint)
        return f"SELECT rowid FROM {_between(table, low, high)}"
    if isinstance(constraint, Both):
        parts = " UNION ALL ".join(f"FROM ({source_of(relation, part)})" for part in constraint.parts)
        return f"SELECT DISTINCT rowid FROM ({parts}) ORDER BY rowid"
    raise TypeError(f"no set: {constraint}")


def _between(table: str, low: str, high: str) -> str:
    return f"{_NATIVE}._engram_ids_native({table}, low := {low}, high := {high})"


def _unnested(table: str, ids: str) -> str:
    return f"SELECT {_NATIVE}._engram_key({table}, _engram_i) AS rowid FROM (SELECT unnest({ids}) AS _engram_i)"


def _distinct(ids: tuple[Scalar, ...]) -> str:
    values = {point.value for point in ids}
    if not ids:
        return "[]::BIGINT[]"
    if None not in values:
        return f"[{', '.join(str(value) for value in sorted(v for v in values if v is not None))}]"
    texts = ", ".join(point.text for point in ids)
    return f"[{texts}]" if len(ids) == 1 else f"{_NATIVE}.list_sort({_NATIVE}.list_distinct([{texts}]))"


def _bounds(range_: Range) -> tuple[str, str]:
    """Both bounds; those known now are kept within what a BIGINT holds."""
    low = "0" if range_.low is None else _clipped(range_.low)
    # Not the last row: a relation may be kept until the table has more.
    high = str(_FAR) if range_.high is None else _clipped(range_.high)
    return low, high


def _clipped(bound: Scalar) -> str:
    return bound.text if bound.value is None else str(min(max(bound.value, -1), _FAR))
