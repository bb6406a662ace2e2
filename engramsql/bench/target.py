"""The table that is measured, as every process of a run opens it. It is only ever read."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from engramsql._directory import CATALOG_FILE, is_database
from engramsql.bench.machine import available_memory
from engramsql.bench.options import MEASUREMENTS
from engramsql.bench.own_table import NAME, own_database
from engramsql.engine import Session, default_name
from engramsql.errors import ArgumentError, UnknownTableError

if TYPE_CHECKING:
    import argparse

    from engramsql.engine import Table

__all__ = ["Target", "describe", "open_target", "paths_since_now"]


@dataclass(frozen=True)
class Target:
    """A registered table and what everybody has to know of it; holds no file open, so that pages can be dropped."""

    database: str
    name: str
    label: str
    rows: int
    row_bytes: int
    dim: int | None
    format: str | None
    scale: float | None
    spec: str | None
    heads: int
    shards: int
    parts: list[dict[str, Any]]
    """The extents; a shard may have several."""
    own: bool
    """Whether it is the test table, which nobody else uses."""
    hot_rows: int
    """Rows that hot measurements draw from: all, or those that a quarter of the free memory holds."""

    def open(self) -> Table:
        """The table, for as long as the caller keeps it."""
        return Session.open(self.database, read_only=True).table(self.name)

    def extents(self) -> list[Any]:
        """The extents, for a probe."""
        return [SimpleNamespace(**part) for part in self.parts]

    def files(self) -> list[str]:
        """The files."""
        return list(dict.fromkeys(part["file"] for part in self.parts))

    def record(self) -> dict[str, Any]:
        """The table as JSON has it."""
        record = {key: value for key, value in asdict(self).items() if key not in ("database", "parts", "label")}
        return {"table": self.label, "bytes": self.rows * self.row_bytes, **record}


def paths_since_now(table: Table) -> Callable[[], str]:
    """Says, when called, by which code paths the rows of the table have come since now, and their shares if several."""
    before = {stats.path: stats.rows for stats in table.stats()}

    def paths() -> str:
        came = {stats.path: stats.rows - before.get(stats.path, 0) for stats in table.stats()}
        came = {path: rows for path, rows in came.items() if rows > 0}
        if len(came) == 1:
            return next(iter(came))
        total = sum(came.values())
        return ", ".join(f"{path} {rows / total:.1%}" for path, rows in sorted(came.items(), key=lambda item: -item[1]))

    return paths


@contextmanager
def open_target(options: argparse.Namespace) -> Iterator[Target]:
    """The table that the options name; the own one, written on first use, if they name none."""
    # As the command line names them, for a remedy.
    measurements = "all" if options.measurements == list(MEASUREMENTS) else ",".join(options.measurements)
    if options.db is None and options.table is None:
        database = own_database(Path(options.dir))
        yield describe(str(database), NAME, f"own test table in '{options.dir}'", own=True)
    elif options.db is not None:
        path = Path(options.db)
        if not is_database(path):
            with _in_place(path) as temporary:
                yield _of_database(temporary, path, options.table, measurements)
            return
        if not (path / CATALOG_FILE).exists():
            raise ArgumentError(f"'{path}' is no database; make one with: engramsql register NAME SOURCE --db DB")
        yield _of_database(str(path), path, options.table, measurements)
    else:
        path = Path(options.table)
        if not path.exists():
            raise ArgumentError(
                f"'{path}' is no path, nor a measurement ({', '.join(MEASUREMENTS)}); a name of a registered table "
                "needs --db DB"
            )
        if (path / CATALOG_FILE).exists():
            raise ArgumentError(f"'{path}' is a database; give it as --db and name a table of it")
        with _in_place(path) as temporary:
            yield describe(temporary, _only(temporary, path, measurements), f"'{path}'")


@contextmanager
def _in_place(source: Path) -> Iterator[str]:
    """A temporary database with the tables of a checkpoint or store, under the names that ``connect`` gives them."""
    with tempfile.TemporaryDirectory(prefix="engramsql-bench-") as temporary:
        Session.open(temporary, create=True).register(default_name(source), source.absolute())
        yield temporary


def _of_database(database: str, given: Path, table: str | None, measurements: str) -> Target:
    name = table or _only(database, given, measurements)
    try:
        return describe(database, name, f"{name} of '{given}'")
    except UnknownTableError as error:
        # A mistyped measurement is taken for the table.
        raise ArgumentError(f"{error}; nor is '{name}' a measurement ({', '.join(MEASUREMENTS)})") from None


def _only(database: str, given: Path, measurements: str) -> str:
    names = [entry.name for entry in Session.open(database, read_only=True).tables()]
    if len(names) == 1:
        return names[0]
    if not names:
        raise ArgumentError(f"'{given}' has no table to measure")
    raise ArgumentError(
        f"'{given}' has several tables ({', '.join(names)}); name one, as in: "
        f"engramsql bench {measurements} {names[0]} --db {shlex.quote(str(given))}"
    )


def describe(database: str, name: str, label: str, own: bool = False) -> Target:
    """The target that is table ``name`` of the database directory."""
    session = Session.open(database, read_only=True)
    table = session.table(name)
    entry = next(entry for entry in session.tables() if entry.name == table.name)
    fields = ("shard", "file", "first_row", "rows", "offset", "bytes")
    parts = [{field: getattr(part, field) for field in fields} for part in table.shards()]
    return Target(
        database=str(Path(database).absolute()),
        name=table.name,
        label=label,
        rows=table.rows,
        row_bytes=table.row_bytes,
        dim=table.dim,
        format=table.format,
        scale=table.scale,
        spec=table.spec.name if table.spec else None,
        heads=len(table.heads()),
        shards=entry.shards,
        parts=parts,
        own=own,
        hot_rows=max(1, min(table.rows, available_memory() // 4 // table.row_bytes)),
    )
