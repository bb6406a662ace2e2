"""The rows of a table that files of tokens, or of row ids, name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engramsql.corpus import batches, pieces_of, within
from engramsql.errors import SpecError
from engramsql.id_files import id_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engramsql.engine import Table

__all__ = ["named_rows"]


def named_rows(
    table: Table, tokens: Sequence[str] | None, ids: Sequence[str] | None, column: str | None
) -> Iterator[NDArray[np.int64]]:
    """Row ids, some at a time, in the order of the files; a NULL id names no row.

    Args:
        table: The table.
        tokens: Files of tokens, whose rows are meant.
        ids: Files of row ids; if given, ``tokens`` is not looked at.
        column: The column, array or member of these files.

    Raises:
        SpecError: If tokens have no row ids in the table.
        ArgumentError, TokenIdError, RowIdError: If a file cannot be read, or what it names is not in the table.
    """
    if ids is not None:
        for block in id_blocks(list(ids), column, table):
            yield block.ids if block.valid is None else block.ids[block.valid]
        return
    spec = table.spec
    if spec is None:
        raise SpecError(f"table '{table.name}' has no hash spec, so tokens have no row ids in it; give --ids instead")
    pieces = within(pieces_of(list(tokens or []), column), spec.vocab_size)
    for batch in batches(pieces, spec.history_len):
        history = [0, *[len(batch.history)] * len(batch.starts)]
        starts = [*batch.starts, len(batch.tokens)]
        yield spec.rowids_packed(batch.tokens, starts, batch.history, history).reshape(-1)
