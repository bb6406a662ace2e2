r"""What was typed or read, cut into dot commands and SQL statements.

A statement ends at a semicolon, or at ``\G``, which shows its rows one value per line. Both are found by DuckDB's
tokenizer, so that one in a string, a comment or a dollar quote ends nothing. A line that begins with a dot or a
backslash is a command where a statement could begin, and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import duckdb

from engramsql.sql_text import is_comment, parses

if TYPE_CHECKING:
    from collections.abc import Container

__all__ = ["FORGOTTEN", "Kind", "Parsed", "Piece", "finished", "is_forgotten", "meant", "parse"]

_END, _VERTICAL = b";", b"\\G"
#: What to say where a command was typed inside a statement.
FORGOTTEN = "the statement is not finished: end it with ; or clear it with Ctrl-C"
# Words that people type alone at a prompt, and what they stand for; no SQL statement is one of them.
_WORDS = {"help": ".help", "?": ".help", "exit": ".quit", "quit": ".quit"}
# What DuckDB takes for spaces besides those of ASCII: such as come with text that is pasted from a page, and the mark
# that some editors put before a file.
_SPACES = " \t\n\r\f\v\u00a0\u200b\u202f\u205f\u2060\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
# Bytes that are no text, as Python keeps them; it takes as many bytes to write what stands for one to the tokenizer.
_NO_TEXT = re.compile("[\ud800-\udfff]")
_STANDS_FOR_NO_TEXT = "\ufffd"


class Kind(Enum):
    """What a piece is."""

    COMMAND = "command"
    SQL = "sql"


@dataclass(frozen=True)
class Piece:
    """A dot command or a statement without its end; ``line`` counts from 0 and is where it begins in the whole text."""

    kind: Kind
    text: str
    line: int
    vertical: bool = False


@dataclass(frozen=True)
class Parsed:
    """The pieces that are complete, and what follows the last of them: a statement without an end, or nothing."""

    pieces: tuple[Piece, ...]
    rest: Piece | None

    @property
    def all(self) -> tuple[Piece, ...]:
        """All pieces of a text that nothing can be added to: what is left is a statement too."""
        return self.pieces if self.rest is None else (*self.pieces, self.rest)


def finished(text: str) -> bool:
    r"""Whether Enter should run the text rather than begin another line of it.

    Example:
        >>> finished("SELECT 1"), finished("SELECT ';"), finished("SELECT ';' -- x\n;"), finished(".help")
        (False, False, True, True)
    """
    return parse(text).rest is None


def meant(text: str) -> str:
    r"""What was typed at a prompt; a word such as ``help``, alone, is the command that it means.

    Example:
        >>> meant("help"), meant("Exit;"), meant("SELECT 1")
        ('.help', '.quit', 'SELECT 1')
    """
    return _WORDS.get(text.strip().removesuffix(";").rstrip().lower(), text)


def is_forgotten(text: str, commands: Container[str]) -> bool:
    r"""Whether the end of a statement was forgotten: its last line is a command, or a word that means one.

    Args:
        text: What has been typed.
        commands: The names of the commands.

    Example:
        >>> is_forgotten("SELECT 1\n.tables\n", {".tables"})
        True
        >>> is_forgotten("SELECT 1\n.5", {".tables"}), is_forgotten(".tables", {".tables"})
        (False, False)
    """
    last = text.rstrip().rpartition("\n")[2].strip()
    word, _, rest = last.partition(" ")
    if not last or not (word.removesuffix(";") in commands or (meant(word) != word and not rest)):
        return False
    before = text.rstrip().rpartition("\n")[0]
    parsed = parse(before)
    # A text or a comment that is open may well have such a line.
    return parsed.rest is not None and _is_open_for_sql(parsed.rest.text)


def _is_open_for_sql(statement: str) -> bool:
    """Whether what follows would be SQL, and not more of a text or a comment."""
    tokens = _tokens(f"{statement}\n.")
    return bool(tokens) and tokens[-1][0] >= len(statement.encode(errors="surrogatepass"))


def _tokens(text: str) -> list[tuple[int, object]]:
    """Where each token begins, in bytes, and its kind."""
    return list(duckdb.tokenize(_NO_TEXT.sub(_STANDS_FOR_NO_TEXT, text)))


def parse(text: str) -> Parsed:
    r"""The commands and statements of a text, in order; comments alone are no statement.

    Example:
        >>> [piece.text for piece in parse(".mode csv\nSELECT ';'; -- done; SELECT 1").pieces]
        ['.mode csv', "SELECT ';'"]
        >>> parse("SELECT 1; SELECT\n2").rest
        Piece(kind=<Kind.SQL: 'sql'>, text='SELECT\n2', line=0, vertical=False)
    """
    data = text.encode(errors="surrogatepass")
    pieces: list[Piece] = []
    position = 0
    while True:
        command = _command_at(data, position)
        if command is not None:
            start, end = command
            pieces.append(Piece(Kind.COMMAND, _text(data[start:end]), data.count(b"\n", 0, start)))
            position = end
            continue
        more, position, rest = _statements(data, position)
        pieces += more
        if _command_at(data, position) is None:
            return Parsed(tuple(pieces), rest)


def _statements(data: bytes, start: int) -> tuple[list[Piece], int, Piece | None]:
    """Statements from ``start`` on, up to the first command; where they end; and the one that has no end."""
    pieces: list[Piece] = []
    # The tokenizer counts bytes, and wants text.
    base, position, empty, skip = start, start, True, -1
    tokens = _tokens(_text(data[start:]))
    ends = [*(offset for offset, _ in tokens[1:]), len(data) - start]
    for (offset, kind), next_offset in zip(tokens, ends, strict=False):
        at = base + offset
        if at <= skip:
            continue
        end = _end_at(data, at) if kind == duckdb.token_type.operator else 0
        if end:
            if not empty:
                pieces.append(_piece(data, position, at, vertical=end > 1))
            position, empty, skip = at + end, True, at + end - 1
            if _command_at(data, position) is not None:
                return pieces, position, None
        elif not is_comment(data, at) and _text(data[at : base + next_offset]).strip(_SPACES):
            empty = False
    rest = _piece(data, position, len(data))
    # A comment that is not closed may hide a statement: it is no end.
    return pieces, len(data), None if empty and _parses(rest.text) else rest


def _piece(data: bytes, start: int, end: int, *, vertical: bool = False) -> Piece:
    # Behind a statement a space that is none of ASCII may be a name.
    whole = _text(data[start:end].rstrip())
    text = whole.lstrip(_SPACES)
    before = whole[: len(whole) - len(text)]
    return Piece(Kind.SQL, text, data.count(b"\n", 0, start) + before.count("\n"), vertical)


def _command_at(data: bytes, position: int) -> tuple[int, int] | None:
    """Where the command begins and ends that is the next thing in the text and the first on its line."""
    while True:
        start = position
        while start < len(data) and data[start : start + 1].isspace():
            start += 1
        if data[start : start + 2] != b"--":
            break
        # A comment between commands of a file; one behind a statement belongs to its line.
        position = _line_end(data, start)
    if data[start : start + 1] not in (b".", b"\\") or data[data.rfind(b"\n", 0, start) + 1 : start].strip():
        return None
    return start, _line_end(data, start)


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _end_at(data: bytes, offset: int) -> int:
    """The length of the end of a statement at an operator; 0 if it is none."""
    if data[offset : offset + 1] == _END:
        return 1
    if data[offset : offset + 2] != _VERTICAL:
        return 0
    following = data[offset + 2 : offset + 3]
    if following.isalnum() or following in (b"_", b"$"):
        return 0
    # `\G;` is one end, not an empty statement behind it.
    return 3 if following == _END else 2


def _parses(statement: str) -> bool:
    return not statement.strip(_SPACES) or parses(_NO_TEXT.sub(_STANDS_FOR_NO_TEXT, statement))


def _text(data: bytes) -> str:
    return data.decode(errors="surrogatepass")
