"""A statement as a tree, so that a failing one can be made smaller.

Values of parameters live in the tree and are numbered when it is written: a part that goes takes its values with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = ["Cte", "Join", "Junction", "Node", "Param", "Part", "Select", "SetOperation", "Tail", "Text", "Writer", "t"]


class Writer:
    """Writes a tree as text and collects its parameters.

    Styles: ``question`` (``?``), ``number`` (``$1``) and ``name`` (``$p1``).
    """

    def __init__(self, style: str = "question") -> None:
        self._style = style
        self._values: list[Any] = []

    def write(self, part: Part) -> str:
        return part if isinstance(part, str) else part.text(self)

    def parameter(self, value: Any) -> str:
        self._values.append(value)
        number = len(self._values)
        return {"question": "?", "number": f"${number}", "name": f"$p{number}"}[self._style]

    @property
    def parameters(self) -> list[Any] | dict[str, Any] | None:
        if not self._values:
            return None
        if self._style == "name":
            return {f"p{i}": value for i, value in enumerate(self._values, 1)}
        return self._values


class Node:
    """Something that can be written."""

    def text(self, writer: Writer) -> str:
        raise NotImplementedError


Part: TypeAlias = "str | Node"


@dataclass
class Text(Node):
    """Parts written one after another."""

    parts: list[Part]

    def text(self, writer: Writer) -> str:
        return "".join(map(writer.write, self.parts))


def t(template: str, *parts: Part) -> Text:
    """``template`` with the parts in place of its ``@`` signs."""
    pieces = template.split("@")
    assert len(pieces) == len(parts) + 1, (template, parts)
    woven: list[Part] = [pieces[0]]
    for part, piece in zip(parts, pieces[1:], strict=True):
        woven += [part, piece]
    return Text(woven)


@dataclass
class Param(Node):
    """A value that is bound, not written."""

    value: Any

    def text(self, writer: Writer) -> str:
        return writer.parameter(self.value)


@dataclass
class Junction(Node):
    """Conditions joined by ``AND`` or ``OR``."""

    word: str
    args: list[Part]

    def text(self, writer: Writer) -> str:
        return "(" + f" {self.word} ".join(map(writer.write, self.args)) + ")" if self.args else "true"


@dataclass
class Join(Node):
    """A further relation of a FROM: the words before it, and what follows it (``ON ...``)."""

    words: str
    relation: Part
    condition: Part = ""

    def text(self, writer: Writer) -> str:
        condition = writer.write(self.condition)
        return f"{self.words} {writer.write(self.relation)}" + (f" {condition}" if condition else "")


@dataclass
class Cte(Node):
    """One named query of a WITH."""

    name: str
    query: Part
    words: str = ""

    def text(self, writer: Writer) -> str:
        return f"{self.name} AS {self.words}({writer.write(self.query)})"


@dataclass
class Tail(Node):
    """ORDER BY, LIMIT and OFFSET.

    ``keys`` are the output columns whose sequence the ORDER BY determines; ``total`` says that it determines all.
    """

    order: list[Part] = field(default_factory=list)
    limit: Part = ""
    offset: Part = ""
    keys: list[str] = field(default_factory=list)
    total: bool = False

    def text(self, writer: Writer) -> str:
        words = f" ORDER BY {', '.join(map(writer.write, self.order))}" if self.order else ""
        # In the order of the text, as positional parameters are numbered.
        for word, part in (("LIMIT", self.limit), ("OFFSET", self.offset)):
            words += f" {word} {writer.write(part)}" if part else ""
        return words

    def unlimited(self) -> Tail:
        return Tail(self.order, keys=self.keys, total=self.total)


@dataclass
class Select(Node):
    """One SELECT; without items it is written ``FROM ...`` alone."""

    items: list[Part] = field(default_factory=list)
    relations: list[Part] = field(default_factory=list)
    ctes: list[Cte] = field(default_factory=list)
    recursive: bool = False
    distinct: Part = ""
    where: list[Part] = field(default_factory=list)
    group: list[Part] = field(default_factory=list)
    having: list[Part] = field(default_factory=list)
    qualify: Part = ""
    sample: str = ""
    tail: Tail = field(default_factory=Tail)
    from_first: bool = False

    def text(self, writer: Writer) -> str:
        words = _with(self.ctes, writer, self.recursive)
        if not self.from_first and self.items:
            words += self._items(writer)
        if self.relations:
            words += " FROM " + writer.write(self.relations[0])
            for relation in self.relations[1:]:
                words += (" " if isinstance(relation, Join) else ", ") + writer.write(relation)
        if self.from_first and self.items:
            words += " " + self._items(writer)
        for word, joint, parts in (
            ("WHERE", " AND ", self.where), ("GROUP BY", ", ", self.group), ("HAVING", " AND ", self.having),
        ):  # fmt: skip
            words += f" {word} {joint.join(map(writer.write, parts))}" if parts else ""
        words += f" QUALIFY {writer.write(self.qualify)}" if self.qualify else ""
        words += f" USING SAMPLE {self.sample}" if self.sample else ""
        return words.strip() + self.tail.text(writer)

    def _items(self, writer: Writer) -> str:
        distinct = f"{writer.write(self.distinct)} " if self.distinct else ""
        return f"SELECT {distinct}{', '.join(map(writer.write, self.items))}"


@dataclass
class SetOperation(Node):
    """Two queries joined by UNION and its kin."""

    word: str
    left: Node
    right: Node
    ctes: list[Cte] = field(default_factory=list)
    tail: Tail = field(default_factory=Tail)

    def text(self, writer: Writer) -> str:
        words = _with(self.ctes, writer, False)
        return f"{words}({writer.write(self.left)}) {self.word} ({writer.write(self.right)})" + self.tail.text(writer)


def _with(ctes: list[Cte], writer: Writer, recursive: bool) -> str:
    if not ctes:
        return ""
    return f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(map(writer.write, ctes))} "
