"""The shell in a real terminal: lines, Ctrl-C, paste, resize, history, pager, and terminals that can little."""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
from pathlib import Path
from typing import Any

import duckdb
import pytest
from golden_data import GOLDEN
from terminal import CTRL_C, CTRL_D, CTRL_E, CTRL_R, CTRL_U, CTRL_X, ENTER, PROMPT, UP, Terminal, shell

CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


# Lines


def test_it_greets_and_leaves(home: Path):
    with shell(home, CHECKPOINT) as terminal:
        first, second, prompt = terminal.screen.display[:3]
        assert first.startswith("EngramSQL ")
        assert f"{CHECKPOINT}: ple (1,408 rows)".startswith(first.split(" - ")[1].rstrip())
        assert ".help" in second
        assert prompt.rstrip() == PROMPT.rstrip()
        terminal.type(CTRL_D)
        assert terminal.end() == 0


@pytest.mark.parametrize("word", [".quit", ".exit", "\\q", "exit", "quit;"])
def test_it_can_be_left_by_a_command(home: Path, word: str):
    with shell(home) as terminal:
        terminal.type(word + ENTER)
        assert terminal.end() == 0


def test_a_statement_ends_where_sql_says(home: Path):
    with shell(home) as terminal:
        start = terminal.mark()
        for line in ("select ';'", "/* ; */", "-- ;"):
            terminal.type(line + ENTER)
        terminal.run(", $$a;b;$$ AS dollar;", "a;b;")
        shown = terminal.plain(start)
        assert "Error" not in shown
        assert "│ ;" in shown
        # A dot begins a command at the start of a text alone.
        terminal.run(f"SELECT 1{ENTER}.5 AS x;", "1")
        assert "no command" not in terminal.text()


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_forgotten_semicolon_is_told_where_a_command_follows(home: Path, term: str):
    with shell(home, TERM=term) as terminal:
        terminal.type("SELECT 1" + ENTER)
        terminal.wait("...>")
        terminal.type(".tables" + ENTER)
        terminal.wait("the statement is not finished: end it with ; or clear it with Ctrl-C")
        screen = terminal.screen
        terminal.wait_until(lambda: screen.display[screen.cursor.y].strip() == "...>", "another line")
        start = terminal.mark()
        terminal.type(CTRL_C)
        terminal.wait_prompt(since=start)
        terminal.run("help", ".tables [PATTERN]")
        terminal.run("SELECT 4711 AS after;", "4711")


def test_ctrl_z_suspends_and_the_session_goes_on(home: Path):
    words = ["bash", "--norc", "--noprofile", "-i"]
    environment = {"HOME": str(home), "PS1": "outer> ", "ENGRAMSQL_CONFIG": "", "PAGER": "cat", "HISTFILE": ""}
    with Terminal(words, environment=environment) as terminal:
        terminal.wait("outer>")
        terminal.type(shlex.join(program_words()) + ENTER)
        terminal.wait_prompt(since=0)
        terminal.type("SELECT 4711")
        terminal.wait_typed("SELECT 4711")
        start = terminal.mark()
        terminal.type("\x1a")
        terminal.wait("Stopped", since=start)
        assert "^Z" not in terminal.text().split("Stopped")[0].split("SELECT")[-1]
        terminal.type("fg" + ENTER)
        terminal.wait_typed("SELECT 4711")
        start = terminal.mark()
        terminal.type(" + 1 AS more;" + ENTER)
        terminal.wait("4712", since=start)


def test_several_statements_of_one_line_stop_at_the_first_error(home: Path):
    with shell(home) as terminal:
        start = terminal.mark()
        terminal.run("SELECT 41 AS first; SELECT nowhere; SELECT 43 AS third;", "41", "nowhere")
        assert "third" not in terminal.plain(start).replace("AS third", "")


def test_backslash_g_shows_one_value_per_line(home: Path):
    with shell(home) as terminal:
        terminal.run("SELECT 7 AS seven, 8 AS eight \\G", "*** row 1 ***", "seven: 7", "eight: 8")
        terminal.run("SELECT 9 AS nine;", "│  nine │")


