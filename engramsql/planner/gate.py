"""Whether a statement could gain from being planned: a look at its letters, without parsing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engramsql.quoting import folded

__all__ = ["Gate", "declares"]

# Without one of these nothing restricts which rows are read.
_RESTRICTS = re.compile(r"where|join|limit|explain|exists|qualify|fetch\s+(?:first|next)")
# Texts name no relation of FROM: a table that a function of ours is given is read by that function.
_TEXTS = re.compile(r"'(?:[^']|'')*'")
# What may change what names mean.
_DECLARES = ("view", "create", "drop", "alter", "attach", "detach", "use ", "rollback", "schema", "import", "load")
# So many names are looked for one by one, which is faster than an expression of alternatives.
_FEW = 64


class Gate:
    """Knows the names of what can be planned."""

    def __init__(self, names: Iterable[str]) -> None:
        # Quotes inside a quoted name are doubled.
        self._names = {name.replace('"', '""').lower(): folded(name) for name in names}
        self._many: re.Pattern[str] | None = None
        if len(self._names) > _FEW:
            self._many = re.compile("|".join(map(re.escape, self._names)))

    def mentions(self, text: str) -> bool:
        """Whether the text has one of the names, perhaps as a part of something else."""
        lowered = text.lower()
        if self._many is not None:
            return bool(self._many.search(lowered))
        return any(name in lowered for name in self._names)

    def opens(self, text: str) -> bool:
        """Whether the text mentions a table and something that restricts it; never False where planning could gain."""
        return self.mentions(text) and bool(_RESTRICTS.search(text.lower())) and self.mentions(_TEXTS.sub("", text))


def declares(text: str) -> bool:
    """Whether the text may change what names mean."""
    lowered = text.lower()
    return any(word in lowered for word in _DECLARES)
