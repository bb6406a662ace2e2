"""Queries that give row ids: in IN, EXISTS and joins whose keys do not come first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engramsql.planner.blocks import Block, Item, argument
from engramsql.planner.ids import Relation
from engramsql.planner.joins import JOINS, equality, last_token, tokens_of
from engramsql.planner.names import Expression
from engramsql.planner.predicates import Found, Queried, Reader, conjuncts
from engramsql.quoting import folded, literal

if TYPE_CHECKING:
    from engramsql.planner.constraints import Scalar
    from engramsql.planner.rewrite import Rewriter
    from engramsql.planner.source import Source
    from engramsql.planner.values import Place

__all__ = ["can_share", "existence", "ids_of_later", "ids_of_query"]


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
        span = equality(source, part)
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
        return _ids(relation, queried, queried.pieces)
    if queried.shared is None and (queried.shareable or can_share(rewriter, block, queried)):
        rewriter.share(queried)
    if queried.shared is None:
        return None
    return _ids(relation, queried, [f"FROM {queried.shared}"])


def _ids(relation: Relation, queried: Queried, pieces: list[str | tuple[int, int]]) -> list[str | tuple[int, int]]:
    if queried.single:
        # In parentheses it stays one value: an error if there are more, NULL if there is none.
        return [f"(SELECT system.main._engram_key({literal(relation.name)}, (", *pieces, "\n)) AS rowid)"]
    return _distinct_ids(relation, pieces)


def _distinct_ids(relation: Relation, pieces: list[str | tuple[int, int]]) -> list[str | tuple[int, int]]:
    # The union refuses a query of several columns, as IN does.
    return [
        (
            f"(SELECT DISTINCT system.main._engram_key({literal(relation.name)}, _engram_i) AS rowid FROM "
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
    return [f"(SELECT DISTINCT system.main._engram_key({literal(relation.name)}, {key.text}) AS rowid FROM {text})"]


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
        first, last = tokens_of(source, item)
    elif item.index > 0 and isinstance(block.items[item.index - 1].node, exp.Table):
        before = block.items[item.index - 1]
        if not isinstance(before.node.this, exp.Identifier):
            return None
        first = tokens_of(source, before)[1] + 1
        while source.word(first) in JOINS:
            first += 1
        last = last_token(source, first)
    else:
        return None
    # An alias before the relation, `a: b`, is not part of what was found.
    return None if source.kind(first - 1) == "COLON" else (source.start(first), source.end(last))
