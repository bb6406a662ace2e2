"""From what an export is asked for to what it is made from: a table, rows of ids, e_t of a corpus, or a query."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from engramsql.errors import ArgumentError, ArgumentTypeError, StorageError, UnknownTableError

if TYPE_CHECKING:
    import pyarrow as pa

    from engramsql.database import Database
    from engramsql.engine import Table
    from engramsql.export.files import Options
    from engramsql.export.files.formats import FileFormat
    from engramsql.export.files.source import Source

__all__ = ["Prepared", "is_relation", "prepare"]

_KINDS = {"tokens": "tokens", "ids": "row ids"}
_COLUMNS = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY column_index"
_RESERVED = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_INTEGER_LIST = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?\[\d*\]")
_SELECT = re.compile(r"\s*(?:SELECT|FROM|WITH)\s", re.IGNORECASE)


class Prepared(NamedTuple):
    """What an export computes and writes."""

    table: Table | None
    """None for a query."""
    source: Source
    """Of a table it is watched for changes."""
    schema: pa.Schema
    """With the metadata that says where the records come from."""


def prepare(
    database: Database, what: object, tokens: object, ids: object, format: FileFormat, options: Options
) -> Prepared:
    """Finds what is to be exported and looks at its headers; no row is read.

    Args:
        database: Where tables are.
        what: Name or path of a table, or a relation.
        tokens: A corpus, or None.
        ids: Row ids, or None.
        format: What is written: not all formats have NULL.
        options: Values, columns and records.

    Raises:
        UnknownTableError: If there is no such table.
        ArgumentError: If an option does not fit what is exported.
        FormatError, SpecError: If the table has no value format, or no spec for tokens.
    """
    from engramsql.export.files.identity import described

    table, source = _source(database, what, tokens, ids, format, options)
    if table is not None:
        source = _watched(source, table, ids if tokens is None else tokens, options.column)
    shown = None if table is None else options.values or "float32"
    metadata = described(database, table, source.kind, shown)
    return Prepared(table, source, source.schema.with_metadata({**(source.schema.metadata or {}), **metadata}))


def is_relation(what: object) -> bool:
    """Whether that is a DuckDB relation, which is asked without importing DuckDB."""
    return type(what).__name__ == "DuckDBPyRelation"


def _source(
    database: Database, what: object, tokens: object, ids: object, format: FileFormat, options: Options
) -> tuple[Table | None, Source]:
    if is_relation(what):
        if tokens is not None or ids is not None:
            raise ArgumentError("tokens and ids belong to a table, got a relation; name the table")
        if options.values is not None:
            raise ArgumentError("values belong to a table; a query has the values that it names: CAST them in it")
        from engramsql.export.files.query_source import query_source

        return None, query_source(what, format, options.columns, _interrupt(database, what), options.sql)  # type: ignore[arg-type]
    if not isinstance(what, (str, os.PathLike)):
        raise ArgumentTypeError(
            f"what is exported must be the name or path of a table, or a relation (Database.sql), got "
            f"{type(what).__name__}"
        )
    if isinstance(what, str) and _SELECT.match(what) and not os.path.exists(what):
        raise ArgumentError(f"{what[:60]!r} is a query, and what is exported a table or a relation: pass db.sql(...)")
    table = _table(database, what)
    columns = options.columns
    if columns is None and format.name == "npy":
        # One array: that of the vectors.
        stored, decoded = ("record", "e_t") if tokens is not None else ("row", "embedding")
        columns = [stored if options.values == "row" else decoded]
    if tokens is not None:
        return table, _tokens(database, table, tokens, columns, format, options)
    from engramsql.export.files.table_source import ids_source, table_source

    if ids is None:
        return table, table_source(table, columns, options.values, options.round, format.nulls)
    from engramsql.id_files import id_blocks, origin_of

    return table, ids_source(
        table,
        lambda: id_blocks(ids, options.column, table),
        origin_of(ids, options.column),
        columns,
        options.values,
        options.round,
        format.nulls,
    )


def _interrupt(database: Database, given: object) -> Callable[[], None]:
    """What ends the query behind something that is read, if there is one."""
    if type(given).__name__ in ("DuckDBPyRelation", "RecordBatchReader"):
        # Its connection is not ours to know, but interrupting ours does no harm.
        return database._connection.interrupt
    return lambda: None


def _table(database: Database, what: str | os.PathLike[str]) -> Table:
    from engramsql.quoting import folded, identifier

    try:
        return database.table(what)
    except UnknownTableError:
        for view in database.views():
            if isinstance(what, str) and folded(view.name) == folded(what):
                query = f"FROM {identifier(view.name)}"
                raise UnknownTableError(
                    f"'{what}' is a SQL view and no table; export a query: --sql {shlex.quote(query)} (db.sql(...))"
                ) from None
        raise


def _watched(source: Source, table: Table, given: object, column: str | None) -> Source:
    """The source, which is refused in the end if what it is read from changed meanwhile."""
    from engramsql.export.files.identity import changed
    from engramsql.id_files import origin_of, paths_of

    begun = source.identity["table"]
    files = source.identity.get(source.kind) if paths_of(given) is not None else None

    def check() -> None:
        if changed(table, begun):
            raise StorageError(f"table '{table.name}' changed while it was exported; export it again")
        if files is not None and origin_of(given, column) != files:
            raise StorageError(f"the files of {_KINDS[source.kind]} changed while they were read; export them again")

    return replace(source, check_unchanged=check)


def _tokens(
    database: Database,
    table: Table,
    tokens: Any,
    columns: Sequence[str] | None,
    format: FileFormat,
    options: Options,
) -> Source:
    import numpy as np

    from engramsql.corpus import count_of, integers, pieces_of
    from engramsql.export.files.token_source import token_source
    from engramsql.id_files import origin_of, paths_of
    from engramsql.quoting import folded

    history = np.empty(0, np.int64) if options.history is None else integers(options.history, "history")
    if history.ndim != 1:
        raise ArgumentError(f"history must have one dimension, got {history.ndim}")
    files = paths_of(tokens)
    for file in files or ():
        _refuse_relation(database, table, file)
    # Those that may answer for a token; others must not be asked sequence by sequence.
    views = any(
        folded(entry.table) == folded(table.name) and database.view(entry.name).usable
        for entry in database.record_views()
    )
    return token_source(
        table,
        lambda: pieces_of(tokens, options.column),
        origin_of(tokens, options.column),
        columns=columns,
        values=options.values,
        rounded=options.round,
        per=options.per,
        history=history,
        files=[os.fspath(file) for file in files or []],
        total=count_of(tokens),
        views=views,
        interrupt=_interrupt(database, tokens),
        most_bytes=format.record_bytes,
    )


def _refuse_relation(database: Database, table: Table, given: str | os.PathLike[str]) -> None:
    """Refuses a relation of the database as file of tokens, with the query that takes it."""
    from engramsql.quoting import folded, literal

    if not isinstance(given, str) or os.sep in given or os.path.exists(given):
        return
    # Not on a cursor, which sees no temporary relation of the session; it is an error in any case.
    ask = database.connection.execute
    columns = [(column, type_) for name, column, type_ in ask(_COLUMNS).fetchall() if folded(name) == folded(given)]
    reserved = {word for (word,) in ask(_RESERVED).fetchall()}
    if not columns:
        return
    lists = [column for column, type_ in columns if _INTEGER_LIST.fullmatch(type_)]
    texts = [column for column, type_ in columns if type_ == "VARCHAR"]
    what = f"'{given}' is a table or view, and --tokens (tokens=) takes files"
    if not (lists or texts):
        raise ArgumentError(f"{what}; it has no column of token ids either")

    def written(name: str) -> str:
        return name if _PLAIN.fullmatch(name) and name not in reserved else '"' + name.replace('"', '""') + '"'

    column = f"{written(given)}.{written(lists[0] if lists else texts[0])}"
    tokens = column if lists else f"engram_tokens({literal(table.name)}, {column})"
    alias = "t" if folded(given) != "t" else "e"
    query = (
        f"SELECT {alias}.token, {alias}.e_t "
        f"FROM {written(given)}, engram_embeddings({literal(table.name)}, {tokens}) AS {alias}"
    )
    # As both shells take it.
    quoted = query.replace("\\", "\\\\").replace('"', '\\"')
    raise ArgumentError(f'{what}; e_t of its tokens is a query: --sql "{quoted}" (db.sql(...))')
