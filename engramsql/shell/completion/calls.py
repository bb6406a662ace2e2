"""The function call that the cursor is in."""

from __future__ import annotations

from engramsql.shell.completion.tokens import Kind, Token
from engramsql.shell.completion.tree import CURSOR, Item, Tree, is_name, is_operator, name_of, place, upper
from engramsql.shell.completion.want import Call
from engramsql.shell.completion.words import NO_FUNCTION, QUERIES

__all__ = ["argument_begins", "innermost"]

_NAMED = (":=", "=>")
# A name in brackets after these is a list of columns.
_LISTED = frozenset({"INTO", "TABLE", "VIEW", "AS"})


def innermost(tree: Tree) -> Call | None:
    """The innermost function call around the cursor; None if there is none, or a subquery is nearer."""
    for depth in range(len(tree.path) - 1, 0, -1):
        group, outer = tree.path[depth], tree.path[depth - 1]
        if group.open != "(":
            continue
        if group.items and upper(group.items[0]) in QUERIES:
            return None
        at = place(outer.items, group)
        name = outer.items[at - 1] if at else None
        if not is_name(name) or upper(name) in NO_FUNCTION:
            continue
        if at >= 2 and upper(outer.items[at - 2]) in _LISTED:
            return None
        child: Item = tree.path[depth + 1] if depth + 1 < len(tree.path) else CURSOR
        return _called(name_of(name), group.items, place(group.items, child))
    return None


def _called(function: str, items: list[Item], cursor: int) -> Call:
    index, argument = 0, 0
    for at, item in enumerate(items[:cursor]):
        if is_operator(item, ","):
            index, argument = index + 1, at + 1
        elif isinstance(item, Token) and item.kind is Kind.NUMBERS:
            index += item.text.count(",")
    named = ""
    first = items[argument]
    if argument + 1 < cursor and is_name(first) and _is_named(items[argument + 1]):
        named = name_of(first)
    begins = items[0]
    return Call(function, index, named, isinstance(begins, Token) and begins.kind is Kind.STRING)


def argument_begins(previous: Item | None) -> bool:
    """Whether the value of an argument begins after that item."""
    return previous is None or is_operator(previous, ",") or _is_named(previous)


def _is_named(item: Item) -> bool:
    return any(is_operator(item, sign) for sign in _NAMED)
