"""A statement's text, its tokens and the changes made to it.

Changes are spliced into the text that the user wrote; all the rest stays letter by letter. A parser that misunderstood
something can so only miss a chance, never change what DuckDB gets to read.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

__all__ = ["NotUnderstoodError", "Piece", "Source", "ends_of_columns", "numbered", "parse"]

#: Text, or a span of the source, which is written with its own changes.
Piece = "str | tuple[int, int]"

_OPENING = {"L_PAREN": "R_PAREN", "L_BRACKET": "R_BRACKET", "L_BRACE": "R_BRACE"}
_AFTER_COLUMNS = {
    "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "USING", ";",
}  # fmt: skip
_CLOSING = set(_OPENING.values())


class NotUnderstoodError(Exception):
    """The statement is left as it is."""


class Source:
    """One text with its tokens; see :meth:`change` and :meth:`render`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: Sequence[Any] = _tokens(text)
        self.kinds = [token.token_type.name for token in self.tokens]
        self._at = {token.start: index for index, token in enumerate(self.tokens)}
        self.closing = _pairs(self.kinds)
        self._changes: list[tuple[int, int, list[str | tuple[int, int]]]] = []

    def index(self, start: int) -> int:
        """The token that begins at a position.

        Raises:
            NotUnderstoodError: If none does.
        """
        try:
            return self._at[start]
        except KeyError:
            raise NotUnderstoodError("a position between tokens") from None

    def kind(self, index: int) -> str:
        """The kind of a token; empty beyond the last one."""
        return self.kinds[index] if 0 <= index < len(self.kinds) else ""

    def word(self, index: int) -> str:
        """The letters of a token in upper case; empty beyond the last one."""
        if not 0 <= index < len(self.kinds):
            return ""
        token = self.tokens[index]
        return self.text[token.start : token.end + 1].upper()

    def start(self, index: int) -> int:
        """Where a token begins."""
        return int(self.tokens[index].start)

    def end(self, index: int) -> int:
        """Where a token has ended."""
        return int(self.tokens[index].end) + 1

    def change(self, start: int, end: int, *pieces: str | tuple[int, int]) -> None:
        """Writes ``pieces`` instead of what stands from ``start`` to ``end``.

        Raises:
            NotUnderstoodError: If something that overlaps was changed before.
        """
        for other_start, other_end, _ in self._changes:
            nested = (other_start <= start and end <= other_end) or (start <= other_start and other_end <= end)
            same = (start, end) == (other_start, other_end)
            if same or (not nested and start < other_end and other_start < end):
                raise NotUnderstoodError("two changes of one place")
        self._changes.append((start, end, list(pieces)))

    @property
    def changed(self) -> bool:
        """Whether anything was changed."""
        return bool(self._changes)

    def render(self, start: int = 0, end: int | None = None, inside: tuple[int, int] | None = None) -> str:
        """The text from ``start`` to ``end`` with all changes that lie in it."""
        end = len(self.text) if end is None else end
        inner = [
            change
            for change in self._changes
            if start <= change[0] and change[1] <= end and (change[0], change[1]) != inside
        ]
        # The widest first: what lies in it is written only where its pieces say so.
        inner.sort(key=lambda change: (change[0], -change[1]))
        written, position = [], start
        for from_, to, pieces in inner:
            if from_ < position:
                continue
            written.append(self.text[position:from_])
            for piece in pieces:
                if isinstance(piece, str):
                    written.append(piece)
                else:
                    written.append(self.render(*piece, inside=(from_, to)))
            position = to
        written.append(self.text[position:end])
        return "".join(written)


