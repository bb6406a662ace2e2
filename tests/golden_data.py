"""Reading tests/golden: one named case with its arrays and constants."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

GOLDEN = Path(__file__).parent / "golden"


def arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an archive, which is closed again: what ``np.load`` gives is open until it is collected."""
    with np.load(path) as archive:
        return dict(archive)


@dataclass(frozen=True)
class Case:
    """One golden case: its arrays by short name, its own constants and those of the file."""

    file: str
    name: str
    arrays: dict[str, NDArray[Any]]
    own: dict[str, Any]
    top: dict[str, Any]

    def __getitem__(self, key: str) -> NDArray[Any]:
        return self.arrays[key]

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


@cache
def cases(file: str) -> tuple[Case, ...]:
    """All cases of one golden file."""
    top = json.loads((GOLDEN / f"{file}.json").read_text())
    with np.load(GOLDEN / f"{file}.npz") as npz:
        return tuple(
            Case(file, c["name"], {k: npz[v] for k, v in c.get("arrays", {}).items()}, c, top) for c in top["cases"]
        )


def case(file: str, name: str) -> Case:
    """One case by name."""
    return next(c for c in cases(file) if c.name == name)


def names(file: str) -> list[str]:
    """Case names, for parametrize."""
    return [c.name for c in cases(file)]
