"""``engramsql check``: can everything in a database be used? Headers, manifests and sizes; next to no rows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from engramsql._directory import CATALOG_FILE
from engramsql.commands import require, shards_text
from engramsql.database import connect
from engramsql.engine import stray_files
from engramsql.errors import ArgumentError, EngramError, UnknownTableError
from engramsql.exit_codes import DIFFERENT, ERROR, GOOD
from engramsql.quoting import folded

if TYPE_CHECKING:
    from engramsql.database import Database
    from engramsql.engine import TableEntry, ViewEntry

__all__ = ["check"]


def check(path: str, name: str | None = None) -> int:
    """Looks at every table and view of a database, checkpoint or store, or at one, and prints a line per finding.

    Returns:
        The exit code: GOOD, ERROR if something cannot be used, DIFFERENT if something is not what it was. A stray file
        or a directory that nothing names is told and does no harm.

    Raises:
        ArgumentError: If there is nothing at ``path``.
        UnknownTableError: If there is no table or view called ``name``.
    """
    require(path)
    with connect(path, read_only=True) as database:
        tables, views = database.tables(), database.record_views()
        if not tables and not (Path(path) / CATALOG_FILE).exists():
            raise ArgumentError(
                f"'{path}' is empty; make a database with: engramsql register NAME SOURCE --db {shlex.quote(path)}"
            )
        if name is not None:
            tables = [entry for entry in tables if folded(entry.name) == folded(name)]
            views = [entry for entry in views if folded(entry.name) == folded(name)]
            if not tables and not views:
                raise UnknownTableError(f"'{path}' has no table or view '{name}'; list them with: engramsql tables")
        codes = [_check_table(database, entry) for entry in tables]
        codes += [_check_view(database, entry) for entry in views]
        if name is None and database.directory is not None:
            for orphan in database.orphans():
                use = ", in use" if orphan.in_use else ""
                print(f"'{orphan.path}' belongs to no table or view ({orphan.kind}, {orphan.bytes} bytes{use})")
    return ERROR if ERROR in codes else max(codes, default=GOOD)


def _check_table(database: Database, entry: TableEntry) -> int:
    try:
        table = database.table(entry.name)
        missing = [shard for shard in table.shards() if not shard.present]
        stray = stray_files(entry.source)
    except EngramError as error:
        print(f"{entry.name}: {error}")
        return ERROR
    for file in stray:
        print(f"{entry.name}: '{file}' is named by no index and ignored")
    for shard in missing:
        print(f"{entry.name}: shard {shard.shard}: '{shard.file}' is missing or too short")
    if missing:
        return ERROR
    ok = f"{table.rows} rows x {table.row_bytes} bytes in {shards_text(entry.shards)}"
    return _verify(database, entry.name, ok)


def _check_view(database: Database, entry: ViewEntry) -> int:
    try:
        view = database.view(entry.name)
    except EngramError as error:
        print(f"{entry.name}: {error}")
        return ERROR
    return _verify(database, entry.name, f"{view.slots} records x {view.record_bytes} bytes of table '{view.table}'")


def _verify(database: Database, name: str, ok: str) -> int:
    try:
        found = database.verify(name, "headers")
    except EngramError as error:
        print(f"{name}: {error}")
        return ERROR
    for finding in found.findings:
        if not finding.ok:
            where = "" if finding.shard is None else f"shard {finding.shard}: "
            print(f"{name}: {where}{finding.check}: {finding.detail}")
    if not found.good:
        return DIFFERENT
    print(f"{name}: ok, {ok}")
    return GOOD
