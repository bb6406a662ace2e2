"""``table JOIN keys`` as ``keys JOIN table``: a row is looked up by what stands to its left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql.planner.blocks import Block, expands, is_comma
from engramsql.planner.ids import Relation
from engramsql.planner.joins import last_token, tokens_of

if TYPE_CHECKING:
    from engramsql.planner.predicates import Found
    from engramsql.planner.values import Place

__all__ = ["swap"]


def swap(block: Block, known: dict[Place, Found]) -> bool:
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
    first, last = tokens_of(source, items[0])
    if source.word(first - 1) != "FROM":
        return False
    start = last + 1
    while source.word(start) in (",", "INNER", "CROSS", "JOIN"):
        start += 1
    if start == last + 1 or source.word(start) == "LATERAL":
        return False
    end = last_token(source, start)
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