def test_a_file_of_a_kind_that_no_mode_writes_is_told(home: Path):
    with shell(home, columns=200) as terminal:
        terminal.run(f".once {home}/x.xlsx", "will be written as box: no mode writes .xlsx files")


def test_an_error_has_its_line_a_caret_and_the_nearest_name(home: Path):
    with shell(home, CHECKPOINT) as terminal:
        start = terminal.mark()
        terminal.run(f"SELECT rowid,{ENTER}       embeding{ENTER}FROM ple;", "embeding")
        lines = terminal.plain(start).replace("\r", "").split("\n")
        (error,) = [number for number, line in enumerate(lines) if line.startswith("Binder Error")]
        assert lines[error].endswith('Did you mean "embedding"?')
        assert lines[error + 1] == "LINE 2:        embeding"
        assert lines[error + 2].startswith(" " * lines[error + 1].index("embeding") + "^")
        terminal.run("SELECT * FROM plee;", 'Did you mean "ple"?')
        terminal.run(".tabels", "did you mean .tables?")
        assert "Traceback" not in terminal.plain()


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB 1.5 does not say what a change through sql() changed")
def test_what_a_change_changed_is_said_once(home: Path):
    with shell(home) as terminal:
        terminal.run("CREATE TABLE t AS SELECT range AS i FROM range(3);")
        terminal.run("INSERT INTO t VALUES (7), (8);", "2 rows changed")
        terminal.run("UPDATE t SET i = 0 WHERE i = 7;", "1 row changed")
        terminal.run("SELECT count(*) AS n, 4711 AS mark FROM t;", "│     5 │  4711 │")


def test_what_is_opened_instead_is_opened_in_the_same_way(home: Path, tmp_path: Path):
    import engramsql

    with engramsql.connect(tmp_path / "mydb") as database:
        database.register("ple", CHECKPOINT)
    with shell(home, "--read-only", "--threads", "1") as terminal:
        terminal.run(f".open {tmp_path / 'mydb'}", "mydb: ple (1,408 rows)")
        terminal.run("SELECT current_setting('threads') AS threads;", "│       1 │")
        terminal.run(f".attach {CHECKPOINT} more", "read-only")


def test_a_name_cannot_act_on_the_terminal(home: Path, tmp_path: Path):
    path = tmp_path / "evil\x1b[31m"
    path.symlink_to(CHECKPOINT)
    with shell(home, path, columns=200, NO_COLOR="1") as terminal:
        assert "evil\\x1b[31m" in terminal.plain()
        terminal.run("SELECT chr(27) || '[31m' AS value;", "\\x1b[31m")
        terminal.run("SELECT error(chr(27) || '[31m');", "\\x1b[31m")
        terminal.paste(f".export --sql 'SELECT 1 AS x' --output '{tmp_path}/evil\x1b[31m.csv'")
        terminal.type(ENTER)
        terminal.wait("evil\\x1b[31m.csv: 1 record")
        assert b"\x1b[31m" not in terminal.written


# Ctrl-C

LONG = {
    "in DuckDB": "SELECT sum(sqrt(i) * sin(i)) FROM range(20000000000) t(i);",
    "in the engine": "SELECT sum(octet_length(row)) FROM engram_scan('ple');",
    "in a sort": "SELECT sum(list_sum(list_sort(embedding))) FROM engram_fetch('ple', range(1000000));",
}


@pytest.mark.parametrize("sql", LONG.values(), ids=LONG)
def test_ctrl_c_ends_a_query_and_keeps_the_session(home: Path, full_size: Any, sql: str):
    with shell(home, full_size.qwen) as terminal:
        terminal.run("CREATE TEMP TABLE kept AS SELECT 4711 AS number;")
        for keys in (CTRL_C, CTRL_C + CTRL_C):
            start = terminal.mark()
            terminal.type(sql + ENTER)
            # It says how far it is: it is running.
            terminal.wait("Ctrl-C ends it", since=start)
            terminal.type(keys)
            terminal.wait("interrupted", since=start)
            terminal.wait_prompt(since=start)
            terminal.run("FROM kept;", "4711")
        assert terminal.process.poll() is None
        # The line that said so is gone.
        assert "Ctrl-C ends it" not in terminal.text()


