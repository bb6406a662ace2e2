"""Random queries over registered tables, key tables, views, CTEs and subqueries, from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from sql_differential.expressions import Expressions, Named, named
from sql_differential.nodes import Cte, Join, Node, Part, Select, SetOperation, Tail, t
from sql_differential.world import KEYS, REGISTERED, VIEWS, Column, Relation

__all__ = ["Generator"]

# Rows of a FROM above which only aggregates come out, and no further relation is joined without a key.
_MANY = 60_000

# Weights.
_JOINS = {
    "": 30, "INNER ": 6, "LEFT ": 18, "RIGHT ": 8, "FULL ": 8, "SEMI ": 8, "ANTI ": 6, "CROSS": 4, "COMMA": 8,
    "POSITIONAL": 1, "ASOF": 2, "NATURAL": 2, "LATERAL": 5,
}  # fmt: skip

_RENAMED = ("one", "two", "three", "four")


@dataclass
class _Scope:
    """What a SELECT may name: its own relations, then those of the queries around it."""

    relations: list[Relation] = field(default_factory=list)
    outer: list[Named] = field(default_factory=list)
    # About how many rows its FROM gives.
    rows: int = 1

    def columns(self, rng: random.Random, *also: Relation) -> list[Named]:
        """Columns as they may be written where ``also`` has columns too."""
        every = [name for relation in (*self.relations, *also) for name in relation.names()]
        counts = {name: every.count(name) for name in every}
        found: list[Named] = []
        for relation in self.relations:
            for name, kind in named(relation.alias, relation.columns):
                bare = name[len(relation.alias) + 1 :]
                # Also where two relations have it, now and then: that is an error in both worlds.
                short = rng.random() < (0.4 if counts[bare] == 1 else 0.01)
                found.append((bare if short else name, kind))
        return found


class Generator:
    """Draws whole queries."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.parameters = self.rng.choice([0.0, 0.0, 0.3])
        self.judge = self.rng.choice(["tables", "views"])
        self.style = self.rng.choice(["question", "number", "name"])
        self._expressions = Expressions(self.rng, self._subquery, parameters=self.parameters)
        self._aliases = 0
        self._ctes: list[Relation] = []

    def query(self) -> Node:
        """A query as a user would send it."""
        rng = self.rng
        ctes: list[Cte] = []
        recursive = False
        if rng.random() < 0.2:
            ctes, recursive = self._with()
        if rng.random() < 0.1:
            operation = self._set_operation()
            operation.ctes = ctes
            return operation
        select, _, _ = self._select(_Scope(), top=True)
        select.ctes, select.recursive = ctes, recursive
        return select

    def keyed(self) -> Relation:
        """A relation of the database, mostly a registered table."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.62 or (self._ctes and draw < 0.7):
            return rng.choice(REGISTERED[:1] * 3 + REGISTERED)
        return rng.choice(VIEWS)

    # WITH

    def _with(self) -> tuple[list[Cte], bool]:
        rng = self.rng
        ctes: list[Cte] = []
        made: list[Relation] = []
        for i in range(rng.choice([1, 1, 2])):
            name = f"c{i}"
            if rng.random() < 0.06:
                name = rng.choice(["ple", "PLE", "v41_l1", "keys"])  # hides what has that name
            if rng.random() < 0.12:
                low, step = rng.randrange(0, 9), rng.randrange(1, 90)
                body: Part = f"SELECT {low}::BIGINT AS n UNION ALL SELECT n + {step} FROM {name} WHERE n < 500"
                relation = Relation(name, (Column("n", "int"),), 500)
                recursive = True
            else:
                query, columns, rows = self._inner()
                body, recursive = query, False
                relation = Relation(name, columns, rows)
            ctes.append(
                Cte(name, body, "" if recursive else rng.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "]))
            )
            made.append(relation)
            self._ctes = list(made)
        return ctes, any("UNION ALL SELECT n +" in str(cte.query) for cte in ctes)

    def _inner(self) -> tuple[Node, tuple[Column, ...], int]:
        """A query for a FROM or a WITH, and what comes out of it."""
        return self._select(_Scope(), top=False)

    # SELECT

    def _select(self, scope: _Scope, *, top: bool) -> tuple[Select, tuple[Column, ...], int]:
        """A SELECT, its columns as far as they are known, and about how many rows it has."""
        rng = self.rng
        relations = self._relations(scope)
        columns = scope.columns(rng)
        select = Select(relations=relations, from_first=rng.random() < 0.08)
        big = scope.rows > _MANY
        for _ in range(rng.choice([0, 0, 0, 1, 1, 1, 2])):
            select.where.append(self._expressions.condition(columns))
        if len(scope.relations) == 1 and rng.random() < 0.25:
            select.where.append(self._expressions.condition(columns, 0))
        kind = rng.random()
        outputs: list[Column] = []
        if kind < 0.25 or big:
            outputs = self._aggregated(select, columns, top)
        elif kind < 0.45 and self._starred(select, scope, outputs):
            pass
        elif kind < 0.53 and top:
            self._windowed(select, scope, columns)
        else:
            for i in range(rng.randint(1, 4)):
                self._add(select, outputs, columns, i, top)
            if rng.random() < 0.08:
                select.distinct = "DISTINCT"
        self._tail(select, scope, outputs, top)
        return select, tuple(outputs), min(scope.rows, 5000)

    def _add(self, select: Select, outputs: list[Column], columns: list[Named], i: int, top: bool) -> None:
        """One more item. Inside a query it has a name and a kind, so that the query around it can use it."""
        rng = self.rng
        if not top or rng.random() < 0.5:
            name, kind = rng.choice(columns)
            bare = name.split(".")[-1]
            if rng.random() < 0.5 and all(bare != column.name for column in outputs):
                select.items.append(name)
                outputs.append(Column(bare, kind))
            else:
                alias = rng.choice([f"o{i}", f"o{i}", f'"Out {i}"'])
                form = rng.random()
                item = f"{alias}: {name}" if form < 0.06 else f"{name} {alias}" if form < 0.2 else f"{name} AS {alias}"
                select.items.append(item)
                outputs.append(Column(alias, kind))
        else:
            item = self._expressions.item(columns)
            select.items.append(t("@ AS x@", item, str(i)) if rng.random() < 0.4 else item)

    def _starred(self, select: Select, scope: _Scope, outputs: list[Column]) -> bool:
        """``*`` and its forms; not where a table without vectors or a great product would be read whole."""
        rng = self.rng
        if any(relation.name in ("peer", "listed") for relation in scope.relations):
            return False
        every = [column for relation in scope.relations for column in relation.columns]
        names = [column.name for column in every]
        first = scope.relations[0]
        draw = rng.random()
        if draw < 0.5:
            outputs += [column for column in every if names.count(column.name) == 1]
            if len(outputs) < len(every) and rng.random() < 0.7:
                outputs.clear()
                return False
            select.items = [] if rng.random() < 0.2 and outputs else ["*"]
        elif draw < 0.65:
            select.items = [f"{first.alias}.*"]
            outputs += first.columns
        elif draw < 0.8 and len(first.columns) > 1:
            gone = rng.choice(first.columns)
            select.items = [f"{first.alias}.* EXCLUDE ({gone.name})"]
            outputs += [column for column in first.columns if column is not gone]
        elif draw < 0.9:
            column = rng.choice(first.columns)
            select.items = [f"{first.alias}.* REPLACE (coalesce({column.name}) AS {column.name})"]
            outputs += first.columns
        else:
            select.items = [rng.choice([f"COLUMNS({first.alias}.*)", "COLUMNS('.*id$')"])]
        if not outputs:
            # What a pattern matches: those that are there once are enough for the query around it.
            outputs += [column for column in every if column.name.endswith("id") and names.count(column.name) == 1]
        if not outputs:
            select.items = []
        return bool(outputs)

    def _aggregated(self, select: Select, columns: list[Named], top: bool) -> list[Column]:
        rng = self.rng
        outputs: list[Column] = []
        for i in range(rng.choice([0, 1, 1, 2])):
            name, kind = rng.choice(columns)
            if kind == "int" and rng.random() < 0.3:
                name = f"{name} % 3"
            select.items.append(f"{name} AS g{i}")
            select.group.append(rng.choice([name, str(i + 1)]))
            outputs.append(Column(f"g{i}", kind))
        for i in range(rng.choice([1, 1, 2, 3])):
            if top:
                aggregate = self._expressions.aggregate(columns)
                select.items.append(t("@ AS a@", aggregate, str(i)) if rng.random() < 0.5 else aggregate)
            else:
                select.items.append(t("@ AS a@", self._expressions.number(columns), str(i)))
                outputs.append(Column(f"a{i}", "int"))
        if select.group and rng.random() < 0.2:
            select.group = [
                rng.choice(
                    [
                        "ALL",
                        "ALL",
                        t("ROLLUP (@)", ", ".join(map(str, select.group))),
                        t("CUBE (@)", ", ".join(map(str, select.group))),
                    ]
                )
            ]
        if rng.random() < 0.2:
            select.having.append(t("@ > @", self._expressions.number(columns), str(rng.randrange(0, 3))))
        return outputs

    def _windowed(self, select: Select, scope: _Scope, columns: list[Named]) -> None:
        """Window functions whose value the order of equal rows cannot change."""
        rng = self.rng
        integers = [name for name, kind in columns if kind == "int"] or ["1"]
        by, value = rng.choice(integers), rng.choice(integers)
        partition = f"PARTITION BY {rng.choice(integers)} " if rng.random() < 0.5 else ""
        functions = [
            "rank()",
            "dense_rank()",
            f"sum({value})",
            "count(*)",
            f"max({value})",
            "cume_dist()",
            "percent_rank()",
        ]
        unique = len(scope.relations) == 1 and scope.relations[0].registered
        if unique:
            by = f"{scope.relations[0].alias}.rowid"
            functions += ["row_number()", f"lag({value})", f"first_value({value})", "ntile(4)", f"lead({value}, 2, -1)"]
        order = f"ORDER BY {by}{rng.choice(['', ' DESC', ' NULLS FIRST'])}"
        frame = " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW" if unique and rng.random() < 0.2 else ""
        function = rng.choice(functions)
        if function.endswith("()") and frame:
            frame = ""
        window = f"{function} OVER ({partition}{order}{frame})"
        select.items = [rng.choice(integers), f"{window} AS win" if rng.random() < 0.7 else window]
        if rng.random() < 0.4:
            select.qualify = (
                f"{rng.choice(['rank()', 'dense_rank()'])} OVER ({partition}{order}) <= {rng.randrange(1, 5)}"
            )

    def _tail(self, select: Select, scope: _Scope, outputs: list[Column], top: bool) -> None:
        """ORDER BY and LIMIT. Inside a query a LIMIT has an order that determines it."""
        rng = self.rng
        tail = select.tail
        direction = lambda: rng.choice(["", "", " ASC", " DESC", " DESC NULLS FIRST", " NULLS FIRST", " NULLS LAST"])  # noqa: E731
        draw = rng.random()
        simple = not select.group and not select.distinct and len(scope.relations) == 1
        aggregate = bool(outputs) and any(
            column.name.startswith(("g", "a")) and len(column.name) == 2 for column in outputs
        )
        if draw < 0.5:
            return
        if (
            simple
            and scope.relations[0].registered
            and not aggregate
            and select.items
            and draw < 0.68
            and "count" not in str(select.items)
        ):
            key = f"{scope.relations[0].alias}.rowid"
            tail.order, tail.total = [key + direction()], True
        elif draw < 0.76 and select.items:
            tail.order, tail.total = ["ALL" + rng.choice(["", " DESC"])], True
        elif outputs and draw < 0.9:
            chosen = rng.sample(outputs, min(len(outputs), rng.choice([1, 1, 2])))
            tail.order = [column.name + direction() for column in chosen]
            tail.keys = [column.name.strip('"') for column in chosen]
        if (tail.total or top) and rng.random() < 0.6:
            tail.limit = rng.choice([self._limit(), self._limit(), self._limit(), "0", "10%", "NULL", "2 + 1"])
            if rng.random() < 0.3:
                tail.offset = self._limit()

    def _limit(self) -> Part:
        return str(self.rng.choice([1, 1, 2, 3, 3, 5, 10, 100, 2000]))

    # FROM

    def _alias(self) -> str:
        self._aliases += 1
        return self.rng.choice([f"r{self._aliases}", f"r{self._aliases}", f'"R {self._aliases}"'])

    def _relations(self, scope: _Scope) -> list[Part]:
        rng = self.rng
        count = rng.choices([1, 2, 3, 4], [50, 35, 10, 5])[0]
        first = rng.randrange(count) if count > 1 else 0
        parts: list[Part] = []
        for i in range(count):
            parts.append(self._relation(scope, keyed=i == first or rng.random() < 0.3, joined=i > 0))
        return parts

    def _relation(self, scope: _Scope, *, keyed: bool, joined: bool) -> Part:
        relation, written = self._source(keyed=keyed)
        if not joined:
            scope.relations.append(relation)
            scope.rows = max(relation.rows, 1)
            return written
        return self._join(scope, relation, written)

    def _source(self, *, keyed: bool) -> tuple[Relation, Part]:
        """Something to select from, under a name that is free."""
        rng = self.rng
        draw = rng.random()
        if self._ctes and draw < 0.4:
            base = rng.choice(self._ctes)
            return self._called(base)
        if draw < 0.12 and self._aliases < 4:
            query, columns, rows = self._inner()
            alias = self._alias()
            if rng.random() < 0.2 and len(columns) <= len(_RENAMED):
                columns = tuple(Column(name, column.kind) for name, column in zip(_RENAMED, columns, strict=False))
                names = ", ".join(column.name for column in columns)
                return Relation("", columns, rows, alias=alias), t("(@) AS @(@)", query, alias, names)
            return Relation("", columns, rows, alias=alias), t("(@) @@", query, rng.choice(["AS ", ""]), alias)
        if keyed:
            return self._called(self.keyed())
        if draw > 0.9:
            alias = self._alias()
            if rng.random() < 0.5:
                values = ", ".join(
                    f"({rng.choice([self._expressions.id(), 'NULL'])}, {i})" for i in range(rng.randint(1, 5))
                )
                columns = (Column("id", "int"), Column("w", "int"))
                return Relation("", columns, 5, alias=alias), f"(VALUES {values}) AS {alias}(id, w)"
            call = rng.choice(["range(3, 60, 7)", "unnest([5, 7, 7, 1500, NULL])", "generate_series(100, 115)"])
            return Relation("", (Column("id", "int"),), 16, alias=alias), f"{call} AS {alias}(id)"
        return self._called(rng.choice(KEYS))

    def _called(self, base: Relation) -> tuple[Relation, Part]:
        rng = self.rng
        name = base.name
        if base in self._ctes or base.python:
            pass
        elif rng.random() < 0.08:
            name = rng.choice(["main.", "memory.main.", "memory.", "MAIN."]) + name
        elif rng.random() < 0.08 and '"' not in name:
            name = rng.choice([name.upper(), f'"{name}"', name.capitalize()])
        alias = self._alias()
        draw = rng.random()
        if draw < 0.05 and len(base.columns) == 4:
            columns = tuple(Column(new, column.kind) for new, column in zip(_RENAMED, base.columns, strict=True))
            # Behind its new name the table of DuckDB would show its own `rowid`, which a view does not have.
            self.judge = "views"
            return Relation("", columns, base.rows, alias=alias), f"{name} AS {alias}({', '.join(_RENAMED)})"
        if draw < 0.08 and not base.python:
            return base.called(alias), f"{alias}: {name}"
        return base.called(alias), f"{name} {rng.choice(['AS ', 'AS ', ''])}{alias}"

    def _join(self, scope: _Scope, relation: Relation, written: Part) -> Part:
        rng = self.rng
        others = scope.columns(rng, relation)
        left = [name for name, kind in others if kind == "int"]
        right = [f"{relation.alias}.{column.name}" for column in relation.columns if column.kind == "int"]
        scope.relations.append(relation)
        kind = rng.choices(list(_JOINS), list(_JOINS.values()))[0]
        left, right = left or ["1"], right or ["1"]
        product = scope.rows * max(relation.rows, 1)
        if product > _MANY:
            scope.rows = 2 * max(scope.rows, relation.rows)
            one, two = rng.choice(_keys(left)), rng.choice(_keys(right))
            kind = rng.choice(["", "LEFT ", "RIGHT ", "FULL "])
            return Join(f"{kind}JOIN", written, f"ON {one} = {two}")
        scope.rows = product
        if kind in ("SEMI ", "ANTI "):
            # Its columns are not there afterwards.
            scope.relations.pop()
        if kind == "CROSS":
            return Join("CROSS JOIN", written)
        if kind == "COMMA":
            return written
        if kind in ("POSITIONAL", "NATURAL"):
            return Join(f"{kind} JOIN", written)
        if kind == "LATERAL":
            inner = _Scope([relation], others)
            columns = inner.columns(rng)
            scope.relations.pop()
            alias = self._alias()
            item = rng.choice(columns)
            body = t("SELECT @ AS lat FROM @ WHERE @ = @", item[0], written, rng.choice(right), rng.choice(left))
            scope.relations.append(Relation("", (Column("lat", item[1]),), 5, alias=alias))
            words = rng.choice(["CROSS JOIN LATERAL", "LEFT JOIN LATERAL", "JOIN LATERAL", "JOIN"])
            return Join(words, t("(@) AS @", body, alias), "" if words.startswith("CROSS") else "ON true")
        if kind == "ASOF":
            return Join("ASOF JOIN", written, t("ON @ >= @", rng.choice(left), rng.choice(right)))
        return Join(f"{kind}JOIN", written, self._on(scope, relation, left, right, others))

    def _on(self, scope: _Scope, relation: Relation, left: list[str], right: list[str], others: list[Named]) -> Part:
        rng = self.rng
        shared = {column.name for r in scope.relations if r is not relation for column in r.columns}
        common = [column.name for column in relation.columns if column.name in shared and column.kind == "int"]
        if common and rng.random() < 0.25:
            return f"USING ({', '.join(rng.sample(common, rng.choice([1, 1, len(common)])))})"
        one, two = rng.choice(_keys(left)), rng.choice(_keys(right))
        if rng.random() < 0.5:
            one, two = two, one
        draw = rng.random()
        if draw < 0.72:
            condition: Part = f"{one} = {two}"
        elif draw < 0.8:
            condition = rng.choice(
                [f"{one} + 1 = {two}", f"{one} = {two} - 2", f"{one} = {two} % 50", f"({one}) = ({two} // 2)"]
            )
        elif draw < 0.86:
            condition = f"{one} BETWEEN {two} AND {two} + 2"
        elif draw < 0.9:
            condition = f"{one} IS NOT DISTINCT FROM {two}"
        elif draw < 0.94:
            condition = f"{one} = {two} OR {rng.choice(right)} = {rng.choice(left)}"
        elif draw < 0.97:
            condition = f"{one} {rng.choice(['<', '>=', '<>'])} {two}"
        else:
            return "ON true"
        if rng.random() < 0.2:
            scoped = [*others, *named(relation.alias, relation.columns)]
            condition = t("@ AND @", condition, self._expressions.condition(scoped, 0))
        return t("ON @", condition)

    # Queries inside expressions

    def _subquery(self, kind: str, scope: list[Named], key: str = "") -> Part:
        """``keys`` is one column of ids, ``pairs`` two, ``scalar`` one value, ``exists`` rows for ``key``."""
        rng = self.rng
        registered = rng.random() < 0.35
        base = self.keyed() if registered else rng.choice(KEYS[:9] + KEYS[10:12] + KEYS[13:])
        relation, written = self._called(base)
        columns = named(relation.alias, relation.columns)
        integers = [name for name, kind in columns if kind == "int"]
        if rng.random() < 0.1:
            # By a bare name, which is looked for inside first, then outside.
            integers = [name.split(".")[-1] for name in integers]
        comparable = integers or [name for name, _ in columns]
        item = rng.choice(comparable)
        where: list[Part] = []
        if rng.random() < 0.5:
            where.append(self._expressions.condition(columns, 0))
        outside = [name for name, kind in scope if kind == "int"]
        if kind == "exists":
            where.append(f"{item} {rng.choice(['=', '=', '=', '<', '='])} {key}")
            return Select(
                [rng.choice(["1", "*", item]) if base.name not in ("peer", "listed") else "1"], [written], where=where
            )
        if outside and rng.random() < 0.15:
            where.append(f"{rng.choice(comparable)} = {rng.choice(outside)}")
        if kind == "pairs":
            return Select([item, rng.choice(comparable)], [written], where=where)
        if kind == "scalar":
            # More than one row is an error, but only if DuckDB needs the value at all.
            if rng.random() < 0.1:
                return Select([item], [written], where=where, tail=Tail(["1"], limit="1", total=True))
            return Select([f"{rng.choice(['min', 'max', 'count'])}({item})"], [written], where=where)
        select = Select([item], [written], where=where, distinct=rng.choice(["", "", "DISTINCT"]))
        if rng.random() < 0.1:
            select.tail = Tail(["1"], limit=str(rng.randrange(0, 6)), total=True)
        elif rng.random() < 0.05:
            return t("@ UNION @ (@)", select, rng.choice(["", "ALL"]), Select(["7"], []))
        return select

    # Set operations

    def _set_operation(self) -> SetOperation:
        rng = self.rng
        word = rng.choice(
            ["UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL", "UNION BY NAME"]
        )
        count = rng.randint(1, 3)
        sides = []
        for _ in range(2):
            scope = _Scope()
            relations = self._relations(scope)
            columns = scope.columns(rng)
            integers = [name for name, kind in columns if kind == "int"] or ["1"]
            select = Select([f"{rng.choice(integers)} AS u{i}" for i in range(count)], relations)
            select.where = [self._expressions.condition(columns) for _ in range(rng.choice([1, 1, 2]))]
            sides.append(select)
        operation = SetOperation(word, *sides)
        draw = rng.random()
        if draw < 0.3:
            operation.tail = Tail(["ALL"], total=True, limit=rng.choice(["", "3", "100"]))
        elif draw < 0.5:
            operation.tail = Tail(["u0 DESC"], keys=["u0"])
        elif draw < 0.6:
            operation.tail = Tail(limit="5")
        return operation


def _keys(names: list[str]) -> list[str]:
    """Those that look like row ids, if any do."""
    return [name for name in names if name.endswith(("id", ".a", ".b", ".n"))] or names
