"""``ORDER BY rowid LIMIT n``: the first or last rows, which are known before any is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engramsql.planner.blocks import Block, Item, argument, expands
from engramsql.planner.constraints import Constraint, Range, Scalar
from engramsql.planner.ids import Relation, by_set
from engramsql.planner.predicates import Found, Reader, conjuncts
from engramsql.planner.shape import is_single_pass

if TYPE_CHECKING:
    from engramsql.planner.names import Catalog

__all__ = ["first_rows"]


def first_rows(
    block: Block, item: Item, relation: Relation, found: Found, catalog: Catalog
) -> tuple[list[str | tuple[int, int]], Constraint | Scalar | str] | None:
    """The derived table of the rows that a block returns at most, if its order and limit say which they are."""
    select = block.select
    order, limit, offset = (argument(select, key) for key in ("order", "limit", "offset"))
    if order is None or limit is None or len(block.items) != 1 or not is_single_pass(block, catalog):
        return None
    # An order without a direction is the one that was set.
    ascending = _direction(block, order) if catalog.is_ascending() else None
    count = _count(limit)
    skipped = 0 if offset is None else _count(offset)
    if ascending is None or count is None or skipped is None:
        return None
    bounds = _exact_bounds(block, item, relation, found)
    if bounds is None:
        return None
    low, high = bounds
    wanted = count + skipped
    if ascending:
        high = min(high, low + wanted - 1)
    else:
        low = max(low, high - wanted + 1)
    chosen = Range(Scalar(str(low), low), Scalar(str(high), high))
    return [by_set(relation, chosen)], chosen


def _direction(block: Block, order: Any) -> bool | None:
    """Whether the order is that of the row ids (True), its reverse (False) or another one."""
    from sqlglot import exp

    first = order.expressions[0] if order.expressions else None
    if not isinstance(first, exp.Ordered) or not isinstance(first.this, exp.Column):
        return None
    if Reader(block, []).place(first.this) != (0, "rowid"):
        return None
    # In ORDER BY a name of the select list comes before a column.
    for column in block.select.expressions:
        if isinstance(column, exp.Alias) and column.alias.lower() == first.this.name.lower():
            return None
        inner = column if isinstance(column, exp.Star) else column.this if isinstance(column, exp.Column) else None
        if isinstance(inner, exp.Star):
            if any(inner.args.get(key) for key in ("except_", "except", "replace", "rename")):
                return None
        elif expands(column):
            return None
    return not first.args.get("desc")


def _count(node: Any) -> int | None:
    from sqlglot import exp

    count = node.args.get("expression")
    if any(value for key, value in node.args.items() if key not in ("expression", "this")) or node.this is not None:
        return None
    if isinstance(count, exp.Literal) and not count.is_string and len(str(count.this)) <= 18:
        text = str(count.this)
        return int(text) if text.isascii() and text.isdigit() else None
    return None


def _exact_bounds(block: Block, item: Item, relation: Relation, found: Found) -> tuple[int, int] | None:
    """The first and last row id that pass WHERE, if they are a range of literal bounds."""
    where = argument(block.select, "where")
    low, high = 0, relation.rows - 1
    if where is None:
        return low, high
    reader = Reader(block, [])
    for predicate in conjuncts(where.this):
        said = reader.read_exactly(predicate)
        if said is None or said.keys() != {(item.index, "rowid")}:
            return None
        values = said[(item.index, "rowid")].values
        if not isinstance(values, Range):
            return None
        for bound in (values.low, values.high):
            if bound is not None and bound.value is None:
                return None
        if values.low is not None and values.low.value is not None:
            low = max(low, values.low.value)
        if values.high is not None and values.high.value is not None:
            high = min(high, values.high.value)
    return low, high
