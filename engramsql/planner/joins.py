"""Joins on row ids: which keys reach a table, and the ids of those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engramsql.planner.blocks import Block, Item, argument, expands, is_comma
from engramsql.planner.constraints import Scalar
from engramsql.planner.ids import Relation
from engramsql.planner.names import Expression
from engramsql.planner.predicates import Found, Place, Queried, Reader, conjuncts, merge
from engramsql.planner.source import NotUnderstoodError, Source
from engramsql.quoting import folded, literal

if TYPE_CHECKING:
    from engramsql.planner.rewrite import Rewriter

__all__ = [
    "can_share",
    "end_of_query",
    "existence",
    "ids_of_later",
    "ids_of_query",
    "joined",
    "nullable",
    "reaches",
    "swap",
    "transfer",
    "without_left",
]

# What ends a relation in FROM.
_JOINS = {",", "INNER", "CROSS", "JOIN", "LEFT", "RIGHT", "OUTER", "SEMI", "ANTI"}
_ENDS = {
    "ON", "USING", "WHERE", "GROUP", "ORDER", "LIMIT", "OFFSET", "QUALIFY", "WINDOW", "HAVING", "JOIN", "LEFT", "RIGHT",
    "INNER", "FULL", "CROSS", "NATURAL", "ASOF", "POSITIONAL", "SEMI", "ANTI", "SELECT", "UNION", "EXCEPT",
    "INTERSECT", "TABLESAMPLE", ",", ";", ")", "",
}  # fmt: skip


def nullable(block: Block, index: int) -> bool:
    """Whether a join may put NULLs in place of a relation's rows."""
    kinds = [item.kind for item in block.items]
    return kinds[index] in ("left", "full") or any(kind in ("right", "full") for kind in kinds[index + 1 :])


def joined(block: Block, item: Item, reader: Reader) -> dict[Place, Found]:
    """What the condition of a join says of the relations that it can be moved to."""
    join = item.join
    if join is None or not block.plain or item.kind == "full":
        return {}
    known: dict[Place, Found] = {}
    for predicate in conjuncts(join.args.get("on")):
        merge(known, reader.read(predicate))
    for name in join.args.get("using") or []:
        merge(known, _using(block, item, folded(name.name)))
    kept: dict[Place, Found] = {}
    for place, found in known.items():
        index = place[0]
        allowed = index == item.index if item.kind in ("left", "anti") else index <= item.index
        if item.kind == "right":
            allowed = index < item.index
        # What stands before a comma is not joined here, although conditions may use it.
        allowed = allowed and block.items[index].group == item.group
        if not allowed:
            continue
        certain = index == item.index or (item.kind == "inner" and not nullable(block, index))
        for queried in found.queries:
            queried.certain = certain and item.kind != "right"
        if not certain:
            found.written = None
        kept[place] = found
    return kept


def _using(block: Block, item: Item, name: str) -> dict[Place, Found]:
    left = [other for other in block.visible() if other.index < item.index and other.group == item.group]
    merged = all(
        name in {folded(column.name) for column in other.join.args.get("using") or []}
        for other in left[1:]
        if other.join is not None
    )
    if not left or not merged or not item.written or not left[0].written:
        return {}
    sides = []
    for side in (left[0], item):
        own = side.column(name) if isinstance(side.what, Relation) else name
        if own is None:
            return {}
        text = f'{side.written}."{name}"'
        place = (side.index, own)
        sides.append((place, Scalar(text, None, frozenset({side.index}), False, frozenset({side.alias}), column=place)))
    (place, scalar), (other_place, other_scalar) = sides
    return {place: Found(keys=[other_scalar]), other_place: Found(keys=[scalar])}


def transfer(known: dict[Place, Found]) -> None:
    """A column that equals another one is restricted to what that one is."""
    for _ in range(2):
        for found in known.values():
            for key in found.keys:
                other = known.get(key.column) if key.column is not None else None
                if found.values is None and other is not None and other.values is not None:
                    found.values = other.values


def reaches(item: Item, key: Scalar, swapped: bool) -> bool:
    """Whether a key can be used at the place of a relation: what it uses stands to the left, or outside."""
    if item.kind not in ("inner", "left"):
        return False
    if swapped and item.index < 2:
        return item.index == 0 and key.relations <= {1}
    return all(index < item.index for index in key.relations)


