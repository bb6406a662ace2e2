"""What is wanted at the cursor: a pure function of the text and the place in it.

It knows no catalog and no terminal. :mod:`candidates` finds the names that fit.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from engramsql.shell.completion.calls import argument_begins, innermost
from engramsql.shell.completion.parts import part_of
from engramsql.shell.completion.places import in_statement
from engramsql.shell.completion.relations import block, scope
from engramsql.shell.completion.tokens import LIMIT, Kind, Token, scan, scan_further, unquoted, word_end
from engramsql.shell.completion.tree import CURSOR, Item, Tree, build, is_name, is_operator, name_of, place, upper
from engramsql.shell.completion.want import Call, Want, Wanted
from engramsql.shell.completion.words import CLAUSES, EXPRESSION, JOINS

__all__ = ["call_at", "wanted"]

# How much of the statement after the cursor is looked at, in characters.
_AHEAD = 50_000
_FILE_WORDS = frozenset({"ATTACH", "DATABASE", "LOAD"})
_COMMAND = re.compile(r"\s*([.\\]\S*)")
_COMPLETE = frozenset({Kind.NUMBERS, Kind.STRING, Kind.DOLLAR, Kind.QUOTED})


@lru_cache(maxsize=8)
def wanted(text: str, cursor: int) -> Wanted:
    """What is wanted at ``cursor``, a place in ``text`` in characters. Takes any text.

    Example:
        >>> found = wanted("SELECT emb FROM ple", 10)
        >>> found.word, found.kinds[0].value, found.sources[0].name
        ('emb', 'column', ('ple',))
    """
    cursor = max(0, min(cursor, len(text)))
    before = scan_further(text[:cursor])
    if len(before) >= LIMIT:
        return Wanted(cursor)
    first = _statement_start(before)
    command = _command(text, before[first - 1].end if first else 0, cursor)
    if command is not None:
        return command
    tokens = list(before[first:])
    last = tokens[-1] if tokens else None
    if last is not None and not last.closed:
        return _unclosed(text, cursor, tokens)
    word, start, end = "", cursor, cursor
    if last is not None and last.end == cursor:
        if last.kind in _COMPLETE:
            return Wanted(cursor)
        if last.kind is Kind.WORD:
            tokens.pop()
            word, start, end = last.text, last.start, word_end(text, cursor)
    if tokens and tokens[-1].end == start and (tokens[-1].kind is Kind.NUMBERS or tokens[-1].text in ("$", "?", "@")):
        return Wanted(cursor)  # what follows a digit is no name, and a parameter's is nobody's
    found = in_statement(tokens, _ahead(text, end))
    return replace(found, start=start, word=word, lower=_lower(tokens, word))


@lru_cache(maxsize=8)
def call_at(text: str, cursor: int) -> Call | None:
    """The innermost function call around ``cursor``, for the hint; None in comments."""
    cursor = max(0, min(cursor, len(text)))
    before = scan_further(text[:cursor])
    if not before or len(before) >= LIMIT or before[-1].kind is Kind.COMMENT:
        return None
    return innermost(build(list(before[_statement_start(before) :]), []))


def _unclosed(text: str, cursor: int, tokens: list[Token]) -> Wanted:
    """What is wanted where the last token has no end: in quotes there can be a name or a file."""
    last = tokens.pop()
    quote = last.text[0]
    start = last.start + 1
    if last.kind is Kind.QUOTED:
        found = in_statement(tokens, _rest(text, cursor, quote))
        return replace(found, start=start, word=unquoted(last), quote=quote)
    # A string with a prefix, as x'00', names nothing.
    if last.kind is Kind.STRING and quote == "'":
        return _in_string(tokens, _rest(text, cursor, quote), unquoted(last), start)
    return Wanted(cursor)


def _statement_start(tokens: tuple[Token, ...]) -> int:
    """The token that the last statement begins with."""
    for at in range(len(tokens) - 1, -1, -1):
        if tokens[at].operator(";"):
            return at + 1
    return 0


def _ahead(text: str, position: int) -> list[Token]:
    """The tokens of the statement after the cursor."""
    tokens: list[Token] = []
    for token in scan(text[position : position + _AHEAD]):
        if token.operator(";") or token.kind is Kind.COMMENT:
            break
        tokens.append(token)
    return tokens


def _rest(text: str, cursor: int, quote: str) -> list[Token]:
    """The same, where the cursor is between quotes: an odd number of them on the rest of the line closes these."""
    line_end = text.find("\n", cursor)
    end = line_end if line_end >= 0 else len(text)
    closed = text.count(quote, cursor, end) % 2
    return _ahead(text, text.index(quote, cursor) + 1 if closed else cursor)


def _lower(tokens: list[Token], word: str) -> bool:
    """Whether keywords are typed in lower case: as this word is, else as the last of those that are keywords was."""
    if word and word.upper() != word.lower():
        return word[0].islower()
    for token in reversed(tokens):
        if token.upper in CLAUSES or token.upper in EXPRESSION or token.upper in JOINS:
            return token.text.islower()
    return False


def _command(text: str, start: int, cursor: int) -> Wanted | None:
    """What is wanted if this is a dot command: the first thing on a line, where no statement has begun."""
    found = _COMMAND.match(text, start)
    if found is None or found.start(1) >= cursor or (start and "\n" not in text[start : found.start(1)]):
        return None
    name_start, name_end = found.span(1)
    if cursor <= name_end:
        return Wanted(name_start, text[name_start:cursor], kinds=(Want.COMMAND,))
    if "\n" in text[name_end:cursor]:
        return Wanted(cursor)
    argument, start, quote = 0, name_end, ""
    for at in range(name_end, cursor):
        letter = text[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"" and start == at:
            quote = letter
        elif letter.isspace():
            argument += at > start
            start = at + 1
    before = tuple(text[name_end:start].split())
    start += len(quote)
    return Wanted(
        start,
        text[start:cursor],
        quote,
        (Want.ARGUMENT,),
        subject=found.group(1),
        argument=argument,
        before=before,
    )


def _in_string(tokens: list[Token], rest: list[Token], word: str, start: int) -> Wanted:
    """What is wanted between single quotes: a file, or a name where a function takes one as text."""
    tree = build(tokens, rest)
    group = tree.path[-1]
    at = place(group.items, CURSOR)
    previous = group.items[at - 1] if at else None
    found = Wanted(start, word, "'", call=innermost(tree))
    if found.call is not None and ((group.open == "(" and argument_begins(previous)) or _list_of_files(tree)):
        return replace(found, kinds=(Want.STRING,), ctes=scope(tree).ctes)
    if group.open not in ("", "("):
        return found
    low, _ = block(group.items, at)
    part = part_of(group.items[low:at])
    if upper(previous) in _FILE_WORDS or (part.relation and part.operand and not part.new) or _copied(group.items[:at]):
        return replace(found, kinds=(Want.FILE,))
    named = group.items[at - 2] if at >= 2 else None
    if upper(group.items[0]) in ("SET", "PRAGMA") and is_operator(previous, "=") and is_name(named):
        return replace(found, kinds=(Want.SETTING_VALUE,), subject=name_of(named))
    return found


def _list_of_files(tree: Tree) -> bool:
    """Whether an entry of a list begins at the cursor, and the list is the first argument of a call."""
    if len(tree.path) < 2 or tree.path[-1].open != "[" or tree.path[-2].open != "(":
        return False
    items, outer = tree.path[-1].items, tree.path[-2].items
    at = place(items, CURSOR)
    return place(outer, tree.path[-1]) == 0 and (at == 0 or is_operator(items[at - 1], ","))


def _copied(items: list[Item]) -> bool:
    return bool(items) and upper(items[0]) == "COPY" and upper(items[-1]) in ("TO", "FROM")
