"""Kinds of statements: where the query of one begins, and which may be planned at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engramsql.planner.names import Catalog, Scope
from engramsql.planner.rewrite import Access, Rewriter
from engramsql.planner.source import NotUnderstood, Source, numbered, parse

__all__ = ["Planned", "plan"]

_STARTS = {"SELECT", "FROM", "WITH", "INSERT", "CREATE", "COPY", "DESCRIBE", "UPDATE", "DELETE", "MERGE", "PIVOT", "("}


@dataclass
class Planned:
    """A rewritten statement and what it reads."""

    text: str
    accesses: list[Access]
    changed: bool


def plan(text: str, catalog: Catalog, lists: list[str]) -> Planned:
    """Plans one statement.

    Args:
        text: The statement, its long lists folded.
        catalog: What names mean.
        lists: The lists.

    Raises:
        NotUnderstood: If it should run as it is.
    """
    source = Source(text)
    if "PLACEHOLDER" in source.kinds:
        source = numbered(source)
    last = len(source.kinds)
    while last and source.kind(last - 1) == "SEMICOLON":
        last -= 1
    if "SEMICOLON" in source.kinds[:last]:
        raise NotUnderstood("several statements")
    first = 0
    if source.word(0) == "EXPLAIN":
        first = 1
        if source.word(first) == "ANALYZE":
            first += 1
        if source.kind(first) == "L_PAREN" and source.word(first + 1) in ("FORMAT", "ANALYZE"):
            first = source.closing[first] + 1
    if source.word(first) not in _STARTS:
        raise NotUnderstood("a statement without a query")
    if source.word(first) == "CREATE" and "TABLE" not in [source.word(first + i) for i in range(1, 5)]:
        raise NotUnderstood("what it makes is kept as it is written")
    tree = parse(source, first, last)
    rewriter = Rewriter(catalog, lists)
    place = _place(source, first, last)
    rewriter.can_share = place is not None
    _visit(tree, source, rewriter)
    if rewriter.shared and place is not None:
        _write_shared(source, rewriter, *place)
    return Planned(source.render(), rewriter.accesses, source.changed)


def _visit(tree: Any, source: Source, rewriter: Rewriter) -> None:
    from sqlglot import exp

    if isinstance(tree, exp.Query) and not isinstance(tree, exp.Table):
        rewriter.query(tree, source, Scope(), None, {})
        return
    if isinstance(tree, (exp.Insert, exp.Create, exp.Copy, exp.Describe)):
        with_ = tree.args.get("with_") or tree.args.get("with")
        if with_ is not None:
            raise NotUnderstood("WITH before the statement")
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
    for name, (origin, span) in rewriter.shared.items():
        texts.append(f"{name} AS MATERIALIZED ({origin.render(*span, inside=span)}\n)")
    start = source.start(index)
    source.change(start, start, ("" if has_with else "WITH ") + ", ".join(texts) + (", " if has_with else " "))
