"""What is in a table, as a method of a database."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from engramsql.engine import HeadProfile, Table
    from engramsql.progress import Progress

    StrPath: TypeAlias = str | os.PathLike[str]

__all__ = ["Inspection"]


class Inspection(ABC):
    """Looking at all rows of a table."""

    @abstractmethod
    def table(self, name: StrPath) -> Table:
        """The open table of a name or path."""

    def profile(self, name: StrPath, *, progress: Progress | None = None) -> pa.Table:
        """What the rows of each head are: one pass over the table, by several threads, in bounded memory.

        Args:
            name: Name of a table, or path of a checkpoint or store.
            progress: Called with the stage, bytes done and bytes to do.

        Returns:
            The lines of ``engram_profile(name)``: one per head, and one with head NULL for rows that no head reaches.

        Raises:
            UnknownTableError: If there is no such table.
            FormatError: If the table has no value format.
            ReadError: If a row cannot be read.
        """
        return _profile_table(self.table(name).profile(progress=progress))


def _profile_table(heads: list[HeadProfile]) -> pa.Table:
    """Profiles as a table with the columns and types of ``engram_profile``."""
    import pyarrow as pa

    columns = {
        **dict.fromkeys(("head", "ngram_order"), pa.int32()),
        **dict.fromkeys(("rows", "dead", "constant", "nans", "infs", "zeros"), pa.int64()),
        **dict.fromkeys(("min", "max"), pa.float32()),
        **dict.fromkeys(("mean", "stddev", "norm_min", "norm_max", "norm_mean"), pa.float64()),
        **dict.fromkeys(("scale_min", "scale_max"), pa.float32()),
        **dict.fromkeys(("nan_rows", "inf_rows"), pa.int64()),
    }
    return pa.table({name: pa.array([getattr(head, name) for head in heads], type_) for name, type_ in columns.items()})
