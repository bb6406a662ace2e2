"""A query block (one SELECT) as the planner sees it: its relations in the order of FROM, and what columns mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engramsql.quoting import folded

if TYPE_CHECKING:
    from sqlglot import exp

    from engramsql.planner.names import Catalog, Scope
    from engramsql.planner.source import Source

__all__ = ["Block", "Item", "argument", "block_of", "children", "expands", "is_comma", "queries_below"]

#: What a select may have for its FROM to be looked at; anything else is not understood.
_BEFORE_WHERE = {"sample", "laterals", "pivots", "connect", "prewhere", "match", "hint", "into"}


@dataclass
class Item:
    """One relation of FROM."""

    index: int
    node: exp.Expression
    join: exp.Join | None
    #: ``inner``, ``left``, ``right``, ``full``, ``semi``, ``anti``, or ``other`` for what is not looked at.
    kind: str
    #: The name that qualifies its columns, folded; and as it was written. Both empty if there is none.
    alias: str
    written: str
    #: Column names given with the alias, folded.
    renamed: tuple[str, ...]
    what: Any
    #: Which part of FROM between commas it belongs to: joins bind tighter than commas.
    group: int = 0

    def column(self, name: str) -> str | None:
        """The table's own name of a column of this reference."""
        if name in self.renamed:
            position = self.renamed.index(name)
            return self.what.columns[position] if position < len(self.what.columns) else None
        unnamed = self.what.columns[len(self.renamed) :]
        return name if name in unnamed else None


@dataclass
class Block:
    """One SELECT and what is visible in it."""

    select: exp.Select
    source: Source
    scope: Scope
    outer: Block | None
    items: list[Item] = field(default_factory=list)
    #: Whether every join is one that predicates can be moved through.
    plain: bool = True

    def named(self, alias: str) -> list[Item]:
        """The relations of an alias."""
        return [item for item in self.items if item.alias == alias]

    def outside(self, alias: str) -> bool:
        """Whether an enclosing block has a relation of that alias."""
        block = self.outer
        while block is not None:
            if block.named(alias):
                return True
            block = block.outer
        return False

    def visible(self) -> list[Item]:
        """The relations whose columns WHERE sees."""
        return [item for item in self.items if item.kind not in ("semi", "anti")]

    def aliases_a_column(self, name: str) -> bool:
        """Whether the select list gives something that name."""
        from sqlglot import exp

        return any(isinstance(e, exp.Alias) and folded(e.alias) == name for e in self.select.expressions)


def argument(node: exp.Expression, name: str) -> Any:
    """An argument whose key has an underscore in newer versions of the parser, as it is a word of Python."""
    found = node.args.get(f"{name}_")
    return node.args.get(name) if found is None else found


def children(node: exp.Expression) -> list[exp.Expression]:
    """The nodes right below one."""
    return list(node.iter_expressions())


def block_of(select: exp.Select, source: Source, scope: Scope, outer: Block | None, catalog: Catalog) -> Block:
    """Reads FROM of a SELECT."""
    block = Block(select, source, scope, outer)
    if any(argument(select, key) for key in _BEFORE_WHERE):
        block.plain = False
    from_ = argument(select, "from")
    if from_ is None:
        return block
    _add(block, from_.this, None, catalog)
    for join in select.args.get("joins") or []:
        _add(block, join.this, join, catalog)
    return block


def _add(block: Block, node: exp.Expression, join: exp.Join | None, catalog: Catalog) -> None:
    from sqlglot import exp

    nested = node.args.get("joins") if isinstance(node, exp.Table) else None
    kind = "inner" if join is None else _kind(join)
    alias = node.args.get("alias")
    name = alias.this if isinstance(alias, exp.TableAlias) else None
    renamed = tuple(folded(column.name) for column in alias.columns) if isinstance(alias, exp.TableAlias) else ()
    what: Any = None
    if isinstance(node, exp.Table):
        what = catalog.resolve(node, block.scope)
        if name is None and isinstance(node.this, exp.Identifier):
            name = node.this
    elif isinstance(node, exp.Subquery) and _is_query(node):
        what = node
    written = '"' + name.name.replace('"', '""') + '"' if isinstance(name, exp.Identifier) else ""
    alias_name = folded(name.name) if isinstance(name, exp.Identifier) else ""
    group = block.items[-1].group if block.items else 0
    if join is not None and is_comma(join):
        group += 1
    block.items.append(Item(len(block.items), node, join, kind, alias_name, written, renamed, what, group))
    if kind in ("other", "positional"):
        block.plain = False
    for inner in nested or []:
        # `a, lateral_of_a` is read as a join of `a` itself.
        if isinstance(inner, exp.Join):
            _add(block, inner.this, inner, catalog)


def is_comma(join: exp.Join) -> bool:
    """Whether a join is written as a comma."""
    return not any(join.args.get(key) for key in ("on", "using", "method", "side", "kind"))


def expands(node: Any) -> bool:
    """Whether an expression of the select list stands for columns that it does not name."""
    from sqlglot import exp

    if node.find(exp.Columns) is not None:
        return True
    if any(isinstance(call.this, str) and call.this.lower() == "columns" for call in node.find_all(exp.Anonymous)):
        return True
    return any(not isinstance(star.parent, exp.Count) for star in node.find_all(exp.Star))


def _is_query(node: exp.Subquery) -> bool:
    from sqlglot import exp

    known = {"this", "alias", "with", "with_"}
    plain = not any(value for key, value in node.args.items() if key not in known)
    return plain and isinstance(node.this, exp.Query)


def _kind(join: exp.Join) -> str:
    method, side, kind = ((join.args.get(key) or "").upper() for key in ("method", "side", "kind"))
    known = {"this", "on", "using", "method", "side", "kind"}
    if method not in ("", "NATURAL") or any(value for key, value in join.args.items() if key not in known):
        return "other"
    if kind in ("SEMI", "ANTI"):
        return "other" if side else kind.lower()
    if kind not in ("", "INNER", "CROSS", "OUTER"):
        return "other"
    return side.lower() if side in ("LEFT", "RIGHT", "FULL") else "other" if side else "inner"


def queries_below(node: Any) -> list[Any]:
    """The outermost queries in an expression."""
    from sqlglot import exp

    found: list[Any] = []
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, exp.Query) and not isinstance(current, exp.Table):
            found.append(current)
        elif isinstance(current, exp.Expression):
            todo += children(current)
    return found
