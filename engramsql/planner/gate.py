"""Whether a statement could gain from being planned: a look at its letters, without parsing."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Gate", "declares"]

# Without one of these nothing restricts which rows are read.
_RESTRICTS = re.compile(r"where|join|limit|explain|qualify|exists|fetch", re.IGNORECASE)
_DECLARES = re.compile(r"view|create|drop|alter|attach|detach|use\b|search_path|schema|rollback|import|load", re.IGNORECASE)


class Gate:
    """Knows the names of what can be planned."""

    def __init__(self, names: Iterable[str]) -> None:
        # Quotes inside a quoted name are doubled. Longest first does not matter: any hit opens.
        words = {re.escape(name.replace('"', '""')) for name in names}
        self._names = re.compile("|".join(sorted(words)), re.IGNORECASE) if words else None

    def mentions(self, text: str) -> bool:
        """Whether the text has one of the names."""
        return self._names is not None and bool(self._names.search(text))

    def opens(self, text: str) -> bool:
        """Whether the text mentions a table and something that restricts it; never False where planning could gain."""
        return self.mentions(text) and bool(_RESTRICTS.search(text))


def declares(text: str) -> bool:
    """Whether the text may change what names mean."""
    return bool(_DECLARES.search(text))