def without_left(block: Block, item: Item, key: Scalar) -> bool:
    """Writes CROSS JOIN for LEFT JOIN where the condition is the key alone: a lookup has one row, perhaps of NULLs.

    Returns:
        Whether the join is one that a lookup can stand in: DuckDB refuses most conditions of other outer joins there.
    """
    join, source = item.join, block.source
    if item.kind != "left":
        return True
    if join is None or key.fragile or join.args.get("using") or join.method:
        return False
    span = _equality(source, join.args.get("on"))
    if span is None or source.word(span[0] - 1) != "ON":
        return False
    name = source.index(_first_name(item))
    words = name - 1
    if source.word(words) != "JOIN":
        return False
    words -= 1
    if source.word(words) == "OUTER":
        words -= 1
    if source.word(words) != "LEFT":
        return False
    source.change(source.start(words), source.end(name - 1), "CROSS JOIN")
    source.change(source.start(span[0] - 1), source.end(span[1]), "")
    return True


def _first_name(item: Item) -> int:
    parts = [item.node.args.get(key) for key in ("catalog", "db", "this")]
    return int(next(part for part in parts if part is not None).meta["start"])


def _equality(source: Source, node: Any) -> tuple[int, int] | None:
    """The first and last token of ``a.x = b.y``."""
    from sqlglot import exp

    if not isinstance(node, exp.EQ):
        return None
    ends = []
    for column in (node.this, node.expression):
        if not isinstance(column, exp.Column):
            return None
        first = column.args.get("table") or column.this
        if "start" not in first.meta or "start" not in column.this.meta:
            return None
        ends.append((source.index(first.meta["start"]), source.index(column.this.meta["start"])))
    (first, middle), (after, last) = ends
    return (first, last) if after == middle + 2 and source.word(middle + 1) in ("=", "==") else None


# Queries


def existence(block: Block, predicate: Any, lists: list[str]) -> dict[Place, Found]:
    """``EXISTS (SELECT ... WHERE table.rowid = x AND ...)`` as ``rowid IN (SELECT x ...)``."""
    from sqlglot import exp

    if not isinstance(predicate, exp.Exists) or not isinstance(predicate.this, exp.Select):
        return {}
    inner, source = predicate.this, block.source
    known = {"expressions", "from", "from_", "joins", "where"}
    if any(value for key, value in inner.args.items() if key not in known):
        return {}
    if any(column.find(exp.AggFunc, exp.Window, exp.Unnest, exp.Explode) for column in inner.expressions):
        return {}
    aliases = _aliases(inner)
    where = argument(inner, "where")
    for part in conjuncts(where.this if where is not None else None):
        span = _equality(source, part)
        if span is None:
            continue
        for column, other in ((part.this, part.expression), (part.expression, part.this)):
            outer, own = folded(column.table), folded(other.table)
            if not outer or outer in aliases or own not in aliases:
                continue
            place = Reader(block, lists).place(column)
            if place is not None:
                queried = _exists(source, inner, other, span, block)
                return {} if queried is None else {place: Found(queries=[queried])}
    return {}


def _exists(source: Source, inner: Any, key: Any, equality: tuple[int, int], block: Block) -> Queried | None:
    """The query of an EXISTS with its key for its columns and without its equality."""
    opening = equality[0]
    while not (source.kind(opening) == "L_PAREN" and source.closing[opening] > equality[1]):
        opening -= 1
        if opening < 1:
            return None
    if source.word(opening - 1) != "EXISTS" or source.word(opening + 1) != "SELECT":
        return None
    if source.word(opening - 2) == "NOT":
        return None
    closing, from_ = source.closing[opening], opening + 2
    while source.word(from_) != "FROM":
        from_ = source.closing.get(from_, from_) + 1
        if from_ >= equality[0]:
            return None
    first = source.index((key.args.get("table") or key.this).meta["start"])
    last = source.index(key.this.meta["start"])
    name = source.text[source.start(first) : source.end(last)]
    before = (source.start(from_), source.start(equality[0]))
    after = (source.end(equality[1]), source.start(closing))
    whole = (source.start(opening - 1), source.end(closing))
    return Queried(inner, block, [f"SELECT {name} ", before, "true", after], whole, ignored=frozenset({id(key.parent)}))


