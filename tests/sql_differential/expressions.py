"""Random values, expressions and conditions over the columns in scope."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sql_differential.nodes import Junction, Param, Part, Text, t

if TYPE_CHECKING:
    from sql_differential.world import Column

__all__ = ["Expressions", "Named"]

# A column as it is written here, with its kind.
Named = tuple[str, str]

# `@` is the column. All give the same value on every run, in whatever order rows come, and none fails for any key:
# whether DuckDB computes an expression for a row that another condition excludes is not determined.
_OF: dict[str, list[str]] = {
    "int": [
        "@", "@", "@", "@ + 1", "@ - 3", "@ % 7", "@ // 3", "-@", "@ // 2", "try_cast(@ AS INTEGER)",
        "CAST(@ AS HUGEINT)", "abs(@)", "@ & 15", "xor(@, 5)", "@ >> 1", "greatest(@, 5)", "least(@, 100, 7)",
        "ifnull(@, -1)", "coalesce(@, 0)", "CASE WHEN @ > 50 THEN 'high' WHEN @ IS NULL THEN NULL ELSE 'low' END",
        "CASE @ WHEN 5 THEN 1 ELSE 0 END", "try_cast(@ AS TINYINT)", "@ / 2", "@ ** 2", "@::VARCHAR", "@::DOUBLE",
        "format('{:05d}', @)", "[@, @ + 1]", "{'a': @, 'b': 'x'}", "@ IS NULL", "@ BETWEEN 3 AND 60",
        "@ IN (5, 7, NULL)", "hash(@) IS NOT NULL", "@ = 5", "if(@ > 7, 1, 2)", "nullif(@, 7)",
        "to_base(abs(try_cast(@ AS INTEGER)), 16)", "@ IS DISTINCT FROM 5", "date '2024-01-01' + (@ % 9)::INTEGER",
        "bit_count(@)", "try_cast(@ AS DECIMAL(18, 3))", "MAP {'k': @}", "struct_pack(a := @)",
        "list_value(@, NULL)", "1_000 + @", "@.abs()", "(@, 1)", "row(@, 'y')", "interval 1 day * (@ % 3)::INTEGER",
        "@ NOT BETWEEN 3 AND 60", "typeof(@)", "sign(@)", "list_contains([5, 7], @)",
        "[x * 2 FOR x IN [@, 1] IF x > 1]", "list_transform([@], lambda x: x + 1)", "@::BIT::VARCHAR",
        "printf('%d', @)", "make_date(2000, 1, (@ % 28)::INTEGER + 1 + 28 * (@ < 0)::INTEGER)", "trunc(@ / 7.0)",
        "round(@ / 3, 2)",
    ],
    "double": [
        "@", "@", "@ * 2", "@ + 1", "@::VARCHAR", "@ IS NULL", "@ > 5", "coalesce(@, 0)", "[@]", "-@", "@ = 5.5",
    ],
    "vector": [
        "@", "@", "@[1]", "@[1]", "@[-1]", "@[1:3]", "@[2:4:2]", "len(@)", "@::FLOAT[]", "array_length(@)",
        "@[1] > 0", "isnan(@[1])", "array_inner_product(@, @) IS NULL", "@ IS NULL",
        "[x * 2 FOR x IN @[1:4] IF x > 0]", "list_transform(@[1:3], lambda x: x + 1)", "list_max(@)",
        "list_min(@::FLOAT[])", "@[1:2]::VARCHAR", "list_aggregate(@, 'count')", "list_distinct(@)[1] IS NULL",
        "array_extract(@, 3)", "@[5] IN (0, 1)", "round(@[2], 3)", "list_reverse(@[1:3])", "list_position(@, @[1])",
        "list_filter(@[1:5], lambda x: x > 0)", "(@[1]::DOUBLE * 1000)::INTEGER", "struct_pack(v := @[1:2])",
        "@[200]",
    ],
    "blob": [
        "@", "@", "octet_length(@)", "hex(@)", "md5(@)", "@ IS NULL", "base64(@)", "@ = '\\x00'::BLOB",
        "@ || '\\x01'::BLOB", "sha256(@)", "length(@::VARCHAR)", "@ > '\\x80'::BLOB", "left(hex(@), 4)", "[@]",
        "get_bit(@::BIT, 3)", "hash(@) = hash(@)", "'' || @::VARCHAR",
    ],
    "text": [
        "@", "@", "upper(@)", "@ || 'x'", "@ LIKE 'k1%'", "@[1]", "@.upper()", "length(@)", "concat(@, 1, NULL)",
        "@ ILIKE 'K%'", "regexp_matches(@, '^k[0-9]$')", "@ GLOB 'k*'", "@ SIMILAR TO 'k.*'", "substr(@, 1, 2)",
        "string_split(@, '1')", "@[1:2]", "@ IN ('k1', 'k2')", "E'a\\tb' || @", "$$it's$$ || @", "@ COLLATE NOCASE",
        "@ IS NULL", "replace(@, 'k', '')", "position('1' IN @)", "trim(@)", "lpad(@, 6, '*')",
        "regexp_replace(@, '[0-9]', '#', 'g')", "@ !~~ 'k%'", "starts_with(@, 'k')",
    ],
    "bool": [
        "@", "NOT @", "@::INTEGER", "@ IS TRUE", "@ IS NOT FALSE", "@ AND true",
    ],
    "list": [
        "@", "@", "len(@)", "@[1]", "list_sum(@)", "@ || [9]", "list_contains(@, 7)", "array_to_string(@, '-')",
        "list_sort(@)",
    ],
}  # fmt: skip

_AGGREGATES: dict[str, list[str]] = {
    "int": [
        "count(@)", "sum(@)", "min(@)", "max(@)", "avg(@)", "count(DISTINCT @)", "list(@ ORDER BY @)",
        "string_agg(@::VARCHAR, ',' ORDER BY @)", "bool_or(@ > 7)", "bit_xor(@)", "median(@)",
        "sum(@) FILTER (WHERE @ > 5)", "count(*) FILTER (@ IS NULL)", "quantile_disc(@, 0.5)",
        "array_agg(@ ORDER BY @ DESC NULLS LAST)", "sum(DISTINCT @)", "approx_count_distinct(@) >= 0",
        "histogram(@)", "count_if(@ > 9)", "max(@, 2)", "sum(@ // 2)", "min(@) + max(@)",
        "list(DISTINCT @ ORDER BY @)", "product(@ % 2)", "bit_and(@)", "any_value(1)",
    ],
    "double": [
        "count(@)", "min(@)", "max(@)", "count(DISTINCT @)",
    ],
    "vector": [
        "count(@)", "count(DISTINCT @)", "max(@[1])", "min(len(@))", "sum(try_cast(@[1] AS DECIMAL(18, 9)))",
        "max(@)", "min(@)[1]",
    ],
    "blob": [
        "count(@)", "count(DISTINCT @)", "min(@)", "max(@)", "sum(octet_length(@))", "count(DISTINCT md5(@))",
    ],
    "text": [
        "count(@)", "min(@)", "max(@)", "string_agg(@, '|' ORDER BY @)", "count(DISTINCT @)", "list(@ ORDER BY @)",
    ],
    "bool": [
        "count(@)", "bool_and(@)", "bool_or(@)",
    ],
    "list": [
        "count(@)", "max(len(@))", "min(@)",
    ],
}  # fmt: skip

# What such an aggregate is, where a query around it goes on computing with it.
_NUMBERS = ["count(*)", "count(@)", "min(@)", "max(@)", "count(DISTINCT @)"]

_EDGES = [0, 1, 2, 5, 5, 5, 7, 7, 7, 52, 53, 60, 111, 112, 151, 251, 252, 255, 256, 700, 1391, 1392, 1407, 1408, -1, -7]
_ODD = [
    "NULL", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1" + 33 * "0", "5.0", "5.5",
    "'5'", "'007'", "1e2", "2 + 3", "abs(-7)", "length('abc')", "CAST('5' AS BIGINT)", "5::DOUBLE", "5::TINYINT",
    "7::HUGEINT", "7::UBIGINT", "true", "getvariable('wanted')", "'nan'::DOUBLE", "1e300", "1_0", "5::DECIMAL(9, 2)",
    "-0", "(5)", "+7", "NULL::BIGINT", "7.0::FLOAT", "-(-5)", "coalesce(NULL, 5)", "CASE WHEN true THEN 5 END",
    "[5, 7][2]", "{'a': 5}.a", "1e400",
]  # fmt: skip

_COMPUTED = ["@ + 1 = @", "@ % 7 = @", "@ // 3 = @", "@ - 3 < @", "@ // 2 = @", "abs(@) = @"]
_QUANTIFIED = ["= ANY", "> ALL", "< ANY", "<> ALL", "= SOME"]


class Expressions:
    """Draws expressions from one stream of random numbers; ``subquery`` makes the queries inside them."""

    def __init__(self, rng: random.Random, subquery: Callable[..., Part], *, parameters: float) -> None:
        self._rng = rng
        self._subquery = subquery
        self._parameters = parameters

    def item(self, scope: list[Named]) -> Part:
        """An expression for the SELECT list."""
        rng = self._rng
        name, kind = rng.choice(scope)
        draw = rng.random()
        if draw < 0.05:
            return self.constant()
        if draw < 0.08:
            return t("(@)", self._subquery("scalar", scope))
        if draw < 0.11:
            return t("@ AND @", self.condition(scope, 1), self.condition(scope, 1))
        if draw < 0.14:
            return t("CASE WHEN @ THEN @ END", self.condition(scope, 1), name)
        return rng.choice(_OF[kind]).replace("@", name)

    def aggregate(self, scope: list[Named]) -> Part:
        """An aggregate that no order of the rows can change."""
        if self._rng.random() < 0.2:
            return "count(*)"
        name, kind = self._rng.choice(scope)
        return self._rng.choice(_AGGREGATES[kind]).replace("@", name)

    def number(self, scope: list[Named]) -> Part:
        """An aggregate that is an integer."""
        integers = [name for name, kind in scope if kind == "int"]
        if not integers:
            return "count(*)"
        return self._rng.choice(_NUMBERS).replace("@", self._rng.choice(integers))

    def constant(self) -> Part:
        """A number, mostly the id of a row, or something odd."""
        rng = self._rng
        draw = rng.random()
        if draw < 0.1:
            return rng.choice(_ODD)
        value: Any = self.id()
        if rng.random() < self._parameters:
            return Param(rng.choice([value] * 12 + [None, float(value), str(value), 5.5, 1 << 70, True]))
        return str(value)

    def id(self) -> int:
        return self._rng.choice(_EDGES) if self._rng.random() < 0.7 else self._rng.randrange(-3, 1415)

    def condition(self, scope: list[Named], depth: int = 2) -> Part:
        """A condition; those on integers are of the forms that keys are looked up by."""
        rng = self._rng
        draw = rng.random()
        if depth > 0 and draw < 0.2:
            word = rng.choice(["AND", "OR", "OR"])
            return Junction(word, [self.condition(scope, depth - 1) for _ in range(rng.randint(2, 3))])
        if depth > 0 and draw < 0.25:
            return t("NOT (@)", self.condition(scope, depth - 1))
        integers = [name for name, kind in scope if kind == "int"]
        if integers and rng.random() < 0.85:
            ids = [name for name in integers if name.endswith(("rowid", "rid"))]
            return self._on_key(rng.choice(ids if ids and rng.random() < 0.75 else integers), scope, depth)
        name, kind = rng.choice(scope)
        return self._on_value(name, kind)

    def _on_value(self, name: str, kind: str) -> Part:
        forms = {
            "int": ["@ > 3"],
            "double": ["@ > 3", "@ IS NULL", "@ = 5", "@ <> 5.5", "@ IN (5, 6)", "isnan(@)"],
            "vector": [
                "@[1] > 0",
                "@ IS NOT NULL",
                "len(@) = 160",
                "isnan(@[1])",
                "@[1] BETWEEN -0.01 AND 0.01",
                "@ IS NULL",
            ],
            "blob": ["octet_length(@) = 160", "@ > '\\x80'::BLOB", "@ IS NULL", "hex(@) LIKE 'A%'", "@ IS NOT NULL"],
            "text": ["@ LIKE 'k%'", "@ IN ('k1', 'k2', 'p3')", "@ IS NULL", "length(@) > 2", "@ <> '5'", "@ = 'k7'"],
            "bool": ["@", "NOT @", "@ IS NULL"],
            "list": ["len(@) > 1", "@ IS NULL", "list_contains(@, 7)"],
        }
        return self._rng.choice(forms[kind]).replace("@", name)

    def _on_key(self, key: str, scope: list[Named], depth: int) -> Part:
        rng = self._rng
        integers = [name for name, kind in scope if kind == "int"]
        forms: list[tuple[int, Callable[[], Part]]] = [
            (8, lambda: t("@ = @", key, self.constant())),
            (2, lambda: t("@ = @", self.constant(), key)),
            (8, lambda: t("@ IN (@)", key, self.constants())),
            (2, lambda: t("@ NOT IN (@)", key, self.constants())),
            (5, lambda: t("@ BETWEEN @ AND @", key, *self.bounds())),
            (1, lambda: t("@ NOT BETWEEN @ AND @", key, self.constant(), self.constant())),
            (4, lambda: t("@ @ @", key, rng.choice(["<", "<=", ">", ">=", "<>", "!=", "=="]), self.constant())),
            (2, lambda: t("@ > @ AND @ < @", *self._within(key))),
            (1, lambda: t("@ @ @", self.constant(), rng.choice(["<", "<=", ">", ">="]), key)),
            (1, lambda: t("@ IS @NULL", key, rng.choice(["", "NOT "]))),
            (2, lambda: t("@ IS @DISTINCT FROM @", key, rng.choice(["", "NOT "]), self.constant())),
            (2, lambda: t("@ = @ OR @ = @", key, self.constant(), key, self.constant())),
            (2, lambda: t(rng.choice(_COMPUTED), key, self.constant())),
            (1, lambda: t("@::@ = @", key, rng.choice(["DOUBLE", "HUGEINT"]), self.constant())),
            (1, lambda: t("@::VARCHAR = '@'", key, str(self.id()))),
            (2, lambda: t("@ = ANY([@])", key, self.constants())),
            (1, lambda: t("list_contains([@], @)", self.constants(), key)),
            (1, lambda: t("@ IN [@]", key, self.constants())),
            (1, lambda: t("(@, 1) IN ((@, 1), (@, 2))", key, self.constant(), self.constant())),
            (1, lambda: t("(@) = (@)", key, self.constant())),
            (1, lambda: t("@ @ @", key, rng.choice(["=", "<", "<>", "<="]), rng.choice(integers))),
        ]  # fmt: skip
        if rng.random() < self._parameters:
            values = [self.id() for _ in range(rng.randint(0, 4))]
            forms += [
                (4, lambda: t("@ = ANY(@::BIGINT[])", key, Param(values))),
                (4, lambda: t("@ IN (SELECT unnest(@::BIGINT[]))", key, Param(values))),
                (2, lambda: t("list_contains(@::BIGINT[], @)", Param(values), key)),
            ]
        if depth > 0:
            forms += [
                (6, lambda: t("@ IN (@)", key, self._subquery("keys", scope))),
                (2, lambda: t("@ NOT IN (@)", key, self._subquery("keys", scope))),
                (3, lambda: t("@ = (@)", key, self._subquery("scalar", scope))),
                (3, lambda: t("@EXISTS (@)", rng.choice(["", "NOT "]), self._subquery("exists", scope, key))),
                (1, lambda: t("@ @ (@)", key, rng.choice(_QUANTIFIED), self._subquery("keys", scope))),
                (1, lambda: t("(@, @) IN (@)", key, key, self._subquery("pairs", scope))),
                (1, lambda: t("@ > (@)", key, self._subquery("scalar", scope))),
                (1, lambda: t("@ BETWEEN (@) AND @", key, self._subquery("scalar", scope), self.constant())),
            ]  # fmt: skip
        ((_, form),) = rng.choices(forms, [weight for weight, _ in forms])
        return form()

    def bounds(self) -> tuple[Part, Part]:
        """The ends of a range, mostly in order."""
        if self._rng.random() < 0.25:
            return self.constant(), self.constant()
        low = self.id()
        return str(low), str(low + self._rng.choice([0, 3, 20, 200, 2000]))

    def _within(self, key: str) -> tuple[Part, ...]:
        low, high = self.bounds()
        return key, low, key, high

    def constants(self) -> Part:
        rng = self._rng
        count = rng.choice([1, 2, 4, 6, 8, 12]) if rng.random() < 0.97 else rng.choice([200, 1500])
        parts: list[Part] = []
        for i in range(count):
            parts += [", "] * (i > 0) + [self.constant()]
        return Text(parts)


def named(alias: str, columns: tuple[Column, ...]) -> list[Named]:
    """Columns as ``alias.name``."""
    return [(f"{alias}.{column.name}", column.kind) for column in columns]
