"""Completion, hints, colours and keys of the shell on a real terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from checkpoints import make_qwen
from terminal import CTRL_C, CTRL_R, CTRL_U, ENTER, ESCAPE, PROMPT, TAB, Terminal, shell

import engramsql

CONTINUATION = "   ...> "
SHIFT_TAB, LEFT, BACKSPACE = "\x1b[Z", "\x1b[D", "\x7f"
ALT_ENTER = ESCAPE + ENTER
IDS = ", ".join(str(number * 7 % 256) for number in range(2000))

Open = Callable[..., Terminal]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion")
    make_qwen(path / "qwen")
    with engramsql.connect(path / "db") as database:
        database.register("ple", path / "qwen")
        # Views, which are not named in the greeting: what is on the screen is from the menu.
        database.create_view("plus", "SELECT * FROM ple")
        database.create_view("norms", "SELECT rowid, head FROM ple")
    (path / "scripts").mkdir()
    (path / "scripts" / "first.sql").write_text("SELECT 'from ' || 'a file' AS x;\n")
    return path


@pytest.fixture
def terminal(directory: Path) -> Iterator[Open]:
    """Opens the shell, whose completion knows the tables."""
    opened: list[Terminal] = []

    def open_(**environment: str) -> Terminal:
        one = shell(directory, directory / "db", **environment)
        opened.append(one)
        # Names come in the background, and a Tab waits for the first.
        one.type("SELECT embed")
        shows(one, "embed")
        one.type(TAB)
        one.wait_until(lambda: line(one).endswith("embedding"), "the catalog")
        clear(one)
        return one

    yield open_
    for one in opened:
        one.__exit__()


def line(terminal: Terminal) -> str:
    """The line that the cursor is on, up to the cursor."""
    return terminal.screen.display[terminal.screen.cursor.y][: terminal.screen.cursor.x]


def shows(terminal: Terminal, text: str) -> None:
    """Waits until the line that is typed ends with this at the cursor."""
    terminal.wait_until(lambda: line(terminal).endswith(text), f"the line {text}")


def is_shown(terminal: Terminal, text: str) -> bool:
    # The greeting names tables and views too.
    return text in "\n".join(line for line in terminal.screen.display if not line.startswith("EngramSQL "))


def comes(terminal: Terminal, text: str) -> None:
    terminal.wait_until(lambda: is_shown(terminal, text), text)


def is_gone(terminal: Terminal, text: str) -> None:
    terminal.wait_until(lambda: not is_shown(terminal, text), f"no {text}")


def clear(terminal: Terminal) -> None:
    """Ctrl-C: a prompt with nothing typed."""
    before = terminal.mark()
    terminal.type(CTRL_C)
    terminal.wait_prompt(since=before)


def run(terminal: Terminal, rest: str, *expected: str) -> None:
    """Types what is missing of a statement, and waits for what it returns."""
    before = terminal.mark()
    terminal.type(rest + ENTER)
    for text in expected:
        terminal.wait(text, since=before)
    terminal.wait_prompt(since=before)


def test_tab_completes_a_column(terminal: Open):
    shell = terminal()
    shell.type("SELECT emb" + TAB)
    shows(shell, PROMPT + "SELECT embedding")
    run(shell, " FROM ple LIMIT 0;", "0 rows")


def test_tab_completes_options_of_commands(terminal: Open):
    shell = terminal()
    shell.type(".export ple rows.csv --repl" + TAB)
    shows(shell, PROMPT + ".export ple rows.csv --replace")
    clear(shell)
    shell.type(".plot values ple --")
    shell.type(TAB)
    comes(shell, "logarithmic height")
    clear(shell)
    run(shell, ".plot values --help", "usage: .plot values", "--log")


def test_tab_offers_files_of_lists_as_a_corpus(terminal: Open, directory: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(directory)
    (directory / "documents.jsonl").write_text('{"tokens": [17, 4]}\n')
    shell = terminal()
    shell.type("SELECT tokens FROM engram_coverage('ple', 'docum" + TAB)
    shows(shell, "'documents.jsonl'")
    run(shell, ") LIMIT 0;", "0 rows")


def test_tab_goes_through_the_tables_and_back(terminal: Open):
    shell = terminal()
    shell.type("SELECT count(*) AS n FROM pl")
    shell.wait("table, 256 rows, 4 heads")
    assert is_shown(shell, "plus")
    shell.type(TAB)
    shows(shell, "FROM ple")
    shell.type(TAB)
    shows(shell, "FROM plus")
    shell.type(SHIFT_TAB)
    shows(shell, "FROM ple")
    run(shell, ";", "256")


def test_tables_made_in_the_session_are_offered(terminal: Open):
    shell = terminal()
    run(shell, "CREATE TEMP TABLE zebra AS SELECT 42 AS answer;")
    shell.type("SELECT answer FROM zeb")

    def completed() -> bool:
        shell.type(TAB)
        return line(shell).endswith("FROM zebra")

    shell.wait_until(completed, "the table")
    run(shell, ";", "42")


def test_the_menu_opens_while_typing_and_escape_closes_it(terminal: Open):
    shell = terminal()
    shell.type("SELECT count(*) + 1000 AS n FROM nor")
    shell.wait("norms")
    shell.type(ESCAPE)
    is_gone(shell, "norms")
    shows(shell, "FROM nor")
    run(shell, "ms;", "1256")


def test_escape_takes_back_what_tab_put_there(terminal: Open):
    shell = terminal()
    shell.type("SELECT * FROM pl")
    comes(shell, "plus")
    shell.type(TAB)
    shows(shell, "FROM ple")
    shell.type(ESCAPE)
    shows(shell, "FROM pl")
    is_gone(shell, "plus")


def test_enter_with_an_open_menu_runs_what_was_typed(terminal: Open):
    """The cursor is before the semicolon, in a name that others begin with."""
    shell = terminal()
    shell.type("SELECT count(*) + 1000 AS n FROM (FROM ple) AS p WHERE p.r;")
    shows(shell, ";")
    shell.type(LEFT + "o")
    shell.wait("rowid")
    before = shell.mark()
    shell.type(ENTER)
    shell.wait('does not have a column named "ro"', since=before)


def test_enter_with_an_open_menu_begins_a_line_if_more_must_come(terminal: Open):
    shell = terminal()
    shell.type("SELECT count(*) + 1000 AS n FROM ple")
    shell.type(CTRL_U + "SELECT h")
    shell.wait("head")
    shell.type(ENTER)
    shows(shell, CONTINUATION)
    run(shell, "FROM (SELECT 5 + 5 AS h);", "10")


def test_an_entry_that_tab_chose_is_run_by_enter(terminal: Open):
    shell = terminal()
    shell.type("SELECT count(*) + 1000 AS n FROM nor;" + LEFT + TAB)
    shows(shell, "FROM norms")
    run(shell, "", "1256")


def test_the_toolbar_shows_the_signature_and_purpose(terminal: Open):
    shell = terminal()
    shell.type("SELECT count(*) FROM engram_fetch(")
    shell.wait("engram_fetch(table, rowids BIGINT[] or BIGINT[][])")
    shell.wait("One row per id, in the order given")
    shell.type("'pl")
    shell.wait("table, 256 rows, 4 heads")
    shell.type(TAB)
    shows(shell, "engram_fetch('ple'")
    run(shell, ", [1, 2, 3]);", "3")


def test_the_toolbar_marks_the_argument(terminal: Open):
    shell = terminal()

    def marked() -> str:
        cells = shell.screen.buffer
        return "".join(
            cells[y][x].data
            for y in range(shell.screen.lines)
            for x in range(shell.screen.columns)
            if cells[y][x].bold and "engram_fetch(table" in shell.screen.display[y]
        )

    shell.type("SELECT 1 FROM engram_fetch(")
    shell.wait_until(lambda: "table" in marked(), "table in bold")
    shell.type("'ple', ")
    shell.wait_until(lambda: marked().endswith("rowids BIGINT[] or BIGINT[][]"), "rowids in bold")


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


def test_the_menu_of_files_goes_into_directories(terminal: Open, directory: Path):
    shell = terminal()
    shell.type(f".read {directory}/scr")
    shell.wait("directory")
    shell.type(TAB)
    shows(shell, "/scripts/")
    shell.type(TAB)
    shows(shell, "/scripts/first.sql")
    run(shell, "", "from a file")
    shell.type(f"SELECT * FROM '{directory}/scr" + TAB)
    shows(shell, "/scripts/")


def test_enter_begins_a_line_as_far_in_as_this_one(terminal: Open):
    shell = terminal()
    shell.type("SELECT 1000 +" + ENTER + "    length('a;" + ENTER)
    shows(shell, CONTINUATION + "    ")
    run(shell, "b');", "1008")


def test_alt_enter_always_begins_a_line(terminal: Open):
    shell = terminal()
    shell.type("SELECT 1;" + ALT_ENTER)
    shows(shell, CONTINUATION)
    run(shell, "SELECT 40 + 2;", "42")


def test_alt_enter_does_not_run_when_the_menu_is_open(terminal: Open):
    shell = terminal()
    shell.type("SELECT count(*) + 1000 AS n FROM nor;" + LEFT + BACKSPACE + "r")
    shell.wait("view")
    shell.type(ALT_ENTER)
    shows(shell, CONTINUATION)
    shell.type(BACKSPACE + "ms")
    shows(shell, "FROM norms")
    run(shell, "", "1256")


def test_a_paste_is_one_piece_and_opens_no_menu(terminal: Open):
    shell = terminal()
    shell.paste(f"SELECT count(*)\r\nFROM engram_fetch('ple', [{IDS}])\nWHERE rowid IN (SELECT rowid FROM pl")
    shows(shell, CONTINUATION + "WHERE rowid IN (SELECT rowid FROM pl")
    assert not is_shown(shell, "plus")
    run(shell, "e);", "2000")


def test_typing_behind_a_long_line_completes(terminal: Open):
    shell = terminal()
    shell.paste(f"SELECT count(*) FROM engram_fetch('ple', [{IDS}]) WHERE ")
    run(shell, "emb" + TAB + " IS NOT NULL;", "2000")


def test_search_in_the_history_is_left_alone(terminal: Open):
    shell = terminal()
    run(shell, "SELECT 40 + 2 AS first;", "42")
    run(shell, "SELECT 40 + 3 AS second;", "43")
    shell.type(CTRL_R + "fir")
    shell.wait_until(lambda: is_shown(shell, "SELECT 40 + 2 AS first;") and is_shown(shell, "search"), "the entry")
    shell.type(ENTER)
    is_gone(shell, "search")
    run(shell, "", "42")


def test_colours_are_sent_unless_they_are_not_wanted(terminal: Open):
    coloured = terminal()
    coloured.type("SELECT 'a'")
    shows(coloured, "SELECT 'a'")
    assert b"38;5;" in coloured.written
    plain = terminal(NO_COLOR="1")
    plain.type("SELECT 'a' FROM pl")
    comes(plain, "plus")
    plain.type(TAB)
    shows(plain, "FROM ple")
    cells = [cell for row in plain.screen.buffer.values() for cell in row.values()]
    assert {(cell.fg, cell.bg) for cell in cells} == {("default", "default")}
    # What is chosen can be seen all the same.
    assert any(cell.reverse and cell.data == "p" for cell in cells)
