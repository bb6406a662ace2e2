"""What a predicate says about a column of row ids: a set that is never too small."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Both", "Constraint", "Listed", "Points", "Range", "Scalar", "intersect", "unite"]

# Larger than any row id.
_FAR = 1 << 62


@dataclass(frozen=True)
class Scalar:
    """An expression that means the same wherever it is written.

    ``value`` is known for literals. ``relations`` are the relations of its own query block whose columns it uses, by
    their place in FROM; ``outer`` says that it uses columns of an enclosing block. ``aliases`` are the names by which
    it qualifies columns, ``bare`` says that it has columns that are not qualified.
    """

    text: str
    value: int | None = None
    relations: frozenset[int] = frozenset()
    outer: bool = False
    aliases: frozenset[str] = frozenset()
    bare: bool = False
    #: Whether it can fail, so that the predicate it came from has to stay.
    fragile: bool = False
    column: tuple[int, str] | None = None

    @property
    def constant(self) -> bool:
        """Whether it uses no column at all."""
        return not self.relations and not self.outer


class Constraint:
    """A set of row ids that contains all that can be of use."""

    rank: int


@dataclass(frozen=True)
class Points(Constraint):
    """A few single ids."""

    ids: tuple[Scalar, ...]
    rank = 0


@dataclass(frozen=True)
class Listed(Constraint):
    """The ids of lists, each an expression of type list."""

    lists: tuple[str, ...]
    rank = 1


@dataclass(frozen=True)
class Range(Constraint):
    """The ids from ``low`` to ``high``, both inclusive; None is open."""

    low: Scalar | None
    high: Scalar | None

    @property
    def rank(self) -> int:  # type: ignore[override]
        if self.high is None:
            return 7
        # Row ids begin at 0.
        return 2 if self.low is not None or self.high.value is not None else 7


@dataclass(frozen=True)
class Both(Constraint):
    """All ids of several sets."""

    parts: tuple[Constraint, ...]

    @property
    def rank(self) -> int:  # type: ignore[override]
        return max(3, *(part.rank for part in self.parts))


def intersect(one: Constraint | None, other: Constraint | None) -> Constraint | None:
    """A set that holds what is in both; None is everything."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, Range) and isinstance(other, Range):
        return Range(_tighter(one.low, other.low, max), _tighter(one.high, other.high, min))
    better, worse = (one, other) if one.rank <= other.rank else (other, one)
    if isinstance(better, Points) and isinstance(worse, Points):
        values = {point.value for point in worse.ids}
        if None not in values and all(point.value is not None for point in better.ids):
            return Points(tuple(point for point in better.ids if point.value in values))
    if isinstance(better, Points) and isinstance(worse, Range):
        low = worse.low.value if worse.low is not None and worse.low.value is not None else -1
        high = worse.high.value if worse.high is not None and worse.high.value is not None else _FAR
        return Points(tuple(point for point in better.ids if point.value is None or low <= point.value <= high))
    return better


def unite(one: Constraint | None, other: Constraint | None) -> Constraint | None:
    """A set that holds what is in either; None is everything."""
    if one is None or other is None:
        return None
    if isinstance(one, Points) and isinstance(other, Points):
        return Points(tuple(dict.fromkeys(one.ids + other.ids)))
    if isinstance(one, Listed) and isinstance(other, Listed):
        return Listed(one.lists + other.lists)
    parts: list[Constraint] = []
    for side in (one, other):
        parts += side.parts if isinstance(side, Both) else [side]
    # An open range is most of the table.
    if any(part.rank > _MOST for part in parts):
        return None
    return Both(tuple(parts))


_MOST = 6


def _tighter(one: Scalar | None, other: Scalar | None, choose: object) -> Scalar | None:
    if one is None or other is None:
        return other if one is None else one
    if one.value is not None and other.value is not None:
        return one if choose(one.value, other.value) == one.value else other  # type: ignore[operator]
    # Either is right; an expression is the more likely to be the narrower one.
    return one if one.value is None else other
