"""What is in the database, and which one it is."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from engramsql._nearest import nearest_names, record_view_hint
from engramsql.errors import ArgumentError
from engramsql.quoting import folded, identifier, literal
from engramsql.shell.commands.registry import command
from engramsql.shell.paths import path_of

if TYPE_CHECKING:
    from engramsql.shell.session import Session

__all__: list[str] = []

_TABLES = """
    SELECT name, 'table' AS kind, rows, dim, format, bytes FROM engram_tables()
    UNION ALL
    SELECT name, CASE kind WHEN 'sql' THEN 'view' ELSE kind || ' view' END, slots, NULL, form, bytes FROM engram_views()
    UNION ALL
    SELECT table_name, CASE WHEN temporary THEN 'temporary table' ELSE 'table of this session' END,
           estimated_size, NULL, NULL, NULL
    FROM duckdb_tables() WHERE NOT internal AND database_name IN ('memory', 'temp')
    UNION ALL
    SELECT view_name, CASE WHEN temporary THEN 'temporary view' ELSE 'view of this session' END, NULL, NULL, NULL, NULL
    FROM duckdb_views() WHERE NOT internal AND database_name IN ('memory', 'temp')
        AND view_name NOT IN (SELECT name FROM engram_tables()) AND view_name NOT IN (SELECT name FROM engram_views())
    UNION ALL
    SELECT database_name || '.' || schema_name || '.' || table_name, 'attached table', estimated_size, NULL, NULL, NULL
    FROM duckdb_tables() WHERE NOT internal AND database_name NOT IN ('memory', 'temp')
"""
_ATTACHED = "SELECT database_name FROM duckdb_databases() WHERE NOT internal"
_RELATIONS = """
    SELECT table_name FROM duckdb_tables() WHERE database_name = {database}
    UNION ALL
    SELECT view_name FROM duckdb_views() WHERE NOT internal AND database_name = {database}
"""
# Tables of an attached file that are named.
_NAMED = 5
_COLUMNS = """
    SELECT table_name AS relation, column_name AS column, data_type AS type
    FROM duckdb_columns() WHERE NOT internal {condition}
    ORDER BY table_name, column_index
"""


@command(
    ".tables",
    "[PATTERN]",
    summary="tables and views, with their rows",
    argument="table",
    aliases=("\\dt", "\\l"),
    details="PATTERN has * for any text, or % for it. Rows of a table of the session are DuckDB's estimate.",
)
def _tables(session: Session, words: list[str]) -> None:
    # Either sign for any text; a name may have a % of its own.
    patterns = {words[0], words[0].replace("%", "*")} if words else set()
    likes = " OR ".join(f"name GLOB {literal(pattern)}" for pattern in sorted(patterns))
    condition = f" WHERE {likes}" if likes else ""
    session.query(f"SELECT * FROM ({_TABLES}){condition}")


@command(
    ".schema",
    "[TABLE]",
    summary="columns and their types, of all relations or of one",
    argument="table",
    aliases=("\\d",),
)
def _schema(session: Session, words: list[str]) -> None:
    if not words:
        session.query(_COLUMNS.format(condition=""))
        return
    name = words[0]
    known = [row[0] for row in session.rows("SELECT DISTINCT table_name FROM duckdb_columns() WHERE NOT internal")]
    found = [one for one in known if folded(one) == folded(name)]
    if not found:
        if told := record_view_hint(name, session.connection):
            raise ArgumentError(told)
        near = nearest_names(name, known)
        hint = f"did you mean '{near[0]}'?" if near else ".tables lists them"
        raise ArgumentError(f"no table or view '{name}'; {hint}")
    session.query(_COLUMNS.format(condition=f"AND table_name = {literal(found[0])}"))


@command(
    ".open",
    "[DB]",
    summary="close the database and open another, or an empty one in memory",
    argument="file",
    aliases=("\\c",),
    details="DB is a database, checkpoint or store directory, as for `engramsql DB`. What this session made with "
    "CREATE is gone. If DB cannot be opened the old one stays open.",
)
def _open(session: Session, words: list[str]) -> None:
    from engramsql.commands import require

    path = str(path_of(words[0])) if words else None
    if path is not None:
        require(path)
    session.open(path)
    session.say(session.greeting())


@command(
    ".attach",
    "PATH [NAME]",
    summary="also use a DuckDB database file, or give a checkpoint or store a table name",
    argument="file",
    fewest=1,
    most=2,
    details="A directory is registered as `engramsql register` does, and stays in the database, unless that is a "
    "temporary one; `engramsql drop NAME --db DB` forgets it. A file is attached until the session ends.",
)
def _attach(session: Session, words: list[str]) -> None:
    path = path_of(words[0])
    if not path.exists():
        raise ArgumentError(f"'{path}' does not exist")
    if path.is_dir():
        from engramsql._directory import is_database

        if is_database(path):
            raise ArgumentError(f"'{path}' is a database; .open it")
        name = words[1] if len(words) > 1 else path.resolve().name
        entries = session.database.register(name, path)
        lines = [f"{entry.name}: {entry.rows:,} rows x {entry.row_bytes} bytes" for entry in entries]
        session.say("\n".join([*lines, _registered(session, entries[0].name)]))
        return
    if not path.is_file():
        raise ArgumentError(f"'{path}' is no file; a DuckDB database is one")
    alias = f" AS {identifier(words[1])}" if len(words) > 1 else ""
    before = session.rows(_ATTACHED)
    session.rows(f"ATTACH {literal(str(path))}{alias}")
    made = [name for (name,) in session.rows(_ATTACHED) if (name,) not in before]
    for name in made:
        found = session.rows(_RELATIONS.format(database=literal(name)))
        shown = [f"{_written(name)}.{_written(relation)}" for (relation,) in found[:_NAMED]]
        more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
        session.say(f"attached as {name} until the session ends: {', '.join([*shown, *more]) or 'nothing is in it'}")


def _written(name: str) -> str:
    """A name as one writes it in SQL, in quotes where it must be."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else identifier(name)


def _registered(session: Session, name: str) -> str:
    directory = session.database.directory
    if directory is None:
        return "registered until the session ends: the database is a temporary one"
    return (
        f"registered in '{directory}', where it stays; "
        f"engramsql drop {shlex.quote(name)} --db {shlex.quote(str(directory))} forgets it"
    )
