"""The two worlds that a statement is run in: a database of registered tables, and DuckDB with copies of them.

Both have the same key tables, views and variables under the same names, so one text runs in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
from golden_data import GOLDEN

import engramsql
from engramsql.quoting import identifier

__all__ = ["KEYS", "REGISTERED", "SCAN", "VIEWS", "Column", "Relation", "World", "worlds"]


# As a database of ours has it: Python variables are looked for in all frames of the call stack.
SCAN: dict[str, str | bool | int | float | list[str]] = {"python_scan_all_frames": "true"}


@dataclass(frozen=True)
class Column:
    """A column by name and kind: int, double, text, vector, blob, bool or list."""

    name: str
    kind: str


@dataclass(frozen=True)
class Relation:
    """Something to select from: as it is written, what its columns are called by, and how many rows it may have."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    # Whether `rowid` is its row id, hence unique.
    registered: bool = False
    alias: str = ""
    python: bool = False
    # Whether it is a table of DuckDB, which has a `rowid` of its own.
    stored: bool = False

    def called(self, alias: str) -> Relation:
        return replace(self, alias=alias)

    def names(self) -> list[str]:
        """What a bare name may find in it."""
        return [column.name for column in self.columns] + ["rowid"] * self.stored


def _columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(*word.split(":")) for word in text.split())


_TABLE = _columns("rowid:int head:int embedding:vector row:blob")

# Without the embedding, which a store without a value format refuses: it would be an error on one side only.
_NO_FORMAT = _columns("rowid:int head:int row:blob")

REGISTERED = (
    Relation("ple", _TABLE, 1408, registered=True),
    Relation("v41_l1", _TABLE, 112, registered=True),
    Relation("v41_l3", _TABLE, 252, registered=True),
    Relation("peer", _NO_FORMAT, 256, registered=True),
    Relation('"Odd ""Name"""', _TABLE, 256, registered=True),
)

KEYS = (
    Relation("keys", _columns("id:int tag:text w:int"), 26, stored=True),
    Relation("keys32", _columns("id:int w:int"), 6, stored=True),
    Relation("keys16", _columns("id:int"), 7, stored=True),
    Relation("keysu", _columns("id:int w:int"), 4, stored=True),
    Relation("keysh", _columns("id:int"), 5, stored=True),
    Relation("keysd", _columns("id:double w:int"), 7, stored=True),
    Relation("keyst", _columns("id:text w:int"), 5, stored=True),
    Relation("keysn", _columns("id:double"), 5, stored=True),
    Relation("keysb", _columns("id:bool"), 3, stored=True),
    Relation("nokeys", _columns("id:int w:int"), 0, stored=True),
    Relation("ridkeys", _columns("rowid:int head:int note:text"), 7, stored=True),
    Relation("pairs", _columns("a:int b:int name:text"), 40, stored=True),
    Relation("lists", _columns("ids:list name:text"), 4, stored=True),
    Relation("arrow_keys", _columns("id:int w:int"), 6, python=True),
    Relation("numpy_keys", _columns("id:int w:int"), 5, python=True),
)

# Kept in the catalog, where a database is ours.
_KEPT = {
    "kept": "SELECT rowid, head, octet_length(row) AS bytes FROM ple",
    "kept_join": "SELECT p.rowid, p.head, q.rowid AS other, q.embedding FROM ple p JOIN v41_l1 q ON p.rowid = q.rowid",
}

VIEWS = (
    Relation("renamed", _columns("rid:int h:int e:vector payload:blob"), 1408),
    Relation("listed", _TABLE, 252, registered=True),
    Relation("narrowed", _TABLE, 120, registered=True),
    Relation("unioned", _NO_FORMAT, 364),
    Relation("above", _columns("rid:int h:int"), 1408),
    Relation("kept", _columns("rowid:int head:int bytes:int"), 1408, registered=True),
    Relation("kept_join", _columns("rowid:int head:int other:int embedding:vector"), 112, registered=True),
)


@dataclass(frozen=True)
class World:
    """Registered tables (``ours``), and DuckDB with their copies as tables (``tables``) or behind views (``views``)."""

    ours: engramsql.Database
    tables: duckdb.DuckDBPyConnection
    views: duckdb.DuckDBPyConnection


@contextmanager
def worlds() -> Iterator[World]:
    """Both worlds, in memory, with the golden sources."""
    with engramsql.connect() as ours:
        ours.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
        ours.register("v41", GOLDEN / "ckpt_deepseek_v41")
        ours.register("peer", GOLDEN / "peer_store" / "rows")
        ours.register('Odd "Name"', GOLDEN / "peer_store" / "rows", format="fp8_e4m3", scale=0.25)
        names = [entry.name for entry in ours.tables()]
        copies = {name: _copy(ours, name) for name in names}
        tables, views = duckdb.connect(config=SCAN), duckdb.connect(config=SCAN)
        for connection in (tables, views):
            for name, copy in copies.items():
                inner = name if connection is tables else f"rows of {name}"
                connection.register("copy", copy)
                connection.execute(f"CREATE TABLE {identifier(inner)} AS FROM copy")
                connection.unregister("copy")
                connection.execute(f"CREATE VIEW {identifier('copy_of_' + name)} AS FROM {identifier(inner)}")
                if inner != name:
                    connection.execute(f"CREATE VIEW {identifier(name)} AS FROM {identifier(inner)}")
            connection.execute((Path(__file__).parent / "judge.sql").read_text())
        for side in (tables, views, ours):
            side.execute((Path(__file__).parent / "world.sql").read_text())
        for name, select in _KEPT.items():
            ours.create_view(name, select)
            for connection in (tables, views):
                connection.execute(f"CREATE VIEW {name} AS {select}")
        yield World(ours, tables, views)
        tables.close()
        views.close()


def _copy(ours: engramsql.Database, name: str) -> Any:
    columns = "*" if name != "peer" else "rowid, head, NULL::FLOAT[] AS embedding, row"
    return ours.sql(f"SELECT {columns} FROM {identifier(name)}").to_arrow_table()
