"""Joins on row ids: what their conditions say, which keys reach a table, and where they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engramsql.planner.constraints import Scalar
from engramsql.planner.ids import Relation
from engramsql.planner.predicates import Found, Reader, conjuncts, merge
from engramsql.planner.source import NotUnderstoodError, Source
from engramsql.quoting import folded

if TYPE_CHECKING:
    from engramsql.planner.blocks import Block, Item
    from engramsql.planner.values import Place

__all__ = [
    "JOINS",
    "equality",
    "joined",
    "last_token",
    "nullable",
    "reaches",
    "tokens_of",
    "transfer",
    "without_left",
]

# What ends a relation in FROM.
JOINS = {",", "INNER", "CROSS", "JOIN", "LEFT", "RIGHT", "OUTER", "SEMI", "ANTI"}
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


def reaches(block: Block, item: Item, key: Scalar, swapped: bool) -> bool:
    """Whether a key can be used at the place of a relation: what it uses stands to the left, or outside."""
    if item.kind not in ("inner", "left"):
        return False
    joined_to = [other for other in block.items if other.group == item.group]
    if len(joined_to) > 1 and any(block.items[index].group != item.group for index in key.relations):
        # DuckDB 2.0 fails to bind a join tree that looks a row up by a column from before a comma.
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
    span = equality(source, join.args.get("on"))
    if span is None or source.word(span[0] - 1) != "ON":
        return False
    name = source.index(first_name(item))
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


def first_name(item: Item) -> int:
    parts = [item.node.args.get(key) for key in ("catalog", "db", "this")]
    return int(next(part for part in parts if part is not None).meta["start"])


def equality(source: Source, node: Any) -> tuple[int, int] | None:
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


def tokens_of(source: Source, item: Item) -> tuple[int, int]:
    """The tokens of a plain reference and its alias."""
    first = source.index(first_name(item))
    return first, last_token(source, first)


def last_token(source: Source, first: int) -> int:
    """The last token of a relation in FROM that begins with ``first``, with its alias.

    Raises:
        NotUnderstoodError: If there is none.
    """
    index = first
    while source.word(index) not in _ENDS:
        index = source.closing.get(index, index) + 1
    if index == first:
        raise NotUnderstoodError("an empty relation")
    return index - 1
