"""Dot commands: the registry that help and documentation read, and what each does in a script."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from golden_data import GOLDEN
from program import PROGRAM, run

import engramsql
from engramsql import data_files
from engramsql.errors import ArgumentError
from engramsql.export.files.formats import ENDINGS as FILE_ENDINGS
from engramsql.id_files import ids_of_file
from engramsql.shell import endings
from engramsql.shell.commands import registry
from engramsql.shell.session import FailedError, Session

CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"
DOCS = Path(__file__).parent.parent / "docs"
NAMES = [command.name for command in registry.all()]

# Every command once, as it is written into a pipe.
SAMPLES = {
    ".attach": f".attach {GOLDEN / 'ckpt_deepseek_v41'} other",
    ".config": ".config",
    ".edit": None,  # needs a terminal
    ".export": ".export --sql 'SELECT rowid FROM ple' --output {directory}/ple.parquet",
    ".help": ".help",
    ".history": ".history",
    ".maxrows": ".maxrows 7",
    ".maxwidth": ".maxwidth 60",
    ".mode": ".mode json",
    ".once": ".once {directory}/once.txt\nSELECT 1 AS x;",
    ".open": f".open {CHECKPOINT}",
    ".output": ".output {directory}/all.txt\nSELECT 1 AS x;\n.output stdout",
    ".param": ".param ids [1, 2]\n.param",
    ".plan": ".plan ple 1, 2, 3\n.plan SELECT head FROM ple WHERE rowid = 7",
    ".plot": ".plot norms ple",
    ".quit": ".quit",
    ".read": ".read {directory}/script.sql",
    ".schema": ".schema ple",
    ".stats": ".stats",
    ".tables": ".tables",
    ".timer": ".timer on\nSELECT sum(octet_length(row)) FROM ple;",
    ".vector": ".vector off",
}


@pytest.fixture
def sink() -> io.BytesIO:
    return io.BytesIO()


@pytest.fixture
def session(sink: io.BytesIO) -> Iterator[Session]:
    session = Session(engramsql.connect(CHECKPOINT), sink=sink, mode="csv")
    yield session
    session.close()


def shown(sink: io.BytesIO) -> str:
    text = sink.getvalue().decode()
    sink.seek(0)
    sink.truncate()
    return text


# The registry


def test_every_command_is_explained_and_sampled():
    assert sorted(SAMPLES) == NAMES
    for command in registry.all():
        assert re.fullmatch(r"\.[a-z]+", command.name)
        assert command.summary
        assert command.summary == command.summary.removesuffix(".") or command.summary.endswith("...")
        assert bool(command.usage) == bool(command.argument), command.name
        assert command.details == "" or command.details.endswith((".", "-1"))


def test_names_and_aliases_are_unique():
    words = [word for command in registry.all() for word in (command.name, *command.aliases)]
    assert len(set(words)) == len(words)
    with pytest.raises(ValueError, match="there already"):
        registry.command(".other", summary="x", aliases=(".quit",))(lambda session, words: None)


def test_the_documentation_has_every_command_and_setting():
    import captures

    page = (DOCS / "shell.md").read_text(encoding="utf-8")
    assert captures.filled(page, captures=False) == page, "write it anew: python docs/captures.py"
    for name in NAMES:
        assert f"| `{name}" in page
    for name in captures.CAPTURES:
        assert f"<!-- capture: {name} -->\n\n    " in page


@pytest.mark.parametrize("name", NAMES)
def test_help_of_every_command(session: Session, sink: io.BytesIO, name: str):
    session.run(piece(f".help {name}"))
    assert shown(sink).startswith(name)
    session.run(piece(f".help {name[1:]}"))
    assert shown(sink).startswith(name)


@pytest.mark.parametrize(
    "line, first, others",
    [
        (".help export", ".export TABLE FILE", ("--rows-per-file N", "usage: .export TABLE PATH", '--sql "SELECT')),
        (".export --help", ".export TABLE FILE", ("--tokens FILE", ".export ple rows.parquet")),
        (".export ple -h", ".export TABLE FILE", ("--replace",)),
        (".plot --help", ".plot values|norms|", ("which parts of a table are in memory",)),
        (".plot plan --help", ".plot values|norms|", ("usage: .plot plan", "--ids FILE", "--column C")),
        (".help plot values", ".plot values|norms|", ("--log",)),
        (".tables --help", ".tables [PATTERN]", ()),
        (".quit --help", ".quit", ()),
    ],
)
def test_help_has_the_options(session: Session, sink: io.BytesIO, line: str, first: str, others: tuple[str, ...]):
    session.run(piece(line))
    text = shown(sink)
    assert text.startswith(first)
    assert [other for other in others if other not in text] == []
    # A database is open, and keeps its budget.
    assert "--db" not in text
    assert "--ram-budget" not in text


def test_options_are_those_of_what_is_typed():
    export, plot, read = (registry.find(name) for name in (".export", ".plot", ".read"))
    assert {"--output", "--tokens", "--replace"} <= set(export.options(()))
    assert "--db" not in export.options(())
    assert "--log" in plot.options(("values", "ple"))
    assert "--log" not in plot.options(("norms",))
    assert plot.options(()) == read.options(()) == {}


def test_help_lists_all_and_knows_functions(session: Session, sink: io.BytesIO):
    session.run(piece(".help"))
    listed, closing = shown(sink).split("\n\n")
    assert [line.split()[0] for line in listed.splitlines() if line.startswith(".")] == NAMES
    for word in (";", "\\G", "Ctrl-C", ".help FUNCTION", "engram_functions()"):
        assert word in " ".join(closing.split())
    session.run(piece(".help engram_row"))
    assert "engram_row(table, rowid)" in shown(sink)
    session.run(piece(".help DRIFT"))
    assert shown(sink).startswith("engram_drift(")
    # A command has precedence over a function that has its name but for the prefix.
    session.run(piece(".help plan"))
    assert shown(sink).startswith(".plan ")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_help_is_as_wide_as_the_terminal_and_says_everything(
    session: Session, sink: io.BytesIO, columns: int, monkeypatch: pytest.MonkeyPatch
):
    from engramsql.shell.commands import leaving

    monkeypatch.setattr(leaving, "terminal_size", lambda: os.terminal_size((columns, 24)))
    session.run(piece(".help"))
    text = shown(sink)
    assert max(map(len, text.splitlines())) <= min(columns, 100)
    words = text.split()
    for command in registry.all():
        assert set(f"{command.synopsis} {command.summary}".split()) <= set(words)
    session.run(piece(".help engram_drift"))
    lines = [line for line in shown(sink).splitlines() if not line.startswith("    SELECT") and "FROM" not in line]
    assert max(map(len, lines)) <= min(columns, 100)


@pytest.mark.parametrize(
    "line, message",
    [
        (".tabels", "no command .tabels; did you mean .tables?"),
        (".xyzzy", "no command .xyzzy; .help lists them"),
        (".mode jsn", "mode: no mode 'jsn'; did you mean 'json'?"),
        (".maxrows many", "maxrows: 'many' is no number from 1 to 1000000"),
        (".timer perhaps", "timer: 'perhaps' is neither on nor off"),
        (".quit now", "write .quit"),
        (".read", "write .read FILE"),
        (".read nowhere.sql", "cannot read 'nowhere.sql': No such file or directory"),
        (".read 'a", ".read: no closing quotation; write .read FILE"),
        (".once", "write .once FILE | |COMMAND"),
        (
            ".export --sql SELECT head FROM ple --output z.csv",
            '.export: put the query between double quotes, --sql "QUERY": between',
        ),
        (
            ".export --sql 'FROM engram_fetch('ple', [1])' -o z.csv",
            """(--sql "QUERY": between '...' the first single quote of the query ends it)""",
        ),
        (".plot", "write .plot values|norms|residency|plan|latency ..."),
        (".plot norm ple", ".plot: no picture 'norm'; did you mean norms?"),
        (".plot ple", ".plot: no picture 'ple'; there are values, norms, residency, plan, latency"),
        (".once x.npy", 'no mode writes .npy files; .export --sql "QUERY" --output x.npy writes one'),
        (".export ple x.csv --replce", ".export: unrecognized arguments: --replce; did you mean '--replace'?"),
        (".export ple x.bin --format parqet", "did you mean 'parquet'?"),
        (".export ple", ".export: no output; write .export TABLE PATH, or --output PATH"),
        (".export ple x.csv -o y.csv", ".export: give the output once: 'x.csv' or --output y.csv"),
        (
            ".export ple --tokens my.csv x.parquet",
            (
                "'x.parquet' was taken as a file of --tokens, which takes all that follow it; write --output "
                "x.parquet, or .export TABLE x.parquet --tokens ..."
            ),
        ),
        (".plot norms ple --widht 3", ".plot: unrecognized arguments: --widht 3; did you mean '--width'?"),
        (".help ple plot", "write .help [COMMAND|FUNCTION]"),
        (".help engram_fetch ple", "write .help [COMMAND|FUNCTION]"),
        (".output x.safetensors", "no mode writes .safetensors files"),
        (".once a b", "write .once FILE; put a name with blanks between quotes"),
        (".schema pel", "no table or view 'pel'; did you mean 'ple'?"),
        (".open /nowhere", "'/nowhere' does not exist"),
        (".param 1x 2", "'1x' is no name of a parameter"),
        (".param day tomorrow", "tomorrow is no value in SQL; put a text in quotes"),
        (".param clear x", "no parameter $x"),
        (".edit", ".edit needs a terminal"),
        (".plan ple 99999", "row id 99999 is out of range"),
        (".plan SELECT nowhere", "nowhere"),
        (".help nothing", "no command or function 'nothing'; SELECT name, description FROM engram_functions()"),
        (".help drfit", "no command or function 'drfit'; did you mean engram_drift?"),
        (".help engram_fetsch", "did you mean engram_fetch?"),
        (".help tabels", "did you mean .tables?"),
        (".help .tabels", "no command .tabels; did you mean .tables?"),
        (".help ''", "write .help, or .help with the name"),
        (".plan SELECT 1; SELECT 2", ".plan takes one statement"),
        (".plan EXPLAIN ANALYZE SELECT 1", "EXPLAIN ANALYZE runs the statement; .plan reads nothing"),
        (".plan EXPLAIN (FORMAT json, ANALYZE) SELECT 1", "runs the statement"),
        (".plan ANALYZE SELECT 1", "runs the statement"),
        (".plan ple 1); CREATE TABLE made AS (SELECT 1", "row ids are one list"),
        (".param x 1; CREATE TABLE made AS SELECT 1", "1; CREATE TABLE made AS SELECT 1 is not one value"),
    ],
)
def test_what_is_wrong_is_one_line(session: Session, line: str, message: str):
    with pytest.raises(FailedError) as failed:
        session.run(piece(line))
    assert message in str(failed.value)
    assert "\n" not in str(failed.value)


# What they do


def piece(line: str) -> Any:
    from engramsql.shell.statements import parse

    (found,) = parse(line).all
    return found


def test_settings_are_set_and_told(session: Session, sink: io.BytesIO):
    for line in (".mode jsonl", ".maxrows 7", ".maxwidth 120", ".vector 5", ".timer on"):
        session.run(piece(line))
    for line, text in {
        ".mode": "mode jsonl (",
        ".maxrows": "maxrows 7 (",
        ".maxwidth": "maxwidth 120 (",
        ".vector": "vector 5 (",
        ".timer": "timer on (",
    }.items():
        session.run(piece(line))
        assert shown(sink).startswith(text)
    session.run(piece("SELECT 1 AS x"))
    assert shown(sink) == '{"x":1}\n'


def test_tables_and_schema(session: Session, sink: io.BytesIO):
    session.execute("CREATE TEMP TABLE mine AS SELECT 1 AS i; CREATE VIEW seen AS SELECT 2 AS j; .tables\n")
    session.run(piece(".tables"))
    rows = {row["name"]: row["kind"] for row in csv.DictReader(io.StringIO(shown(sink)))}
    assert rows == {"ple": "table", "mine": "temporary table", "seen": "view of this session"}
    for pattern in ("p*", "p%", "%l%", "ple"):
        session.run(piece(f".tables {pattern}"))
        assert shown(sink).splitlines()[1:] == ["ple,table,1408,160,fp8_e4m3,225280"]
    session.run(piece("\\d PLE"))
    assert "ple,embedding,FLOAT[160]" in shown(sink)


def test_a_file_of_another_kind_than_any_mode_writes_is_told(
    session: Session, sink: io.BytesIO, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    for command in (".once", ".output"):
        session.run(piece(f"{command} {tmp_path}/x.xlsx"))
        assert capfd.readouterr().err == f"'{tmp_path}/x.xlsx' will be written as csv: no mode writes .xlsx files\n"
        session.run(piece("SELECT 1 AS x"))
        session.run(piece(".output stdout"))
        assert (tmp_path / "x.xlsx").read_text() == "x\n1\n"
    for name in ("x.txt", "x", "x.csv"):
        session.run(piece(f".once {tmp_path}/{name}"))
        assert capfd.readouterr().err == ""


def test_parameters(session: Session, sink: io.BytesIO):
    session.execute(".param ids [5, 3, 5]\n.param least 4\n.param")
    assert shown(sink) == "$ids = [5, 3, 5]\n$least = 4\n"
    session.run(piece("SELECT rowid FROM engram_fetch('ple', $ids) WHERE rowid > $least ORDER BY ord"))
    assert shown(sink) == "rowid\n5\n5\n"
    # A planned statement gets them too.
    session.run(piece("SELECT rowid FROM ple WHERE rowid IN $ids ORDER BY rowid"))
    assert shown(sink) == "rowid\n3\n5\n"
    session.run(piece(".param clear ids"))
    with pytest.raises(FailedError, match=r"\$ids has no value; write .param ids VALUE"):
        session.run(piece("SELECT $ids"))
    session.run(piece("SELECT '$ids' AS text, $$a$$ AS dollar"))
    assert shown(sink) == "text,dollar\n$ids,a\n"


def test_once_writes_one_result_when_it_is_complete(session: Session, sink: io.BytesIO, tmp_path: Path):
    path = tmp_path / "a file.csv"
    path.write_text("old")
    path.chmod(0o640)
    session.run(piece(f".once '{path}'"))
    # A command says what it says where it always does.
    session.run(piece(".mode"))
    assert shown(sink).startswith("mode csv")
    query = "SELECT CASE WHEN range = 50000 THEN error('stop') ELSE range END AS x FROM range(100000)"
    with pytest.raises(FailedError, match="stop"):
        session.run(piece(query))
    assert [file.name for file in tmp_path.iterdir()] == ["a file.csv"]
    assert path.read_text() == "old"
    session.run(piece(f".once '{path}'"))
    session.run(piece("SELECT 1 AS x"))
    assert (path.read_text(), shown(sink)) == ("x\n1\n", "")
    assert path.stat().st_mode & 0o777 == 0o640
    session.run(piece("SELECT 2 AS x"))
    assert (path.read_text(), shown(sink)) == ("x\n1\n", "x\n2\n")


def test_once_writes_any_mode_and_into_commands(session: Session, tmp_path: Path):
    session.run(piece(".mode parquet"))
    session.run(piece(f".once {tmp_path / 'x.parquet'}"))
    session.run(piece("SELECT range AS x FROM range(10000)"))
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 10000
    session.run(piece(".mode csv"))
    session.run(piece(f".once | sort -r > '{tmp_path / 'sorted'}'"))
    session.run(piece("SELECT range AS x FROM range(3)"))
    assert (tmp_path / "sorted").read_text() == "x\n2\n1\n0\n"
    # It stops reading: no error.
    session.run(piece(f".once | head -1 > '{tmp_path / 'head'}'"))
    session.run(piece("SELECT range AS x FROM range(10000000)"))
    assert (tmp_path / "head").read_text() == "x\n"
    session.run(piece(".once | exit 3"))
    with pytest.raises(FailedError, match="exit code 3"):
        session.run(piece("SELECT 1 WHERE false"))


ENDINGS = {
    "x.csv": b"x,y\n1,a\n",
    "x.TSV": b"x\ty\n1\ta\n",
    "x.json": b'[\n{"x":1,"y":"a"}\n]\n',
    "x.jsonl": b'{"x":1,"y":"a"}\n',
    "x.ndjson": b'{"x":1,"y":"a"}\n',
    "x.md": b"| ",
    "x.html": b"<",
    "x.arrow": b"ARROW1",
    "x.ipc": b"ARROW1",
    "x.feather": b"ARROW1",
    "x.arrows": b"\xff\xff\xff\xff",
    "x.parquet": b"PAR1",
    "x.txt": "\u250c".encode(),
}


@pytest.mark.parametrize("word", [".once", ".output"])
@pytest.mark.parametrize("name", ENDINGS)
def test_the_ending_of_a_file_names_the_mode(session: Session, tmp_path: Path, word: str, name: str):
    session.run(piece(".mode box"))
    session.execute(f"{word} {tmp_path / name}\nSELECT 1 AS x, 'a' AS y;\n.output stdout")
    assert (tmp_path / name).read_bytes().startswith(ENDINGS[name])


@pytest.mark.parametrize("ending", sorted(set(endings.ENDINGS) & set(FILE_ENDINGS)))
def test_an_ending_is_the_same_file_here_as_of_an_export(session: Session, tmp_path: Path, ending: str):
    here, exported = tmp_path / f"here{ending}", tmp_path / f"exported{ending}"
    session.execute(f".mode box\n.once {here}\nSELECT rowid FROM ple;")
    session.database.export(session.database.sql("SELECT rowid FROM ple"), exported)
    kind = data_files.KINDS[ending]
    if kind in ("arrow", "parquet"):
        # The first bytes tell a file, a stream and Parquet apart.
        assert here.read_bytes()[:4] == exported.read_bytes()[:4]
    else:
        assert here.read_bytes() == exported.read_bytes()
    (ids,) = ids_of_file(here, "rowid")
    assert len(ids.ids) == 1408


def test_a_mode_that_was_set_has_precedence_and_is_told(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "x.csv"
    session.execute(f".mode json\n.once {path}\nSELECT 1 AS x;")
    assert path.read_text() == '[\n{"x":1}\n]\n'
    told = f"'{path}' will be written as json, the mode that was set; .mode csv is what its name says\n"
    assert capsys.readouterr().err == told
    session.execute(f".mode csv\n.output {path}\nSELECT 1 AS x;\n.mode json\nSELECT 2 AS x;\n.output\n.output stdout")
    assert path.read_text() == 'x\n1\n[\n{"x":2}\n]\n'
    assert capsys.readouterr().err == f"{told}results go to {path}\n"
    session.execute(f".mode jsonl\n.once {tmp_path / 'y.jsonl'}\nSELECT 1 AS x;\n.output")
    assert capsys.readouterr().err == "results go to stdout\n"


def test_a_binary_file_holds_one_result(session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "x.parquet"
    session.execute(f".output {path}\nSELECT 1 AS x;")
    for text in ("SELECT 2 AS x;", "SELECT 2 AS x \\G", ".tables", ".mode csv\nSELECT 2 AS x;"):
        assert not session.execute(text)
        assert "can hold one parquet result and nothing else; .output another file" in capsys.readouterr().err
    session.execute(".maxrows\n.output stdout")
    assert capsys.readouterr().err.startswith("maxrows 40 (")
    assert pq.read_table(path).to_pylist() == [{"x": 1}]


def test_the_mode_of_a_script_is_no_choice_unless_it_is_given(tmp_path: Path):
    for words, expected in (((), b"PAR1"), (("--format", "csv"), b"x\n1\n")):
        done = run("-c", f".once {tmp_path / 'x.parquet'}\nSELECT 1 AS x;", *words)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "x.parquet").read_bytes().startswith(expected)


def test_output_collects_until_it_is_taken_back(session: Session, sink: io.BytesIO, tmp_path: Path):
    path = tmp_path / "all.txt"
    session.execute(f".output {path}\nSELECT 1 AS a; SELECT 2 AS b;\n.mode json\nSELECT 3 AS c;\n.output stdout\n")
    assert path.read_text() == 'a\n1\nb\n2\n[\n{"c":3}\n]\n'
    session.run(piece("SELECT 4 AS d"))
    assert shown(sink) == '[\n{"d":4}\n]\n'


def test_read_stops_at_the_first_error(session: Session, sink: io.BytesIO, tmp_path: Path):
    inner, outer = tmp_path / "inner.sql", tmp_path / "outer.sql"
    inner.write_text("SELECT 1 AS a;\n\nSELECT\n  nowhere;\nSELECT 3 AS c;\n")
    outer.write_text(f"-- first\n.read {inner}\nSELECT 4 AS d;\n")
    with pytest.raises(FailedError) as failed:
        session.run(piece(f".read {outer}"))
    message, line, caret = str(failed.value).split("\n")
    assert message.startswith('outer.sql:2: inner.sql:3: Binder Error: Referenced column "nowhere"')
    assert (line, caret) == ("LINE 4:   nowhere", "          ^^^^^^^"[: len(caret)])
    assert shown(sink) == "a\n1\n"


def test_a_file_that_reads_itself_is_an_error(session: Session, tmp_path: Path):
    path = tmp_path / "self.sql"
    path.write_text(f".read {path}\n")
    with pytest.raises(FailedError, match="20 deep"):
        session.run(piece(f".read {path}"))


def test_timer_tells_what_was_read(session: Session, capsys: pytest.CaptureFixture[str]):
    session.run(piece(".timer on"))
    session.run(piece("SELECT octet_length(row) AS n FROM ple WHERE rowid IN (1, 2, 3)"))
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"Time: [\d.]+ m?s, 3 rows; read 3 rows, 480 bytes by \w+", line)
    session.run(piece("SELECT 1"))
    assert re.fullmatch(r"Time: [\d.]+ m?s, 1 row\n", capsys.readouterr().err)


def test_plan_reads_nothing(session: Session, sink: io.BytesIO):
    session.run(piece(".plan ple 1, 2, 3"))
    ((plan),) = csv.DictReader(io.StringIO(shown(sink)))
    assert (plan["rows"], plan["bytes_used"]) == ("3", "480")
    session.run(piece(".plan ple rowids_for_seq('ple', [17, 4])"))
    ((plan),) = csv.DictReader(io.StringIO(shown(sink)))
    assert plan["rows"] == "32"
    session.run(piece(".plan SELECT head FROM ple WHERE rowid = 7"))
    assert shown(sink) == "ple: 1 row id by lookup, at most 160 bytes\n"
    session.run(piece(".plan SELECT 1"))
    assert "no table" in shown(sink)
    assert session.database.sql("FROM engram_stats()").fetchall() == []


PATHS = {"nul": "a\0b", "empty": "''", "long": "x" * 5000, "loop": "loop/x"}


@pytest.mark.parametrize("command", [".attach", ".once", ".open", ".output", ".read"])
@pytest.mark.parametrize("kind", PATHS)
def test_what_no_file_can_be_called_is_one_line(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, kind: str
):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    with pytest.raises(FailedError) as failed:
        session.run(piece(f"{command} {PATHS[kind]}"))
    assert "\n" not in str(failed.value)
    assert len(str(failed.value)) < 200
    assert session.rows("SELECT 42") == [(42,)]


@pytest.mark.parametrize("command", [".attach", ".open", ".read"])
def test_the_home_of_nobody_is_a_path_like_any_other(session: Session, command: str):
    with pytest.raises(FailedError, match="~nobody-of-that-name/x"):
        session.run(piece(f"{command} ~nobody-of-that-name/x"))


def test_a_pipe_is_no_database_to_attach(session: Session, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FailedError, match="is no file"):
        session.run(piece(f".attach {tmp_path / 'pipe'}"))


def test_a_script_may_come_out_of_a_pipe_and_begin_with_a_mark(session: Session, sink: io.BytesIO, tmp_path: Path):
    text = "\ufeff.mode jsonl\nSELECT 1 AS x;\n"
    (tmp_path / "script.sql").write_text(text, encoding="utf-8")
    session.run(piece(f".read {tmp_path / 'script.sql'}"))
    assert shown(sink) == '{"x":1}\n'
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cp", str(tmp_path / "script.sql"), str(tmp_path / "pipe")]):
        session.run(piece(f".read {tmp_path / 'pipe'}"))
    assert shown(sink) == '{"x":1}\n'


@pytest.mark.parametrize("command", [".once", ".output"])
def test_a_pipe_and_a_device_take_results_as_they_are(session: Session, tmp_path: Path, command: str):
    os.mkfifo(tmp_path / "pipe")
    session.run(piece(f"{command} {tmp_path / 'pipe'}"))
    with subprocess.Popen(["cp", str(tmp_path / "pipe"), str(tmp_path / "read.csv")]):
        session.run(piece("SELECT range AS x FROM range(100000)"))
        session.run(piece(".output stdout"))
    assert len((tmp_path / "read.csv").read_text().splitlines()) == 100_001
    session.run(piece(f"{command} /dev/full"))
    with pytest.raises(FailedError, match="cannot write '/dev/full': No space left on device"):
        session.run(piece("SELECT 1"))


def test_bytes_that_are_no_text_are_run_by_nobody(session: Session):
    for line in ("SELECT 'a\udcff'", ".tables a\udcff"):
        with pytest.raises(FailedError, match="byte 0xff in what was typed is not UTF-8; nothing was run"):
            session.run(piece(line))


def test_open_keeps_the_old_database_if_the_new_one_is_none(session: Session, sink: io.BytesIO, tmp_path: Path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    with pytest.raises(FailedError):
        session.run(piece(f".open {tmp_path / 'broken'}"))
    session.run(piece("SELECT count(*) AS n FROM ple"))
    assert shown(sink) == "n\n1408\n"
    session.run(piece(f".open {GOLDEN / 'ckpt_deepseek_v41'}"))
    session.run(piece("SELECT count(*) AS n FROM engram_l1"))
    assert shown(sink) == "n\n112\n"


def test_attach(session: Session, sink: io.BytesIO, tmp_path: Path):
    import duckdb

    with duckdb.connect(str(tmp_path / "it's.duckdb")) as other:
        other.execute("CREATE TABLE there AS SELECT 5 AS x")
    session.run(piece(f'.attach "{tmp_path}/it\'s.duckdb" other'))
    session.run(piece("FROM other.there"))
    assert shown(sink) == "x\n5\n"
    session.run(piece(f".attach {GOLDEN / 'ckpt_deepseek_v41'} more"))
    session.run(piece("SELECT count(*) AS n FROM more_l3"))
    assert shown(sink) == "n\n252\n"


def test_attach_says_what_it_made_and_how_long_it_stays(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    session.run(piece(f".attach {GOLDEN / 'ckpt_deepseek_v41'} more"))
    assert capsys.readouterr().err.splitlines()[-1].startswith("registered until the session ends")
    with engramsql.connect(tmp_path / "my db") as database:
        database.register("first", CHECKPOINT)
    session.run(piece(f".open '{tmp_path / 'my db'}'"))
    capsys.readouterr()
    session.run(piece(f".attach {CHECKPOINT} ple"))
    kept = tmp_path / "my db"
    assert capsys.readouterr().err.splitlines() == [
        "ple: 1,408 rows x 160 bytes",
        f"registered in '{kept}', where it stays; engramsql drop ple --db '{kept}' forgets it",
    ]
    session.database.execute(f"COPY (SELECT 1 AS x) TO '{tmp_path / 'rows.parquet'}'")
    session.run(piece(f".attach {tmp_path / 'rows.parquet'}"))
    assert capsys.readouterr().err.startswith("attached as rows until the session ends: rows.")


def test_materialised_views_are_named_where_they_are_no_table(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with engramsql.connect(tmp_path / "mydb") as database:
        database.register("ple", CHECKPOINT)
        for name in ("chat", "talk"):
            database.build_view(name, "ple", [[17, 4, 256, 17, 4]])
    session.run(piece(f".open {tmp_path / 'mydb'}"))
    assert capsys.readouterr().err == f"{tmp_path / 'mydb'}: ple (1,408 rows), view chat, view talk\n"
    hint = "'chat' is a materialised view: engram_view_fetch('chat', [0, 1]) reads records of it"
    for line in (".schema CHAT", "SELECT * FROM chat", "SELECT chat.slot FROM ple", "FROM engram_fetch('chat', [1])"):
        with pytest.raises(FailedError) as failed:
            session.run(piece(line))
        assert hint in failed.value.line
    with pytest.raises(FailedError, match="did you mean 'ple'"):
        session.run(piece(".schema pel"))
    # What it says works.
    session.run(piece("SELECT slot FROM engram_view_fetch('chat', [0, 1])"))
    for name in ("c", "d", "e"):
        session.database.register(name, CHECKPOINT)
        session.database.create_view(f"few_{name}", "SELECT rowid FROM ple")
    assert session.greeting().endswith("d (1,408 rows), 1 more table, 5 views; .tables lists all")


def test_stats_have_times_that_can_be_read(session: Session, sink: io.BytesIO):
    session.run(piece("SELECT sum(octet_length(row)) FROM ple"))
    shown(sink)
    session.run(piece(".stats"))
    (row,) = csv.DictReader(io.StringIO(shown(sink)))
    assert (row["table_name"], row["rows"], row["bytes_read"]) == ("ple", "1408", "225280")
    for name, digits in (("seconds", 3), ("p50_us", 1), ("p99_us", 1)):
        assert len(row[name].partition(".")[2]) <= digits


def test_an_open_reader_blocks_nothing(session: Session, sink: io.BytesIO):
    """Of a result that broke midway nothing is left on the connection."""
    query = "SELECT CASE WHEN range = 50000 THEN error('stop') ELSE range END AS x FROM range(100000)"
    for _ in range(3):
        with pytest.raises(FailedError, match="stop"):
            session.run(piece(query))
        shown(sink)
        session.run(piece("SELECT 1 AS x"))
        assert shown(sink) == "x\n1\n"


# In a process, into pipes


def test_every_command_into_a_pipe_writes_no_escape_codes(tmp_path: Path):
    (tmp_path / "script.sql").write_text("SELECT 1 AS one;\n.help\n")
    lines = [sample.format(directory=tmp_path) for sample in SAMPLES.values() if sample]
    # The one that ends it comes last.
    lines.sort(key=lambda line: line == ".quit")
    lines += [f".help {name}" for name in NAMES] if lines.pop() == ".quit" else []
    done = run(CHECKPOINT, "-c", "\n".join([*lines, ".quit", "SELECT nowhere;"]), TERM="xterm-256color")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "\x1b" not in done.stderr
    for name in ("once.txt", "all.txt"):
        assert b"\x1b" not in (tmp_path / name).read_bytes()
    assert pq.read_table(tmp_path / "ple.parquet").num_rows == 1408


def test_a_script_of_commands_stops_at_the_first_error(tmp_path: Path):
    script = ".mode json\nSELECT 1 AS a;\n.tabels\nSELECT 2 AS b;\n"
    path = tmp_path / "script"
    path.write_text(script)
    for words in (["-c", script], ["-f", path]):
        done = run(*words)
        assert done.returncode == 1
        assert json.loads(done.stdout) == [{"a": 1}]
        assert done.stderr == "engramsql: statement 3 of 4: no command .tabels; did you mean .tables?\n"


@pytest.mark.parametrize("how", ["-c", "-f"])
def test_an_export_of_a_script_that_is_interrupted_leaves_nothing(tmp_path: Path, how: str):
    directory = tmp_path / "out"
    directory.mkdir()
    line = f".export --sql 'SELECT * FROM range(100000000000)' --output {directory / 'rows.csv'}"
    (tmp_path / "script.sql").write_text(line)
    words = [how, line if how == "-c" else str(tmp_path / "script.sql")]
    with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            while not any(directory.iterdir()):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()
    assert list(directory.iterdir()) == []


def test_a_script_can_be_left(tmp_path: Path):
    done = run("-c", "SELECT 1 AS a;\n.quit\nSELECT nowhere;\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\n1\n", "")


def test_unknown_commands_have_no_nearest_name_by_force():
    with pytest.raises(ArgumentError, match=".help lists them"):
        registry.find(".qqqqqq")
    assert os.path.exists(DOCS / "shell.md")
