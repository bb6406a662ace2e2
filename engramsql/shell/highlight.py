"""Colours of the line that is typed.

The words of SQL are a pygments lexer. It goes through a line once: what did not change since the last keystroke is not
looked at again, however long the line is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style
from pygments.lexer import ExtendedRegexLexer
from pygments.token import Comment, Keyword, Name, Number, Punctuation, String, Text, _TokenType

if TYPE_CHECKING:
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.styles import BaseStyle

__all__ = ["COLORS", "LEXER", "Highlighter", "SqlLexer", "style"]

# Keywords of DuckDB that are mostly names here, such as our own columns; in lower case they are not coloured.
_NAMES = frozenset(
    [
        "check", "comment", "data", "day", "days", "first", "format", "head", "hour", "key", "label", "last", "level",
        "location", "minute", "month", "name", "names", "offset", "ordinal", "path", "percent", "rank", "relative",
        "restart", "row", "rows", "second", "seconds", "share", "source", "sql", "text", "type", "value", "version",
        "view", "year",
    ]
)  # fmt: skip
_OURS = re.compile(r"engram_\w+|rowids_for_seq\w*", re.IGNORECASE)
_LETTER = r"[A-Za-z_\x80-\U0010ffff]"

# Contrast of at least 4.3 to black and to white, so that they can be read on any terminal.
COLORS = {
    "keyword": "#5f5fff",
    "string": "#008700",
    "number": "#af5f00",
    "function": "#008787",
    "ours": "#d700af",
    "comment": "#767676",
    "hint": "#767676",
}


@cache
def _is_keyword(word: str) -> bool:
    """Whether DuckDB's tokenizer takes the word for a keyword."""
    import duckdb

    return bool(duckdb.tokenize(word)[:1] == [(0, duckdb.token_type.keyword)])


class _Context:
    """What pygments calls a LexerContext: where its lexer is; also the tag of the dollar quote that it is in."""

    def __init__(self, text: str, position: int, stack: list[str], tag: str) -> None:
        self.text = text
        self.pos = position
        self.end = len(text)
        self.stack = stack
        self.tag = tag


_Tokens = Iterator[tuple[int, _TokenType, str]]


def _word(lexer: object, found: re.Match[str], context: _Context) -> _Tokens:
    word, start = found.group(1), found.start()
    lower = word.lower()
    kind = Name
    if _OURS.fullmatch(word):
        kind = Name.Builtin
    elif word.isascii() and (word != lower or lower not in _NAMES) and _is_keyword(lower):
        kind = Keyword
    elif found.group(2):
        kind = Name.Function
    context.pos = found.end(1)
    yield start, kind, word


def _dollar(lexer: object, found: re.Match[str], context: _Context) -> _Tokens:
    start, tag = found.start(), found.group()
    end = context.text.find(tag, found.end())
    if end < 0:
        context.pos = context.end
        yield start, String, context.text[start:]
        context.tag = tag
        context.stack.append("dollar")
        return
    context.pos = end + len(tag)
    yield start, String, context.text[start : context.pos]


def _in_dollar(lexer: object, found: re.Match[str], context: _Context) -> _Tokens:
    start = found.start()
    end = context.text.find(context.tag, start)
    context.pos = context.end if end < 0 else end + len(context.tag)
    yield start, String, context.text[start : context.pos]
    if end >= 0:
        context.stack.pop()
        context.tag = ""


