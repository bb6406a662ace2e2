"""Reading predicates: which columns of which relations they restrict, and to what."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engramsql.planner.constraints import Constraint, Listed, Points, Range, Scalar, intersect, unite
from engramsql.planner.ids import Relation
from engramsql.planner.literals import folded_list
from engramsql.quoting import folded, literal

if TYPE_CHECKING:
    from engramsql.planner.blocks import Block

__all__ = ["Found", "Place", "Queried", "Reader", "conjuncts", "merge"]

#: A relation by its place in FROM, and one of its columns.
Place = tuple[int, str]

_INTEGERS = {
    "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INTEGER", "BIGINT": "BIGINT", "INT128": "HUGEINT",
    "UTINYINT": "UTINYINT", "USMALLINT": "USMALLINT", "UINT": "UINTEGER", "UBIGINT": "UBIGINT", "UINT128": "UHUGEINT",
}  # fmt: skip
# Casts to these hold every row id, and never fail for one.
_WIDE = {"BIGINT", "INT128", "UBIGINT", "UINT128"}
_CONTAINS = {"list_contains", "list_has", "array_contains", "array_has"}
_DECIMAL = re.compile(r"\d{0,18}\.?\d{0,9}(e\d{1,2})?", re.IGNORECASE)
_DIGITS = re.compile(r"\d{1,18}")


@dataclass
class Queried:
    """A predicate ``column IN (query)``: the query, the place of its text, and that of the predicate."""

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


class Reader:
    """Reads the predicates of one block."""

    def __init__(self, block: Block, lists: list[str]) -> None:
        self._block = block
        self._lists = lists

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
        found: dict[Place, Found] = {}
        for column, value in ((one, other), (other, one)):
            place = self.place(column)
            if place is None:
                continue
            listed = self._any(value)
            if listed is not None:
                merge(found, {place: Found(Listed((listed,)))})
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
            scalar = self._bound(bound, up=not is_high)
            if scalar is not None:
                strict = isinstance(node, (exp.LT, exp.GT))
                scalar = self._inner(bound, scalar, is_high, strict)
                return {place: Found(Range(None, scalar) if is_high else Range(scalar, None))}
        return {}

    def _inner(self, node: Any, scalar: Scalar, is_high: bool, strict: bool) -> Scalar:
        """The bound of ``<`` as that of ``<=``, where it is a whole number."""
        number = self._number(node)
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
        low, high = self._bound(node.args["low"], up=True), self._bound(node.args["high"], up=False)
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
            listed = self._list(node.args["field"])
            return {} if listed is None else {place: Found(Listed((listed,)))}
        values: Constraint | None = Points(())
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
            queried = self._queried(node.this, node.expressions[0], ("IN",))
            return {} if queried is None else {place: Found(queries=[queried])}
        if len(node.expressions) == 1 and (listed := self._folded(node.expressions[0])) is not None:
            return {place: Found(Listed((listed,)), written=self._whole_span(node.this))}
        for member in node.expressions:
            listed = self._folded(member)
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
        place, listed = self.place(column), self._list(ids)
        return {} if place is None or listed is None else {place: Found(Listed((listed,)))}

    def _any(self, node: Any) -> str | None:
        from sqlglot import exp

        return self._list(node.this) if isinstance(node, exp.Any) else None

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

    # Columns and values

    def place(self, node: Any) -> Place | None:
        """The column of a relation of this block that a node is, under the name the relation has for it."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self.place(node.this)
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast) and _type(node) in _WIDE:
            return self.place(node.this)
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or node.args.get("db") is not None:
            return None
        name, items = folded(node.name), self._block.items
        if node.table:
            items = self._block.named(folded(node.table))
        elif len(items) > 1:
            items = [item for item in items if isinstance(item.what, Relation) and item.column(name)]
        if len(items) != 1:
            return None
        item = items[0]
        own = item.column(name) if isinstance(item.what, Relation) else name
        return None if own is None else (item.index, own)

    def scalar(self, node: Any) -> Scalar | None:
        """An expression that can be written once more elsewhere; None if it is not one of the plain ones."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self.scalar(node.this)
        if isinstance(node, (exp.Literal, exp.Neg)):
            value = self._whole(node)
            return None if value is None else Scalar(str(value), value)
        if isinstance(node, (exp.Placeholder, exp.Parameter)):
            text = _parameter(node)
            return None if text is None else Scalar(text)
        if isinstance(node, exp.Anonymous):
            text = _variable(node)
            return None if text is None else Scalar(text)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        operators = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.IntDiv: "//", exp.Mod: "%"}
        if (operator := operators.get(type(node))) is not None:
            one, other = self.scalar(node.this), self.scalar(node.expression)
            if one is None or other is None:
                return None
            return _joined(f"({one.text} {operator} {other.text})", one, other)
        return None

    def _cast(self, node: Any) -> Scalar | None:
        inner, name = self.scalar(node.this), _INTEGERS.get(_type(node))
        if inner is None or name is None:
            return None
        # What cannot be cast is no key; the predicate, which stays, raises.
        return _joined(f"TRY_CAST({inner.text} AS {name})", inner, fragile=True)

    def _column(self, node: Any) -> Scalar | None:
        from sqlglot import exp

        if isinstance(node.this, exp.Star) or node.args.get("db") is not None:
            return None
        if folded_list(folded(node.name), self._lists) is not None:
            return None
        name = folded(node.name)
        text = '"' + node.name.replace('"', '""') + '"'
        if node.table:
            return self._qualified(folded(node.table), name, text)
        items = self._block.items
        owners = [item for item in items if isinstance(item.what, Relation) and item.column(name)]
        if not owners:
            if self._block.aliases_a_column(name):
                return None
            owners = [item for item in items if not isinstance(item.what, Relation)]
            if not owners and self._block.outer is not None:
                return Scalar(text, outer=True, bare=True)
        if len(owners) == 1 and owners[0].written:
            return self._qualified(owners[0].alias, name, text)
        if not owners:
            return None
        return Scalar(text, relations=frozenset(item.index for item in owners), bare=True)

    def _qualified(self, alias: str, name: str, text: str) -> Scalar | None:
        items = self._block.named(alias)
        if len(items) == 1:
            item = items[0]
            own = item.column(name) if isinstance(item.what, Relation) else name
            if own is None:
                return None
            return Scalar(
                f"{item.written}.{text}",
                relations=frozenset({item.index}),
                aliases=frozenset({alias}),
                column=(item.index, own),
            )
        if not items and self._block.outside(alias):
            quoted = '"' + alias.replace('"', '""') + '"'
            return Scalar(f"{quoted}.{text}", outer=True, aliases=frozenset({alias}))
        return None

    def _bound(self, node: Any, *, up: bool) -> Scalar | None:
        number = self._number(node)
        if number is not None:
            value = math.ceil(number) if up else math.floor(number)
            return Scalar(str(value), value)
        scalar = self.scalar(node)
        return scalar if scalar is not None and scalar.constant else None

    def _whole(self, node: Any) -> int | None:
        number = self._number(node)
        return int(number) if number is not None and number == int(number) else None

    def _number(self, node: Any) -> float | int | None:
        """The value of a literal number that every type holds exactly."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self._number(node.this)
        if isinstance(node, exp.Neg):
            number = self._number(node.this)
            return None if number is None else -number
        if not isinstance(node, exp.Literal):
            return None
        text = str(node.this)
        if node.is_string:
            return int(text) if _DIGITS.fullmatch(text) else None
        if text.isascii() and text.isdigit():
            return int(text)
        number = float(text) if _DECIMAL.fullmatch(text) and text not in (".", "") else None
        return number if number is not None and abs(number) < 2**53 else None

    def _list(self, node: Any) -> str | None:
        """An expression of type list that can be written once more."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self._list(node.this)
        if isinstance(node, (exp.Placeholder, exp.Parameter)):
            return _parameter(node)
        if isinstance(node, exp.Anonymous):
            return _variable(node)
        if isinstance(node, exp.Array):
            members = []
            for member in node.expressions:
                if isinstance(member, exp.Null):
                    continue
                if (listed := self._folded(member)) is not None:
                    members.append(listed)
                    continue
                scalar = self.scalar(member)
                if scalar is None or not scalar.constant:
                    return None
                members.append(f"[{scalar.text}]")
            if not members:
                return None
            return members[0] if len(members) == 1 else f"list_concat({', '.join(members)})"
        if isinstance(node, exp.Cast) and _type(node) in ("ARRAY", "LIST"):
            inner = self._list(node.this)
            types = node.args["to"].expressions
            name = _INTEGERS.get(types[0].this.name) if len(types) == 1 and hasattr(types[0], "this") else None
            return None if inner is None or name is None else f"TRY_CAST({inner} AS {name}[])"
        return None

    def _folded(self, node: Any) -> str | None:
        """A long list of integers, as one text that DuckDB casts much faster than it parses so many numbers."""
        from sqlglot import exp

        if not isinstance(node, exp.Column) or node.table:
            return None
        numbers = folded_list(node.name, self._lists)
        return None if numbers is None else f"{literal('[' + node.name + ']')}::BIGINT[]"


def _joined(text: str, *parts: Scalar, fragile: bool = False) -> Scalar:
    return Scalar(
        text,
        relations=frozenset().union(*(part.relations for part in parts)),
        outer=any(part.outer for part in parts),
        aliases=frozenset().union(*(part.aliases for part in parts)),
        bare=any(part.bare for part in parts),
        fragile=fragile or any(part.fragile for part in parts),
    )


def _type(node: Any) -> str:
    kind = getattr(node.args.get("to"), "this", None)
    return str(getattr(kind, "name", ""))


def _parameter(node: Any) -> str | None:
    from sqlglot import exp

    this = node.this
    name = this.name if isinstance(this, exp.Expression) else this
    return f"${name}" if name and re.fullmatch(r"\w+", str(name)) else None


def _variable(node: Any) -> str | None:
    from sqlglot import exp

    if folded(str(node.this)) != "getvariable" or len(node.expressions) != 1:
        return None
    name = node.expressions[0]
    if not isinstance(name, exp.Literal) or not name.is_string:
        return None
    return f"getvariable({literal(str(name.this))})"


def _start(column: Any) -> int | None:
    from sqlglot import exp

    if not isinstance(column, exp.Column):
        return None
    first = column.args.get("table") or column.this
    start = first.meta.get("start") if isinstance(first, exp.Identifier) else None
    return None if start is None else int(start)
