"""References to relations: what stands behind one, and what is written in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engramsql.planner.constraints import Both, Constraint, Listed, Points, Range
from engramsql.planner.names import Expression, Scope
from engramsql.planner.source import NotUnderstoodError, Source
from engramsql.quoting import folded

if TYPE_CHECKING:
    from sqlglot import exp

    from engramsql.planner.blocks import Block, Item
    from engramsql.planner.ids import Relation

__all__ = ["Pieces", "around", "expression_of", "is_narrow", "is_repeatable", "put", "same_names"]

#: Text with spans of its source.
Pieces = list[str | tuple[int, int]]

# A closed range of more rows is worth less than a key of a join.
_WIDE = 100_000


def is_narrow(values: Constraint, relation: Relation) -> bool:
    """Whether a set is small enough to be worth more than the key of a join."""
    if isinstance(values, (Points, Listed)):
        return True
    if isinstance(values, Range):
        if values.low is None or values.high is None:
            bound = values.low or values.high
            if bound is None or bound.value is None:
                return False
        low = values.low.value if values.low is not None else 0
        high = values.high.value if values.high is not None else relation.rows
        return low is None or high is None or high - low <= _WIDE
    return isinstance(values, Both) and all(is_narrow(part, relation) for part in values.parts)


def expression_of(cte: Any, source: Source, scope: Scope, recursive: bool) -> Expression:
    """A common table expression, with its text if it is a plain one."""
    from sqlglot import exp

    alias = cte.args.get("alias")
    name = alias.this
    columns = tuple(column.name for column in alias.columns)
    plain = isinstance(cte.this, exp.Query) and not recursive and cte.args.get("materialized") is not True
    text = ""
    if plain:
        index = source.index(name.meta["start"]) + 1
        if source.kind(index) == "L_PAREN":
            index = source.closing[index] + 1
        words = []
        while source.kind(index) not in ("L_PAREN", ""):
            words.append(source.word(index))
            index += 1
        plain = words in (["AS"], ["AS", "NOT", "MATERIALIZED"])
        if plain and index in source.closing:
            text = source.text[source.end(index) : source.start(source.closing[index])]
    return Expression(name.name, columns, text, scope, plain and bool(text))


def same_names(tree: exp.Expression, home: Scope, here: Scope) -> bool:
    """Whether the names of relations in a text mean the same at another place."""
    from sqlglot import exp

    names = {folded(table.name) for table in tree.find_all(exp.Table)}
    return all(home.find(name) is here.find(name) for name in names)


def is_repeatable(tree: exp.Expression) -> bool:
    """Whether a query returns the same when it is written twice."""
    from sqlglot import exp

    return tree.find(exp.Limit, exp.Fetch, exp.TableSample) is None


def around(relation: Relation, pieces: Pieces) -> Pieces:
    """The derived table over the ids that pieces of text select."""
    before, after = relation.select("\0").split("\0")
    return [before, *pieces, after]


def put(block: Block, item: Item, *pieces: str | tuple[int, int]) -> None:
    """Writes a derived table instead of the name of a relation, under the same alias."""
    source = block.source
    parts = [item.node.args.get(key) for key in ("catalog", "db", "this")]
    names = [part for part in parts if part is not None]
    first, last = source.index(names[0].meta["start"]), source.index(names[-1].meta["start"])
    if last - first != 2 * (len(names) - 1):
        raise NotUnderstoodError("a name of other tokens")
    alias = item.node.args.get("alias")
    if len(names) > 1 and alias is None and _is_qualified_by(block, len(names)):
        raise NotUnderstoodError("columns qualified by a schema")
    named = [f" AS {item.written}"] if alias is None or alias.this is None else []
    source.change(source.start(first), source.end(last), *pieces, *named)


def _is_qualified_by(block: Block, parts: int) -> bool:
    from sqlglot import exp

    return parts > 1 and any(column.args.get("db") for column in block.select.find_all(exp.Column))
