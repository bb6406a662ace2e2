"""Completion, hints, colours and keys on a real terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from checkpoints import make_qwen
from terminal import ENTER, ESCAPE, TAB, Terminal

import engramsql

PROGRAM = Path(__file__).parent / "completion_prompt.py"
ALT_ENTER = ESCAPE + ENTER
SHIFT_TAB = "\x1b[Z"

Open = Callable[..., Terminal]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion")
    make_qwen(path / "qwen")
    with engramsql.connect(path / "db") as database:
        database.register("ple", path / "qwen")
        database.register("plus", path / "qwen")
        database.create_view("norms", "SELECT rowid, head FROM ple")
    (path / "scripts").mkdir()
    (path / "scripts" / "first.sql").touch()
    return path


@pytest.fixture
def terminal(directory: Path) -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_(*options: str, **environment: str) -> Terminal:
        one = Terminal([sys.executable, PROGRAM, directory / "db", *options], environment=environment, cwd=directory)
        opened.append(one.__enter__())
        one.wait_until(lambda: line(one) == "> ", "the prompt")
        return one

    yield open_
    for one in opened:
        one.__exit__()


def line(terminal: Terminal) -> str:
    """The line that the cursor is on, up to the cursor."""
    return terminal.screen.display[terminal.screen.cursor.y][: terminal.screen.cursor.x]


def shows(terminal: Terminal, text: str) -> None:
    """Waits until the line that is typed is this."""
    terminal.wait_until(lambda: line(terminal).endswith(text), f"the line {text}")


def is_shown(terminal: Terminal, text: str) -> bool:
    return text in "\n".join(terminal.screen.display)


def is_gone(terminal: Terminal, text: str) -> None:
    terminal.wait_until(lambda: not is_shown(terminal, text), f"no {text}")


def ran(terminal: Terminal, statement: str) -> None:
    terminal.wait(f"RAN {statement!r}")


def test_tab_completes_a_column(terminal: Open):
    shell = terminal()
    shell.type("SELECT emb" + TAB)
    shows(shell, "> SELECT embedding")
    shell.type(" FROM ple;" + ENTER)
    ran(shell, "SELECT embedding FROM ple;")


def test_tab_goes_through_the_tables_and_back(terminal: Open):
    shell = terminal()
    shell.type("SELECT * FROM pl")
    shell.wait("table, 256 rows, 4 heads")
    assert is_shown(shell, "plus")
    shell.type(TAB)
    shows(shell, "FROM ple")
    shell.type(TAB)
    shows(shell, "FROM plus")
    shell.type(SHIFT_TAB)
    shows(shell, "FROM ple")
    shell.type(";" + ENTER)
    ran(shell, "SELECT * FROM ple;")


def test_the_menu_opens_while_typing_and_escape_closes_it(terminal: Open):
    shell = terminal()
    shell.type("SELECT * FROM n")
    shell.wait("norms")
    shell.type(ESCAPE)
    is_gone(shell, "norms")
    shows(shell, "FROM n")
    shell.type(ENTER + ";" + ENTER)
    ran(shell, "SELECT * FROM n\n;")


def test_escape_takes_back_what_tab_put_there(terminal: Open):
    shell = terminal()
    shell.type("SELECT * FROM pl")
    shell.wait("plus")
    shell.type(TAB)
    shows(shell, "FROM ple")
    shell.type(ESCAPE)
    shows(shell, "FROM pl")
    is_gone(shell, "plus")


def test_enter_with_an_open_menu_runs_what_was_typed(terminal: Open):
    shell = terminal()
    shell.type("FROM ple; SELECT h")
    shell.wait("hash")
    shell.type(ENTER)
    shows(shell, "- ")
    shell.type("FROM ple; -- pl")
    shows(shell, "-- pl")
    shell.type("\x15" + "FROM pl")
    shell.wait("plus")
    shell.type(";" + ENTER)
    ran(shell, "FROM ple; SELECT h\nFROM pl;")


def test_enter_with_an_open_menu_runs_a_finished_statement(terminal: Open):
    shell = terminal()
    shell.type("FROM pl;")
    shows(shell, "FROM pl;")
    shell.type("\x1b[D" + "u")
    shell.wait("plus")
    shell.type(ENTER)
    ran(shell, "FROM plu;")


def test_the_toolbar_shows_the_signature_and_marks_the_argument(terminal: Open):
    shell = terminal()
    shell.type("SELECT * FROM engram_fetch(")
    shell.wait("engram_fetch(*table*, rowids BIGINT[] or BIGINT[][])")
    shell.wait("One row per id, in the order given")
    shell.type("'pl")
    shell.wait("plus")
    shell.type(TAB)
    shows(shell, "engram_fetch('ple'")
    shell.type(", ")
    shell.wait("engram_fetch(table, *rowids BIGINT[] or BIGINT[][]*)")
    shell.type("[1, 2]);" + ENTER)
    ran(shell, "SELECT * FROM engram_fetch('ple', [1, 2]);")


@pytest.mark.parametrize("opening", ["SELECT 'FROM pl", "SELECT 1 -- FROM pl", "/* FROM pl", "SELECT $$ FROM pl"])
def test_there_is_no_menu_in_strings_and_comments(terminal: Open, opening: str):
    shell = terminal()
    shell.type(opening)
    shows(shell, opening)
    shell.type(TAB * 2)
    # What is typed next is shown after the menu would have been.
    shell.type("x")
    shows(shell, opening + "x")
    assert not is_shown(shell, "plus")


def test_the_menu_of_files_goes_into_directories(terminal: Open):
    shell = terminal()
    shell.type("SELECT * FROM 'scr")
    shell.wait("scripts/")
    shell.type(TAB)
    shows(shell, "'scripts/")
    shell.type(TAB)
    shows(shell, "'scripts/first.sql'")
    shell.type("\x15.read s")
    shell.wait("scripts/")
    shell.type(TAB * 2)
    shows(shell, ".read scripts/first.sql")
    shell.type(ENTER)
    ran(shell, ".read scripts/first.sql")


def test_enter_begins_a_line_as_far_in_as_this_one(terminal: Open):
    shell = terminal()
    shell.type("SELECT" + ENTER + "    'a;" + ENTER)
    shows(shell, "-     ")
    shell.type("b';" + ENTER)
    ran(shell, "SELECT\n    'a;\n    b';")


def test_alt_enter_always_begins_a_line(terminal: Open):
    shell = terminal()
    shell.type("SELECT 1;" + ALT_ENTER)
    shows(shell, "- ")
    shell.type("SELECT 2;" + ENTER)
    ran(shell, "SELECT 1;\nSELECT 2;")


def test_alt_enter_does_not_run_when_the_menu_is_open(terminal: Open):
    shell = terminal()
    shell.type("FROM pl")
    shell.wait("plus")
    shell.type(ALT_ENTER)
    shows(shell, "- ")
    shell.type(";" + ENTER)
    ran(shell, "FROM pl\n;")


def test_a_paste_is_one_piece_and_opens_no_menu(terminal: Open):
    shell = terminal()
    ids = ", ".join(str(number * 1_000_003) for number in range(2000))
    shell.paste(f"SELECT *\r\nFROM engram_fetch('ple', [{ids}])\nWHERE rowid IN (SELECT rowid FROM pl")
    shows(shell, "FROM pl")
    assert not is_shown(shell, "plus")
    shell.type("e);" + ENTER)
    statement = f"SELECT *\nFROM engram_fetch('ple', [{ids}])\nWHERE rowid IN (SELECT rowid FROM ple);"
    shell.wait_until(lambda: f"RAN {statement!r}" in shell.plain().replace("\r\n", ""), "the statement")


def test_typing_behind_a_long_line_completes(terminal: Open):
    shell = terminal()
    ids = ", ".join(str(number * 1_000_003) for number in range(2000))
    shell.paste(f"SELECT * FROM engram_fetch('ple', [{ids}]) WHERE ")
    shell.type("emb" + TAB + ";" + ENTER)
    shell.wait_until(lambda: 'WHERE embedding;"' in shell.plain().replace("\r\n", ""), "the statement")


def test_search_in_the_history_is_left_alone(terminal: Open):
    shell = terminal()
    shell.type("SELECT 'first';" + ENTER)
    ran(shell, "SELECT 'first';")
    shell.type("SELECT 'second';" + ENTER)
    ran(shell, "SELECT 'second';")
    shell.type("\x12fir")
    shell.wait("I-search")
    shell.wait_until(lambda: is_shown(shell, "> SELECT 'first';"), "the entry")
    shell.type(ENTER)
    is_gone(shell, "I-search")
    before = shell.mark()
    shell.type(ENTER)
    shell.wait("RAN \"SELECT 'first';\"", since=before)


def test_colours_are_sent_unless_they_are_not_wanted(terminal: Open):
    coloured = terminal()
    coloured.type("SELECT 'a'")
    shows(coloured, "SELECT 'a'")
    assert b"38;5;" in coloured.written
    plain = terminal("--no-color", NO_COLOR="1")
    plain.type("SELECT 'a' FROM pl")
    plain.wait("plus")
    plain.type(TAB)
    shows(plain, "FROM ple")
    for code in (b"38;", b"48;", b"[3", b"[9", b"[4"):
        assert not any(part[:6].split(b"m")[0].isdigit() for part in plain.written.split(b"\x1b" + code)[1:]), code
    # What is chosen can be seen all the same.
    assert b"7m" in plain.written
