"""Random queries over registered tables, key tables, views, CTEs and subqueries, from a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sql_differential.nodes import Cte, Node, Part, Select, SetOperation, Tail, t
from sql_differential.sources import MANY, Scope, Sources
from sql_differential.world import Column, Relation

if TYPE_CHECKING:
    from sql_differential.expressions import Named

__all__ = ["Generator"]


class Generator(Sources):
    """Draws whole queries."""

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
        select, _, _ = self._select(Scope(), top=True)
        select.ctes, select.recursive = ctes, recursive
        return select

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
                query, columns, rows = self.inner()
                body, recursive = query, False
                relation = Relation(name, columns, rows)
            ctes.append(
                Cte(name, body, "" if recursive else rng.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "]))
            )
            made.append(relation)
            self._ctes = list(made)
        return ctes, any("UNION ALL SELECT n +" in str(cte.query) for cte in ctes)

    def inner(self) -> tuple[Node, tuple[Column, ...], int]:
        """A query for a FROM or a WITH, and what comes out of it."""
        return self._select(Scope(), top=False)

    # SELECT

    def _select(self, scope: Scope, *, top: bool) -> tuple[Select, tuple[Column, ...], int]:
        """A SELECT, its columns as far as they are known, and about how many rows it has."""
        rng = self.rng
        relations = self._relations(scope)
        columns = scope.columns(rng)
        select = Select(relations=relations, from_first=rng.random() < 0.08)
        big = scope.rows > MANY
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

    def _starred(self, select: Select, scope: Scope, outputs: list[Column]) -> bool:
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

    def _windowed(self, select: Select, scope: Scope, columns: list[Named]) -> None:
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

    def _tail(self, select: Select, scope: Scope, outputs: list[Column], top: bool) -> None:
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

    # Set operations

    def _set_operation(self) -> SetOperation:
        rng = self.rng
        word = rng.choice(
            ["UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL", "UNION BY NAME"]
        )
        count = rng.randint(1, 3)
        sides = []
        for _ in range(2):
            scope = Scope()
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