class SqlLexer(ExtendedRegexLexer):  # type: ignore[misc]
    """SQL as DuckDB has it, and the functions of EngramSQL."""

    name = "EngramSQL"
    aliases: ClassVar = ["engramsql"]
    flags = re.DOTALL
    tokens: ClassVar = {
        "root": [
            (r"\s+", Text),
            (r"--[^\n]*", Comment.Single),
            (r"/\*", Comment.Multiline, "comment"),
            (r"[eE]'", String, "escaped"),
            (r"[xXbB]?'", String, "string"),
            (r'"', Name, "quoted"),
            (rf"\$(?:{_LETTER}[\w\x80-\U0010ffff]*)?\$", _dollar),
            (rf"\$(?:\d+|{_LETTER}\w*)|\?", Name.Variable),
            (r"0[xX][0-9a-fA-F_]+|(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", Number),
            # A list of numbers has one colour, and so is one piece.
            (r",\s*(?=[0-9])", Number),
            (rf"({_LETTER}[\w$\x80-\U0010ffff]*)(?=(\s*\())?", _word),
            (r".", Punctuation),
        ],
        "comment": [
            (r"/\*", Comment.Multiline, "#push"),
            (r"\*/", Comment.Multiline, "#pop"),
            (r"[^*/]+|.", Comment.Multiline),
        ],
        "string": [(r"(?:[^']+|'')+", String), (r"'", String, "#pop")],
        "escaped": [(r"(?:[^'\\]+|''|\\.)+|\\", String), (r"'", String, "#pop")],
        "quoted": [(r'(?:[^"]+|"")+', Name), (r'"', Name, "#pop")],
        "dollar": [(r".", _in_dollar)],
    }  # fmt: skip


@dataclass(frozen=True)
class _State:
    """What a line begins in: the lexer's stack, the tag of a dollar quote, and whether no statement has begun."""

    stack: tuple[str, ...] = ("root",)
    tag: str = ""
    fresh: bool = True


@dataclass(frozen=True)
class _Line:
    """A line that was gone through.

    Attributes:
        text: The line.
        before: What it begins in.
        after: What the next line begins in.
        fragments: Its tokens.
        starts: Where each begins.
        clean: Whether the lexer can begin again there, which it cannot inside of something.
    """

    text: str
    before: _State
    after: _State
    fragments: StyleAndTextTuples
    starts: list[int]
    clean: list[bool]

    @cached_property
    def pieces(self) -> StyleAndTextTuples:
        """The tokens, those side by side of one style as one: prompt_toolkit's work grows with their number."""
        runs = groupby(self.fragments, key=itemgetter(0))
        return [(style, "".join([token[1] for token in run])) for style, run in runs]


@dataclass(frozen=True)
class _Known:
    """A line that was gone through, and how many characters it begins and ends with as another does."""

    line: _Line
    prefix: int
    suffix: int

    @classmethod
    def of(cls, line: _Line, text: str) -> _Known:
        prefix = _common(line.text, text)
        return cls(line, prefix, _common_end(line.text, text, min(len(line.text), len(text)) - prefix))


_COMMAND = re.compile(r"\s*[.\\][A-Za-z?!]\S*")
_SILENT = ("class:pygments.comment", "class:pygments.text")
# Shorter lines are gone through anew.
_LONG = 400
# What follows can decide where a token ends: so many before a change are looked at again.
_BACK = 6
_KEPT = 2000