def end_of_query(source: Source, node: Any) -> int | None:
    """Where ``(SELECT ...)`` or ``EXISTS (SELECT ...)`` ends; None for any other expression.

    It may take an inner query for the whole one; whoever uses it looks at the names that come of it.
    """
    from sqlglot import exp

    if not isinstance(node, (exp.Subquery, exp.Exists)):
        return None
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    if not starts:
        return None
    first = source.index(min(starts))
    opening = first
    while not (source.kind(opening) == "L_PAREN" and source.closing[opening] > first):
        opening -= 1
        if opening < 0:
            return None
    return source.end(source.closing[opening])


def _aliases(node: Any) -> set[str]:
    """The names that qualify columns anywhere in a query."""
    from sqlglot import exp

    names = set()
    for part in node.walk():
        if (isinstance(part, exp.TableAlias) and part.this is not None) or (
            isinstance(part, exp.Table) and not part.args.get("alias")
        ):
            names.add(folded(part.name))
    return names


def _is_alone(block: Block, item: Item, queried: Queried) -> bool:
    """Whether a query uses nothing of the blocks around it, so that it can be written in FROM."""
    from sqlglot import exp

    aliases = _aliases(queried.query)
    for column in queried.query.find_all(exp.Column):
        if any(id(parent) in queried.ignored for parent in (column.parent,)):
            continue
        if column.table:
            if folded(column.table) not in aliases:
                return False
        elif block.outer is not None or item.index > 0:
            # Elsewhere it could be a column of another relation.
            return False
    return True


def can_share(rewriter: Rewriter, block: Block, queried: Queried) -> bool:
    """Whether a query can be written once, before the statement, and read by name."""
    from sqlglot import exp

    if not rewriter.can_share or len(queried.pieces) != 1 or queried.block is not block:
        return False
    tables = [folded(table.name) for table in queried.query.find_all(exp.Table)]
    if any(block.scope.find(name) is not None for name in tables):
        return False
    return _qualifies_itself(queried.query)


def ids_of_query(
    rewriter: Rewriter, block: Block, item: Item, relation: Relation, queried: Queried
) -> list[str | tuple[int, int]] | None:
    """The distinct ids that a query returns; the query moves there, or is shared, so that it runs once."""
    if queried.shared is None and queried.certain and queried.block is block and _is_alone(block, item, queried):
        block.source.change(*queried.span, "true")
        return _distinct_ids(relation, queried.pieces)
    if queried.shared is None and (queried.shareable or can_share(rewriter, block, queried)):
        rewriter.share(queried)
    if queried.shared is None:
        return None
    return _distinct_ids(relation, [f"FROM {queried.shared}"])


def _distinct_ids(relation: Relation, pieces: list[str | tuple[int, int]]) -> list[str | tuple[int, int]]:
    # The union refuses a query of several columns, as IN does.
    return [
        (
            f"(SELECT DISTINCT _engram_key({literal(relation.name)}, _engram_i) AS rowid FROM "
            "(SELECT NULL::BIGINT AS _engram_i WHERE false UNION ALL ("
        ),
        *pieces,
        "\n)))",
    ]


def ids_of_later(
    rewriter: Rewriter, block: Block, item: Item, relation: Relation, key: Scalar
) -> list[str | tuple[int, int]] | None:
    """The distinct keys of a relation that the table cannot be looked up from.

    A table of DuckDB is read once more for them. Anything else, which could be another thing the second time, is
    written once for the whole statement and read by name in both places.
    """
    if len(key.relations) != 1 or key.outer or item.kind == "full":
        return None
    other = block.items[next(iter(key.relations))]
    span = _span_of(block, other)
    if span is None:
        return None
    if isinstance(other.what, str) or (isinstance(other.what, Expression) and rewriter.repeats(other.what)):
        text = block.source.text[slice(*span)]
    elif not isinstance(other.what, Relation) and _is_shareable(rewriter, block, other):
        name = rewriter.share_text(block.source, span, "SELECT * FROM ")
        text = f"{name} AS {other.written}"
        block.source.change(*span, text)
    else:
        return None
    return [f"(SELECT DISTINCT _engram_key({literal(relation.name)}, {key.text}) AS rowid FROM {text})"]