def ends_of_columns(source: Source) -> list[int]:
    """Where the expressions of the select list end in a statement that is one SELECT; empty if that is not clear."""
    index, count = 0, len(source.kinds)
    while source.word(index) != "SELECT":
        index = source.closing.get(index, index) + 1
        if index >= count:
            return []
    index += 1
    if source.word(index) in ("ALL", "DISTINCT"):
        index += 1
        if source.word(index) == "ON":
            index = source.closing.get(index + 1, index) + 1
    ends: list[int] = []
    while index < count and source.word(index) not in _AFTER_COLUMNS:
        after = source.closing.get(index, index) + 1
        if source.word(after) in _AFTER_COLUMNS or source.kind(after) in ("COMMA", ""):
            ends.append(source.end(after - 1))
            after += source.kind(after) == "COMMA"
        index = after
    return ends


def _pairs(kinds: list[str]) -> dict[int, int]:
    """For each opening bracket the token that closes it.

    Raises:
        NotUnderstoodError: If they do not match.
    """
    pairs, open_ = {}, []
    for index, kind in enumerate(kinds):
        if kind in _OPENING:
            open_.append(index)
        elif kind in _CLOSING:
            if not open_ or _OPENING[kinds[open_[-1]]] != kind:
                raise NotUnderstoodError("brackets do not match")
            pairs[open_.pop()] = index
    if open_:
        raise NotUnderstoodError("brackets do not match")
    return pairs


@lru_cache(maxsize=1)
def _dialect() -> tuple[Any, Any]:
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import ErrorLevel

    # Not a parser of our own: where the parser is compiled, nothing can be derived from its classes.
    logging.getLogger("sqlglot").addFilter(_heard)
    dialect = DuckDB()
    return dialect, lambda: DuckDB.Parser(dialect=dialect, error_level=ErrorLevel.IMMEDIATE)


# What the parser warned of while it reads a statement for the planner; None while it works for others.
_warnings: ContextVar[list[str] | None] = ContextVar("_warnings", default=None)


def _heard(record: logging.LogRecord) -> bool:
    """Keeps the parser's warnings about statements that it does not know, which fall out of its grammar, off stderr."""
    warnings = _warnings.get()
    if warnings is None or record.levelno < logging.WARNING:
        return True
    warnings.append(record.getMessage())
    return False


def _tokens(text: str) -> Sequence[Any]:
    from sqlglot.errors import SqlglotError

    dialect, _ = _dialect()
    try:
        tokens: Sequence[Any] = dialect.tokenize(text)
    except SqlglotError as error:
        raise NotUnderstoodError(str(error)) from None
    return tokens


def parse(source: Source, first: int = 0, last: int | None = None) -> exp.Expression:
    """The tree of the statement in the tokens from ``first`` to before ``last``; its positions are the source's.

    Raises:
        NotUnderstoodError: If there is not exactly one, or the parser does not know it.
    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    _, parser = _dialect()
    warnings: list[str] = []
    listening = _warnings.set(warnings)
    try:
        trees = parser().parse(list(source.tokens[first:last]), source.text)
    except (SqlglotError, RecursionError) as error:
        raise NotUnderstoodError(str(error)) from None
    finally:
        _warnings.reset(listening)
    trees = [tree for tree in trees if tree is not None]
    if len(trees) != 1 or warnings or isinstance(trees[0], exp.Command):
        raise NotUnderstoodError("not one statement")
    tree: exp.Expression = trees[0]
    return tree


def numbered(source: Source) -> Source:
    """The text with ``$1``, ``$2``, ... instead of ``?``, so that a parameter can be written twice and anywhere.

    Raises:
        NotUnderstoodError: If both kinds occur.
    """
    written, position, number = [], 0, 0
    for index, kind in enumerate(source.kinds):
        start, end = source.start(index), source.end(index)
        if kind in ("STRING", "IDENTIFIER") or source.text[start : start + 1] != "?":
            continue
        # `?::` is one token.
        if source.text[start:end] not in ("?", "?::") or source.text[start + 1 : start + 2].isalnum():
            raise NotUnderstoodError("a parameter of another kind")
        number += 1
        written += [source.text[position:start], f"${number}"]
        position = start + 1
    if not number:
        return source
    if "PARAMETER" in source.kinds:
        raise NotUnderstoodError("both ? and $ parameters")
    return Source("".join([*written, source.text[position:]]))