@pytest.mark.parametrize("terms", ["xterm-256color", "dumb"])
@pytest.mark.parametrize("busy", [False, True])
def test_sigterm_leaves_the_terminal_as_it_was(home: Path, tmp_path: Path, full_size: Any, terms: str, busy: bool):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with shell(home, full_size.qwen, TERM=terms, TMPDIR=str(temporary)) as terminal:
        before = terminal.modes_before
        terminal.run("SELECT 4711 AS number;", "4711")
        if busy:
            start = terminal.mark()
            terminal.type("SELECT sum(hash(rowid)) FROM ple, range(100);" + ENTER)
            if terms != "dumb":
                terminal.wait("Ctrl-C ends it", since=start)
        terminal.process.terminate()
        assert terminal.end() == 128 + signal.SIGTERM
        assert terminal.modes() == before
    assert list(temporary.iterdir()) == []


def test_a_signal_from_elsewhere_does_the_same(home: Path):
    with shell(home) as terminal:
        start = terminal.mark()
        terminal.type(LONG["in DuckDB"] + ENTER)
        terminal.wait("Ctrl-C ends it", since=start)
        terminal.interrupt()
        terminal.interrupt()
        terminal.wait("interrupted", since=start)
        terminal.run("SELECT 1 AS one;", "one")
        # At the prompt there is nothing to end.
        terminal.interrupt()
        terminal.run("SELECT 2 AS two;", "two")


def test_ctrl_c_ends_rows_that_are_being_written(home: Path):
    with shell(home) as terminal:
        terminal.run(".mode csv")
        start = terminal.mark()
        terminal.type("SELECT range AS many FROM range(100000000);" + ENTER)
        terminal.wait("\n20000\r", since=start)
        terminal.type(CTRL_C)
        terminal.wait("interrupted", since=start)
        terminal.run("SELECT 4711 AS after;", "4711")
        assert peak_megabytes(terminal) < 600


def test_ctrl_c_ends_rows_that_nobody_reads(home: Path):
    """The terminal takes nothing, as after Ctrl-S or with a slow line: the write waits, and must end."""
    with shell(home) as terminal:
        terminal.run(".mode csv")
        terminal.type("SELECT range AS many FROM range(100000000);" + ENTER)
        terminal.wait("many")
        # Until its buffer is full and the program waits.
        terminal.wait_full()
        terminal.type_unread(CTRL_C)
        terminal.wait("interrupted")
        terminal.run(".mode box")
        terminal.run("SELECT 4711 AS after;", "4711")


@pytest.mark.parametrize("terms", ["xterm-256color", "dumb"])
def test_ctrl_c_at_the_prompt_clears_the_line(home: Path, terms: str):
    with shell(home, TERM=terms) as terminal:
        start = terminal.mark()
        terminal.type("SELECT 'not")
        terminal.wait("SELECT 'not", since=start)
        start = terminal.mark()
        terminal.type(CTRL_C)
        terminal.wait_prompt(since=start)
        start = terminal.mark()
        terminal.type(CTRL_C)
        terminal.wait_prompt(since=start)
        terminal.run("SELECT 4711 AS number;", "4711")


def test_ctrl_c_in_the_middle_of_a_statement_clears_all_of_it(home: Path):
    with shell(home) as terminal:
        terminal.type(f"SELECT 1,{ENTER}2,")
        terminal.wait("2,")
        start = terminal.mark()
        terminal.type(CTRL_C)
        terminal.wait_prompt(since=start)
        terminal.run("SELECT 4711 AS number;", "4711")
        assert "Error" not in terminal.plain(start)


