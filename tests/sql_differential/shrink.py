"""Makes a failing statement smaller, by leaving out what it also fails without."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from sql_differential.nodes import Join, Node, Select, SetOperation, Tail, Text

if TYPE_CHECKING:
    from sql_differential.oracle import Case

__all__ = ["shrunk"]


def shrunk(case: Case, fails: Callable[[Case], bool], *, tries: int = 400) -> Case:
    """The smallest case found that still fails."""
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in _smaller(case):
            tries -= 1
            if tries <= 0:
                break
            if fails(smaller):
                case, progress = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for query in _promoted(case.query):
        yield replace(case, query=query)
    for i in range(len(case.before)):
        yield replace(case, before=case.before[:i] + case.before[i + 1 :])
    for path in list(_paths(case.query, ())):
        for change in _changes(_at(case.query, path)):
            whole = copy.deepcopy(case.query)
            change(_at(whole, path))
            yield replace(case, query=whole)


def _promoted(query: Any) -> Iterator[Node]:
    """Queries inside the query, as the whole."""
    for path in _paths(query, ()):
        node = _at(query, path)
        if path and isinstance(node, (Select, SetOperation)):
            yield copy.deepcopy(node)


def _paths(part: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Where the nodes of a tree are, the whole first."""
    if isinstance(part, Node):
        yield path
        for f in fields(part):  # type: ignore[arg-type]
            yield from _paths(getattr(part, f.name), (*path, f.name))
    elif isinstance(part, list):
        for i, one in enumerate(part):
            yield from _paths(one, (*path, i))


def _at(part: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        part = part[step] if isinstance(step, int) else getattr(part, step)
    return part


def _changes(node: Any) -> Iterator[Callable[[Any], None]]:
    """Ways to take something out of a node. An ORDER BY goes only together with its LIMIT, which it determines."""
    if isinstance(node, (Text, Tail)):
        if isinstance(node, Tail) and (node.order or node.limit):
            yield _empty_tail
            yield lambda n: setattr(n, "offset", "")
            yield _no_limit
        return
    for f in fields(node):
        value = getattr(node, f.name)
        if isinstance(value, list):
            # Without items a SELECT would be `FROM ...`, another query.
            for i in range(len(value) if f.name != "items" or len(value) > 1 else 0):
                yield lambda n, name=f.name, i=i: _take(n, name, i)
        elif f.name in ("distinct", "qualify", "sample", "from_first", "recursive") and value:
            yield lambda n, name=f.name, value=value: setattr(n, name, False if value is True else "")
    if isinstance(node, Join) and node.words.split()[0] not in ("JOIN", "CROSS"):
        yield lambda n: setattr(n, "words", "JOIN")


def _take(node: Any, name: str, i: int) -> None:
    del getattr(node, name)[i]
    if name == "relations" and node.relations and isinstance(node.relations[0], Join):
        node.relations[0] = node.relations[0].relation


def _empty_tail(tail: Tail) -> None:
    tail.order, tail.limit, tail.offset, tail.keys, tail.total = [], "", "", [], False


def _no_limit(tail: Tail) -> None:
    tail.limit = tail.offset = ""
