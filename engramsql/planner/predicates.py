"""Reading predicates: which columns of which relations they restrict, and to what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engramsql.planner.constraints import Constraint, Listed, Points, Range, Scalar, intersect, unite
from engramsql.planner.values import Place, Values
from engramsql.quoting import folded

if TYPE_CHECKING:
    from engramsql.planner.blocks import Block

__all__ = ["Found", "Queried", "Reader", "conjuncts", "merge"]


_CONTAINS = {"list_contains", "list_has", "array_contains", "array_has"}


@dataclass
class Queried:
    """A predicate ``column IN (query)`` or ``column = (query)``: the query, its text's place, and the predicate's."""

    query: Any
    block: Block
    #: The query's text, in parentheses or not.
    pieces: list[str | tuple[int, int]]
    #: From where to where the predicate is written.
    span: tuple[int, int]
    #: Whether the predicate is certainly true where the ids were chosen by it.
    certain: bool = True
    #: Nodes, by identity, that are not part of the pieces.
    ignored: frozenset[int] = frozenset()
    #: Whether it is one value, and an error if the query returns more.
    single: bool = False
    #: Whether it may be written once for the whole statement.
    shareable: bool = False
    #: The name under which it was written once for the whole statement.
    shared: str | None = None


@dataclass
class Found:
    """What is known of one column: a set, keys over other relations, queries."""

    values: Constraint | None = None
    keys: list[Scalar] = field(default_factory=list)
    queries: list[Queried] = field(default_factory=list)
    #: Where a predicate is written that says just ``values``, if it is a long one that need not be checked again.
    written: tuple[int, int] | None = None


def merge(into: dict[Place, Found], more: dict[Place, Found]) -> None:
    """Adds what another predicate that must hold too says."""
    for place, found in more.items():
        known = into.setdefault(place, Found())
        values = intersect(known.values, found.values)
        if values is not known.values:
            known.written = found.written if values is found.values else None
        known.values = values
        known.keys += found.keys
        known.queries += found.queries


def conjuncts(node: Any) -> list[Any]:
    """The predicates that must all hold."""
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [] if node is None else [node]


class Reader(Values):
    """Reads the predicates of one block."""

    def read(self, node: Any) -> dict[Place, Found]:
        """What a predicate says; columns that it says nothing of are missing."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self.read(node.this)
        if isinstance(node, exp.And):
            found = self.read(node.this)
            merge(found, self.read(node.expression))
            return found
        if isinstance(node, exp.Or):
            one, other = self.read(node.this), self.read(node.expression)
            both = {place: unite(one[place].values, other[place].values) for place in one.keys() & other.keys()}
            return {place: Found(values) for place, values in both.items() if values is not None}
        if isinstance(node, exp.EQ):
            return self._equal(node.this, node.expression)
        if isinstance(node, exp.NullSafeEQ):
            return self._same(node.this, node.expression)
        if isinstance(node, (exp.LT, exp.LTE, exp.GT, exp.GTE)):
            return self._ordered(node)
        if isinstance(node, exp.Between):
            return self._between(node)
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.ArrayContains):
            return self._contained(node.this, node.expression)
        if isinstance(node, exp.Anonymous) and folded(str(node.this)) in _CONTAINS and len(node.expressions) == 2:
            return self._contained(*node.expressions)
        return {}

    def read_exactly(self, node: Any) -> dict[Place, Found] | None:
        """What a comparison with a literal says, if it says just that."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self.read_exactly(node.this)
        if isinstance(node, (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)):
            return self.read(node) or None
        return None

    def _equal(self, one: Any, other: Any) -> dict[Place, Found]:
        from sqlglot import exp

        found: dict[Place, Found] = {}
        for column, value in ((one, other), (other, one)):
            place = self.place(column)
            if place is None:
                continue
            listed = self._any(value)
            if listed is not None:
                merge(found, {place: Found(Listed((listed,)))})
                continue
            if column is one and isinstance(value, exp.Subquery) and isinstance(value.this, exp.Query):
                queried = self._queried(column, value, ("=",)) or self._queried(column, value, ("==",))
                if queried is not None:
                    queried.single = True
                    merge(found, {place: Found(queries=[queried])})
                continue
            scalar = self.scalar(value)
            if scalar is None:
                continue
            if scalar.constant:
                merge(found, {place: Found(Points((scalar,)))})
            elif place[0] not in scalar.relations:
                merge(found, {place: Found(keys=[scalar])})
        return found

    def _same(self, one: Any, other: Any) -> dict[Place, Found]:
        """``IS NOT DISTINCT FROM``, which is ``=`` where one side is a number."""
        for column, value in ((one, other), (other, one)):
            place, scalar = self.place(column), self.scalar(value)
            if place is not None and scalar is not None and scalar.value is not None:
                return {place: Found(Points((scalar,)))}
        return {}

    def _ordered(self, node: Any) -> dict[Place, Found]:
        from sqlglot import exp

        below = isinstance(node, (exp.LT, exp.LTE))
        for column, bound, is_high in ((node.this, node.expression, below), (node.expression, node.this, not below)):
            place = self.place(column)
            if place is None:
                continue
            scalar = self.bound(bound, up=not is_high)
            if scalar is not None:
                strict = isinstance(node, (exp.LT, exp.GT))
                scalar = self._inner(bound, scalar, is_high, strict)
                return {place: Found(Range(None, scalar) if is_high else Range(scalar, None))}
        return {}

    def _inner(self, node: Any, scalar: Scalar, is_high: bool, strict: bool) -> Scalar:
        """The bound of ``<`` as that of ``<=``, where it is a whole number."""
        number = self.number(node)
        if not strict or scalar.value is None or number is None or number != scalar.value:
            return scalar
        value = scalar.value + (-1 if is_high else 1)
        return Scalar(str(value), value)

    def _between(self, node: Any) -> dict[Place, Found]:
        if node.args.get("symmetric"):
            return {}
        place = self.place(node.this)
        if place is None:
            return {}
        low, high = self.bound(node.args["low"], up=True), self.bound(node.args["high"], up=False)
        return {} if low is None and high is None else {place: Found(Range(low, high))}

    def _in(self, node: Any) -> dict[Place, Found]:
        from sqlglot import exp

        place = self.place(node.this)
        if place is None or node.args.get("unnest"):
            return {}
        if node.args.get("query") is not None:
            queried = self._queried(node.this, node.args["query"], ("IN",))
            return {} if queried is None else {place: Found(queries=[queried])}
        if node.args.get("field") is not None:
            listed = self.list_of(node.args["field"])
            return {} if listed is None else {place: Found(Listed((listed,)))}
        values: Constraint | None = Points(())
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
            queried = self._queried(node.this, node.expressions[0], ("IN",))
            return {} if queried is None else {place: Found(queries=[queried])}
        if len(node.expressions) == 1 and (listed := self.folded_of(node.expressions[0])) is not None:
            return {place: Found(Listed((listed,)), written=self._whole_span(node.this))}
        for member in node.expressions:
            listed = self.folded_of(member)
            scalar = None if listed else self.scalar(member)
            if listed:
                values = unite(values, Listed((listed,))) if values != Points(()) else Listed((listed,))
            elif isinstance(member, exp.Null):
                continue
            elif scalar is not None and scalar.constant:
                point = Points((scalar,))
                values = unite(values, point) if values != Points(()) else point
            else:
                return {}
        return {place: Found(values)} if node.expressions else {}

    def _whole_span(self, column: Any) -> tuple[int, int] | None:
        queried = self._queried(column, None, ("IN",))
        return None if queried is None else queried.span

    def _contained(self, ids: Any, column: Any) -> dict[Place, Found]:
        place, listed = self.place(column), self.list_of(ids)
        return {} if place is None or listed is None else {place: Found(Listed((listed,)))}

    def _any(self, node: Any) -> str | None:
        from sqlglot import exp

        return self.list_of(node.this) if isinstance(node, exp.Any) else None

    def _queried(self, column: Any, query: Any, words: tuple[str, ...]) -> Queried | None:
        """``column IN (query)``, if the tokens are just these."""
        source = self._block.source
        start = _start(column)
        if start is None:
            return None
        index = source.index(start)
        first = index
        while source.kind(index + 1) == "DOT":
            index += 2
        for word in words:
            index += 1
            if source.word(index) != word:
                return None
        opening = index + 1
        if source.kind(opening) != "L_PAREN" or opening not in source.closing:
            return None
        span = (source.end(opening), source.start(source.closing[opening]))
        whole = (source.start(first), source.end(source.closing[opening]))
        return Queried(query, self._block, [span], whole)


def _start(column: Any) -> int | None:
    from sqlglot import exp

    if not isinstance(column, exp.Column):
        return None
    first = column.args.get("table") or column.this
    start = first.meta.get("start") if isinstance(first, exp.Identifier) else None
    return None if start is None else int(start)
