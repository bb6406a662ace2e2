"""The rewriting of one statement: each query block is read, and its references to tables get what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from engramsql.planner import joins, queries
from engramsql.planner.blocks import Block, Item, argument, block_of, children, queries_below
from engramsql.planner.constraints import Constraint, Scalar
from engramsql.planner.filters import filter_of, reads_rows
from engramsql.planner.ids import EVERY, Relation, by_key, by_set
from engramsql.planner.names import Catalog, Expression, Scope, View
from engramsql.planner.ordered import first_rows
from engramsql.planner.predicates import Found, Queried, Reader, conjuncts, merge
from engramsql.planner.references import Pieces, around, expression_of, is_narrow, is_repeatable, put, same_names
from engramsql.planner.shape import columns_of, is_steady, restrictable, traced
from engramsql.planner.source import NotUnderstoodError, Source, ends_of_columns, parse
from engramsql.planner.swaps import swap
from engramsql.quoting import folded

if TYPE_CHECKING:
    from engramsql.planner.values import Place

__all__ = ["Access", "Rewriter"]

#: What a reference to a derived table is asked for: folded column name to what is known of it.
Demands = dict[str, Found]

# Views over views, and expressions over expressions, are looked through so deep.
_DEPTH = 8
# And so many of them for one statement.
_PATIENCE = 40


@dataclass(frozen=True)
class Access:
    """What is read for one reference to a table."""

    relation: Relation
    #: By what: a constraint, the text of a key, ``query``, or None for all rows.
    by: Constraint | Scalar | str | None


@dataclass
class Rewriter:
    """State of the planning of one statement."""

    catalog: Catalog
    lists: list[str]
    #: The tree of the whole statement.
    tree: Any
    #: The common table expressions that are read by name, where the rewriter is now.
    named: list[Expression] = field(default_factory=list)
    #: In the order in which they were planned.
    accesses: list[Access] = field(default_factory=list)
    #: Queries that are read twice, and so are written once: text by name.
    shared: dict[str, tuple[Source, tuple[int, int], str]] = field(default_factory=dict)
    #: Whether the place where they are written exists and is seen from where the rewriter is now.
    can_share: bool = False
    #: Whether the names of the columns of the query to come are free, show in a relation, or are the statement's own.
    naming: str = "inner"
    #: Where expressions of the statement's own columns end that DuckDB names by their text: position and place.
    unnamed: list[tuple[int, int]] = field(default_factory=list)
    gains: int = 0
    depth: int = 0
    #: How many queries behind names may still be read: each of them may stand behind many others.
    patience: int = _PATIENCE

    def query(self, node: Any, source: Source, scope: Scope, outer: Block | None, demands: Demands) -> None:
        """Plans a query in place."""
        from sqlglot import exp

        scope = self._with(node, source, scope, outer)
        if isinstance(node, exp.Subquery):
            known = {"this", "alias", "with", "with_"}
            if any(value for key, value in node.args.items() if key not in known):
                demands = {}
            self.query(node.this, source, scope, outer, demands)
        elif isinstance(node, exp.Select):
            self._select(node, source, scope, outer, demands)
        elif isinstance(node, exp.SetOperation):
            self._operation(node, source, scope, outer, demands)
        else:
            self._nested(node, source, scope, outer)

    def _as(self, naming: str, node: Any, source: Source, scope: Scope, outer: Block | None) -> None:
        before, self.naming = self.naming, naming
        self.query(node, source, scope, outer, {})
        self.naming = before

    def _with(self, node: Any, source: Source, scope: Scope, outer: Block | None) -> Scope:
        """The scope with the expressions of WITH, which are planned on the way."""
        from sqlglot import exp

        with_ = argument(node, "with")
        if with_ is None:
            return scope
        scope = Scope(scope)
        recursive = bool(with_.args.get("recursive"))
        shares, self.can_share = self.can_share, False
        for cte in with_.expressions:
            expression = expression_of(cte, source, scope, recursive)
            if recursive:
                scope = Scope(scope, {folded(expression.name): expression})
            if isinstance(cte.this, exp.Query):
                self._body(expression, cte.this, source, scope, outer)
            scope = Scope(scope, {folded(expression.name): expression})
        self.can_share = shares
        return scope

    def _body(self, expression: Expression, node: Any, source: Source, scope: Scope, outer: Block | None) -> None:
        """Plans an expression in place; what it reads counts where it is read by its name."""
        accesses, named = self.accesses, self.named
        self.accesses, self.named = [], []
        self._as("inner", node, source, scope, outer)
        expression.reads, expression.names = self.accesses, self.named
        self.accesses, self.named = accesses, named

    def all_accesses(self) -> list[Access]:
        """What the whole statement reads, with the expressions that it reads by name."""
        found, todo, seen = list(self.accesses), list(self.named), set()
        while todo:
            expression = todo.pop(0)
            if id(expression) not in seen:
                seen.add(id(expression))
                found += expression.reads
                todo += expression.names
        return found

    def _operation(self, node: Any, source: Source, scope: Scope, outer: Block | None, demands: Demands) -> None:
        if any(argument(node, key) for key in ("limit", "offset", "fetch", "order", "sample")) and any(
            argument(node, key) for key in ("limit", "offset", "fetch", "sample")
        ):
            demands = {}
        # ON and BY NAME of set operations are left alone.
        left, right = node.this, node.expression
        self.naming = "inner" if self.naming == "own" else self.naming
        theirs: Demands = {}
        if demands and not node.args.get("by_name"):
            theirs = self._by_position(left, right, source, scope, outer, demands)
        elif demands:
            theirs = demands
        self.query(left, source, scope, outer, demands)
        self.query(right, source, scope, outer, theirs)

    def _by_position(
        self, left: Any, right: Any, source: Source, scope: Scope, outer: Block | None, demands: Demands
    ) -> Demands:
        names, others = (self._columns(side, source, scope, outer) for side in (left, right))
        if names is None or others is None:
            return {}
        theirs: Demands = {}
        for name, found in demands.items():
            if names.count(name) == 1 and names.index(name) < len(others):
                other = others[names.index(name)]
                if other is not None and others.count(other) == 1:
                    theirs[other] = found
        return theirs

    def _columns(self, node: Any, source: Source, scope: Scope, outer: Block | None) -> list[str | None] | None:
        from sqlglot import exp

        while isinstance(node, exp.Subquery):
            node = node.this
        if isinstance(node, exp.SetOperation):
            return self._columns(node.this, source, scope, outer)
        if not isinstance(node, exp.Select) or argument(node, "with") is not None:
            return None
        return columns_of(node, block_of(node, source, scope, outer, self.catalog))

    def _nested(self, node: Any, source: Source, scope: Scope, outer: Block | None) -> None:
        for child in children(node):
            for query in queries_below(child):
                self._as("free", query, source, scope, outer)

    def share(self, queried: Queried) -> None:
        """Has a query written once, before the statement; where it stood its name is read."""
        (span,) = queried.pieces
        assert isinstance(span, tuple)
        queried.shared = self.share_text(queried.block.source, span)
        queried.block.source.change(*span, f"FROM {queried.shared}")

    def share_text(self, source: Source, span: tuple[int, int], before: str = "") -> str:
        """Has a text written once, before the statement; returns the name that it can be read by."""
        name = f"_engram_shared_{len(self.shared)}"
        self.shared[name] = (source, span, before)
        return name

    def _read(self, source: Source) -> Any:
        self.patience -= 1
        if self.patience < 0:
            raise NotUnderstoodError("too many queries behind names")
        return parse(source)

    def repeats(self, expression: Expression) -> bool:
        """Whether a common table expression is the same if it is read twice."""
        if not expression.plain:
            return False
        source = Source(expression.text)
        tree = self._read(source)
        return (
            is_steady(source, self.catalog.steady)
            and is_repeatable(tree)
            and self._known_tables(tree, expression.scope)
        )

    def _known_tables(self, tree: Any, scope: Scope) -> bool:
        """Whether all relations of a query are tables and views of the catalog, which no reading uses up."""
        from sqlglot import exp

        inner = {folded(cte.alias) for cte in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            if folded(table.name) in inner or not isinstance(table.this, exp.Identifier):
                continue
            what = self.catalog.resolve(table, scope)
            if what is None or (isinstance(what, Expression) and not self.repeats(what)):
                return False
        return True

    def _references(self, name: str) -> int:
        """How often a name of a relation occurs in the statement."""
        from sqlglot import exp

        return sum(folded(table.name) == folded(name) for table in self.tree.find_all(exp.Table))

    # One block

    def _select(self, node: Any, source: Source, scope: Scope, outer: Block | None, demands: Demands) -> None:
        block = block_of(node, source, scope, outer, self.catalog)
        known = self._known(block, demands)
        swapped = swap(block, known)
        for item in block.items:
            self._item(block, item, known, swapped)
        for key, value in node.args.items():
            if key in ("with", "with_", "from", "from_", "joins", "expressions"):
                continue
            for part in value if isinstance(value, list) else [value]:
                self._expression(part, block)
        for position, column in enumerate(node.expressions):
            self._column(position, column, block)
        for join in node.args.get("joins") or []:
            self._expression(join.args.get("on"), block)

    def _expression(self, node: Any, block: Block) -> None:
        for query in queries_below(node):
            self._as("free", query, block.source, block.scope, block)

    def _column(self, position: int, node: Any, block: Block) -> None:
        """Plans the queries of a column; a column that DuckDB names by its text must keep that name."""
        from sqlglot import exp

        if not isinstance(node, exp.Alias) and self.naming != "free" and queries_below(node):
            ends = ends_of_columns(block.source) if self.naming == "own" else []
            if len(ends) != len(block.select.expressions):
                return
            before = self.gains
            self._expression(node, block)
            if self.gains > before:
                self.unnamed.append((position, ends[position]))
            return
        self._expression(node, block)

    def _known(self, block: Block, demands: Demands) -> dict[Place, Found]:
        known: dict[Place, Found] = {}
        if not block.plain:
            return known
        reader = Reader(block, self.lists)
        where = argument(block.select, "where")
        for predicate in conjuncts(where.this if where is not None else None):
            found = reader.read(predicate)
            merge(found, queries.existence(block, predicate, self.lists))
            for place, one in found.items():
                certain = not joins.nullable(block, place[0])
                for queried in one.queries:
                    queried.certain = certain
                if not certain:
                    one.written = None
            merge(known, found)
        for item in block.items:
            merge(known, joins.joined(block, item, reader))
        for name, asked in demands.items():
            target = traced(block, name)
            if target is not None and restrictable(block, target) and self._steady(block):
                merge(known, {target: Found(asked.values, list(asked.keys), list(asked.queries))})
        joins.transfer(known)
        return known

    def _steady(self, block: Block) -> bool:
        return is_steady(block.source, self.catalog.steady)

    def _item(self, block: Block, item: Item, known: dict[Place, Found], swapped: bool) -> None:
        from sqlglot import exp

        if isinstance(item.what, Relation):
            found = known.get((item.index, "rowid"), Found())
            self._table(block, item, item.what, found, swapped)
        elif isinstance(item.what, (View, Expression)):
            looked = self._look_through(block, item, self._asked(block, item, known, swapped))
            if isinstance(item.what, Expression) and not looked:
                self.named.append(item.what)
        elif isinstance(item.what, exp.Subquery):
            naming, self.naming = self.naming, "inner"
            self.query(item.what, block.source, block.scope, block, self._asked(block, item, known, swapped))
            self.naming = naming
        else:
            for query in queries_below(item.node):
                self._as("inner", query, block.source, block.scope, block)

    def _table(self, block: Block, item: Item, relation: Relation, found: Found, swapped: bool) -> None:
        if not joins.nullable(block, item.index):
            relation = replace(relation, filter=filter_of(block, item, relation.rows, self.catalog))
        chosen = self._choose(block, item, relation, found, swapped)
        if chosen is None:
            chosen = first_rows(block, item, relation, found, self.catalog)
        filter_ = relation.filter
        if chosen is None and filter_ is not None and filter_.computes and reads_rows(block.source):
            chosen = [by_set(relation, EVERY)], EVERY
        self.accesses.append(Access(relation, chosen[1] if chosen is not None else None))
        if chosen is not None:
            put(block, item, *chosen[0])
            self.gains += 1

    def _choose(
        self, block: Block, item: Item, relation: Relation, found: Found, swapped: bool
    ) -> tuple[Pieces, Constraint | Scalar | str] | None:
        """The derived table for a reference and by what it is restricted."""
        if found.values is not None and is_narrow(found.values, relation):
            ordered = first_rows(block, item, relation, found, self.catalog)
            if ordered is None and found.written is not None:
                block.source.change(*found.written, "true")
            return ordered or ([by_set(relation, found.values)], found.values)
        for key in found.keys:
            if joins.reaches(block, item, key, swapped) and joins.without_left(block, item, key):
                return [by_key(relation, key.text)], key
        for queried in found.queries:
            pieces = queries.ids_of_query(self, block, item, relation, queried)
            if pieces is not None:
                return around(relation, pieces), "query"
        for key in found.keys:
            pieces = queries.ids_of_later(self, block, item, relation, key)
            if pieces is not None:
                return around(relation, pieces), key
        ordered = first_rows(block, item, relation, found, self.catalog)
        if ordered is not None:
            return ordered
        if found.values is not None:
            return [by_set(relation, found.values)], found.values
        return None

    def _asked(self, block: Block, item: Item, known: dict[Place, Found], swapped: bool) -> Demands:
        """What a derived table is asked for, in terms that hold inside of it."""
        asked: Demands = {}
        for (index, name), found in known.items():
            if index != item.index:
                continue
            keys = [
                Scalar(key.text, outer=True, aliases=key.aliases, fragile=key.fragile)
                for key in found.keys
                if joins.reaches(block, item, key, swapped) and not key.bare
            ]
            if item.renamed:
                if name not in item.renamed:
                    continue
                names = self._columns(item.what, block.source, block.scope, block) if item.node is item.what else None
                position = item.renamed.index(name)
                own = names[position] if names is not None and position < len(names) else None
                if own is None or names is None or names.count(own) != 1:
                    continue
                name = own
            shareable = [queried for queried in found.queries if queries.can_share(self, block, queried)]
            for queried in shareable:
                queried.shareable = True
            if found.values is not None or keys or shareable:
                asked[name] = Found(found.values, keys, shareable)
        return asked

    def _look_through(self, block: Block, item: Item, asked: Demands) -> bool:
        """Writes a view, or a common table expression that gains from it, at the place of its reference."""
        what: View | Expression = item.what
        if self.depth >= _DEPTH or (item.node.args.get("joins") and item.alias == ""):
            return False
        if isinstance(what, Expression) and (not asked or not what.plain):
            return False
        if item.renamed and what.columns:
            return False
        inner = Source(what.text)
        tree = self._read(inner)
        home = what.scope if isinstance(what, Expression) else Scope()
        if not same_names(tree, home, block.scope):
            return False
        if isinstance(what, Expression):
            # Read in one place only, it stays one reading wherever it is written.
            once = self._references(what.name) == 1
            if not is_steady(inner, self.catalog.steady) or not is_repeatable(tree):
                return False
            if not once and not self._known_tables(tree, what.scope):
                return False
        before, accesses, names = self.gains, len(self.accesses), len(self.named)
        changes_of_name = dict(zip(what.columns, range(len(what.columns)), strict=True))
        if changes_of_name:
            asked = self._renamed(tree, inner, home, what.columns, asked)
        shares, naming = self.can_share, self.naming
        self.can_share, self.naming = False, "inner"
        self.depth += 1
        self.query(tree, inner, home, block, asked)
        self.depth -= 1
        self.can_share, self.naming = shares, naming
        if self.gains == before:
            if isinstance(what, Expression):
                # It is read where it is defined.
                del self.accesses[accesses:], self.named[names:]
            return False
        text = f"({inner.render()})"
        if what.columns:
            columns = ", ".join('"' + column.replace('"', '""') + '"' for column in what.columns)
            text = f"(SELECT * FROM {text} AS _engram_v({columns}))"
        put(block, item, text)
        return True

    def _renamed(self, tree: Any, source: Source, scope: Scope, columns: tuple[str, ...], asked: Demands) -> Demands:
        names = self._columns(tree, source, scope, None)
        if names is None:
            return {}
        inner: Demands = {}
        for position, column in enumerate(columns):
            if folded(column) in asked and position < len(names):
                own = names[position]
                if own is not None and names.count(own) == 1:
                    inner[own] = asked[folded(column)]
        return inner
