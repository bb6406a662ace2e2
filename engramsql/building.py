"""What goes into views: corpora, keys, and records of engramdb-python."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql._views import without_variables
from engramsql.corpus import batches, pieces_of, within
from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import duckdb
    import pyarrow as pa
    from numpy.typing import NDArray

    from engramsql.engine import Session, Table, ViewBuilder, ViewEntry

# Documents may be long.
_BATCH_ROWS = 2048

__all__ = ["fill", "identity_of", "import_view", "rows_of"]


@contextmanager
def rows_of(connection: duckdb.DuckDBPyConnection, tokens: object, *, is_query: bool) -> Iterator[object]:
    """The rows of a query or of a DuckDB relation as a stream; anything else as it is.

    Python variables are no tables of a query: ours are as near as the caller's.
    """
    if is_query:
        sql = str(tokens)
        with without_variables(connection):
            relation: Any = connection.sql(sql)
        if relation is None:
            raise ArgumentError(f"a view is built from rows, and this statement has none: {sql.strip()[:60]!r}")
    elif type(tokens).__name__ == "DuckDBPyRelation":
        relation, tokens = tokens, None
    else:
        yield tokens
        return
    reader: pa.RecordBatchReader = relation.to_arrow_reader(_BATCH_ROWS)
    del relation
    try:
        yield reader
    finally:
        # An error may keep it alive, and the connection could not be used as long as it has a result open.
        reader.close()


def fill(
    builder: ViewBuilder,
    table: Table,
    tokens: object,
    keys: object,
    column: str | None,
    progress: Callable[[str, int, int], object] | None,
) -> None:
    """Hands a whole corpus, or keys, to a view builder."""
    count = 0
    if keys is not None:
        for block in _key_blocks(keys, builder.heads, column):
            builder.add_keys(block)
            count += len(block)
            if progress is not None:
                progress("reading keys", count, 0)
        return
    spec = table.spec
    pieces = pieces_of(tokens, column)
    if spec is not None:
        pieces = within(pieces, spec.vocab_size)
    for batch in batches(pieces, 0 if spec is None else spec.history_len):
        builder.add(batch.tokens, batch.starts, batch.history)
        count += len(batch.tokens)
        if progress is not None:
            progress("reading tokens", count, 0)


def identity_of(tokens: object, keys: object, sql: str | None, column: str | None) -> str | None:
    """What tells a corpus, or keys, from others without reading it: names, sizes and times of files, or the query.

    None for what is in memory.

    Raises:
        ArgumentError: If a file is not there.
    """
    given = tokens if keys is None else keys
    if sql is not None:
        names, parts = ["a query"], [sql]
    elif isinstance(given, (str, os.PathLike)):
        names, parts = _described([given])
    elif isinstance(given, (list, tuple)) and given and all(isinstance(part, (str, os.PathLike)) for part in given):
        names, parts = _described(given)
    else:
        return None
    digest = hashlib.blake2b("\0".join([*parts, column or ""]).encode("utf-8", "surrogateescape"), digest_size=8)
    return f"{', '.join(names)} ({digest.hexdigest()})"


def _described(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[str], list[str]]:
    names, parts = [], []
    for given in paths:
        path = os.fspath(given)
        try:
            found = os.stat(path)
        except OSError as error:
            raise ArgumentError(f"cannot read '{path}': {error.strerror}") from None
        names.append(os.path.basename(path))
        parts.append(f"{os.path.abspath(path)} {found.st_size} {found.st_mtime_ns}")
    return names, parts


def _key_blocks(keys: Any, heads: int, column: str | None = None) -> Iterator[NDArray[np.int64]]:
    from engramsql.interchange.keys import key_blocks, read_keys

    if isinstance(keys, (str, os.PathLike)):
        return read_keys(keys, heads, column)
    if column is not None:
        raise ArgumentError(f"column '{column}' belongs to a file of keys, got {type(keys).__name__}")
    return key_blocks(np.asarray(keys), heads)


def import_view(
    session: Session,
    name: str,
    file: str | os.PathLike[str],
    table: str,
    keys: object,
    index: str | os.PathLike[str] | None,
    *,
    replace: bool,
    progress: Callable[[str, int, int], object] | None,
) -> ViewEntry:
    """A view over a file of records that engramdb-python wrote; see :meth:`Database.import_view`."""
    from engramsql.interchange.views import keys_for, read_view

    view = read_view(file)
    spec = session.table(table).spec
    heads = view.heads or (16 if spec is None else spec.heads)
    if keys is not None and not isinstance(keys, (str, os.PathLike)):
        if index is not None:
            raise ArgumentError("give the keys or a slot index of the view, not both")
        blocks = _key_blocks(keys, heads)
    else:
        blocks = keys_for(view, heads, keys, index, session.directory)
    builder = session.view_builder(
        name,
        table,
        order="access" if view.access_order else "key",
        replace=replace,
        heads=heads,
        records=view.records,
        slot_bytes=view.slot_bytes,
        # What a killed import left goes on, with its keys; another build of that name is not thrown away.
        unfinished="resume",
        corpus=identity_of(None, keys if keys is not None else index, None, None),
    )
    if not builder.keys_are_complete:
        for block in blocks:
            builder.add_keys(block)
    return builder.finish(progress)
