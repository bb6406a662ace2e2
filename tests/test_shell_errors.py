"""Errors as the shell shows them: one line, the nearest names, and the place."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import duckdb
import pytest

from engramsql._nearest import nearest_names
from engramsql.messages import say
from engramsql.shell.errors import describe, place_of
from engramsql.shell.statements import Kind, Piece


def told(database: Any, sql: str, line: int = 0) -> list[str]:
    """What is shown of the error of a statement that begins on a line of a longer text."""
    try:
        database.sql(sql).fetchall()
    except duckdb.Error as error:
        return describe(error, Piece(Kind.SQL, sql, line), database.connection).split("\n")
    pytest.fail("it did not fail")


def pointed(lines: list[str]) -> str:
    """The text that the mark points to, to the end of its line."""
    _, shown, marks = lines
    assert set(marks.strip()) == {"^"}
    return shown[len(marks) - len(marks.lstrip()) :]


@pytest.mark.parametrize(
    "sql, names, place",
    [
        ("SELECT embeding FROM fp8", 'Did you mean "embedding"?', "embeding FROM fp8"),
        ("SELECT head FROM pf8", 'Did you mean "fp8"?', "pf8"),
        ("SELECT engram_vectr('fp8', 3)", 'Nearest: "engram_vector", "engram_e_t"', "engram_vectr('fp8', 3)"),
        ("SELECT rowids_for_sq([1])", 'Nearest: "rowids_for_seq", "rowids_for_seq_with_history"', "rowids_for_sq([1])"),
        ("SELECT engram_rov('fp8', 1)", '"engram_row"', "engram_rov('fp8', 1)"),
        ("SELEC 1", "", "SELEC 1"),
        ("SELECT 1 FROM fp8 WHERE (head 2)", "", "2)"),
        ("INSERT INTO pf8 VALUES (1)", 'Did you mean "fp8"?', "pf8 VALUES (1)"),
        ("SELECT * FROM engram_fetch('pf8', [1])", "there are 'bf16', 'fp8'", "engram_fetch('pf8', [1])"),
    ],
)
def test_names_and_places(golden_db: Any, sql: str, names: str, place: str):
    lines = told(golden_db, sql)
    assert names in lines[0]
    assert pointed(lines) == place
    assert lines[1].startswith("LINE 1: ")


def test_lines_are_those_of_the_whole_text(golden_db: Any):
    lines = told(golden_db, "SELECT\n  größe,\n  embeding\nFROM fp8", line=10)
    assert lines[1] in ("LINE 12:   größe,", "LINE 13:   embeding")
    assert pointed(lines) in ("größe,", "embeding")


def test_a_long_line_is_shown_in_part(golden_db: Any):
    lines = told(golden_db, f"SELECT {', '.join(['head'] * 200)}, embeding, {', '.join(['head'] * 200)} FROM fp8")
    assert pointed(lines).startswith("embeding")
    assert len(lines[1]) < 200


def test_what_has_no_place_is_one_line(golden_db: Any):
    (line,) = told(golden_db, "SELECT * FROM engram_fetch('fp8', [99999])")
    assert "row id 99999 is out of range: table 'fp8' has 1408 rows" in line
    (line,) = told(golden_db, "SELECT error('two' || chr(10) || 'lines')")
    assert line == "Invalid Input Error: two lines"


def test_a_text_like_a_picture_is_no_place():
    # Of another statement, as the planner may have run it.
    assert place_of("Parser Error: x\n\nLINE 1: SELECT other\n               ^", "SELECT 1") is None
    assert place_of("Parser Error: x\n\nLINE 9: SELECT 1\n        ^", "SELECT 1") is None
    assert place_of("Invalid Input Error: x", "SELECT 1") is None


def test_parameters_are_there_when_the_place_is_looked_for(golden_db: Any):
    try:
        golden_db.sql("SELECT embeding FROM fp8 WHERE rowid IN $ids", params={"ids": [1, 2]})
    except duckdb.Error as error:
        piece = Piece(Kind.SQL, "SELECT embeding FROM fp8 WHERE rowid IN $ids", 0)
        shown = describe(error, piece, golden_db.connection, {"ids": [1, 2]})
    assert pointed(shown.split("\n")).startswith("embeding")


def test_nearest_names_ignore_case():
    assert nearest_names("PL", ["ple", "pla", "other"]) == ["ple", "pla"]
    assert nearest_names("xyz", ["ple"]) == []


def test_a_message_that_cannot_be_written_ends_nothing(monkeypatch: pytest.MonkeyPatch):
    full = open("/dev/full", "w", buffering=1)  # noqa: SIM115 (closed below, where it fails once more)
    monkeypatch.setattr(sys, "stderr", full)
    say("nobody reads this")
    with contextlib.suppress(OSError):
        full.close()
