"""What a random query selects from: tables, views, subqueries and joins of them; and the queries inside conditions."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from sql_differential.expressions import Expressions, Named, named
from sql_differential.nodes import Join, Node, Part, Select, Tail, t
from sql_differential.world import KEYS, REGISTERED, VIEWS, Column, Relation

__all__ = ["MANY", "Scope", "Sources"]

# Rows of a FROM above which only aggregates come out, and no further relation is joined without a key.
MANY = 60_000

# Weights.
_JOINS = {
    "": 30, "INNER ": 6, "LEFT ": 18, "RIGHT ": 8, "FULL ": 8, "SEMI ": 8, "ANTI ": 6, "CROSS": 4, "COMMA": 8,
    "POSITIONAL": 1, "ASOF": 2, "NATURAL": 2, "LATERAL": 5,
}  # fmt: skip

_RENAMED = ("one", "two", "three", "four")


@dataclass
class Scope:
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


class Sources:
    """Draws relations; what stands inside of a FROM is drawn by ``inner``."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.parameters = self.rng.choice([0.0, 0.0, 0.3])
        self.judge = self.rng.choice(["tables", "views"])
        self.style = self.rng.choice(["question", "number", "name"])
        self._expressions = Expressions(self.rng, self._subquery, parameters=self.parameters)
        self._aliases = 0
        self._ctes: list[Relation] = []

    def inner(self) -> tuple[Node, tuple[Column, ...], int]:
        """A query for a FROM or a WITH, what comes out of it, and about how many rows."""
        raise NotImplementedError

    def keyed(self) -> Relation:
        """A relation of the database, mostly a registered table."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.62 or (self._ctes and draw < 0.7):
            return rng.choice(REGISTERED[:1] * 3 + REGISTERED)
        return rng.choice(VIEWS)

    # FROM

    def _alias(self) -> str:
        self._aliases += 1
        return self.rng.choice([f"r{self._aliases}", f"r{self._aliases}", f'"R {self._aliases}"'])

    def _relations(self, scope: Scope) -> list[Part]:
        rng = self.rng
        count = rng.choices([1, 2, 3, 4], [50, 35, 10, 5])[0]
        first = rng.randrange(count) if count > 1 else 0
        parts: list[Part] = []
        for i in range(count):
            parts.append(self._relation(scope, keyed=i == first or rng.random() < 0.3, joined=i > 0))
        return parts

    def _relation(self, scope: Scope, *, keyed: bool, joined: bool) -> Part:
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
            query, columns, rows = self.inner()
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
            if rng.random() < 0.25:
                return self._function(alias)
            if rng.random() < 0.5:
                values = ", ".join(
                    f"({rng.choice([self._expressions.id(), 'NULL'])}, {i})" for i in range(rng.randint(1, 5))
                )
                columns = (Column("id", "int"), Column("w", "int"))
                return Relation("", columns, 5, alias=alias), f"(VALUES {values}) AS {alias}(id, w)"
            call = rng.choice(["range(3, 60, 7)", "unnest([5, 7, 7, 1500, NULL])", "generate_series(100, 115)"])
            return Relation("", (Column("id", "int"),), 16, alias=alias), f"{call} AS {alias}(id)"
        return self._called(rng.choice(KEYS))

    def _function(self, alias: str) -> tuple[Relation, Part]:
        """Rows that a function of EngramSQL gives."""
        rng = self.rng
        table = rng.choice(REGISTERED[:3])
        name = table.name
        if rng.random() < 0.3:
            return table.called(alias), f"engram_scan('{name}') AS {alias}"
        ids = ", ".join(str(rng.choice([0, 5, 5, 7, 60, 100, 111, "NULL"])) for _ in range(rng.randint(1, 5)))
        columns = (Column("ord", "int"), Column("head", "int"), Column("rowid", "int"), *table.columns[2:])
        return Relation("", columns, 5, alias=alias), f"engram_fetch('{name}', [{ids}]) AS {alias}"

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

    def _join(self, scope: Scope, relation: Relation, written: Part) -> Part:
        rng = self.rng
        others = scope.columns(rng, relation)
        left = [name for name, kind in others if kind == "int"]
        right = [f"{relation.alias}.{column.name}" for column in relation.columns if column.kind == "int"]
        scope.relations.append(relation)
        kind = rng.choices(list(_JOINS), list(_JOINS.values()))[0]
        left, right = left or ["1"], right or ["1"]
        product = scope.rows * max(relation.rows, 1)
        if product > MANY:
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
            inner = Scope([relation], others)
            columns = inner.columns(rng)
            scope.relations.pop()
            alias = self._alias()
            item = rng.choice(columns)
            body = t("SELECT @ AS lat FROM @ WHERE @ = @", item[0], written, rng.choice(right), rng.choice(left))
            scope.relations.append(Relation("", (Column("lat", item[1]),), 5, alias=alias))
            words = rng.choice(["CROSS JOIN LATERAL", "LEFT JOIN LATERAL", "JOIN LATERAL", "JOIN"])
            return Join(words, t("(@) AS @", body, alias), "" if words.startswith("CROSS") else "ON true")
        if kind == "ASOF" and relation.registered:
            # By its row id, which no two rows share: among equals DuckDB may take any.
            return Join("ASOF JOIN", written, f"ON {rng.choice(left)} >= {relation.alias}.rowid")
        kind = kind.replace("ASOF", "")
        return Join(f"{kind}JOIN", written, self._on(scope, relation, left, right, others))

    def _on(self, scope: Scope, relation: Relation, left: list[str], right: list[str], others: list[Named]) -> Part:
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


def _keys(names: list[str]) -> list[str]:
    """Those that look like row ids, if any do."""
    return [name for name in names if name.endswith(("id", ".a", ".b", ".n"))] or names