def test_ctrl_c_ends_a_command_that_reads_a_result(home: Path):
    with shell(home) as terminal:
        terminal.run(".mode csv")
        terminal.run(".once | head -2; sleep 1000")
        start = terminal.mark()
        terminal.type("SELECT range + 7 FROM range(100000000);" + ENTER)
        terminal.wait("\n7\r", since=start)
        terminal.type(CTRL_C)
        terminal.wait("interrupted", since=start)
        terminal.run("SELECT 4711 AS after;", "4711")


def test_ctrl_c_ends_an_export(home: Path, tmp_path: Path):
    with shell(home) as terminal:
        start = terminal.mark()
        query = "SELECT i FROM range(100000000000) t(i)"
        terminal.type(f".export --sql '{query}' --output {tmp_path / 'many.parquet'}" + ENTER)
        terminal.wait(" rows/s", since=start)
        terminal.type(CTRL_C)
        terminal.wait("interrupted", since=start)
        terminal.run("SELECT 4711 AS after;", "4711")
    assert list(tmp_path.glob("*many*")) == []


# Paste and resize


def test_two_thousand_ids_are_pasted_in_one_piece(home: Path):
    ids = ", ".join(str(number % 1408) for number in range(2000))
    with shell(home, CHECKPOINT) as terminal:
        terminal.paste(f"SELECT count(*) AS rows_found,\n sum(rowid) AS total\nFROM engram_fetch('ple', [{ids}]);")
        terminal.wait("]);")
        start = terminal.mark()
        terminal.type(ENTER)
        terminal.wait("rows_found │", since=start)
        terminal.wait_prompt(since=start)
        shown = terminal.plain(start)
        assert "2000" in shown
        assert str(sum(number % 1408 for number in range(2000))) in shown


def test_a_paste_of_commands_and_statements_runs_in_order(home: Path):
    with shell(home) as terminal:
        start = terminal.mark()
        terminal.paste(".mode csv\nSELECT 1 AS a;\n.mode json\nSELECT 2 AS b;")
        terminal.type(ENTER)
        terminal.wait_prompt(since=start)
        shown = terminal.plain(start).replace("\r", "")
        assert 'a\n1\n[\n{"b":2}\n]\n' in shown


def test_a_box_is_as_wide_as_the_terminal_is_now(home: Path):
    with shell(home, columns=120) as terminal:
        query = "SELECT repeat('x', 300) AS wide;"
        terminal.run(query)
        assert widest_box(terminal) == 120
        terminal.resize(60, 20)
        start = terminal.mark()
        terminal.run(query)
        assert widest_box(terminal, start) == 60
        terminal.resize(140, 40)
        start = terminal.mark()
        terminal.run(query)
        assert widest_box(terminal, start) == 140


# History


def test_two_sessions_at_once_both_keep_their_lines(home: Path):
    with shell(home) as one, shell(home) as other:
        one.run("SELECT 'of one';")
        other.run("SELECT 'of the other';")
        one.run("SELECT 'of one again';")
        for terminal in (one, other):
            terminal.type(CTRL_D)
            assert terminal.end() == 0
    path = home / ".local/state/engramsql/history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with shell(home) as terminal:
        terminal.run(".history", "of one';", "of the other", "of one again")
        terminal.type(UP + UP)
        terminal.wait("SELECT 'of one again';")


def test_the_history_is_searched(home: Path):
    with shell(home) as terminal:
        terminal.run("SELECT 'needle' AS found;", "found")
        terminal.run("SELECT 'hay';", "hay")
    with shell(home) as terminal:
        start = terminal.mark()
        terminal.type(CTRL_R + "needle")
        terminal.wait("SELECT 'needle'", since=start)
        start = terminal.mark()
        # The first Enter takes the line over, the second runs it.
        terminal.type(ENTER + ENTER)
        terminal.wait("│ needle  │", since=start)


