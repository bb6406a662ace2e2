"""Predicates on the row id and the head alone: tested among the ids, before any row is read for the other columns.

DuckDB does not move what it thinks can fail, such as ``rowid % 1000 = 0``, below the columns that are read. Such a
predicate is written a second time, letter by letter but for the names of its columns, where the ids come from; the
first one stays. So it must be one that cannot fail and that gives the same for the same row: it is made of a few kinds
of tokens only, with numbers so small that nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engramsql.planner.blocks import argument
from engramsql.planner.ids import FILTERED
from engramsql.quoting import folded

if TYPE_CHECKING:
    from engramsql.planner.blocks import Block, Item
    from engramsql.planner.names import Catalog
    from engramsql.planner.source import Source

__all__ = ["Filter", "filter_of", "reads_rows"]

_ENDS = {
    "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "SELECT",
    "USING", "TABLESAMPLE", "RETURNING", ";", "",
}  # fmt: skip
_CLOSING = {"R_PAREN", "R_BRACKET", "R_BRACE"}
_COMPARISONS = {"=", "==", "<>", "!=", "<", "<=", ">", ">="}
_WORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL"}
_DIVISIONS = {"%", "//"}
_BITS = {"&", "|"}
_SUMS = {"+", "-"}
_OTHERS = _COMPARISONS | _WORDS | _BITS | _SUMS
_PUNCTUATION = {"L_PAREN", "R_PAREN", "COMMA"}
_FUNCTIONS = {"hash", "mod"}
# What binds less tightly than AND may take a part of what seems to be a predicate.
_LOOSE = {"->", "->>", "=>", ":="}
# Sums of so few ids below this, and of so many numbers, overflow no type.
_MOST_ROWS = 1 << 48
_MOST_TOKENS = 60
_SMALL = 1 << 24


@dataclass(frozen=True)
class Filter:
    """A predicate over the columns ``rowid`` and ``head`` of the ids."""

    text: str
    #: As the user wrote it.
    written: str
    uses_head: bool
    #: Whether it has more than comparisons of columns with numbers, which DuckDB moves by itself.
    computes: bool


def filter_of(block: Block, item: Item, rows: int, catalog: Catalog) -> Filter | None:
    """The predicates of WHERE that can be tested among the ids of a relation; None if there are none."""
    where = argument(block.select, "where")
    if where is None or not block.plain or item.renamed or not item.written or rows > _MOST_ROWS:
        return None
    found = [_read(block, item, first, last, catalog) for first, last in _conjuncts(block.source, where.this)]
    filters = [one for one in found if one is not None]
    if not filters:
        return None
    return Filter(
        " AND ".join(f"({one.text})" for one in filters),
        " AND ".join(one.written for one in filters),
        any(one.uses_head for one in filters),
        any(one.computes for one in filters),
    )


def reads_rows(source: Source) -> bool:
    """Whether a text has a column that is read from the rows, or may stand for one."""
    words = {source.word(index).strip('"') for index in range(len(source.kinds))}
    return bool(words & {"EMBEDDING", "ROW", "COLUMNS"}) or "STAR" in source.kinds or "SELECT" not in words


def _conjuncts(source: Source, predicate: object) -> list[tuple[int, int]]:
    """The first and last tokens of the predicates that AND joins in WHERE; none if that is not clear."""
    start = _where(source, predicate)
    if start is None:
        return []
    ands: list[int] = []
    index, betweens, cases, alternatives = start, 0, 0, False
    while source.kind(index) not in _CLOSING and (word := _first(source.word(index))) not in _ENDS:
        if word in _LOOSE:
            return []
        cases += (word == "CASE") - (word == "END")
        if cases == 0 and word == "BETWEEN":
            betweens += 1
        elif cases == 0 and word == "AND":
            if betweens == 0:
                ands.append(index)
            betweens = max(0, betweens - 1)
        alternatives = alternatives or (cases == 0 and word == "OR")
        index = source.closing.get(index, index) + 1
    # OR is looser than AND: the whole is one predicate.
    edges = [start - 1, *([] if alternatives else ands), index]
    return [(edges[i] + 1, edges[i + 1] - 1) for i in range(len(edges) - 1)]


def _first(word: str) -> str:
    """The first word of a token: `ORDER BY` is one."""
    return word.split(None, 1)[0] if word else ""


def _where(source: Source, predicate: object) -> int | None:
    """The token after the WHERE of a predicate."""
    from sqlglot import exp

    assert isinstance(predicate, exp.Expression)
    starts = [node.meta["start"] for node in predicate.find_all(exp.Identifier) if "start" in node.meta]
    if not starts:
        return None
    index, depth = source.index(min(starts)), 0
    while index >= 0 and not (depth <= 0 and source.word(index) == "WHERE"):
        depth += (source.kind(index) == "R_PAREN") - (source.kind(index) == "L_PAREN")
        index -= 1
    return index + 1 if index >= 0 else None


def _read(block: Block, item: Item, first: int, last: int, catalog: Catalog) -> Filter | None:
    """The predicate in some tokens, if it can be tested among the ids."""
    source = block.source
    if not 0 < last - first < _MOST_TOKENS:
        return None
    written: list[str] = []
    numbers: list[int] = []
    words: set[str] = set()
    functions: set[str] = set()
    columns: set[str] = set()
    position, index = source.start(first), first
    while index <= last:
        kind, word = source.kind(index), source.word(index)
        end = _column(block, item, index, last)
        if end is not None:
            name = _name(source, end)
            written += [source.text[position : source.start(index)], f"{FILTERED}.{name}"]
            position, index = source.end(end), end
            columns.add(name)
        elif word.isascii() and word.isdigit() and len(word) <= 18:
            numbers.append(int(word))
        elif word.lower() in _FUNCTIONS and source.kind(index + 1) == "L_PAREN":
            if word == "MOD" and not _is_divisor(source, source.closing[index + 1] - 1):
                return None
            functions.add(word.lower())
        elif (word in _DIVISIONS and _is_divisor(source, index + 1)) or word in _OTHERS or kind in _PUNCTUATION:
            words.add(word)
        else:
            return None
        index += 1
    written.append(source.text[position : source.end(last)])
    if not columns or not _is_safe(words, numbers, functions, catalog):
        return None
    computes = bool(functions or words & (_DIVISIONS | _BITS | _SUMS))
    if not computes and "head" not in columns:
        return None  # a comparison of the row id: the ids are chosen by it
    return Filter("".join(written), source.text[source.start(first) : source.end(last)], "head" in columns, computes)


def _column(block: Block, item: Item, index: int, last: int) -> int | None:
    """The last token of a reference to the row id or the head that begins with a token."""
    source = block.source
    if source.kind(index - 1) == "DOT" or index > last:
        return None
    if source.kind(index + 1) == "DOT":
        qualified = _name(source, index) == item.alias and len(block.named(item.alias)) == 1
        end = index + 2
        if not qualified or end > last:
            return None
    elif len(block.items) == 1:
        end = index
    else:
        return None
    if source.kind(end + 1) in ("DOT", "L_PAREN", "L_BRACKET"):
        return None
    return end if _name(source, end) in ("rowid", "head") else None


def _is_divisor(source: Source, index: int) -> bool:
    """Whether a token is a number other than zero, on its own: a division by zero can be an error."""
    word = source.word(index)
    return word.isascii() and word.isdigit() and int(word) > 0 and source.word(index - 1) in {",", *_DIVISIONS}


def _name(source: Source, index: int) -> str:
    """A token as a name, folded."""
    text = source.text[source.start(index) : source.end(index)]
    return folded(text[1:-1].replace('""', '"') if text.startswith('"') else text)


def _is_safe(words: set[str], numbers: list[int], functions: set[str], catalog: Catalog) -> bool:
    """Whether a predicate of such tokens cannot fail."""
    # A hash has all bits of its type.
    if words & _SUMS and ("hash" in functions or any(number > _SMALL for number in numbers)):
        return False
    return catalog.are_scalars(functions)
