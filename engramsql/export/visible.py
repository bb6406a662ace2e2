"""Text on a terminal: how wide it is there, and what of it must not get there as it is.

A value of a table is foreign text: an escape code in it could move the cursor, hide what stands before it, or answer in
the place of the user. So no control character of a value reaches a terminal.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, cast

from wcwidth import wcswidth, wcwidth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Escape = Callable[[re.Match[str]], str]

__all__ = ["VisibleSink", "cut", "json_escape", "pad", "visible", "width_of"]

# Controls (C0, DEL, C1), line and paragraph separators; and marks that turn the direction of what follows or are not
# seen at all: they could show a value as another one. Joiners stay, emoji and scripts are made with them.
_CONTROL = "\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029"
_UNSEEN = "\\xad\\u200b\\u2060\\ufeff\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069"
_HIDDEN = re.compile(f"[{_CONTROL}{_UNSEEN}]")
# What a text format is made of stays.
_HIDDEN_IN_LINES = re.compile(f"(?![\\n\\t])[{_CONTROL}{_UNSEEN}]")
_NAMES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_JOINER = "\u200d"
_FLAGS = range(0x1F1E6, 0x1F200)


def visible(text: str) -> str:
    r"""``text`` with control characters as escapes.

    Example:
        >>> print(visible("a\nb\x1b[31m"))
        a\nb\x1b[31m
    """
    return text if text.isprintable() else _HIDDEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Lines of a text format with all control characters but newlines and tabs as escapes."""
    return _HIDDEN_IN_LINES.sub(_escape, text)


def width_of(text: str) -> int:
    """Terminal cells of a text without control characters: 2 for wide characters, 0 for combining ones.

    Example:
        >>> width_of("abc"), width_of("\u8868"), width_of("e\u0301")
        (3, 2, 1)
    """
    if text.isascii():
        return len(text)
    width = wcswidth(text)
    return width if width >= 0 else sum(max(0, wcwidth(character)) for character in text)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """``text`` filled up with spaces to ``width`` cells; ``right`` moves it to the right."""
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def cut(text: str, width: int, ellipsis: str, *, count: bool = True) -> str:
    """As much of ``text`` as fits into ``width`` cells, and with ``count`` how many characters do not.

    Example:
        >>> cut("0123456789", 8, "..."), cut("0123456789", 10, "..."), cut("0123456789", 3, "...")
        ('012...+7', '0123456789', '...')
    """
    if width_of(text) <= width:
        return text
    pieces = list(_clusters(text[: 4 * width + 64]))
    kept, used = 0, 0
    widths = [width_of(piece) for piece in pieces]
    total = len(text)
    # What stands behind the text says how much is left out, which is more with every character that makes room for it.
    while kept < len(pieces) and used + widths[kept] <= width:
        used += widths[kept]
        kept += 1
    while kept > 0:
        mark = f"{ellipsis}+{total - sum(map(len, pieces[:kept]))}" if count else ellipsis
        if used + width_of(mark) <= width:
            return "".join(pieces[:kept]) + mark
        kept -= 1
        used -= widths[kept]
    return ellipsis if width_of(ellipsis) <= width else "." * width


class VisibleSink:
    """A terminal that gets the lines of a text format with the control characters of values as escapes."""

    def __init__(self, sink: IO[bytes], escape: Escape | None = None) -> None:
        """Begins with nothing written.

        Args:
            sink: The terminal.
            escape: How the format writes a control character, if it has a way of its own.
        """
        self._sink = sink
        self._escape = escape or _escape

    def write(self, data: bytes | memoryview) -> int:
        """Writes whole characters, as all text writers do."""
        text = bytes(data).decode()
        self._sink.write(_HIDDEN_IN_LINES.sub(self._escape, text).encode())
        return len(data)

    def flush(self) -> None:
        """Flushes the terminal."""
        self._sink.flush()

    def as_file(self) -> IO[bytes]:
        """Itself, as what writers take."""
        return cast("IO[bytes]", self)


def json_escape(found: re.Match[str]) -> str:
    """The escape that JSON has for a character of the Basic Multilingual Plane."""
    return f"\\u{ord(found[0]):04x}"


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return _NAMES.get(found[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def _clusters(text: str) -> Iterator[str]:
    """Pieces that must not be cut: a character with its marks, an emoji of several, a flag of two letters."""
    piece = ""
    for character in text:
        joined = (
            not piece
            or piece[-1] == _JOINER
            or (not character.isascii() and wcwidth(character) == 0)
            or (len(piece) == 1 and ord(piece) in _FLAGS and ord(character) in _FLAGS)
        )
        if not joined:
            yield piece
            piece = ""
        piece += character
    if piece:
        yield piece
