"""The relations that can be named where the cursor is: FROM clauses, CTEs, subqueries, table functions.

A best guess at a statement that is not finished: what is not understood is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engramsql.quoting import folded
from engramsql.shell.completion.tokens import Kind, Token, unquoted
from engramsql.shell.completion.tree import Group, Item, Tree, is_name, is_operator, name_of, place, upper
from engramsql.shell.completion.words import CLAUSES, JOINS, QUERIES, RELATION_WORDS, SET_OPERATIONS

__all__ = ["Cte", "Scope", "Source", "block", "files_of", "scope"]

_NO_ALIAS = (
    CLAUSES
    | JOINS
    | {"ON", "USING", "AS", "TABLESAMPLE", "PIVOT", "UNPIVOT", "FOR", "AT", "DO", "DROP", "ADD", "RENAME", "ALTER"}
)
_SKIPPED = frozenset({"LATERAL", "ONLY", "IF", "NOT", "EXISTS"})
# Table functions of DuckDB whose columns are those of the file; what a CSV file is told to be is not looked at.
_READERS = re.compile(
    r"(?:read|parquet)_(?:csv|parquet|json|ndjson|scan)(?:_auto|_objects)?|parquet_scan", re.IGNORECASE
)
# Deeper nests give no columns; nobody reads such a statement either.
_DEPTH = 12


@dataclass(frozen=True)
class Source:
    """A relation of a FROM clause.

    Attributes:
        alias: What its columns are qualified with; empty if there is nothing.
        name: The dotted name in the catalog; empty for what has none.
        function: The table function it calls.
        columns: Columns that the text itself names.
        file: The path of the file it reads, as typed.
        stars: Relations whose columns it has as well.
    """

    alias: str
    name: tuple[str, ...] = ()
    function: str = ""
    columns: tuple[str, ...] = ()
    stars: tuple[Source, ...] = ()
    file: str = ""


@dataclass(frozen=True)
class Cte:
    """A name of a WITH clause."""

    name: str
    source: Source


@dataclass(frozen=True)
class Scope:
    """What can be named at the cursor: relations, the nearest first, and the CTEs."""

    sources: tuple[Source, ...]
    ctes: tuple[Cte, ...]


_Ctes = dict[str, Source]


def files_of(sources: Iterable[Source]) -> list[str]:
    """The files that relations read, themselves or by what they are made of."""
    # A CTE that is named twice by each of the next ones would be gone through a million times.
    seen: dict[int, Source] = {}
    waiting = list(sources)
    while waiting:
        source = waiting.pop()
        if id(source) not in seen:
            seen[id(source)] = source
            waiting += source.stars
    return [source.file for source in seen.values() if source.file]


def scope(tree: Tree) -> Scope:
    """The relations and CTEs that the cursor sees."""
    ctes: _Ctes = {}
    names: dict[str, str] = {}
    levels: list[tuple[Source, ...]] = []
    for depth, group in enumerate(tree.path[-_DEPTH:]):
        inner = tree.path[-_DEPTH:]
        child = inner[depth + 1] if depth + 1 < len(inner) else None
        index = _inside(group, child)
        found = _ctes(group.items, ctes, 0, index)
        for name, source in found:
            ctes[folded(name)] = source
            names[folded(name)] = name
        low, high = block(group.items, index)
        levels.append(tuple(_sources(group.items[low:high], ctes, 0, child)))
        # The body of a CTE sees nothing of the query that it stands before.
        if child is not None and upper(group.items[index - 1] if index else None) in ("AS", "MATERIALIZED"):
            levels.clear()
    sources = tuple(source for level in reversed(levels) for source in level)
    return Scope(sources, tuple(Cte(names[key], source) for key, source in ctes.items()))


def block(items: list[Item], index: int) -> tuple[int, int]:
    """The range of the part around ``index`` that no UNION, EXCEPT or INTERSECT cuts."""
    low, high = 0, len(items)
    for at, item in enumerate(items):
        # `* EXCEPT (...)` is no set operation.
        if upper(item) in SET_OPERATIONS and not (at and is_operator(items[at - 1], "*")):
            if at < index:
                low = at + 1
            else:
                high = at
                break
    return low, high


def _inside(group: Group, child: Group | None) -> int:
    if child is not None:
        return place(group.items, child)
    return next((at for at, item in enumerate(group.items) if isinstance(item, Token) and item.start < 0), 0)


def _ctes(items: list[Item], outer: _Ctes, depth: int, cursor: int) -> list[tuple[str, Source]]:
    """Names and columns of the WITH clauses among ``items``, but for the one that the cursor is in."""
    found: list[tuple[str, Source]] = []
    at = 0
    while at < len(items):
        if upper(items[at]) != "WITH":
            at += 1
            continue
        at += 1
        recursive = at < len(items) and upper(items[at]) == "RECURSIVE"
        at += recursive
        while at < len(items):
            name = items[at]
            body = at + 1
            columns: tuple[str, ...] = ()
            if body < len(items) and isinstance(items[body], Group):
                columns = _names(items[body])
                body += 1
            while body < len(items) and upper(items[body]) in ("AS", "NOT", "MATERIALIZED"):
                body += 1
            if not is_name(name) or body >= len(items) or not isinstance(items[body], Group):
                break
            known = outer | {folded(n): source for n, source in found}
            if body != cursor:
                source = _derived(name_of(name), items[body], known, depth + 1)
                if columns:
                    source = Source(source.alias, columns=columns)
                found.append((name_of(name), source))
            elif recursive:
                found.append((name_of(name), Source(name_of(name), columns=columns)))
            at = body + 1
            if not (at < len(items) and is_operator(items[at], ",")):
                break
            at += 1
    return found


def _sources(items: list[Item], ctes: _Ctes, depth: int, around: Group | None = None) -> Iterator[Source]:
    """The relations that one query reads, in order, but for that one whose brackets are ``around`` the cursor."""
    expected, in_from = False, False
    at = 0
    while at < len(items):
        item = items[at]
        word = upper(item)
        if word in RELATION_WORDS and not (
            word == "FROM" and at and upper(items[at - 1]) == "DISTINCT" and _is(items, at)
        ):
            expected, in_from = word != "INTO", word in ("FROM", "JOIN")
            at += 1
        elif word in CLAUSES:
            expected = in_from = False
            at += 1
        elif expected and word in _SKIPPED:
            at += 1
        elif expected:
            expected = False
            reference = _reference(items, at, ctes, depth)
            end = max(reference.end, at + 1)
            if around is None or not any(part is around for part in items[at:end]):
                yield from reference.sources
            at = end
        else:
            expected = in_from and is_operator(item, ",")
            at += 1


def _is(items: list[Item], at: int) -> bool:
    """Whether the DISTINCT before FROM is of IS [NOT] DISTINCT FROM."""
    return at >= 2 and upper(items[at - 2]) in ("IS", "NOT")


@dataclass(frozen=True)
class _Reference:
    sources: tuple[Source, ...]
    end: int


def _reference(items: list[Item], at: int, ctes: _Ctes, depth: int) -> _Reference:
    """One reference of a FROM clause, with its alias."""
    first = items[at]
    before = ""
    if is_name(first) and at + 1 < len(items) and is_operator(items[at + 1], ":"):
        before = name_of(first)
        at += 2
    source: Source
    if at >= len(items):
        return _Reference((), at)
    item = items[at]
    if isinstance(item, Group):
        if not _is_query(item):
            nested: list[Item] = [Token(Kind.WORD, "FROM", 0, 0), *item.items]
            return _Reference(tuple(_sources(nested, ctes, depth + 1)) if depth < _DEPTH else (), at + 1)
        source = _derived("", item, ctes, depth + 1)
        at += 1
    elif item.kind is Kind.STRING:
        source = Source("", file=unquoted(item))
        at += 1
    elif is_name(item) and upper(item) not in CLAUSES | JOINS:
        parts = [name_of(item)]
        at += 1
        while at + 1 < len(items) and is_operator(items[at], ".") and is_name(items[at + 1]):
            following = items[at + 1]
            assert isinstance(following, Token)
            parts.append(name_of(following))
            at += 2
        if at < len(items) and isinstance(items[at], Group):
            source = Source(parts[-1], function=parts[-1], file=_read_by(parts[-1], items[at]))
            at += 1
        elif len(parts) == 1 and folded(parts[0]) in ctes:
            cte = ctes[folded(parts[0])]
            source = Source(parts[0], columns=cte.columns, stars=cte.stars, file=cte.file)
        else:
            source = Source(parts[-1], name=tuple(parts))
    else:
        return _Reference((), at)
    alias = before
    names: tuple[str, ...] = ()
    if at < len(items) and upper(items[at]) == "AS":
        at += 1
    if at < len(items) and is_name(items[at]) and upper(items[at]) not in _NO_ALIAS:
        given = items[at]
        assert isinstance(given, Token)
        alias = name_of(given)
        at += 1
        if at < len(items) and isinstance(items[at], Group):
            names = _names(items[at])
            at += 1
    if names:
        source = Source(alias, columns=names)
    elif alias:
        source = Source(alias, source.name, source.function, source.columns, source.stars, source.file)
    return _Reference((source,), at)


def _read_by(function: str, arguments: Item) -> str:
    """The file that a table function of DuckDB reads, if it is one file."""
    first = arguments.items[0] if isinstance(arguments, Group) and arguments.items else None
    reads = _READERS.fullmatch(function) and isinstance(first, Token) and first.kind is Kind.STRING and first.closed
    return unquoted(first) if reads and isinstance(first, Token) else ""


def _derived(alias: str, item: Item, ctes: _Ctes, depth: int) -> Source:
    """What a query in brackets returns."""
    if not isinstance(item, Group) or depth > _DEPTH:
        return Source(alias)
    items = item.items
    while len(items) == 1 and isinstance(items[0], Group):
        items = items[0].items
    known = ctes | {folded(name): source for name, source in _ctes(items, ctes, depth, -1)}
    _, high = block(items, 0)
    items = items[:high]
    sources = tuple(_sources(items, known, depth))
    select = next((at for at, it in enumerate(items) if upper(it) == "SELECT"), None)
    if select is None:
        return Source(alias, stars=sources)
    columns: list[str] = []
    stars: list[Source] = []
    for part in _parts(items[select + 1 :]):
        if is_operator(part[-1], "*") or (
            len(part) > 1 and upper(part[-2]) in ("EXCLUDE", "REPLACE", "EXCEPT", "RENAME")
        ):
            owner = part[0] if len(part) > 2 and is_operator(part[1], ".") else None
            stars += [
                source for source in sources if not is_name(owner) or folded(source.alias) == folded(name_of(owner))
            ]
        elif len(part) > 1 and is_name(part[0]) and is_operator(part[1], ":"):
            columns.append(name_of(part[0]))
        elif is_name(part[-1]):
            columns.append(name_of(part[-1]))
    return Source(alias, columns=tuple(columns), stars=tuple(stars))


def _parts(items: list[Item]) -> Iterator[list[Item]]:
    """The expressions of a SELECT list."""
    part: list[Item] = []
    for at, item in enumerate(items):
        # `* EXCEPT (...)` goes on.
        if upper(item) in CLAUSES and not (upper(item) == "EXCEPT" and at and is_operator(items[at - 1], "*")):
            break
        if is_operator(item, ","):
            if part:
                yield part
            part = []
        elif not (upper(item) == "DISTINCT" and not part):
            part.append(item)
    if part:
        yield part


def _names(item: Item) -> tuple[str, ...]:
    return tuple(name_of(it) for it in item.items if is_name(it)) if isinstance(item, Group) else ()


def _is_query(group: Group) -> bool:
    first = group.items[0] if group.items else None
    while isinstance(first, Group):
        first = first.items[0] if first.items else None
    return upper(first) in QUERIES
