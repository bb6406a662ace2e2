"""Long lists of integers, taken out of a statement before it is parsed and put back afterwards.

A list of ten thousand ids costs a parser a hundred times more than the rest of its statement. What is taken out is put
back letter by letter, so it does not matter where it stood: in a list, a string or a comment.
"""

from __future__ import annotations

import re

__all__ = ["fold", "folded_list", "unfold"]

# Shorter lists cost less to parse than to look for. Eighteen digits always fit a BIGINT.
_LIST = re.compile(r"(?<![\w.$])-?\d{1,18}(?:\s*,\s*-?\d{1,18}){31,}(?![\w.])")
_NAME = re.compile(r"_engram_fold_(\d+)_")
_LONG = 128


def fold(text: str) -> tuple[str, list[str]]:
    """The text with a name in place of each long list, and the lists."""
    if len(text) < _LONG or _NAME.search(text):
        return text, []
    lists: list[str] = []

    def take(found: re.Match[str]) -> str:
        lists.append(found.group())
        return f"_engram_fold_{len(lists) - 1}_"

    return _LIST.sub(take, text), lists


def unfold(text: str, lists: list[str]) -> str:
    """The text with its lists again."""
    return _NAME.sub(lambda found: lists[int(found.group(1))], text) if lists else text


def folded_list(name: str, lists: list[str]) -> str | None:
    """The list that a name stands for, if it does."""
    found = _NAME.fullmatch(name)
    return lists[int(found.group(1))] if found and int(found.group(1)) < len(lists) else None
