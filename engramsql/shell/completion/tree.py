"""A statement as nested groups, with the cursor in one of them.

Nothing is refused: a bracket that is not closed ends with the statement, one that was never opened is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeGuard

from engramsql.shell.completion.tokens import Kind, Token, unquoted

__all__ = ["CURSOR", "Group", "Item", "Tree", "build", "is_name", "is_operator", "name_of", "place", "upper"]

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())

# Stands for the word that is being typed; compared by identity.
CURSOR = Token(Kind.OPERATOR, "", -1, -1)


@dataclass
class Group:
    """What stands between two brackets; the statement itself is a group without."""

    open: str
    items: list[Item] = field(default_factory=list)


Item = Token | Group


@dataclass(frozen=True)
class Tree:
    """A statement and the groups around the cursor, the statement first."""

    root: Group
    path: tuple[Group, ...]


def build(before: list[Token], after: list[Token]) -> Tree:
    """The tree of the tokens before and after the cursor."""
    root = Group("")
    stack = [root]
    for token in before:
        _add(stack, token)
    path = tuple(stack)
    stack[-1].items.append(CURSOR)
    for token in after:
        _add(stack, token)
    return Tree(root, path)


def _add(stack: list[Group], token: Token) -> None:
    if token.kind is Kind.OPERATOR:
        if token.text in _OPENING:
            group = Group(token.text)
            stack[-1].items.append(group)
            stack.append(group)
            return
        if token.text in _CLOSING:
            # A bracket of another kind is missing its partner: the nearest that fits is meant.
            for depth in range(len(stack) - 1, 0, -1):
                if _OPENING[stack[depth].open] == token.text:
                    del stack[depth:]
                    break
            return
    stack[-1].items.append(token)


def place(items: list[Item], what: Item) -> int:
    """The index of that very item."""
    for index, item in enumerate(items):
        if item is what:
            return index
    raise LookupError("not an item of this group")


def upper(item: Item | None) -> str:
    """The upper-case text of a word; empty for all else."""
    return item.upper if isinstance(item, Token) else ""


def is_operator(item: Item | None, text: str) -> bool:
    """Whether the item is that operator."""
    return isinstance(item, Token) and item.operator(text)


def is_name(item: Item | None) -> TypeGuard[Token]:
    """Whether the item can be the name of something."""
    return isinstance(item, Token) and item.kind in (Kind.WORD, Kind.QUOTED)


def name_of(item: Token) -> str:
    """What an identifier names."""
    return unquoted(item)
