"""What can be wanted at the cursor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engramsql.shell.completion.relations import Cte, Source

__all__ = ["Call", "Want", "Wanted"]


class Want(Enum):
    """A kind of thing that can stand at the cursor."""

    COLUMN = "column"
    FIELD = "field of a struct"
    PARAMETER = "named argument"
    SOURCE = "relation of the statement"
    RELATION = "table or view"
    FUNCTION = "function"
    TABLE_FUNCTION = "table function"
    CALLED = "function of CALL"
    TYPE = "type"
    SETTING = "setting"
    VALUE = "value that a column is compared with"
    KEYWORD = "keyword"
    STRING = "string argument of a function"
    SETTING_VALUE = "value of a setting"
    FILE = "file"
    COMMAND = "dot command"
    ARGUMENT = "argument of a dot command"


@dataclass(frozen=True)
class Call:
    """The function call that the cursor is in.

    Attributes:
        function: Name, as typed.
        index: Place of the argument at the cursor, from 0.
        named: Name of the argument, where it is written as ``name := value``.
        text_first: Whether the first argument is a text.
    """

    function: str
    index: int
    named: str = ""
    text_first: bool = False


@dataclass(frozen=True)
class Wanted:
    """What is wanted.

    Attributes:
        start: Where the word begins that is being typed, in characters; a completion replaces it up to the cursor.
        word: The word so far, without quotes.
        quote: The quote that it began with, or nothing.
        kinds: What fits, the best first; nothing in comments, strings and numbers.
        sources: Relations whose columns can be named, the nearest first.
        ctes: Relations that the statement itself names.
        qualifier: What stands before the last dot: ``("main", "t")`` in ``main.t.x``.
        keywords: Keywords that can come next.
        lower: Whether keywords are typed in lower case.
        call: The call that the cursor is in.
        subject: The setting or dot command whose value is wanted, the column that a value is compared with, or the
            function whose result has fields.
        argument: Which argument of a dot command, from 0.
        before: Arguments of a dot command before this one.
    """

    start: int
    word: str = ""
    quote: str = ""
    kinds: tuple[Want, ...] = ()
    sources: tuple[Source, ...] = ()
    ctes: tuple[Cte, ...] = ()
    qualifier: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    lower: bool = False
    call: Call | None = None
    subject: str = ""
    argument: int = 0
    before: tuple[str, ...] = ()