def test_a_history_with_invalid_bytes_is_read_and_kept(home: Path):
    path = home / ".local/state/engramsql/history"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\n# then\n+SELECT '\xff\xfe\x00';\n\n# later\n+SELECT 'good';\n")
    with shell(home) as terminal:
        terminal.run("SELECT 3;")
        terminal.run(".history", "good")
    assert path.read_bytes().startswith(b"\n# then\n+SELECT '\xff\xfe\x00';\n\n# later\n+SELECT 'good';\n\n# ")


def test_a_home_that_cannot_be_written_is_one_warning(home: Path):
    # Permissions stop nobody who is root; a file where the directory should be stops everybody.
    (home / "state").write_text("")
    with shell(home, XDG_STATE_HOME=str(home / "state")) as terminal:
        for number in (1, 2, 3):
            terminal.run(f"SELECT {number} AS x;", f"{number}")
        terminal.run(".history", "SELECT 2 AS x;")
        assert terminal.plain().count("the history is not kept") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not stop root")
def test_a_read_only_home_is_one_warning(home: Path):
    home.chmod(0o500)
    try:
        with shell(home) as terminal:
            terminal.run("SELECT 1 AS x;")
            terminal.run("SELECT 2 AS x;")
            assert terminal.plain().count("the history is not kept") == 1
    finally:
        home.chmod(0o700)


# Pager


def test_what_is_larger_than_the_terminal_goes_to_the_pager(home: Path, tmp_path: Path):
    pager = program(tmp_path / "pager", "printf 'PAGED %s\\n' \"$(wc -l)\"")
    with shell(home, PAGER=str(pager)) as terminal:
        terminal.run(".maxrows 100")
        start = terminal.mark()
        terminal.run("FROM range(10);", "10 rows")
        assert "PAGED" not in terminal.plain(start)
        terminal.run("FROM range(60);", "PAGED 66")
        # As high as the terminal, but wider.
        terminal.run(".mode csv")
        terminal.run("SELECT repeat('x', 300) AS wide;", "PAGED 2")
        # Neither a file nor a command is a terminal.
        start = terminal.mark()
        terminal.run(f".once {tmp_path / 'rows.csv'}")
        terminal.run("FROM range(1000);")
        terminal.run(".once | wc -l")
        terminal.run("FROM range(1000);", "1001")
        assert "PAGED" not in terminal.plain(start)
    assert (tmp_path / "rows.csv").read_text().count("\n") == 1001


def test_binary_modes_name_what_shows_results_again(home: Path, tmp_path: Path):
    with shell(home) as terminal:
        terminal.run(f".once {tmp_path / 'x.parquet'}")
        terminal.run("SELECT 1 AS x;")
        assert (tmp_path / "x.parquet").read_bytes().startswith(b"PAR1")
        terminal.run("SELECT 4711 AS shown;", "4711")
        terminal.run(".mode parquet")
        terminal.run("SELECT 1 AS x;", "parquet is not for terminals", ".mode box shows results here again")


def test_prose_is_paged_by_its_height_alone_and_never_cut(home: Path, tmp_path: Path):
    pager = program(tmp_path / "pager", 'echo "PAGED with $LESS"; cat')
    with shell(home, PAGER=str(pager), columns=60, lines=60) as terminal:
        start = terminal.mark()
        terminal.run(f".param long '{'x' * 70}'")
        terminal.run(".param", "$long")
        terminal.run(".help engram_drift", "engram_drift(")
        assert "PAGED" not in terminal.plain(start)
    with shell(home, PAGER=str(pager), columns=60, lines=20) as terminal:
        terminal.run(".help", "PAGED with RX")
        assert "and what was read of the tables" in " ".join(terminal.text().split())


def test_a_pager_that_stops_reading_is_no_error(home: Path):
    with shell(home, PAGER="head -3") as terminal:
        terminal.run(".mode csv")
        start = terminal.mark()
        terminal.run("SELECT range AS many FROM range(100000000);", "many")
        # The result that nobody read to its end does not block the session.
        terminal.run(".mode box")
        terminal.run("SELECT 4711 AS after;", "4711")
        assert "rror" not in terminal.plain(start)


