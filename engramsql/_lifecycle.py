"""The life of a table, as methods of a database: build, views and their indexes, verification."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

from engramsql.errors import ArgumentError, CatalogError, EngramError, SourceError, SpecError
from engramsql.messages import warn
from engramsql.quoting import folded
from engramsql.verification import LEVELS, Verification

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import duckdb

    from engramsql.engine import Comparison, Session, Table, TableEntry, View, ViewEntry
    from engramsql.progress import Progress

    StrPath: TypeAlias = str | os.PathLike[str]
    IndexFormat: TypeAlias = Literal["v1", "v2", "v3", "npz"]

__all__ = ["Lifecycle"]


class Lifecycle(ABC):
    """Builds, views and verification.

    Every method that takes ``progress`` calls it now and then with a stage and the bytes done and to do in it (0 to do:
    not known). Ctrl-C ends such a method within a second or so; what can be resumed is kept.
    """

    @abstractmethod
    def _open_session(self) -> Session: ...

    @abstractmethod
    def _refresh(self) -> None:
        """Brings the connection in step with the catalog."""

    @abstractmethod
    def table(self, name: StrPath) -> Table:
        """The open table of a name or path."""

    @property
    @abstractmethod
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The DuckDB connection."""

    def build(
        self,
        name: str,
        source: StrPath,
        *,
        shard_size: int | str | None = None,
        jobs: int | None = None,
        resume: bool = False,
        restart: bool = False,
        replace: bool = False,
        sample_rows: int | None = None,
        progress: Progress | None = None,
        spec: str | None = None,
        format: str | None = None,
        scale: float | None = None,
        width: int | None = None,
        rows_per_shard: int | None = None,
        layer: int | None = None,
        tokenizer: StrPath | None = None,
    ) -> list[TableEntry]:
        """Copies the rows of a source into the database, as a store with checksums, and gives it a name.

        The table is there when its last byte is: a failure leaves an unfinished build, which ``resume`` completes and
        ``restart`` throws away.

        Args:
            name: Table name; a source with several hash layers makes ``NAME_l1``, ``NAME_l14``, ...
            source: Name of a table, or path of a checkpoint or store.
            shard_size: Bytes of one file at most, or a text (``"1GB"``); 1 GiB by default.
            jobs: Files written at a time; 2 by default.
            resume: Go on with an unfinished build of that name.
            restart: Throw an unfinished build of that name away.
            replace: Replace a table of that name; an EngramWarning names the views that must be built again then.
            sample_rows: Rows that a second, independent reader compares when all are written, besides the first and
                last of every file; 4096 by default.
            progress: Called with the stage, bytes done and bytes to do.
            spec: As for :meth:`Database.register`, which has the rest too.
            format: Value format of the rows.
            scale: Scale of the value format.
            width: Bytes of one row.
            rows_per_shard: Rows per shard of a store without a manifest.
            layer: Decoder layer (0-based), to take one of several.
            tokenizer: Path of a ``tokenizer.json``, where none lies beside the files: for text (``engram_tokens``) and
                for specs that hash compressed tokens.

        Returns:
            One entry per table.

        Raises:
            SourceError, SpecError, FormatError: As for :meth:`Database.register`, and if the second reader disagrees.
            StorageError: If the disk is full or fails, or there is an unfinished build and neither ``resume`` nor
                ``restart``.
            CatalogError: If the name is taken or the database is read-only.
        """
        with _replace_told():
            entries = self._open_session().build(
                name,
                source if isinstance(source, str) else os.path.abspath(source),
                shard_size=shard_size,
                jobs=jobs,
                unfinished=_unfinished(resume, restart),
                replace=replace,
                sample_rows=sample_rows,
                progress=progress,
                spec=spec,
                format=format,
                scale=scale,
                width=width,
                rows_per_shard=rows_per_shard,
                layer=layer,
                tokenizer=tokenizer,
            )
        self._refresh()
        if replace:
            self._warn_of_stale_views({folded(entry.name) for entry in entries})
        return entries

    def _warn_of_stale_views(self, tables: set[str]) -> None:
        """Names the views that the tables of these folded names no longer answer from."""
        stale = []
        for entry in self.record_views():
            if folded(entry.table) in tables:
                try:
                    usable = self.view(entry.name).usable
                except EngramError:
                    usable = False
                if not usable:
                    stale.append(f"view '{entry.name}' of table '{entry.table}'")
        if stale:
            warn(
                f"{', '.join(stale)} must be built again, with replace=True (engramsql view build --replace): the "
                "table is another one now"
            )

    def build_view(
        self,
        name: str,
        table: str,
        tokens: object = None,
        *,
        keys: object = None,
        sql: str | None = None,
        column: str | None = None,
        heads: int | None = None,
        order: Literal["key", "access"] = "key",
        form: Literal["rows", "float32"] = "rows",
        top: int | None = None,
        budget: int | str | None = None,
        shard_size: int | str | None = None,
        memory: int | str | None = None,
        resume: bool = False,
        restart: bool = False,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> ViewEntry:
        """Materialises the e_t records of the distinct keys of a corpus, with an index from key to record.

        The corpus is read in batches and never held. Exactly one of ``tokens``, ``keys`` and ``sql`` is given.

        Args:
            name: View name.
            table: Table whose rows the records hold.
            tokens: One sequence of token ids (a list or an integer array); many (lists, a two-dimensional array, an
                Arrow list array, table or reader, an iterable); a DuckDB relation or a DataFrame with a column of
                lists; a path of a file of sequences (``.parquet``, ``.arrow``, ``.npy``, ``.npz``, ``.safetensors``,
                ``.csv``, ``.jsonl``, or ``.txt`` with a sequence of decimal ids per line); a list of paths.
            keys: Row ids instead of tokens: an integer array [n, heads], or the path of a keys file (text, one row id
                per line) or of another of these files, with a list of row ids per key.
            sql: A query with a column of lists, a sequence per row: ``"SELECT tokens FROM documents"``.
            column: The list column, where a file, table or query has several.
            heads: Row ids per key, for keys of a table without a spec.
            order: Order of the records: ``"key"`` ascending, or ``"access"``: as the corpus first needs them.
            form: What a record holds: the stored ``"rows"``, or e_t as ``"float32"``.
            top: Keep the keys that the corpus needs most often, at most so many.
            budget: The same, at most so many bytes of records, or a text (``"8GB"``).
            shard_size: Bytes of one file of records at most, or a text.
            memory: Bytes for sorting, or a text; what does not fit is sorted on the disk.
            resume: Go on with an unfinished build of that name; the corpus must be the same.
            restart: Throw an unfinished build of that name away.
            replace: Replace a view of that name.
            progress: Called with the stage, what is done and what is to do: tokens of the corpus, then bytes.

        Raises:
            UnknownTableError: If there is no such table.
            TokenIdError: If a token is outside the vocabulary, with its place in the corpus.
            ArgumentError: If the corpus cannot be read.
            StorageError: If the disk is full or fails, or there is an unfinished build and neither ``resume`` nor
                ``restart``.
        """
        if sum(given is not None for given in (tokens, keys, sql)) != 1:
            raise ArgumentError("give tokens, keys or sql: one of them says what the view is to hold")
        from engramsql.building import fill, identity_of, rows_of

        opened = self.table(table)
        if opened.spec is None and keys is None:
            raise SpecError(
                f"table '{table}' has no hash spec, so tokens have no keys in it; give keys and heads (--keys FILE "
                "--heads N), or register the table with a spec"
            )
        if opened.spec is None and heads is None:
            raise ArgumentError(
                f"table '{table}' has no hash spec that says how many row ids make a key; give heads (--heads N)"
            )
        with _replace_told():
            builder = self._open_session().view_builder(
                name,
                table,
                order=order,
                form=form,
                top=top,
                budget=budget,
                shard_size=shard_size,
                memory=memory,
                unfinished=_unfinished(resume, restart),
                replace=replace,
                heads=heads,
                corpus=identity_of(tokens, keys, sql, column),
            )
        if not builder.keys_are_complete:
            with rows_of(self.connection, tokens if sql is None else sql, is_query=sql is not None) as rows:
                fill(builder, opened, rows, keys, column, progress)
        entry = builder.finish(progress)
        self._refresh()
        return entry

    def view(self, name: str) -> View:
        """The open view of a name: its records, keys and index.

        Raises:
            UnknownTableError: If there is no materialised view of that name.
            StorageError: If its files are not what its manifest says.
        """
        return self._open_session().view(name)

    def record_views(self) -> list[ViewEntry]:
        """The materialised views, in creation order."""
        return self._open_session().record_views()

    def build_index(self, view: str, *, memory: int | str | None = None, progress: Progress | None = None) -> None:
        """Builds the slot index of a view anew; the one that is there stays until the new one is complete.

        Args:
            view: View name.
            memory: Bytes for sorting, or a text; what does not fit is sorted on the disk.
            progress: Called with the stage, bytes done and bytes to do.

        Raises:
            UnknownTableError: If there is no materialised view of that name.
            StorageError: If its keys are damaged, or the disk is full or fails.
        """
        self._open_session().build_index(view, memory=memory, progress=progress)

    def import_view(
        self,
        name: str,
        file: StrPath,
        table: str,
        *,
        keys: object = None,
        index: StrPath | None = None,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> ViewEntry:
        """Makes a view of a file of records that engramdb-python wrote; the records stay where they are.

        Args:
            name: View name.
            file: The records (``NAME.bin``; its ``NAME.manifest.json`` is read if it is there).
            table: Table whose rows the records hold.
            keys: The keys: a keys file, a ``.npy`` file or an integer array [slots, heads].
            index: Or a slot index of it: a directory (v1 to v3) or an ``.npz`` file.
            replace: Replace a view of that name.
            progress: Called with the stage, bytes done and bytes to do.

        Raises:
            SourceError: If the file contradicts its manifest.
            ArgumentError: If keys and records do not fit each other, or the table.
        """
        from engramsql.building import import_view

        with _replace_told():
            session = self._open_session()
            entry = import_view(session, name, file, table, keys, index, replace=replace, progress=progress)
        self._refresh()
        return entry

    def export_view(
        self,
        name: str,
        directory: StrPath,
        *,
        slot_bytes: int | None = None,
        indexes: IndexFormat | Sequence[IndexFormat] = (),
        progress: Progress | None = None,
    ) -> Path:
        """Writes a view as engramdb-python reads it: records, manifest, keys, slot indexes, ``bundle.json``.

        Args:
            name: View name.
            directory: A new directory.
            slot_bytes: Bytes from one record to the next (4096: the beginnings of pages); by default those of a record.
            indexes: Formats of slot indexes to write, one or several; with one, and a spec the peer knows, a bundle
                manifest too.
            progress: Called with the stage, bytes done and bytes to do.

        Raises:
            UnknownTableError: If there is no materialised view of that name.
            ArgumentError: If the view was built from another state of its table, the peer has no form for it, or
                ``directory`` exists.
            StorageError: If something cannot be written.
        """
        from engramsql.interchange.views import export_view

        table = self.table(self.view(name).table)
        # Opened after its table: if that is replaced in between, the view says so.
        view = self.view(name)
        chosen = [indexes] if isinstance(indexes, str) else indexes
        return export_view(view, table, directory, slot_bytes=slot_bytes, indexes=chosen, progress=progress)

    def verify(
        self,
        name: StrPath,
        level: Literal["headers", "sample", "full"] = "full",
        *,
        against: StrPath | None = None,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> Verification:
        """Looks whether a table, view or source is what it was when it was built or registered.

        Args:
            name: Name of a table or view, or path of a store.
            level: ``"headers"``: manifests, files, sizes, and three blocks of each file that has checksums.
                ``"sample"``: also some more blocks, and some rows by two readers. ``"full"``: every byte.
            against: Compare every row with this table or path instead.
            resume: Go on where a full verification was stopped.
            progress: Called with the stage, bytes done and bytes to do.

        Returns:
            What was found. A table that was found good at level ``"full"`` says so in ``verified_at``.

        Raises:
            UnknownTableError: If there is nothing of that name.
            ReadError: If the disk fails.
        """
        if level not in LEVELS:
            raise ArgumentError(f"no level '{level}'; one of {', '.join(LEVELS)}")
        label = os.fspath(name)
        if against is not None:
            if resume:
                raise ArgumentError("a comparison with another table begins at its first row; leave resume out")
            comparison = self._compare_with(name, against, progress)
            return Verification(label, comparison.different == 0, [], comparison)
        path = name if isinstance(name, str) else os.path.abspath(name)
        good, findings = self._open_session().verify(path, level, resume=resume, progress=progress)
        return Verification(label, good, findings)

    def _compare_with(self, name: StrPath, against: StrPath, progress: Progress | None) -> Comparison:
        from engramsql.engine import compare

        table = self.table(name)
        try:
            other = self.table(against)
        except (SourceError, SpecError) as error:
            if "must be given" not in str(error):
                raise
            raise type(error)(
                f"{error}; register it first with what it does not say of itself, and name that table here"
            ) from None
        with _values_told(table, other):
            return compare(table, other, progress=progress)

    def diff(self, a: StrPath, b: StrPath, *, keep: int = 100, progress: Progress | None = None) -> Comparison:
        """Compares every row of two tables, byte by byte.

        Args:
            a: Name of a table, or path of a checkpoint or store.
            b: The other one.
            keep: Differences to return, the first ones.
            progress: Called with the stage, bytes done and bytes to do.

        Raises:
            UnknownTableError: If there is no such table.
            ArgumentError: If they differ in rows or row size.
            ReadError: If a row cannot be read.
        """
        from engramsql.engine import compare

        first, second = self.table(a), self.table(b)
        with _values_told(first, second):
            return compare(first, second, keep=keep, progress=progress)


@contextmanager
def _replace_told() -> Iterator[None]:
    """Names the option that replaces, where the engine says that a name may be replaced."""
    try:
        yield
    except CatalogError as error:
        before, found, after = str(error).partition("; replace it, ")
        if not found:
            raise
        raise CatalogError(f"{before}; replace it (--replace, replace=True), {after}") from None


@contextmanager
def _values_told(a: Table, b: Table) -> Iterator[None]:
    """Names what compares values, where rows of as many values have bytes of different formats."""
    try:
        yield
    except ArgumentError as error:
        if a.row_bytes == b.row_bytes or a.dim != b.dim:
            raise
        from engramsql._hints import VALUES_INSTEAD

        raise ArgumentError(f"{error}; {VALUES_INSTEAD}") from None


def _unfinished(resume: bool, restart: bool) -> Literal["refuse", "resume", "discard"]:
    if resume and restart:
        raise ArgumentError("resume goes on with an unfinished build and restart throws it away; give one of them")
    return "resume" if resume else "discard" if restart else "refuse"
