"""Tables, rows of ids, e_t of a corpus and queries as files: Arrow, Parquet, NumPy, safetensors, CSV, JSON lines.

A file is there whole or not at all. Batches are computed by some threads and written by another, straight from the
memory that they were computed in, which is bounded whatever the size of the export. Or they are read as they are, as
an Arrow stream.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engramsql._arguments import is_terminal
from engramsql.errors import ArgumentError, ArgumentTypeError
from engramsql.export.files.formats import COMPRESSIONS, FILE_FORMATS, STREAMED, VALUES, FileFormat, format_of
from engramsql.export.files.places import refuse_sources
from engramsql.export.files.preparing import is_relation, prepare

if TYPE_CHECKING:
    import pyarrow as pa

    from engramsql.database import Database
    from engramsql.progress import Progress

__all__ = ["Export", "Options", "arrow_reader", "export_to", "export_to_stdout"]


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
    table, source, schema = prepare(database, what, tokens, ids, format, options)
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
    """Writes the same to standard output, in a format of ``STREAMED``; whole only if nothing is raised.

    Raises:
        ArgumentError: If it would be an Arrow stream on a terminal, and as of :func:`export_to`.
        BrokenPipeError: If nobody reads any longer.
    """
    _check(options, tokens, ids)
    format = format_of("-", options.format or STREAMED[0])
    if is_terminal(sys.stdout) and format.name == STREAMED[0]:
        raise ArgumentError("an Arrow stream is no text for a terminal; pipe it into a program, or give --format csv")
    compression = _compression(format, options.compression)
    prepared = prepare(database, what, tokens, ids, format, options)
    from engramsql.export.files.single import write_pipe
    from engramsql.export.files.writer import Layout

    layout = Layout(format, prepared.schema, compression, prepared.source.columns, Path())
    sys.stdout.flush()
    written = write_pipe(sys.stdout.fileno(), layout, prepared.source, options.progress)
    return Export(Path("-"), format.name, written.rows, written.bytes, [])


def arrow_reader(
    database: Database, what: object, *, tokens: object = None, ids: object = None, options: Options
) -> pa.RecordBatchReader:
    """The same as an Arrow stream; see :meth:`engramsql.Database.arrow_reader`."""
    if is_relation(what):
        raise ArgumentError("a relation is read with its own to_arrow_reader(); give the name of a table")
    _check(options, tokens, ids)
    prepared = prepare(database, what, tokens, ids, FILE_FORMATS["arrows"], options)
    from engramsql.export.files.reading import reader

    return reader(prepared.source, prepared.schema, options.progress)


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
