"""Kinds of statements: where the query of one begins, and which may be planned at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engramsql.planner.names import Catalog, Scope
from engramsql.planner.rewrite import Access, Rewriter
from engramsql.planner.source import NotUnderstoodError, Source, numbered, parse

__all__ = ["NAME", "Planned", "plan"]

#: Stands for the name of a column until DuckDB has said what it is.
NAME = "_engram_name_{}_"

_STARTS = {"SELECT", "FROM", "WITH", "INSERT", "CREATE", "COPY", "DESCRIBE", "("}


@dataclass
class Planned:
    """A rewritten statement and what it reads."""

    text: str
    accesses: list[Access]
    changed: bool
    #: EXPLAIN and its options, if the statement began with it.
    explain: str = ""
    #: Positions of columns whose names are their text, in which names of :data:`NAME` have to be written.
    unnamed: tuple[int, ...] = ()


def plan(text: str, catalog: Catalog, lists: list[str]) -> Planned:
    """Plans one statement.

    Args:
        text: The statement, its long lists folded.
        catalog: What names mean.
        lists: The lists.

    Raises:
        NotUnderstoodError: If it should run as it is.
    """
    source = Source(text)
    if "?" in text:
        source = numbered(source)
    last = len(source.kinds)
    while last and source.kind(last - 1) == "SEMICOLON":
        last -= 1
    if "SEMICOLON" in source.kinds[:last]:
        raise NotUnderstoodError("several statements")
    first = 0
    if source.word(first) not in _STARTS:
        raise NotUnderstoodError("a statement without a query")
    if source.word(first) == "CREATE" and "TABLE" not in [source.word(first + i) for i in range(1, 5)]:
        raise NotUnderstoodError("what it makes is kept as it is written")
    tree = parse(source, first, last)
    rewriter = Rewriter(catalog, lists, tree)
    place = _place(source, first, last)
    rewriter.can_share = place is not None
    _visit(tree, source, rewriter)
    if rewriter.shared and place is not None:
        _write_shared(source, rewriter, *place)
    for position, end in rewriter.unnamed:
        source.change(end, end, f" AS {NAME.format(position)}")
    unnamed = tuple(position for position, _ in rewriter.unnamed)
    return Planned(source.render(), rewriter.all_accesses(), source.changed, unnamed=unnamed)


def _visit(tree: Any, source: Source, rewriter: Rewriter) -> None:
    from sqlglot import exp

    if isinstance(tree, exp.Query) and not isinstance(tree, exp.Table):
        rewriter.naming = "own" if isinstance(tree, exp.Select) else "inner"
        rewriter.query(tree, source, Scope(), None, {})
        return
    if isinstance(tree, (exp.Insert, exp.Create, exp.Copy, exp.Describe)):
        rewriter.naming = "free" if isinstance(tree, exp.Insert) else "inner"
        with_ = tree.args.get("with_") or tree.args.get("with")
        if with_ is not None:
            raise NotUnderstoodError("WITH before the statement")
        for part in (tree.this, tree.args.get("expression")):
            if isinstance(part, exp.Query) and not isinstance(part, exp.Table):
                rewriter.query(part, source, Scope(), None, {})


def _place(source: Source, first: int, last: int) -> tuple[int, bool] | None:
    """The token before which an expression of WITH can be written, and whether there is a WITH."""
    index = first
    if source.word(first) == "COPY":
        if source.kind(first + 1) != "L_PAREN":
            return None
        index = first + 2
    elif source.word(first) in ("INSERT", "CREATE", "DESCRIBE"):
        while index < last and source.word(index) not in ("SELECT", "FROM", "WITH"):
            index = source.closing.get(index, index) + 1
    if source.word(index) in ("SELECT", "FROM"):
        return index, False
    if source.word(index) == "WITH":
        return index + (2 if source.word(index + 1) == "RECURSIVE" else 1), True
    return None


def _write_shared(source: Source, rewriter: Rewriter, index: int, has_with: bool) -> None:
    texts = []
    for name, (origin, span, before) in rewriter.shared.items():
        texts.append(f"{name} AS MATERIALIZED ({before}{origin.render(*span, inside=span)}\n)")
    start = source.start(index)
    source.change(start, start, ("" if has_with else "WITH ") + ", ".join(texts) + (", " if has_with else " "))
