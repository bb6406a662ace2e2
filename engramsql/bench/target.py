"""The table that is measured, as every process of a run opens it. It is only ever read."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from engramsql._directory import CATALOG_FILE, is_database
from engramsql.bench.machine import available_memory
from engramsql.bench.own_table import NAME, own_database
from engramsql.engine import Session, default_name
from engramsql.errors import ArgumentError

if TYPE_CHECKING:
    import argparse

    from engramsql.engine import Table

__all__ = ["Target", "open_target", "paths_since_now"]


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
    shards: list[dict[str, Any]]
    own: bool
    """Whether it is the test table, which nobody else uses."""
    hot_rows: int
    """Rows that hot measurements draw from: all, or those that a quarter of the free memory holds."""

    def open(self) -> Table:
        """The table, for as long as the caller keeps it."""
        return Session.open(self.database, read_only=True).table(self.name)

    def extents(self) -> list[Any]:
        """The extents, for a probe."""
        return [SimpleNamespace(**shard) for shard in self.shards]

    def files(self) -> list[str]:
        """The files."""
        return list(dict.fromkeys(shard["file"] for shard in self.shards))

    def record(self) -> dict[str, Any]:
        """The table as JSON has it."""
        record = {key: value for key, value in asdict(self).items() if key not in ("database", "shards", "label")}
        return {"table": self.label, "shards": len(self.shards), "bytes": self.rows * self.row_bytes, **record}


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
    if options.db is None and options.table is None:
        database = own_database(Path(options.dir))
        yield _describe(str(database), NAME, f"own test table in '{options.dir}'", own=True)
    elif options.db is not None:
        if is_database(Path(options.db)) and not (Path(options.db) / CATALOG_FILE).exists():
            raise ArgumentError(f"'{options.db}' is no database; make one with: engramsql register NAME SOURCE --db DB")
        names = [entry.name for entry in Session.open(options.db, read_only=True).tables()]
        name = options.table or _only(names, f"database '{options.db}'")
        yield _describe(options.db, name, f"{name} of '{options.db}'")
    else:
        path = Path(options.table)
        if not path.exists():
            raise ArgumentError(f"'{path}' does not exist; a name of a registered table needs --db DB")
        if (path / CATALOG_FILE).exists():
            raise ArgumentError(f"'{path}' is a database; give it as --db and name a table of it")
        with tempfile.TemporaryDirectory(prefix="engramsql-bench-") as temporary:
            entries = Session.open(temporary, create=True).register(default_name(path), path.absolute())
            name = _only([entry.name for entry in entries], f"'{path}'")
            yield _describe(temporary, name, f"'{path}'")


def _only(names: list[str], where: str) -> str:
    if len(names) == 1:
        return names[0]
    if not names:
        raise ArgumentError(f"{where} has no table to measure")
    raise ArgumentError(f"{where} has several tables ({', '.join(names)}); name one, as TABLE with --db DB")


def _describe(database: str, name: str, label: str, own: bool = False) -> Target:
    table = Session.open(database, read_only=True).table(name)
    fields = ("shard", "file", "first_row", "rows", "offset", "bytes")
    shards = [{field: getattr(shard, field) for field in fields} for shard in table.shards()]
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
        shards=shards,
        own=own,
        hot_rows=max(1, min(table.rows, available_memory() // 4 // table.row_bytes)),
    )