def _is_shareable(rewriter: Rewriter, block: Block, item: Item) -> bool:
    from sqlglot import exp

    if not rewriter.can_share or not item.written or not isinstance(item.node, (exp.Table, exp.Subquery, exp.Values)):
        return False
    if isinstance(item.node, exp.Table) and not isinstance(item.node.this, exp.Identifier):
        return False
    tables = [folded(table.name) for table in item.node.find_all(exp.Table)]
    if any(block.scope.find(name) is not None for name in tables):
        return False
    return _qualifies_itself(item.node)


def _qualifies_itself(node: Any) -> bool:
    """Whether no column is qualified by a relation from around a query.

    One without a qualifier that came from there has no meaning where shared queries are written: the statement then
    does not bind, and runs as it is.
    """
    from sqlglot import exp

    aliases = _aliases(node)
    return all(not column.table or folded(column.table) in aliases for column in node.find_all(exp.Column))


def _span_of(block: Block, item: Item) -> tuple[int, int] | None:
    """Where a relation and its alias are written."""
    from sqlglot import exp

    source = block.source
    if item.node.args.get("joins"):
        return None
    if isinstance(item.node, exp.Table) and isinstance(item.node.this, exp.Identifier):
        first, last = _span(source, item)
    elif item.index > 0 and isinstance(block.items[item.index - 1].node, exp.Table):
        before = block.items[item.index - 1]
        if not isinstance(before.node.this, exp.Identifier):
            return None
        first = _span(source, before)[1] + 1
        while source.word(first) in _JOINS:
            first += 1
        last = _last(source, first)
    else:
        return None
    # An alias before the relation, `a: b`, is not part of what was found.
    return None if source.kind(first - 1) == "COLON" else (source.start(first), source.end(last))


def _span(source: Source, item: Item) -> tuple[int, int]:
    """The tokens of a plain reference and its alias."""
    first = source.index(_first_name(item))
    return first, _last(source, first)


def _last(source: Source, first: int) -> int:
    index = first
    while source.word(index) not in _ENDS:
        index = source.closing.get(index, index) + 1
    if index == first:
        raise NotUnderstoodError("an empty relation")
    return index - 1


def swap(block: Block, known: dict[Place, Found], rewriter: Rewriter) -> bool:
    """Writes ``keys JOIN table`` for ``table JOIN keys``, so that the keys come first; True if it did."""
    from sqlglot import exp

    items, source = block.items, block.source
    if not block.plain or len(items) < 2 or items[1].kind != "inner" or not isinstance(items[0].what, Relation):
        return False
    found = known.get((0, "rowid"))
    if found is None or found.values is not None or found.queries:
        return False
    if not any(key.relations == {1} for key in found.keys) or isinstance(items[1].what, Relation):
        return False
    join = items[1].join
    if join is None or join.args.get("using") or join.method or isinstance(items[1].node, exp.Lateral):
        return False
    if items[0].node.args.get("joins") or items[1].node.args.get("joins"):
        return False
    if is_comma(join) and any(item.group == 1 for item in items[2:]):
        return False
    first, last = _span(source, items[0])
    if source.word(first - 1) != "FROM":
        return False
    start = last + 1
    while source.word(start) in (",", "INNER", "CROSS", "JOIN"):
        start += 1
    if start == last + 1 or source.word(start) == "LATERAL":
        return False
    end = _last(source, start)
    if not _fix_star(block, first):
        return False
    one, other = (source.start(first), source.end(last)), (source.start(start), source.end(end))
    words = source.text[source.end(last) : source.start(start)]
    source.change(source.start(first - 1), one[1], "FROM ", other)
    source.change(source.start(last + 1), other[1], words.lstrip(), one)
    return True


def _fix_star(block: Block, first: int) -> bool:
    """Names the relations of ``*`` in the order they had; whether the select list means the same afterwards."""
    from sqlglot import exp

    source = block.source
    stars = [column for column in block.select.expressions if expands(column)]
    if not stars:
        return True
    if len(stars) > 1 or not isinstance(stars[0], exp.Star) or any(stars[0].args.values()):
        return False
    if source.kind(first - 2) != "STAR" or source.word(first - 3) not in ("SELECT", ",", "DISTINCT", "ALL"):
        return False
    items = block.visible()
    if any(not item.written or (item.join is not None and item.join.args.get("using")) for item in items):
        return False
    star = first - 2
    source.change(source.start(star), source.end(star), ", ".join(f"{item.written}.*" for item in items))
    return True
