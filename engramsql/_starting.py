"""What a process of the command line leaves out, so that it answers sooner."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["leave_pandas_out"]


def leave_pandas_out() -> None:
    """Lets pandas count as not installed, for the rest of the process.

    Where it is installed, Arrow imports it with the first value of Python that it takes, to see whether that is a
    DataFrame. The command line has none, and the import is a third of the time of a short command.
    """
    sys.meta_path.insert(0, _NoPandas())


class _NoPandas:
    """Finds no pandas, and leaves all else to the other finders."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("the command line leaves pandas out", name=fullname)
