"""A database: a catalog directory, and the DuckDB connection that sees its tables."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql import udf
from engramsql._directory import CATALOG_FILE, is_database
from engramsql._exporting import Exporting
from engramsql._inspection import Inspection
from engramsql._lifecycle import Lifecycle
from engramsql._nearest import of_an_empty
from engramsql._statements import Statements
from engramsql._views import CatalogViews
from engramsql.engine import Session, cache_usage, set_ram_budget, set_threads
from engramsql.errors import ArgumentError, ArgumentTypeError, ClosedError, EngramError, UnknownTableError
from engramsql.interchange.registering import register, register_unnamed
from engramsql.messages import warn
from engramsql.planner import Planner
from engramsql.quoting import folded, literal

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    import duckdb

    from engramsql.engine import Orphan, SqlViewEntry, Table, TableEntry
    from engramsql.planner.explain import Explanation

__all__ = ["Database", "connect"]

# The name as it is written without quotes, or what is between them.
_DROP_VIEW = re.compile(
    r'\s*DROP\s+VIEW\s+(?:IF\s+EXISTS\s+)?(?:memory\.)?(?:main\.)?(?:"([^"]+)"|(\w+))', re.IGNORECASE
)


def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    read_only: bool = False,
    ram_budget: int | str | None = None,
    threads: int | None = None,
) -> Database:
    """Opens a database.

    Args:
        path: A database directory (made one if it is missing or empty); a checkpoint, store or bundle, whose tables are
            then in a temporary database under a name that fits the model (``ple``, ``engram``, else ``rows``); or
            nothing, for a temporary empty database.
        read_only: Nothing is written, and changes of the catalog are refused.
        ram_budget: Memory for rows that were read from the disk, in bytes or as a text (``"8GB"``); 0 keeps none. All
            databases of the process share one row cache, so this is its size from now on. By default an eighth of the
            memory, used only as rows come.
        threads: Threads of DuckDB, and of one call for rows in memory; by default one per processor.

    Raises:
        EngramError: If the path is none of these, with what was found there.

    Example:
        >>> with connect() as db:
        ...     db.sql("SELECT 42 AS answer").fetchall()
        [(42,)]
    """
    database = _open(path, read_only=read_only)
    try:
        if ram_budget is not None:
            database.set_ram_budget(ram_budget)
        if threads is not None:
            database.set_threads(threads)
    except BaseException:
        database.close()
        raise
    return database


def _place_for_spilling(temporary: str | None) -> str:
    """A path for what does not fit in memory; DuckDB makes the directory when it needs it, and removes it at close."""
    return os.path.join(temporary or tempfile.gettempdir(), f"engramsql-spill-{os.getpid()}-{secrets.token_hex(4)}")


def _open(path: str | os.PathLike[str] | None, *, read_only: bool) -> Database:
    if path is None:
        return _open_temporary(None, read_only=read_only)
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"path must be a path or None, got {type(path).__name__}")
    if os.fspath(path) == ":memory:":  # as in DuckDB
        return _open_temporary(None, read_only=read_only)
    if not os.fspath(path):
        raise ArgumentError("path is empty; give a directory, or nothing for a temporary database")
    path = Path(path)
    if not is_database(path):
        try:
            return _open_temporary(path, read_only=read_only)
        except EngramError as error:
            if path.is_file() and os.strerror(errno.ENOTDIR) in str(error):
                raise type(error)(f"'{path}' is a file; a database, checkpoint or store is a directory") from None
            if "neither a checkpoint" in str(error):
                raise type(error)(f"{error}, nor a database (no {CATALOG_FILE}, and not empty)") from None
            raise
    session = Session.open(path, read_only=read_only, create=not read_only)
    return Database(session, label=str(path), read_only=read_only)


def _open_temporary(source: Path | None, *, read_only: bool) -> Database:
    directory = tempfile.mkdtemp(prefix="engramsql-")
    try:
        session = Session.open(directory, create=True)
        if source is not None:
            register_unnamed(session, source)
        if read_only:
            session = Session.open(directory, read_only=True)
        label = ":memory:" if source is None else str(source)
        return Database(session, label=label, read_only=read_only, temporary=directory)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


class Database(Statements, Inspection, Lifecycle, Exporting):
    """A database directory and its DuckDB connection; made by :func:`connect`.

    Every registered table is a relation of its name (``FROM ple``), also when another process registers it later. A
    database is closed by :meth:`close` or by leaving its ``with`` block; results that were fetched stay valid.
    """

    def __init__(self, session: Session, *, label: str, read_only: bool = False, temporary: str | None = None) -> None:
        import duckdb

        self._label = label
        self._session: Session | None = session
        self._temporary = temporary
        self._before_close: list[Callable[[], object]] = []
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "allow_unsigned_extensions": "true",
                # The caller's variables are one frame further up than DuckDB looks by default.
                "python_scan_all_frames": "true",
                # By default what does not fit in memory goes to `.tmp` in the working directory.
                "temp_directory": _place_for_spilling(temporary),
            },
        )
        try:
            udf.load(self._connection)
            if session.directory is not None:
                _attach(self._connection, session.directory, read_only=read_only)
            self._views = CatalogViews(self._connection, session)
            self._views.refresh()
            self._planner = Planner(self._connection, session, self._views)
        except BaseException:
            self._connection.close()
            raise
        # Tied to the class, which lives to the end, and not to this object: a relation that outlives it still reads the
        # catalog.
        self._remove = None
        if temporary is not None:
            self._remove = weakref.finalize(Database, _remove_temporary, temporary, os.getpid())

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The DuckDB connection, with the catalog's tables and views as they are now."""
        self._open_session()
        self._views.refresh()
        # Whoever has it can make views.
        self._planner.forget()
        return self._connection

    @property
    def label(self) -> str:
        """What was opened: the path as it was given, or ``:memory:``."""
        return self._label

    @property
    def directory(self) -> Path | None:
        """The database directory, or None for a temporary database."""
        return None if self._temporary is not None else self._open_session().directory

    def register(
        self,
        name: str,
        source: str | os.PathLike[str],
        *,
        spec: str | None = None,
        format: str | None = None,
        scale: float | None = None,
        width: int | None = None,
        rows_per_shard: int | None = None,
        layer: int | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
    ) -> list[TableEntry]:
        """Gives a checkpoint or store a name. Only headers are read; everything given is checked against the files.

        Args:
            name: Table name; a source with several hash layers makes ``NAME_l1``, ``NAME_l14``, ...
            source: Checkpoint directory, store directory or file; or a bundle of engramdb-python (``bundle.json`` or
                its directory), whose view is then there as ``NAME_view``.
            spec: Name of a released spec, or path of a spec file.
            format: Value format of the rows.
            scale: Scale of the value format.
            width: Bytes of one row.
            rows_per_shard: Rows per shard of a store without a manifest.
            layer: Decoder layer (0-based), to register one of several.
            tokenizer: Path of a ``tokenizer.json``, where none lies beside the files: for text (``engram_tokens``) and
                for specs that hash compressed tokens.

        Returns:
            One entry per table.

        Raises:
            SourceError: If the files are missing, malformed or contradictory.
            SpecError, FormatError: If what is given is unknown or contradicts the files.
            CatalogError: If the name is taken or the database is read-only.
        """
        entries = register(
            self._open_session(),
            name,
            source,
            spec=spec,
            format=format,
            scale=scale,
            width=width,
            rows_per_shard=rows_per_shard,
            layer=layer,
            tokenizer=tokenizer,
        )
        self._views.refresh()
        return entries

    def relocate(self, name: str, source: str | os.PathLike[str]) -> TableEntry:
        """Points a table to the place where its files are now. Only headers are read.

        Args:
            name: Table name.
            source: Where the checkpoint or store is now; it must say of itself what the old one said at registration.

        Returns:
            The table as it is kept now; it counts as not verified.

        Raises:
            UnknownTableError: If there is no table of that name.
            SourceError: If the files there are missing, malformed or contradictory.
            CatalogError: If another table lies there, or the database is read-only.
        """
        entry = self._open_session().relocate(name, source)
        self._views.refresh()
        return entry

    def drop(self, name: str, data: bool = False) -> None:
        """Forgets a table, a materialised view or a SQL view; its files stay.

        Args:
            name: Name of the table or view.
            data: Remove the directory that a built table or a view has inside the database.

        Raises:
            UnknownTableError: If there is nothing of that name.
            CatalogError: If a table has views; or, with ``data``, if the files lie elsewhere or something else needs
                them.
        """
        self._open_session().drop(name, data=data)
        self._views.refresh()

    def orphans(self) -> list[Orphan]:
        """What lies in the database directory and belongs to no table or view: left by crashes, replaced, dropped."""
        return self._open_session().orphans()

    def remove_orphans(self) -> list[Orphan]:
        """Removes the orphans, but for those of kind ``"foreign"`` and those that a process is writing to.

        Returns:
            Those removed.

        Raises:
            CatalogError: If one cannot be removed, or the database is read-only.
        """
        return self._open_session().remove_orphans()

    def tables(self) -> list[TableEntry]:
        """The registered tables, in registration order."""
        return self._open_session().tables()

    def table(self, name: str | os.PathLike[str]) -> Table:
        """The open table of a name, or of a checkpoint or store.

        Args:
            name: A table name, or a path; a text is a path if it has a separator (``"./rows"``), a ``Path`` always is.

        Raises:
            UnknownTableError: If there is no table of that name.
            SourceError: If its files are not what was registered.
        """
        session = self._open_session()
        try:
            return session.table(name if isinstance(name, str) else os.path.abspath(name))
        except UnknownTableError as error:
            view = next((view for view in session.record_views() if folded(view.name) == folded(str(name))), None)
            if view is None:
                if self._temporary is None and not session.tables():
                    raise UnknownTableError(f"{error} {of_an_empty(self._label)}") from None
                raise
            raise UnknownTableError(
                f"'{view.name}' is a view of table '{view.table}' and no table; name the table instead"
            ) from None

    def views(self) -> list[SqlViewEntry]:
        """The SQL views kept in the catalog, in creation order."""
        return self._open_session().views()

    def create_view(self, name: str, sql: str, replace: bool = False) -> None:
        """Keeps a SQL view in the catalog; it is there again at the next open.

        Args:
            name: View name.
            sql: The SELECT behind it.
            replace: Replace a view of that name.

        Raises:
            ArgumentError: If ``sql`` is not one SELECT.
            CatalogError: If the name is taken or the database is read-only.
            duckdb.Error: If the SELECT does not bind.
        """
        self._open_session()
        self._views.create(name, sql, replace=replace)

    def drop_view(self, name: str) -> None:
        """Forgets a SQL view.

        Raises:
            UnknownTableError: If there is no view of that name.
        """
        self._open_session().drop_view(name)
        self._views.refresh()

    def set_ram_budget(self, budget: int | str | None) -> None:
        """Sets the memory that rows from the disk may take, for all databases of the process.

        Args:
            budget: Bytes, a text like ``"8GB"``, 0 to keep no rows, or None for the default.

        Raises:
            ArgumentError: If it is no size, or too small to keep rows.
        """
        self._open_session()
        # Not on the connection itself: the caller may be reading a result there.
        cursor = self._connection.cursor()
        # What was SET before, right or wrong, ends here; the engine notices when a function of ours binds.
        cursor.execute("RESET GLOBAL engram_ram_budget")
        cursor.execute("FROM engram_cache()").fetchall()
        set_ram_budget(budget)
        if budget is None or udf.shares_engine(cursor):
            return
        # The extension is a library of its own here, with a cache of its own: each gets half, if that keeps rows.
        given = cache_usage().budget
        try:
            set_ram_budget(given // 2)
            half = given // 2
        except ArgumentError:
            half = 0
        cursor.execute(f"SET GLOBAL engram_ram_budget = '{half}'")
        cursor.execute("FROM engram_cache()").fetchall()

    def set_threads(self, threads: int | None) -> None:
        """Sets the threads of DuckDB, and of one call for rows in memory.

        Args:
            threads: How many, at least 1, or None for one per processor.

        Raises:
            ArgumentError: If it is less than 1.
        """
        self._open_session()
        set_threads(threads)
        cursor = self._connection.cursor()
        if threads is None:
            cursor.execute("RESET threads")
        else:
            cursor.execute(f"SET threads = {threads:d}")

    def before_close(self, end: Callable[[], object]) -> None:
        """Has ``end`` called when the database is closed, before its connection is.

        For whoever runs queries in a thread, on a cursor of :attr:`connection`: DuckDB closes no connection while one
        of its cursors is busy. ``end`` ends the query, waits for the thread and closes the cursor.
        """
        self._open_session()
        self._before_close.append(end)

    def close(self) -> None:
        """Closes the connection; what is being prefetched is cancelled, and a temporary database is removed.

        Closing twice does no harm.

        Raises:
            EngramError: If a cursor of the connection runs a query in another thread: the cursor stays open, all else
                is closed. (Before 2.0, DuckDB waits for the query instead.)
        """
        import duckdb

        if self._session is None:
            return
        for end in self._before_close:
            end()
        self._session.cancel_prefetches()
        self._session = None
        # They hold the session too, and with it the maps of its tables.
        del self._views, self._planner
        try:
            self._connection.close()
        except duckdb.OperationalError:
            raise EngramError(
                f"database {self._label!r} is closed but for a cursor of its connection, which runs a query in another "
                "thread; interrupt() and close() such cursors first (Database.before_close can do that)"
            ) from None
        finally:
            if self._remove is not None:
                self._remove()

    def _planned(self, query: str, at_once: bool) -> tuple[duckdb.DuckDBPyConnection, str | Explanation | None]:
        self._open_session()
        self._views.refresh()
        if (dropped := _DROP_VIEW.match(str(query))) is not None:
            self._tell_of_dropping(next(filter(None, dropped.groups())))
        return self._connection, self._planner.plan(query, at_once=at_once)

    def _tell_of_dropping(self, name: str) -> None:
        """Says that a relation of the catalog that is dropped in SQL is only gone from this connection."""
        session = self._open_session()
        for kind, entries in (("table", session.tables()), ("view", session.views())):
            if any(folded(entry.name) == folded(name) for entry in entries) and self._views.made(name) is not None:
                warn(
                    f"{kind} '{name}' stays in the catalog and is there again at the next open; to forget it: CALL "
                    f"engram_drop({literal(name)}) (engramsql drop, Database.drop)"
                )

    def _refresh(self) -> None:
        self._views.refresh()

    def _open_session(self) -> Session:
        if self._session is None:
            raise ClosedError.of(repr(self._label))
        return self._session

    def __enter__(self) -> Database:
        self._open_session()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._session is None:
            return f"<Database {self._label!r}, closed>"
        names = ", ".join(entry.name for entry in self._session.tables())
        return f"<Database {self._label!r}: {names or 'no tables'}>"

    def _repr_html_(self) -> str:
        """Tables and views for notebooks, from the catalog: no row is read."""
        from engramsql._notebook import closed_html, database_html

        session = self._session
        if session is None:
            return closed_html(self._label)
        return database_html(self._label, session.tables(), session.record_views(), session.views())


def _remove_temporary(directory: str, owner: int) -> None:
    """Removes a temporary database, but not in a forked child: its parent still uses it."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def _attach(connection: duckdb.DuckDBPyConnection, directory: Path, *, read_only: bool) -> None:
    """Points the extension's session at the directory, so that SQL and Python share one catalog."""
    connection.execute(f"CALL engram_attach({literal(str(directory))}, read_only := {str(read_only).lower()})")
