"""Columns and values in the expressions of a query block."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from engramsql.planner.constraints import Scalar
from engramsql.planner.ids import Relation
from engramsql.planner.literals import folded_list
from engramsql.quoting import folded, literal

if TYPE_CHECKING:
    from engramsql.planner.blocks import Block

__all__ = ["Place", "Values"]

#: A relation by its place in FROM, and one of its columns.
Place = tuple[int, str]
_INTEGERS = {
    "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INTEGER", "BIGINT": "BIGINT", "INT128": "HUGEINT",
    "UTINYINT": "UTINYINT", "USMALLINT": "USMALLINT", "UINT": "UINTEGER", "UBIGINT": "UBIGINT", "UINT128": "UHUGEINT",
}  # fmt: skip
# Casts to these hold every row id, and never fail for one.
_WIDE = {"BIGINT", "INT128", "UBIGINT", "UINT128"}
_DECIMAL = re.compile(r"\d{0,18}\.?\d{0,9}(e\d{1,2})?", re.IGNORECASE)
_DIGITS = re.compile(r"\d{1,18}")


class Values:
    """Reads columns and values of one block."""

    def __init__(self, block: Block, lists: list[str]) -> None:
        self._block = block
        self._lists = lists

    def place(self, node: Any) -> Place | None:
        """The column of a relation of this block that a node is, under the name the relation has for it."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self.place(node.this)
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast) and _type(node) in _WIDE:
            return self.place(node.this)
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or node.args.get("db") is not None:
            return None
        name, items = folded(node.name), self._block.items
        if node.table:
            items = self._block.named(folded(node.table))
        elif len(items) > 1:
            items = [item for item in items if isinstance(item.what, Relation) and item.column(name)]
        if len(items) != 1:
            return None
        item = items[0]
        own = item.column(name) if isinstance(item.what, Relation) else name
        return None if own is None else (item.index, own)

    def scalar(self, node: Any) -> Scalar | None:
        """An expression that can be written once more elsewhere; None if it is not one of the plain ones."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self.scalar(node.this)
        if isinstance(node, (exp.Literal, exp.Neg)):
            value = self._whole(node)
            return None if value is None else Scalar(str(value), value)
        if isinstance(node, (exp.Placeholder, exp.Parameter)):
            text = _parameter(node)
            return None if text is None else Scalar(text)
        if isinstance(node, exp.Anonymous):
            text = _variable(node)
            return None if text is None else Scalar(text)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        operators = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.IntDiv: "//", exp.Mod: "%"}
        if (operator := operators.get(type(node))) is not None:
            one, other = self.scalar(node.this), self.scalar(node.expression)
            if one is None or other is None:
                return None
            return _joined(f"({one.text} {operator} {other.text})", one, other)
        return None

    def _cast(self, node: Any) -> Scalar | None:
        inner, name = self.scalar(node.this), _INTEGERS.get(_type(node))
        if inner is None or name is None:
            return None
        # What cannot be cast is no key; the predicate, which stays, raises.
        return _joined(f"TRY_CAST({inner.text} AS {name})", inner, fragile=True)

    def _column(self, node: Any) -> Scalar | None:
        from sqlglot import exp

        if isinstance(node.this, exp.Star) or node.args.get("db") is not None:
            return None
        if folded_list(folded(node.name), self._lists) is not None:
            return None
        name = folded(node.name)
        text = '"' + node.name.replace('"', '""') + '"'
        if node.table:
            return self._qualified(folded(node.table), name, text)
        items = self._block.items
        owners = [item for item in items if isinstance(item.what, Relation) and item.column(name)]
        if not owners:
            if self._block.aliases_a_column(name):
                return None
            owners = [item for item in items if not isinstance(item.what, Relation)]
            if not owners and self._block.outer is not None:
                return Scalar(text, outer=True, bare=True)
        if len(owners) == 1 and owners[0].written:
            return self._qualified(owners[0].alias, name, text)
        if not owners:
            return None
        return Scalar(text, relations=frozenset(item.index for item in owners), bare=True)

    def _qualified(self, alias: str, name: str, text: str) -> Scalar | None:
        items = self._block.named(alias)
        if len(items) == 1:
            item = items[0]
            own = item.column(name) if isinstance(item.what, Relation) else name
            if own is None:
                return None
            return Scalar(
                f"{item.written}.{text}",
                relations=frozenset({item.index}),
                aliases=frozenset({alias}),
                column=(item.index, own),
            )
        if not items and self._block.outside(alias):
            quoted = '"' + alias.replace('"', '""') + '"'
            return Scalar(f"{quoted}.{text}", outer=True, aliases=frozenset({alias}))
        return None

    def bound(self, node: Any, *, up: bool) -> Scalar | None:
        number = self.number(node)
        if number is not None:
            value = math.ceil(number) if up else math.floor(number)
            return Scalar(str(value), value)
        scalar = self.scalar(node)
        return scalar if scalar is not None and scalar.constant else None

    def _whole(self, node: Any) -> int | None:
        number = self.number(node)
        return int(number) if number is not None and number == int(number) else None

    def number(self, node: Any) -> float | int | None:
        """The value of a literal number that every type holds exactly."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self.number(node.this)
        if isinstance(node, exp.Neg):
            number = self.number(node.this)
            return None if number is None else -number
        if not isinstance(node, exp.Literal):
            return None
        text = str(node.this)
        if node.is_string:
            return int(text) if _DIGITS.fullmatch(text) else None
        if text.isascii() and text.isdigit():
            return int(text)
        number = float(text) if _DECIMAL.fullmatch(text) and text not in (".", "") else None
        return number if number is not None and abs(number) < 2**53 else None

    def list_of(self, node: Any) -> str | None:
        """An expression of type list that can be written once more."""
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self.list_of(node.this)
        if isinstance(node, (exp.Placeholder, exp.Parameter)):
            return _parameter(node)
        if isinstance(node, exp.Anonymous):
            return _variable(node)
        if isinstance(node, exp.Array):
            singles, members = [], []
            for member in node.expressions:
                if isinstance(member, exp.Null):
                    continue
                if (listed := self.folded_of(member)) is not None:
                    members.append(listed)
                    continue
                scalar = self.scalar(member)
                if scalar is None or not scalar.constant:
                    return None
                singles.append(scalar.text)
            if singles:
                members.append(f"[{', '.join(singles)}]")
            if not members:
                return None
            return members[0] if len(members) == 1 else f"system.main.list_concat({', '.join(members)})"
        if isinstance(node, exp.Cast) and _type(node) in ("ARRAY", "LIST"):
            inner = self.list_of(node.this)
            types = node.args["to"].expressions
            name = _INTEGERS.get(types[0].this.name) if len(types) == 1 and hasattr(types[0], "this") else None
            return None if inner is None or name is None else f"TRY_CAST({inner} AS {name}[])"
        return None

    def folded_of(self, node: Any) -> str | None:
        """A long list of integers, as one text that DuckDB casts much faster than it parses so many numbers."""
        from sqlglot import exp

        if not isinstance(node, exp.Column) or node.table:
            return None
        numbers = folded_list(node.name, self._lists)
        return None if numbers is None else f"{literal('[' + node.name + ']')}::BIGINT[]"


def _joined(text: str, *parts: Scalar, fragile: bool = False) -> Scalar:
    return Scalar(
        text,
        relations=frozenset().union(*(part.relations for part in parts)),
        outer=any(part.outer for part in parts),
        aliases=frozenset().union(*(part.aliases for part in parts)),
        bare=any(part.bare for part in parts),
        fragile=fragile or any(part.fragile for part in parts),
    )


def _type(node: Any) -> str:
    kind = getattr(node.args.get("to"), "this", None)
    return str(getattr(kind, "name", ""))


def _parameter(node: Any) -> str | None:
    from sqlglot import exp

    this = node.this
    name = this.name if isinstance(this, exp.Expression) else this
    return f"${name}" if name and re.fullmatch(r"\w+", str(name)) else None


def _variable(node: Any) -> str | None:
    from sqlglot import exp

    if folded(str(node.this)) != "getvariable" or len(node.expressions) != 1:
        return None
    name = node.expressions[0]
    if not isinstance(name, exp.Literal) or not name.is_string:
        return None
    return f"getvariable({literal(str(name.this))})"