def test_ctrl_c_in_the_pager_ends_the_query(home: Path):
    with shell(home, PAGER="less -R") as terminal:
        terminal.run(".mode csv")
        start = terminal.mark()
        terminal.type("SELECT range AS many FROM range(10000000000);" + ENTER)
        # A line of its own: the statement has the word too.
        terminal.wait_until(lambda: "many" in map(str.strip, terminal.text().splitlines()), "the pager")
        terminal.type(CTRL_C)

        def left() -> bool:
            # The pager goes on with what is there, and throws away what was typed before that.
            if "interrupted" in (said := terminal.plain(start)):
                return PROMPT.rstrip() in said.partition("interrupted")[2]
            terminal.type("q")
            return False

        terminal.wait_until(left, "the prompt behind the pager")
        # What the pager did not take was typed here.
        terminal.type(CTRL_U)
        terminal.run(".mode box")
        terminal.run("SELECT 4711 AS after;", "4711")


# Terminals that can little, or should


def test_a_dumb_terminal_gets_a_plain_prompt(home: Path):
    with shell(home, CHECKPOINT, TERM="dumb") as terminal:
        terminal.run(f"SELECT head,{ENTER}count(*) AS n{ENTER}FROM ple GROUP BY head ORDER BY head LIMIT 1;", "53")
        terminal.run(".mode csv")
        terminal.run("SELECT 'a;b' AS x;", "a;b")
        terminal.run(".help")
        terminal.run("SELECT nowhere;", "LINE 1")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
        assert b"\x1b" not in terminal.written


def test_no_color_means_no_color(home: Path):
    with shell(home, CHECKPOINT, NO_COLOR="1") as terminal:
        terminal.run("SELECT rowid, NULL AS nothing FROM ple LIMIT 1;", "nothing")
        terminal.run(".help", ".tables")
        terminal.run("SELECT nowhere;", "LINE 1")
        colors = re.findall(rb"\x1b\[[0-9;]*m", terminal.written)
        for code in colors:
            numbers = {int(number or 0) for number in code[2:-1].split(b";")}
            assert not numbers & {*range(30, 39), *range(40, 49), *range(90, 108)}, code


def test_the_program_needs_both_ends_to_be_a_terminal(home: Path):
    with Terminal(["sh", "-c", 'exec "$@" | cat', "sh", *program_words()], environment={"HOME": str(home)}) as terminal:
        terminal.wait("-c SQL, -f FILE")
        terminal.end()
        assert b"\x1b" not in terminal.written


def test_warnings_and_settings_of_the_configuration(home: Path):
    path = home / "engram.ini"
    path.write_text("[shell]\nmode = csv\nmxrows = 3\n")
    with shell(home, ENGRAMSQL_CONFIG=str(path)) as terminal:
        assert "no setting 'mxrows'; did you mean 'maxrows'?" in terminal.plain().replace("\r\n", "")
        terminal.run("SELECT 1 AS a, 2 AS b;", "a,b")
    with shell(home, "--no-init", ENGRAMSQL_CONFIG=str(path)) as terminal:
        assert "mxrows" not in terminal.plain()
        terminal.run("SELECT 1 AS a, 2 AS b;", "│     a │")


def test_an_editor_makes_the_next_line(home: Path, tmp_path: Path):
    editor = program(tmp_path / "my editor", 'printf "SELECT 4711 AS edited;\\n" >> "$1"')
    with shell(home, EDITOR=f"'{editor}'") as terminal:
        terminal.run("SELECT 1 AS before;", "before")
        start = terminal.mark()
        terminal.type(".edit" + ENTER)
        terminal.wait("SELECT 4711 AS edited;", since=start)
        start = terminal.mark()
        terminal.type(ENTER)
        terminal.wait("│ before │", since=start)
        terminal.wait("│   4711 │", since=start)


