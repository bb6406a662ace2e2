"""What can be said of a query's columns, and which queries a restriction of a column can be moved into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engramsql.planner.blocks import Block, argument, expands
from engramsql.planner.ids import Relation
from engramsql.quoting import folded

if TYPE_CHECKING:
    from engramsql.planner.names import Catalog
    from engramsql.planner.source import Source
    from engramsql.planner.values import Place

__all__ = ["columns_of", "is_single_pass", "is_steady", "restrictable", "traced"]


def traced(block: Block, name: str) -> Place | None:
    """The column of a relation in FROM that a block returns as ``name``, if it returns one as it is."""
    from sqlglot import exp

    found: list[Place | None] = []
    for column in block.select.expressions:
        if isinstance(column, exp.Alias):
            if folded(column.alias) == name:
                found.append(_place(block, column.this))
        elif isinstance(column, exp.Star) or (isinstance(column, exp.Column) and isinstance(column.this, exp.Star)):
            found += _starred(block, column, name)
        elif isinstance(column, exp.Column):
            if folded(column.name) == name:
                found.append(_place(block, column))
        elif expands(column):
            return None  # COLUMNS(*) and its like
    return found[0] if len(found) == 1 else None


def _starred(block: Block, star: Any, name: str) -> list[Place | None]:
    from sqlglot import exp

    inner = star if isinstance(star, exp.Star) else star.this
    if any(inner.args.get(key) for key in ("except_", "except", "replace", "rename")):
        return [None, None]
    if isinstance(star, exp.Star):
        items = block.visible()
        # A column that USING merged comes once, and whose it is depends on the join.
        if any(item.join is not None and (item.join.args.get("using") or item.join.method) for item in items):
            return [None, None]
    else:
        items = block.named(folded(star.table))
    found: list[Place | None] = []
    for item in items:
        if isinstance(item.what, Relation):
            own = item.column(name)
            found += [] if own is None else [(item.index, own)]
        else:
            found.append((item.index, name) if len(items) == 1 else None)
    return found


def _place(block: Block, node: Any) -> Place | None:
    from engramsql.planner.predicates import Reader

    return Reader(block, []).place(node)


def columns_of(query: Any, block: Block | None) -> list[str | None] | None:
    """The folded names of a query's columns in order; None where a name is not known, and for unknown columns."""
    from sqlglot import exp

    if not isinstance(query, exp.Select) or block is None:
        return None
    names: list[str | None] = []
    for column in query.expressions:
        if isinstance(column, exp.Alias):
            names.append(folded(column.alias))
        elif isinstance(column, exp.Star) or (isinstance(column, exp.Column) and isinstance(column.this, exp.Star)):
            items = block.visible() if isinstance(column, exp.Star) else block.named(folded(column.table))
            inner = column if isinstance(column, exp.Star) else column.this
            plain = not any(inner.args.get(key) for key in ("except_", "except", "replace", "rename"))
            if not plain or len(items) != 1 or not isinstance(items[0].what, Relation):
                return None
            renamed = items[0].renamed
            names += [*renamed, *items[0].what.columns[len(renamed) :]]
        elif isinstance(column, exp.Column):
            names.append(folded(column.name))
        elif expands(column):
            return None
        else:
            names.append(None)
    return names


def restrictable(block: Block, place: Place) -> bool:
    """Whether fewer rows of a column change nothing but that the rows of other values are missing in the result."""
    from sqlglot import exp

    select = block.select
    if not block.plain or any(argument(select, key) for key in ("limit", "offset", "fetch", "qualify")):
        return False
    distinct = argument(select, "distinct")
    if distinct is not None and distinct.args.get("on"):
        return False
    parts = [*select.expressions, argument(select, "having"), argument(select, "order")]
    if any(part is not None and part.find(exp.Window, exp.Unnest, exp.Explode) for part in parts):
        return False
    group = argument(select, "group")
    if group is None:
        return not any(part is not None and part.find(exp.AggFunc) for part in select.expressions)
    return _is_group_key(block, group, place)


def is_single_pass(block: Block, catalog: Catalog) -> bool:
    """Whether a block returns one row for each row of FROM that passes WHERE, until its limit."""
    from sqlglot import exp

    select = block.select
    if not block.plain or any(argument(select, key) for key in ("distinct", "group", "having", "qualify", "fetch")):
        return False
    parts = [*select.expressions, argument(select, "order")]
    if any(part.find(exp.Window, exp.Unnest, exp.Explode, exp.AggFunc, exp.AnonymousAggFunc) for part in parts):
        return False
    # What the parser does not know may be an aggregate, or a macro around one.
    unknown = {folded(call.name) for part in parts for call in part.find_all(exp.Anonymous)}
    return catalog.are_scalars(unknown)


def _is_group_key(block: Block, group: Any, place: Place) -> bool:
    from sqlglot import exp

    if any(value for key, value in group.args.items() if key not in ("expressions", "all")):
        return False
    if group.args.get("all"):
        return True
    for key in group.expressions:
        column = key
        if isinstance(key, exp.Literal) and not key.is_string and str(key.this).isdigit():
            position = int(key.this) - 1
            if not 0 <= position < len(block.select.expressions):
                return False
            if any(expands(e) for e in block.select.expressions[: position + 1]):
                continue
            column = block.select.expressions[position]
            column = column.this if isinstance(column, exp.Alias) else column
        if _place(block, column) == place:
            return True
    return False


def is_steady(source: Source, steady: set[str], first: int = 0, last: int | None = None) -> bool:
    """Whether all function calls in a text give the same for the same arguments."""
    last = len(source.kinds) if last is None else last
    for index in range(first, last - 1):
        if source.kind(index + 1) != "L_PAREN":
            continue
        if source.kind(index - 1) in ("R_PAREN", "ALIAS", "VAR", "IDENTIFIER"):
            continue  # an alias with names of columns
        word = source.word(index).lower()
        if word[:1].isalpha() or word[:1] in '_"':
            name = word.strip('"')
            if name not in steady and name not in _NO_FUNCTIONS:
                return False
    # Functions that are written without parentheses.
    return not any(source.word(index).lower() in _BARE for index in range(first, last))


_NO_FUNCTIONS = {
    "select", "from", "where", "in", "and", "or", "not", "on", "as", "join", "using", "values", "any", "all", "exists",
    "by", "case", "when", "then", "else", "between", "materialized", "union", "except", "intersect", "having",
    "distinct", "lateral", "with", "cast", "try_cast", "exclude", "replace", "rename", "over", "filter", "limit",
    "offset", "is", "like", "ilike", "decimal", "numeric", "varchar", "struct", "map", "array", "columns", "extract",
    "coalesce", "nullif", "unnest", "interval", "row", "group", "sets", "rollup", "cube",
    "engram_row", "engram_vector", "engram_head", "engram_e_t", "engram_fetch", "engram_decode",
}  # fmt: skip
_BARE = {"tablesample", "sample"}
