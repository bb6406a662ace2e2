"""Which part of a statement the cursor is in, by what stands before it."""

from __future__ import annotations

from dataclasses import dataclass

from engramsql.shell.completion.tokens import Kind, Token
from engramsql.shell.completion.tree import Item, Tree, is_name, is_operator, name_of, place, upper
from engramsql.shell.completion.words import EXPRESSION, JOINS, RELATION_WORDS

__all__ = ["Part", "compared", "part_of"]


@dataclass(frozen=True)
class Part:
    """Which part of a statement the cursor is in.

    Attributes:
        name: A key of ``words.AFTER``, or empty.
        operand: Whether an operand comes next, not an operator or the next part.
        relation: Whether operands are relations.
        new: Whether operands are names that do not exist yet.
    """

    name: str = ""
    operand: bool = True
    relation: bool = False
    new: bool = False


_RELATION_PARTS = {"INTO": "INTO", "UPDATE": "UPDATE"}


def part_of(items: list[Item]) -> Part:
    """The part that what follows ``items`` is in: all that stands before it in its group and set operation."""
    name, operand, relation, new = "", True, False, False
    first = upper(items[0]) if items else ""
    previous: Item | None = None
    for at, item in enumerate(items):
        word = upper(item)
        if word == "FROM" and upper(previous) == "DISTINCT" and name not in ("", "SELECT"):
            operand, relation, new = True, False, False  # IS DISTINCT FROM
        elif word in RELATION_WORDS:
            name = _RELATION_PARTS.get(word, "FROM")
            operand, relation, new = True, True, word in ("TABLE", "VIEW") and first == "CREATE"
        elif word in EXPRESSION:
            name = EXPRESSION[word] or name
            operand, relation, new = True, False, False
        elif word == "WITH":
            name, operand, relation, new = "WITH", False, False, False
        elif word in ("GROUP", "ORDER", "PARTITION"):
            name, operand, relation = "GROUP" if word == "GROUP" else "ORDER", False, False
        elif word == "USING":
            operand, relation = False, False
        elif word == "AS":
            operand, new = True, True
        elif word == "COPY":
            name, operand, relation = "COPY", True, True
        elif word == "TO":
            operand, relation = True, True
        elif word in JOINS:
            operand = False
        elif word == "LATERAL":
            operand = True
        elif is_operator(item, "*"):
            # All columns, or a product.
            operand = not operand
        elif isinstance(item, Token) and item.kind is Kind.OPERATOR:
            new = name == "WITH" and item.text == ","
            if item.text == "," and name in ("FROM", "ON") and any(upper(it) == "FROM" for it in items[:at]):
                name, operand, relation = "FROM", True, True
            else:
                operand = not relation or item.text in (",", ".", ":")
        else:
            operand, new = False, False
        previous = item
    return Part(name, operand, relation, new)


def compared(tree: Tree, at: int) -> str:
    """The column that a value is compared with at the cursor, in ``head =`` and in ``head IN (``; empty if none is."""
    items = tree.path[-1].items
    back = at - 1
    while back >= 0 and any(is_operator(items[back], sign) for sign in "=<>!"):
        back -= 1
    if back == at - 1:
        # No comparison right before it: in the brackets of IN only other values can be.
        values = all(isinstance(item, Token) and item.kind is not Kind.WORD for item in items[:at])
        if len(tree.path) < 2 or not values or not (at == 0 or is_operator(items[at - 1], ",")):
            return ""
        items = tree.path[-2].items
        back = place(items, tree.path[-1]) - 1
        if back < 1 or upper(items[back]) != "IN":
            return ""
        back -= 2 if upper(items[back - 1]) == "NOT" else 1
    named = items[back] if back >= 0 else None
    return name_of(named) if is_name(named) else ""
