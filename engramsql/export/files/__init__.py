"""Tables, rows of ids, e_t of a corpus and queries as files: Arrow, Parquet, NumPy, safetensors, CSV, JSON lines.

A file is there whole or not at all. Batches are computed by some threads and written by another, straight from the
memory that they were computed in, which is bounded whatever the size of the export. Or they are read as they are, as
an Arrow stream.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engramsql.errors import ArgumentError, ArgumentTypeError, StorageError, UnknownTableError
from engramsql.export.files.formats import COMPRESSIONS, STREAMED, VALUES, FileFormat, format_of
from engramsql.export.files.places import refuse_sources

if TYPE_CHECKING:
    import pyarrow as pa

    from engramsql.database import Database
    from engramsql.engine import Table
    from engramsql.export.files.source import Source

    Progress = Callable[[str, int, int], object]

__all__ = ["Export", "Options", "arrow_reader", "export_to", "export_to_stdout"]

_KINDS = {"tokens": "tokens", "ids": "row ids"}
_COLUMNS = "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY column_index"
_RESERVED = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_INTEGER_LIST = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?\[\d*\]")
_SELECT = re.compile(r"\s*(?:SELECT|FROM|WITH)\s", re.IGNORECASE)


@dataclass(frozen=True)
class Export:
    """What an export wrote."""

    path: Path
    """The file, or the directory of the files and their manifest."""
    format: str
    rows: int
    """Records."""
    bytes: int
    """Bytes of all files, without the manifest."""
    files: list[Path]
    """The files in order."""


@dataclass(frozen=True)
class Options:
    """How an export is made; :meth:`engramsql.Database.export` says what each means."""

    format: str | None = None
    compression: str | None = None
    values: Any = None
    round: bool = False
    columns: Sequence[str] | None = None
    column: str | None = None
    per: str = "token"
    history: Any = None
    rows_per_file: int | None = None
    resume: bool = False
    restart: bool = False
    replace: bool = False
    progress: Progress | None = None
    sql: str | None = None
    """The statement of a relation, for the manifest."""


def export_to(
    database: Database,
    what: object,
    path: str | os.PathLike[str],
    *,
    tokens: object = None,
    ids: object = None,
    options: Options | None = None,
) -> Export:
    """Writes a table, rows of it, e_t of a corpus, or a query; see :meth:`engramsql.Database.export`."""
    options = options or Options()
    target = _target(path, several=options.rows_per_file is not None)
    _check(options, tokens, ids)
    format = format_of(os.fspath(path), options.format)
    compression = _compression(format, options.compression)
    table, source, schema = _made(database, what, tokens, ids, format, options)
    refuse_sources(target, database, table, ids if tokens is None else tokens)
    from engramsql.export.files.writer import Layout

    layout = Layout(format, schema, compression, source.columns, target.parent)
    if options.rows_per_file is None:
        from engramsql.export.files.single import write_file

        written = write_file(target, layout, source, replace=options.replace, progress=options.progress)
        return Export(target, format.name, written.rows, written.bytes, [target])
    from engramsql.export.files.parts import write_parts

    if (options.resume or options.restart) and not source.resumable:
        raise ArgumentError(
            "only an export of a table, or of ids or tokens from files, goes on after a failure: a query need not give "
            "the same rows in the same order again, and what is in memory is gone; leave --resume and --restart out"
        )
    parts = write_parts(
        target,
        layout,
        source,
        int(options.rows_per_file),
        resume=options.resume,
        restart=options.restart,
        replace=options.replace,
        progress=options.progress,
    )
    return Export(
        target,
        format.name,
        sum(part.rows for part in parts),
        sum(part.bytes for part in parts),
        [target / part.file for part in parts],
    )


def export_to_stdout(
    database: Database,
    what: object,
    *,
    tokens: object = None,
    ids: object = None,
    options: Options,
) -> Export:
    """Writes the same to standard output, which is whole only if nothing is raised.

    Raises:
        ArgumentError: If the format is none for a pipe or a terminal, and as of :func:`export_to`.
        BrokenPipeError: If nobody reads any longer.
    """
    stdout = sys.stdout
    if options.rows_per_file is not None or options.replace:
        option = "--replace" if options.rows_per_file is None else "--rows-per-file"
        raise ArgumentError(f"{option} belongs to files, and '-' is standard output; name a path")
    _check(options, tokens, ids)
    format = format_of("-", options.format or STREAMED[0])
    if format.name not in STREAMED:
        raise ArgumentError(f"{format.name} is read from a file; to standard output go {', '.join(STREAMED)}")
    if stdout.isatty() and format.name == STREAMED[0]:
        raise ArgumentError("an Arrow stream is no text for a terminal; pipe it into a program, or give --format csv")
    compression = _compression(format, options.compression)
    made = _made(database, what, tokens, ids, format, options)
    from engramsql.export.files.single import write_pipe
    from engramsql.export.files.writer import Layout

    layout = Layout(format, made.schema, compression, made.source.columns, Path())
    stdout.flush()
    written = write_pipe(stdout.fileno(), layout, made.source, options.progress)
    return Export(Path("-"), format.name, written.rows, written.bytes, [])


def arrow_reader(
    database: Database, what: object, *, tokens: object = None, ids: object = None, options: Options
) -> pa.RecordBatchReader:
    """The same as an Arrow stream; see :meth:`engramsql.Database.arrow_reader`."""
    if type(what).__name__ == "DuckDBPyRelation":
        raise ArgumentError("a relation is read with its own to_arrow_reader(); give the name of a table")
    _check(options, tokens, ids)
    made = _made(database, what, tokens, ids, format_of("", "arrows"), options)
    from engramsql.export.files.reading import reader

    return reader(made.source, made.schema, options.progress)


def _compression(format: FileFormat, asked: str | None) -> str:
    if asked is None:
        return format.compressions[0]
    if asked not in COMPRESSIONS:
        raise ArgumentError(f"no compression '{asked}'; one of {', '.join(COMPRESSIONS)}")
    if asked not in format.compressions:
        raise ArgumentError(
            f"{format.name} has no compression '{asked}'; it has {', '.join(sorted(format.compressions))}"
        )
    return asked


def _target(path: object, *, several: bool) -> Path:
    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise ArgumentTypeError(f"path must be the name of a file or directory, got {type(path).__name__}")
    name = os.fspath(path)
    if not name or "\0" in name:
        raise ArgumentError(f"{name!r:.60} names no file")
    if name.endswith(os.sep) and not several:
        raise ArgumentError(
            f"'{name}' names a directory; name a file, or write several into it with --rows-per-file (rows_per_file=)"
        )
    return Path(os.path.abspath(name))


def _check_types(options: Options) -> None:
    """What a caller may get wrong that is no command line."""
    for name in ("format", "compression", "values", "column", "per"):
        value = getattr(options, name)
        if not isinstance(value, str) and not (value is None and name != "per"):
            raise ArgumentTypeError(f"{name} must be a text, got {type(value).__name__}")
    for name in ("round", "resume", "restart", "replace"):
        if not isinstance(getattr(options, name), bool):
            raise ArgumentTypeError(f"{name} must be True or False, got {type(getattr(options, name)).__name__}")
    if isinstance(options.columns, str):
        raise ArgumentTypeError(f"columns must be a list of names, got the text {options.columns!r}")
    if options.columns is not None and not isinstance(options.columns, Sequence):
        raise ArgumentTypeError(f"columns must be a list of names, got {type(options.columns).__name__}")
    if options.progress is not None and not callable(options.progress):
        raise ArgumentTypeError(f"progress must be a function, got {type(options.progress).__name__}")


def _check(options: Options, tokens: object, ids: object) -> None:
    """What can be said of the options without looking at anything."""
    _check_types(options)
    if tokens is not None and ids is not None:
        raise ArgumentError("give tokens or ids, not both: they say which rows are exported")
    if options.values is not None and options.values not in VALUES:
        raise ArgumentError(f"no values '{options.values}'; one of {', '.join(VALUES)}")
    if options.round and options.values != "float16":
        raise ArgumentError("round (--round) belongs to values float16: the others are exact, or rounded by definition")
    if tokens is None and (options.per != "token" or options.history is not None):
        raise ArgumentError("per and history belong to tokens (--tokens, tokens=)")
    if tokens is None and ids is None and options.column is not None:
        raise ArgumentError(
            "column belongs to files of tokens or ids; the columns of the export are columns (--columns)"
        )
    rows: Any = options.rows_per_file
    if rows is None:
        if options.resume or options.restart:
            raise ArgumentError(
                "one file begins anew: what a failure leaves of it is removed; resume and restart belong to "
                "rows_per_file (--rows-per-file)"
            )
    elif isinstance(rows, bool) or not isinstance(rows, Integral) or not 1 <= int(rows) < 1 << 63:
        raise ArgumentError(f"rows_per_file must be a number of at least 1, got {rows!r:.60}")
    if options.resume and options.restart:
        raise ArgumentError("resume goes on with an unfinished export and restart throws it away; give one of them")


class _Made(NamedTuple):
    table: Table | None
    source: Source
    schema: pa.Schema
    """With what it says of itself."""


def _made(database: Database, what: object, tokens: object, ids: object, format: FileFormat, options: Options) -> _Made:
    """What is exported, which is watched for changes if it is a table, and its schema."""
    from engramsql.export.files.identity import described

    table, source = _source(database, what, tokens, ids, format, options)
    if table is not None:
        source = _watched(source, table, ids if tokens is None else tokens, options.column)
    shown = None if table is None else options.values or "float32"
    metadata = described(database, table, source.kind, shown)
    return _Made(table, source, source.schema.with_metadata({**(source.schema.metadata or {}), **metadata}))


def _source(
    database: Database, what: object, tokens: object, ids: object, format: FileFormat, options: Options
) -> tuple[Table | None, Source]:
    if type(what).__name__ == "DuckDBPyRelation":
        if tokens is not None or ids is not None:
            raise ArgumentError("tokens and ids belong to a table, got a relation; name the table")
        if options.values is not None:
            raise ArgumentError("values belong to a table; a query has the values that it names: CAST them in it")
        from engramsql.export.files.query_source import query_source

        # Its connection is not ours to know, but interrupting ours does no harm.
        interrupt = database._connection.interrupt
        return None, query_source(what, format, options.columns, interrupt, options.sql)  # type: ignore[arg-type]
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
