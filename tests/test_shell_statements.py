"""What is a statement, what a command, and where they end; on text alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engramsql.shell.statements import Kind, finished, is_forgotten, meant, parse
from engramsql.sql_text import split

BACKSLASH_G = "\\G"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;",
        "SELECT 1; -- done",
        "SELECT 1; /* done */",
        "select ';' /* ; */ -- ;\n;",
        "SELECT $$a;b;$$;",
        "SELECT $x$;$x$ || $$;$$;",
        "SELECT 'it''s';",
        "SELECT e'\\';' ;",
        'SELECT 1 AS "a;";',
        "SELECT 1; SELECT 2;",
        ";",
        "",
        "  \n",
        "-- nothing",
        f"SELECT 1 {BACKSLASH_G}",
        f"SELECT 1{BACKSLASH_G};",
        ".help",
        "  .help SELECT 'x",
        "\\d ple",
        "SELECT 'größe; 数据';",
    ],
)
def test_what_is_finished(text: str):
    assert finished(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT ';",
        'SELECT ";',
        "SELECT $$;",
        "SELECT $x$;$$;",
        "SELECT /* ;",
        "SELECT 1 /* ; */",
        "SELECT 1; SELECT 2",
        "SELECT 1; 'a;",
        "SELECT 1; /* ;",
        "SELECT 1 -- ;",
        "SELECT 1\n.5",
        f"SELECT '{BACKSLASH_G}'",
        f"SELECT 1 {BACKSLASH_G}x",
        "SELECT '数据;",
    ],
)
def test_what_is_not_finished(text: str):
    assert not finished(text)


@pytest.mark.parametrize("line", [".tables", " .tables p*", ".tables;", "help", "exit;", "QUIT", "?"])
def test_a_command_inside_a_statement_says_that_its_end_was_forgotten(line: str):
    assert is_forgotten(f"SELECT 1\n{line}", {".tables"})
    assert is_forgotten(f"SELECT 1;\nSELECT 'x'\nFROM t\n{line}\n", {".tables"})
    # Where it is a command, or a line of a text, nothing was forgotten.
    for before in ("", "SELECT 1;\n", "SELECT 'a\n", "SELECT $$a\n", 'SELECT "a\n', "SELECT /* a\n"):
        assert not is_forgotten(before + line, {".tables"})


@pytest.mark.parametrize(
    "text", ["SELECT 1\n.5", "SELECT 1\n.tables\nFROM t", "SELECT\nhelp AS x", "SELECT 1\n.tabels"]
)
def test_what_is_sql_is_no_forgotten_end(text: str):
    assert not is_forgotten(text, {".tables"})


def test_words_that_mean_a_command_do_so_alone():
    assert [meant(word) for word in ("help", " Exit ;", "quit\n", "?")] == [".help", ".quit", ".quit", ".help"]
    for text in ("SELECT help", "help me", "exits", "", ";"):
        assert meant(text) == text


def test_pieces_know_their_line_and_how_they_are_shown():
    text = f"\n.mode csv\n\nSELECT\n ';' -- ;\n; SELECT 2 {BACKSLASH_G}\n-- then\n.timer on\nSELECT 3"
    pieces = parse(text).all
    assert [(piece.kind, piece.line, piece.vertical) for piece in pieces] == [
        (Kind.COMMAND, 1, False),
        (Kind.SQL, 3, False),
        (Kind.SQL, 5, True),
        (Kind.COMMAND, 7, False),
        (Kind.SQL, 8, False),
    ]
    assert [piece.text for piece in pieces] == [".mode csv", "SELECT\n ';' -- ;", "SELECT 2", ".timer on", "SELECT 3"]


def test_a_command_does_not_disturb_what_follows():
    """Its quotes are not SQL's."""
    pieces = parse(".once it's\nSELECT 1;\n.once 'x\nSELECT 2;\n").pieces
    assert [piece.text for piece in pieces] == [".once it's", "SELECT 1", ".once 'x", "SELECT 2"]


def test_a_dot_begins_a_command_only_where_a_statement_could_begin():
    assert [piece.kind for piece in parse("SELECT 1 +\n.5;").pieces] == [Kind.SQL]
    assert [piece.kind for piece in parse("SELECT 1; .help").all] == [Kind.SQL, Kind.SQL]
    assert [piece.kind for piece in parse("SELECT '\n.help\n';").pieces] == [Kind.SQL]


WORDS = [
    "SELECT",
    " 1",
    ";",
    "'",
    "''",
    "$$",
    "/*",
    "*/",
    "--",
    "\n",
    ".help",
    "\\G",
    '"',
    "ä",
    "数",
    "\\",
    "$x$",
    "e'",
]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join))
def test_any_text_has_pieces(text: str):
    parsed = parse(text)
    assert finished(text) == (parsed.rest is None)
    for piece in parsed.all:
        assert piece.text in text
        assert piece.text == piece.text.rstrip()


@given(st.lists(st.sampled_from([word for word in WORDS if word[0] not in ".\\"]), max_size=12).map("".join))
def test_without_commands_the_pieces_are_those_of_a_script(text: str):
    assert [piece.text for piece in parse(text).all] == split(text)


SPACES = ["\u00a0", "\u2003", "\u200b", "\u202f", "\u3000", "\ufeff"]


@pytest.mark.parametrize("space", SPACES)
def test_spaces_that_come_with_pasted_text_are_no_statement(space: str):
    assert finished(f"SELECT 1;{space}")
    assert finished(space)
    pieces = parse(f"{space}SELECT 1;{space}\n{space} SELECT 2;").pieces
    assert [piece.text for piece in pieces] == ["SELECT 1", "SELECT 2"]
    assert parse(f"{space}\nSELECT 1;").pieces[0].line == 1


def test_such_a_space_in_a_text_or_at_the_end_of_a_name_stays():
    assert [piece.text for piece in parse("SELECT '\u00a0' AS \u00a0;").pieces] == ["SELECT '\u00a0' AS \u00a0"]


@pytest.mark.parametrize("text", ["SELECT 'a\udcff';", "\udcff;", "SELECT 1; -- \udcff", ".help \udcff"])
def test_bytes_that_are_no_text_do_not_hide_the_end(text: str):
    assert finished(text)
    assert not finished(f"SELECT '{text}")
    is_forgotten(f"SELECT 1\n{text}", {".help"})