# What an editor leaves that cannot be taken over, and what the shell says of it.
LEFT = {
    "exit 3": "ended with exit code 3; nothing was taken over",
    "printf '\\377' > \"$1\"": "is not UTF-8",
    'rm "$1"': "left no file",
}


@pytest.mark.parametrize("script", LEFT)
def test_an_editor_that_fails_changes_nothing(home: Path, tmp_path: Path, script: str):
    editor = program(tmp_path / "editor", script)
    with shell(home, VISUAL=str(editor)) as terminal:
        terminal.run(".edit", LEFT[script])
        terminal.type("SELECT 40 + 2 AS kept;")
        terminal.wait_typed("AS kept;")
        start = terminal.mark()
        terminal.type(CTRL_X + CTRL_E)
        terminal.wait(LEFT[script], since=start)
        terminal.wait_typed("AS kept;")
        terminal.type(ENTER)
        terminal.wait("│    42 │")
        assert "Unhandled" not in terminal.plain()


def test_ctrl_x_ctrl_e_edits_the_line(home: Path, tmp_path: Path):
    editor = program(tmp_path / "editor", "printf '\\357\\273\\277SELECT 6 * 7\\r\\nAS made;\\n' > \"$1\"")
    with shell(home, EDITOR=str(editor)) as terminal:
        terminal.type("SELECT 1")
        terminal.wait_typed("SELECT 1")
        terminal.type(CTRL_X + CTRL_E)
        terminal.wait_typed("AS made;")
        terminal.type(ENTER)
        terminal.wait("│    42 │")


def test_what_an_editor_leaves_cannot_act_on_a_dumb_terminal(home: Path, tmp_path: Path):
    editor = program(tmp_path / "editor", "printf 'SELECT 1 /* \\033[31m */ AS x;' > \"$1\"")
    with shell(home, TERM="dumb", EDITOR=str(editor)) as terminal:
        terminal.run(".edit", "SELECT 1 /* \\x1b[31m */ AS x;", "│     1 │")
        assert b"\x1b" not in terminal.written


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_bytes_that_are_not_utf8_are_told_and_the_session_goes_on(home: Path, term: str):
    with shell(home, TERM=term) as terminal:
        start = terminal.mark()
        terminal.type_bytes(b"SELECT 'a\xff' AS x;\r")
        terminal.wait("byte 0xff in what was typed is not UTF-8; nothing was run", since=start)
        terminal.wait_prompt(since=start)
        terminal.run("SELECT 40 + 2 AS x;", "│    42 │")


def test_a_locale_of_ascii_takes_utf8_all_the_same(home: Path):
    with shell(home, LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0") as terminal:
        terminal.type_bytes("SELECT length('h\u00e4') AS letters;\r".encode())
        terminal.wait("|       2 |")


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("", ".read {pipe}"),
        ("", ".plot latency {pipe}"),
        (".once {pipe}", "SELECT 1;"),
        (".output {pipe}", "SELECT 1;"),
    ],
)
def test_ctrl_c_ends_the_wait_for_the_other_end_of_a_pipe(home: Path, tmp_path: Path, before: str, line: str):
    os.mkfifo(tmp_path / "p")
    with shell(home, cwd=tmp_path) as terminal:
        if before:
            terminal.run(before.format(pipe="p"))
        start = terminal.mark()
        terminal.type(line.format(pipe="p") + ENTER)
        terminal.wait("Ctrl-C ends it", since=start)
        terminal.type(CTRL_C)
        terminal.wait("interrupted", since=start)
        terminal.wait_prompt(since=start)
        terminal.run(".output stdout")
        terminal.run("SELECT 40 + 2 AS x;", "│    42 │")


# Helpers


def program_words() -> list[str]:
    from program import PROGRAM

    return PROGRAM


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def widest_box(terminal: Terminal, since: int = 0) -> int:
    lines = terminal.plain(since).replace("\r", "").split("\n")
    return max(len(line) for line in lines if line.startswith("┌"))


def peak_megabytes(terminal: Terminal) -> int:
    status = Path(f"/proc/{terminal.process.pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) // 1024
