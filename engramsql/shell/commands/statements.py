"""About statements: what they would read, what they have read, and what they are given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb

from engramsql.errors import ArgumentError
from engramsql.quoting import folded, literal
from engramsql.shell.commands.registry import command
from engramsql.shell.editor import edited
from engramsql.sql_text import one_line

if TYPE_CHECKING:
    from engramsql.shell.session import Session

__all__: list[str] = []

_IDS = re.compile(r"[\d\s,]+")
_NAME = re.compile(r"[^\W\d]\w*")
# How a statement begins that says already that it is to be explained, or that would be run if it were.
_BLANK = r"(?:\s|--[^\n]*\n|/\*.*?\*/)"
_EXPLAIN = re.compile(
    rf"{_BLANK}*(?:(?P<explain>EXPLAIN\b){_BLANK}*(?P<option>\([^)]*\bANALY[ZS]E\b)?)?(?P<analyze>ANALY[ZS]E\b)?",
    re.IGNORECASE | re.DOTALL,
)
# As many as 80 columns of a terminal show; times as they can be read.
_STATS = """
    SELECT table_name, path, batches, rows, bytes_read, round(seconds, 3) AS seconds, round(p50_us, 1) AS p50_us,
           round(p99_us, 1) AS p99_us
    FROM engram_stats()
"""
_READS = """
    SELECT path, count(*) AS reads, sum(rows)::BIGINT AS rows, sum(bytes)::BIGINT AS bytes,
           sum(bytes_used)::BIGINT AS bytes_used, round(sum(bytes) / sum(bytes_used), 2) AS amplification,
           count(*) FILTER (resident) AS resident_reads
    FROM engram_plan({table}, {ids}) GROUP BY path
"""


@command(
    ".plan",
    "SQL | TABLE IDS",
    summary="what a statement, or a fetch of row ids, would read; nothing is read",
    argument="sql",
    whole=True,
    details="Of a statement: the first lines of its EXPLAIN. Of row ids (1, 2, 3, or a list in SQL such as "
    "rowids_for_seq('ple', [17, 4])): the reads of engram_plan() by code path. Without either: the last statement.",
)
def _plan(session: Session, words: list[str]) -> None:
    text = (words[0] if words else session.last).strip().removesuffix(";")
    if not text:
        raise ArgumentError("write .plan SQL, or .plan TABLE IDS")
    name, _, ids = text.partition(" ")
    table = next((entry.name for entry in session.database.tables() if folded(entry.name) == folded(name)), None)
    if table is not None and ids.strip():
        ids = ids.strip().rstrip(",")
        ids = f"[{ids}]" if _IDS.fullmatch(ids) else ids
        _require_one(f"SELECT ({ids})", "row ids are one list")
        session.query(_READS.format(table=literal(table), ids=ids))
        return
    _require_one(text, ".plan takes one statement")
    found = _EXPLAIN.match(text)
    if found is not None and (found["option"] or found["analyze"]):
        raise ArgumentError(f"{' '.join(found[0].split())} runs the statement; .plan reads nothing: leave it out")
    explained = text if found is not None and found["explain"] else f"EXPLAIN {text}"
    ours = [value for key, value in session.rows(explained) if key == "engramsql"]
    session.print("\n".join(ours).strip() or "no table is read by row id; EXPLAIN shows DuckDB's plan")


@command(
    ".stats",
    summary="what reading has cost so far, by table and code path",
    details="seconds are of all batches, p50_us and p99_us of one. SELECT * FROM engram_stats() has all columns; "
    ".timer on shows the difference that each statement makes.",
)
def _stats(session: Session, words: list[str]) -> None:
    session.query(_STATS)


@command(
    ".param",
    "[NAME VALUE | clear [NAME]]",
    summary="values of $NAME in the statements that follow",
    argument="text",
    whole=True,
    aliases=("\\set",),
    details="VALUE is SQL, computed once: .param ids [17, 4] or .param day '2026-01-31'. Without arguments it lists "
    "them; clear forgets one, or all.",
)
def _param(session: Session, words: list[str]) -> None:
    name, _, value = (words[0] if words else "").partition(" ")
    name, value = name.removeprefix("$"), value.strip().removesuffix(";")
    if not name:
        session.print("\n".join(f"${known} = {text}" for known, (_, text) in session.params.items()) or "no parameters")
    elif name == "clear":
        value = value.removeprefix("$")
        if value and value not in session.params:
            raise ArgumentError(f"no parameter ${value}")
        for known in [value] if value else list(session.params):
            del session.params[known]
    elif not _NAME.fullmatch(name):
        raise ArgumentError(f"'{name}' is no name of a parameter")
    elif not value:
        raise ArgumentError(f"write .param {name} VALUE")
    else:
        try:
            _require_one(f"SELECT {value}", f"{value} is not one value")
            rows = session.rows(f"SELECT {value}")
        except duckdb.Error as error:
            raise ArgumentError(f"{value} is no value in SQL; put a text in quotes ({one_line(str(error))})") from error
        if len(rows) != 1 or len(rows[0]) != 1:
            raise ArgumentError(f"{value} is not one value")
        session.params[name] = (rows[0][0], value)


def _require_one(sql: str, otherwise: str) -> None:
    """Refuses what would run more than the statement that we make of it; what does not parse is DuckDB's to refuse.

    Raises:
        ArgumentError: If there are several, or none.
    """
    try:
        several = len(duckdb.extract_statements(sql)) != 1
    except duckdb.Error:
        return
    if several:
        raise ArgumentError(otherwise)


@command(
    ".edit",
    summary="edit the last statement in $EDITOR; it is then what the next line begins with",
    aliases=("\\e",),
    details="VISUAL has precedence over EDITOR; without both it is vi.",
)
def _edit(session: Session, words: list[str]) -> None:
    if not session.terminal:
        raise ArgumentError(".edit needs a terminal")
    session.draft = edited(f"{session.last};\n" if session.last else "")
