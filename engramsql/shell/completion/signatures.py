"""Signatures of functions, taken apart: for hints, for names as text arguments, for the columns of table functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Hint", "Parameter", "Signature", "from_parameters", "hint", "parse"]

# A line has room for no more.
_SHOWN = 5
_HEAD = re.compile(r"\s*(?:(CALL)\s+)?([A-Za-z_]\w*)\s*\(")


class Parameter(NamedTuple):
    """One parameter: its name, and the text that the signature has for it."""

    name: str
    text: str
    optional: bool


@dataclass(frozen=True)
class Signature:
    """A signature.

    Attributes:
        text: All of it, as the registry has it.
        function: Name of the function.
        overloads: The parameters of each form.
        columns: Columns of a table function, in order; empty for others.
        called: Whether it is run by CALL.
    """

    text: str
    function: str
    overloads: tuple[tuple[Parameter, ...], ...]
    columns: tuple[str, ...] = ()
    called: bool = False

    def parameter(self, index: int, named: str = "", text_first: bool = False) -> Parameter | None:
        """The parameter at a place, or of a name; None if there is none."""
        for overload in self._fitting(index, text_first):
            if named:
                found = next((parameter for parameter in overload if parameter.name.lower() == named.lower()), None)
                if found is not None:
                    return found
            elif index < len(overload):
                return overload[index]
        return None

    def _fitting(self, index: int, text_first: bool) -> list[tuple[Parameter, ...]]:
        """The forms, those first that have so many parameters, and begin with a name if the call does."""
        return sorted(
            self.overloads,
            key=lambda form: (index >= len(form), text_first != (bool(form) and form[0].name in ("table", "view"))),
        )


class Hint(NamedTuple):
    """Two lines of help: the signature around the parameter at the cursor, and what the function is for."""

    before: str
    parameter: str
    after: str
    description: str

    def __str__(self) -> str:
        mark = "*" if self.parameter else ""
        return f"{self.before}{mark}{self.parameter}{mark}{self.after}\n{self.description}".rstrip()


def parse(text: str) -> Signature | None:
    """Takes a signature of the registry apart; None if it is of no function, as that of COPY.

    Example:
        >>> signature = parse("engram_scan(table [, first, count]) -> (rowid, head)")
        >>> [parameter.name for parameter in signature.overloads[0]], signature.columns
        (['table', 'first', 'count'], ('rowid', 'head'))
    """
    head = _HEAD.match(text)
    if head is None or head.group(2).upper() == "COPY":
        return None
    left, _, right = text.partition(" -> ")
    overloads = []
    position = head.end() - 1
    while 0 <= position < len(left):
        end = _closing(left, position)
        overloads.append(_parameters(left[position + 1 : end]))
        position = left.find("(", end)
    columns: tuple[str, ...] = ()
    if right.startswith("("):
        columns = tuple(part.strip() for part in right.strip()[1:-1].split(",") if part.strip())
    return Signature(text, head.group(2), tuple(overloads), columns, head.group(1) is not None)


def from_parameters(function: str, parameters: list[str], types: list[str], result: str | None) -> Signature:
    """The signature of a function of DuckDB's own list; of many parameters the first ones."""
    pairs = zip(parameters[:_SHOWN], [*types, *[""] * _SHOWN], strict=False)
    form = tuple(Parameter(name, f"{name} {type_}".strip(), False) for name, type_ in pairs)
    more = ["..."] if len(parameters) > _SHOWN else []
    text = f"{function}({', '.join([*(parameter.text for parameter in form), *more])})"
    return Signature(text + (f" -> {result}" if result else ""), function, (form,))


def hint(signature: Signature, description: str, index: int, named: str = "", text_first: bool = False) -> Hint:
    """The hint for a call whose cursor is in argument ``index``."""
    sentence = description.split(". ", 1)[0].strip()
    if sentence and not sentence.endswith("."):
        sentence += "."
    parameter = signature.parameter(index, named, text_first)
    if parameter is None:
        return Hint(signature.text, "", "", sentence)
    for overload in signature.overloads:
        if parameter in overload:
            start = _find(signature, overload, parameter)
            if start >= 0:
                end = start + len(parameter.text)
                return Hint(signature.text[:start], parameter.text, signature.text[end:], sentence)
    return Hint(signature.text, "", "", sentence)


def _find(signature: Signature, overload: tuple[Parameter, ...], parameter: Parameter) -> int:
    """Where the text of a parameter stands in the signature."""
    position = 0
    for _ in range(signature.overloads.index(overload) + 1):
        position = signature.text.find("(", position) + 1
    for other in overload:
        position = signature.text.find(other.text, position)
        if other is parameter or position < 0:
            return position
        position += len(other.text)
    return -1


def _closing(text: str, position: int) -> int:
    """The bracket that closes the one at ``position``; the end if it is missing."""
    depth = 0
    for at in range(position, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return len(text)


def _parameters(text: str) -> tuple[Parameter, ...]:
    """``table [, first, count]`` as parameters; brackets without a comma are part of a type."""
    required, _, optional = text.partition("[,")
    parameters = [Parameter(_name(part), part.strip(), False) for part in required.split(",") if part.strip()]
    optional = optional.rstrip().removesuffix("]")
    parameters += [Parameter(_name(part), part.strip(), True) for part in optional.split(",") if part.strip()]
    return tuple(parameters)


def _name(part: str) -> str:
    return part.split()[0]