class Highlighter(Lexer):
    """The lexer of the prompt.

    Attributes:
        lexed: How many characters were gone through so far.
    """

    def __init__(self) -> None:
        self.lexed = 0
        self._lexer: Any = SqlLexer()
        self._lines: OrderedDict[tuple[_State, str], _Line] = OrderedDict()
        self._long: list[_Line] = []

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """A function that gives a line's fragments; lines are gone through as far as they are asked for."""
        lines = document.lines
        done: list[_Line] = []

        def get_line(number: int) -> StyleAndTextTuples:
            if not 0 <= number < len(lines):
                return []
            while len(done) <= number:
                done.append(self._line(lines[len(done)], done[-1].after if done else _State()))
            return done[number].pieces

        return get_line

    def _line(self, text: str, before: _State) -> _Line:
        known = self._lines.get((before, text))
        if known is not None:
            self._lines.move_to_end((before, text))
            return known
        line = _command(text, before) or self._lexed(text, before)
        self._lines[before, text] = line
        if len(self._lines) > _KEPT:
            self._lines.popitem(last=False)
        if len(text) > _LONG:
            self._long = [line, *self._long[:3]]
        return line

    def _lexed(self, text: str, before: _State) -> _Line:
        """Goes through a line, but for what it has in common with a long one that was gone through last."""
        known = [_Known.of(line, text) for line in self._long if line.before == before] if len(text) > _LONG else []
        best = max(known, key=lambda known: known.prefix + known.suffix, default=None)
        old = best.line if best is not None else None
        first = _restart(best.line, best.prefix) if best is not None else 0
        fragments: StyleAndTextTuples = []
        starts: list[int] = []
        clean: list[bool] = []
        context = _Context(text, 0, list(before.stack), before.tag)
        if old is not None and first:
            fragments, starts, clean = old.fragments[:first], old.starts[:first], old.clean[:first]
            context = _Context(text, old.starts[first], ["root"], "")
        unchanged = len(text) - (best.suffix if best is not None else 0)
        shift = len(text) - len(old.text) if old is not None else 0
        for start, kind, piece in self._lexer.get_tokens_unprocessed(context=context):
            root = len(context.stack) == 1
            if old is not None and root and start >= unchanged:
                same = bisect_left(old.starts, start - shift)
                if same < len(old.starts) and old.starts[same] == start - shift and old.clean[same]:
                    fragments += old.fragments[same:]
                    starts += [at + shift for at in old.starts[same:]]
                    clean += old.clean[same:]
                    return _Line(text, before, _after(old.after, before, fragments), fragments, starts, clean)
            self.lexed += len(piece)
            fragments.append((_class(kind), piece))
            starts.append(start)
            clean.append(root)
        after = _State(tuple(context.stack), context.tag, fresh=False)
        return _Line(text, before, _after(after, before, fragments), fragments, starts, clean)


def _command(text: str, before: _State) -> _Line | None:
    """A dot command, where no statement has begun."""
    found = _COMMAND.match(text) if before.fresh else None
    if found is None:
        return None
    fragments: StyleAndTextTuples = [("class:pygments.keyword", found.group()), ("", text[found.end() :])]
    return _Line(text, before, before, fragments, [0, found.end()], [False, False])


def _after(state: _State, before: _State, fragments: StyleAndTextTuples) -> _State:
    """The state, and whether a statement has begun: its last semicolon says so, or what was before."""
    if len(state.stack) > 1:
        return _State(state.stack, state.tag, fresh=False)
    last = next((part for part in reversed(fragments) if part[1].strip() and not part[0].startswith(_SILENT)), None)
    return _State(fresh=before.fresh if last is None else last[1] == ";")


def _restart(old: _Line, prefix: int) -> int:
    """The fragment to begin again with, if the first ``prefix`` characters are the same."""
    first = max(bisect_left(old.starts, prefix) - _BACK, 0)
    while first and not old.clean[first]:
        first -= 1
    return first


def _common(a: str, b: str) -> int:
    """How many characters two texts begin with in common."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(a: str, b: str, most: int) -> int:
    """How many characters two texts end with in common, up to ``most``."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


@cache
def _class(kind: _TokenType) -> str:
    return "class:" + ".".join(("pygments", *kind)).lower()


def style(color: bool) -> BaseStyle:
    """The style of the prompt.

    Args:
        color: Whether there are colours; without them only the entry that is chosen in the menu stands out.
    """
    if not color:
        return Style.from_dict(
            {
                "completion-menu": "noinherit",
                "completion-menu.completion.current": "noinherit reverse",
                "completion-menu.meta.completion.current": "noinherit reverse",
                "bottom-toolbar": "noinherit noreverse",
                "hint.argument": "underline",
            }
        )
    return Style.from_dict(
        {
            "pygments.keyword": f"bold {COLORS['keyword']}",
            "pygments.literal.string": COLORS["string"],
            "pygments.literal.number": COLORS["number"],
            "pygments.name.variable": COLORS["number"],
            "pygments.name.function": COLORS["function"],
            "pygments.name.builtin": COLORS["ours"],
            "pygments.comment": f"italic {COLORS['comment']}",
            "bottom-toolbar": f"noinherit noreverse {COLORS['hint']}",
            "hint.argument": f"bold {COLORS['ours']}",
        }
    )


#: The lexer of the prompt. There is one: it keeps what it went through.
LEXER = Highlighter()
