"""The words of a statement that is being typed.

DuckDB's own tokenizer cannot serve here: before 2.0 it gives nothing for what is not closed yet, which is where the
cursor is, and it never says where a token ends. So this one scans as DuckDB's does and says both; the tests compare the
two. A list of numbers is one token, so that ten thousand ids cost as much as one.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

__all__ = ["LIMIT", "Kind", "Token", "scan", "scan_further", "unquoted", "word_end"]


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted identifier"
    STRING = "string"
    DOLLAR = "dollar quote"
    NUMBERS = "numbers"
    OPERATOR = "operator"
    COMMENT = "comment"


class Token(NamedTuple):
    """A token and its place, in characters; ``closed`` is False where its end is missing."""

    kind: Kind
    text: str
    start: int
    end: int
    closed: bool = True

    @property
    def upper(self) -> str:
        """The word in upper case; empty for what is no word, so that quoted keywords are none."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    def operator(self, text: str) -> bool:
        """Whether this is that operator."""
        return self.kind is Kind.OPERATOR and self.text == text


# As PostgreSQL's and DuckDB's scanners have it, any character outside ASCII can be part of a name.
_LETTER = r"[A-Za-z_\x80-\U0010ffff]"
_WORD = rf"{_LETTER}[\w$\x80-\U0010ffff]*"
_NUMBER = r"(?:0[xX][0-9a-fA-F_]+|(?:[0-9][0-9_]*(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
# None of these can go back on what it took: each part begins with another character than the one before it ends with.
_TOKEN = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<numbers>{_NUMBER}(?:\s*,\s*-?{_NUMBER})*)
    | (?P<escaped>[eE]'(?:[^'\\]|\\(?:.|\Z)|'')*)
    | (?P<string>[xXbB]?'[^']*(?:''[^']*)*)
    | (?P<quoted>"[^"]*(?:""[^"]*)*)
    | (?P<line>--[^\n\r]*)
    | (?P<block>/\*)
    | (?P<dollar>\$(?:{_LETTER}[\w\x80-\U0010ffff]*)?\$)
    | (?P<word>{_WORD})
    | (?P<operator>::|:=|=>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_WORD_END = re.compile(r"[\w$\x80-\U0010ffff]*")
_KINDS = {
    "numbers": Kind.NUMBERS,
    "escaped": Kind.STRING,
    "string": Kind.STRING,
    "quoted": Kind.QUOTED,
    "word": Kind.WORD,
    "operator": Kind.OPERATOR,
    "line": Kind.COMMENT,
}


# More than anyone types; beyond it nothing is offered.
LIMIT = 100_000
# Where a token ends can depend on the next few, as in `$a` and `$a$`: so many are scanned again, and the first of those
# must be the same as before.
_BACK = 8
_SAME = 4


class _Kept(NamedTuple):
    text: str
    tokens: tuple[Token, ...]


_last = _Kept("", ())


@lru_cache(maxsize=8)
def scan(text: str) -> tuple[Token, ...]:
    """The tokens of ``text``, at most LIMIT; a comment only if it is the last thing there and its end is missing.

    The last results are kept: the menu and the hint ask for the same text.

    Example:
        >>> [token.text for token in scan("SELECT 1, 2 /* ; */ FROM 'a;b")]
        ['SELECT', '1, 2', 'FROM', "'a;b"]
    """
    return tuple(_scan(text, [], 0))


def scan_further(text: str) -> tuple[Token, ...]:
    """The same as :func:`scan`, for a text that grows at its end: what was scanned last time is not scanned again."""
    global _last
    kept = _last
    if text != kept.text:
        tokens: list[Token] = []
        if len(kept.tokens) > _BACK and text.startswith(kept.text[: kept.tokens[-_SAME].start]):
            tokens = list(kept.tokens[:-_BACK])
        kept = _Kept(text, tuple(_scan(text, tokens, tokens[-1].end if tokens else 0)))
        _last = kept
    return kept.tokens


def _scan(text: str, tokens: list[Token], position: int) -> list[Token]:
    """Appends the tokens from ``position`` on, which is no part of a token."""
    size = len(text)
    match = _TOKEN.match
    while position < size and len(tokens) < LIMIT:
        found = match(text, position)
        assert found is not None  # the last alternative takes any character
        group = found.lastgroup or ""
        start, position = position, found.end()
        if group == "space":
            continue
        if group == "line":
            if position == size:
                tokens.append(Token(Kind.COMMENT, found.group(), start, position, closed=False))
        elif group == "block":
            position, closed = _block_end(text, position)
            if not closed:
                tokens.append(Token(Kind.COMMENT, text[start:], start, size, closed=False))
        elif group == "dollar":
            tag = found.group()
            end = text.find(tag, position)
            position = size if end < 0 else end + len(tag)
            tokens.append(Token(Kind.DOLLAR, text[start:position], start, position, closed=end >= 0))
        elif group in ("string", "escaped", "quoted"):
            # The pattern ends before the closing quote.
            closed = position < size
            position += closed
            tokens.append(Token(_KINDS[group], text[start:position], start, position, closed))
        else:
            tokens.append(Token(_KINDS[group], found.group(), start, position))
    return tokens


def unquoted(token: Token) -> str:
    """The name that an identifier stands for, or the text of a string; also where the end is missing.

    Example:
        >>> unquoted(scan("'it''s")[0])
        "it's"
    """
    if token.kind is Kind.QUOTED or token.kind is Kind.STRING:
        quote = '"' if token.kind is Kind.QUOTED else "'"
        inner = token.text[token.text.index(quote) + 1 :]
        if token.closed:
            inner = inner[:-1]
        return inner.replace(quote * 2, quote)
    return token.text


def word_end(text: str, position: int) -> int:
    """Where the word ends that ``position`` is in or after."""
    found = _WORD_END.match(text, position)
    return position if found is None else found.end()


def _block_end(text: str, position: int) -> tuple[int, bool]:
    """The end of a block comment, and whether it is there; they nest."""
    depth = 1
    while depth:
        edge = _BLOCK_EDGE.search(text, position)
        if edge is None:
            return len(text), False
        position = edge.end()
        depth += 1 if edge.group() == "/*" else -1
    return position, True
