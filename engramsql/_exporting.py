"""Exports to files and as Arrow streams, as methods of a database."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from engramsql.export.files import Export
    from engramsql.progress import Progress

    StrPath: TypeAlias = str | os.PathLike[str]
    FormatName: TypeAlias = Literal[
        "arrow", "arrows", "feather", "parquet", "npy", "npz", "safetensors", "csv", "jsonl"
    ]

__all__ = ["Exporting"]


class Exporting(ABC):
    """Files and streams of tables, of the vectors of a corpus, and of queries."""

    @abstractmethod
    def _refresh(self) -> None:
        """Brings the connection in step with the catalog."""

    def export(
        self,
        what: object,
        path: StrPath,
        *,
        tokens: object = None,
        ids: object = None,
        format: FormatName | None = None,
        compression: Literal["lz4", "zstd", "none"] | None = None,
        values: Literal["float32", "float16", "bfloat16", "row"] | None = None,
        round: bool = False,
        columns: Sequence[str] | None = None,
        column: str | None = None,
        per: Literal["token", "sequence"] = "token",
        history: object = None,
        rows_per_file: int | None = None,
        resume: bool = False,
        restart: bool = False,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> Export:
        """Writes a table, rows of it, e_t of a corpus, or a query to a file, or to a directory of files.

        A file is there when its last byte is. Memory is bounded, whatever the size.

        Args:
            what: Name of a table, or path of a checkpoint or store; or a DuckDB relation, as :meth:`sql` returns.
            path: The file; with ``rows_per_file`` a directory of files with a ``manifest.json``.
            tokens: A corpus, in any form that ``build_view`` takes (sequences, arrays, Arrow, a DuckDB relation or a
                DataFrame with a column of lists, files): e_t of each token is written, not the rows.
            ids: Row ids: a list, an integer array, an Arrow array, a file or a list of files. Their rows are written,
                in that order; a NULL id gives NULLs.
            format: Kind of file; by default what the ending of ``path`` says.
            compression: ``"lz4"``, ``"zstd"`` or ``"none"``, the default but for Parquet (``"zstd"``).
            values: Values of the vectors: ``"float32"``, the default; ``"float16"``; ``"bfloat16"``, rounded once, as
                uint16 bit patterns where a format has no such type; ``"row"``: the stored bytes.
            round: Let float16 round to the nearest; otherwise a value that float16 does not have is refused.
            columns: Columns in order: ``rowid``, ``head``, ``embedding``, ``row``, for ids also ``ord``; of tokens
                ``file``, ``sequence``, ``token``, ``token_id``, ``e_t``, ``record`` (the stored bytes), with
                ``per="sequence"`` ``tokens`` for the ids.
            column: The column of token or id files that have several.
            per: ``"token"``: a record per token; ``"sequence"``: one per sequence, with a list of its vectors.
            history: Token ids before every sequence, newest last.
            rows_per_file: Records of a file; the last one may have fewer.
            resume: Go on with an unfinished export into that directory.
            restart: Throw an unfinished export into that directory away.
            replace: Replace a file, or a directory that an export wrote.
            progress: Called with the stage, what is done and what is to do: bytes of a table, tokens or records.

        Returns:
            What was written.

        Raises:
            UnknownTableError: If there is no such table.
            ArgumentError: If an option does not fit, something is there already, a value has no place in the file, or
                an unfinished export is another one.
            FormatError, SpecError: If the table has no value format, or no spec for tokens.
            RowIdError, TokenIdError: If an id is outside the table or vocabulary, with its place.
            StorageError: If the disk is full or fails, or there is an unfinished export and neither ``resume`` nor
                ``restart``.
            duckdb.Error: If a query fails.
        """
        from engramsql.export.files import Options, export_to

        options = Options(
            format=format,
            compression=compression,
            values=values,
            round=round,
            columns=columns,
            column=column,
            per=per,
            history=history,
            rows_per_file=rows_per_file,
            resume=resume,
            restart=restart,
            replace=replace,
            progress=progress,
        )
        return export_to(self, what, path, tokens=tokens, ids=ids, options=options)  # type: ignore[arg-type]

    def arrow_reader(
        self,
        what: StrPath,
        *,
        tokens: object = None,
        ids: object = None,
        values: Literal["float32", "float16", "bfloat16", "row"] | None = None,
        round: bool = False,
        columns: Sequence[str] | None = None,
        column: str | None = None,
        per: Literal["token", "sequence"] = "token",
        history: object = None,
        progress: Progress | None = None,
    ) -> pa.RecordBatchReader:
        """A table, rows of it, or e_t of a corpus as an Arrow stream: what :meth:`export` would write, without a file.

        Batches of some 12 MB are computed, a few ahead of whoever reads them. The memory of a batch is used again as
        soon as nobody has the batch, or a part of it, any more: there is no copy, and whoever lets go of each needs
        no new memory. Whoever keeps all of them has all of it in memory.

        Anything that takes an Arrow stream takes it: ``for batch in reader``, ``FROM reader`` in DuckDB,
        ``polars.from_arrow(reader)``. It is read once. A corpus that is a DuckDB relation is read by its connection,
        so the query that reads the stream needs another one (``cursor()``).

        Args:
            what: Name of a table, or path of a checkpoint or store. (A query has ``to_arrow_reader()`` of its own.)
            tokens: A corpus, as of :meth:`export`.
            ids: Row ids, as of :meth:`export`.
            values: Values of the vectors, as of :meth:`export`.
            round: Let float16 round to the nearest.
            columns: Columns in order, as of :meth:`export`.
            column: The column of token or id files that have several.
            per: ``"token"`` or ``"sequence"``: what a record is.
            history: Token ids before every sequence, newest last.
            progress: Called with the stage, what is done and what is to do: bytes of a table, tokens or records.

        Returns:
            A reader of batches, whose schema has the metadata of an exported file. Nothing is computed before the first
            batch is asked for; dropping the reader ends the computation.

        Raises:
            UnknownTableError: If there is no such table.
            ArgumentError: If an option does not fit.
            FormatError, SpecError: If the table has no value format, or no spec for tokens.
            RowIdError, TokenIdError, StorageError: By the reader, where the batch would have come: an id is outside the
                table or vocabulary, or the table changed meanwhile.
        """
        from engramsql.export.files import Options, arrow_reader

        options = Options(
            values=values, round=round, columns=columns, column=column, per=per, history=history, progress=progress
        )
        return arrow_reader(self, what, tokens=tokens, ids=ids, options=options)  # type: ignore[arg-type]
