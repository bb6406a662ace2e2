"""The command line as a user runs it: a process, its streams and its exit code."""

import csv
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

GOLDEN = Path(__file__).parent / "golden"
CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"
ROWS = 1408
PROGRAM = [sys.executable, "-m", "engramsql"]


def run(*arguments: str | Path, stdin: str = "", cwd: Path | None = None) -> "subprocess.CompletedProcess[bytes]":
    words = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(words, input=stdin.encode(), capture_output=True, cwd=cwd, check=False, timeout=120)


def out(*arguments: str | Path, stdin: str = "") -> str:
    done = run(*arguments, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_version_and_help():
    import engramsql

    assert out("--version") == f"engramsql {engramsql.__version__}\n"
    assert "commands" in out("--help")


@pytest.mark.parametrize("command", ["demo", "register", "drop", "tables", "check", "warm", "extension-path"])
def test_every_command_has_help(command: str):
    assert f"engramsql {command}" in out(command, "--help")
    assert command in out("--help")


@pytest.mark.parametrize("route", ["-c", "-f", "-f -", "stdin"])
@pytest.mark.parametrize("broken", ["SELECT * FROM nowhere", "SELEC 2"])
def test_a_script_stops_at_the_first_error(tmp_path: Path, route: str, broken: str):
    text = f"SELECT 1 AS x;\n{broken};\nSELECT 3 AS x;\n"
    script = tmp_path / "script.sql"
    script.write_text(text)
    done = {
        "-c": lambda: run("-c", text),
        "-f": lambda: run("-f", script),
        "-f -": lambda: run("-f", "-", stdin=text),
        "stdin": lambda: run(stdin=text),
    }[route]()
    assert done.returncode == 1
    assert done.stdout == b"x\n1\n"
    (message,) = done.stderr.decode().splitlines()
    assert message.startswith("engramsql: statement 2 of 3: ")
    assert "nowhere" in message or "SELEC" in message


def test_statements_end_where_sql_says():
    script = """
        SELECT ';' AS a /* ; */ -- ;
        ; SELECT $$x;y;$$ AS b
        ;; -- nothing; at all
        SELECT 'größe; 数据' AS "c;d";
    """
    assert out(stdin=script) == "a\n;\nb\nx;y;\nc;d\ngröße; 数据\n"


@pytest.mark.parametrize("script", ["", ";", "-- nothing", "/* ; */ ;", "/* a /* b */ */ -- /*"])
def test_nothing_to_run_is_good(script: str):
    assert out(stdin=script) == ""


@pytest.mark.parametrize(
    "tail", ["/* SELECT 2", "/*", "/* a /* b */ ;", "SELECT 2 /* x", "'abc", "SELECT $$abc; SELECT 3"]
)
def test_what_is_not_closed_is_an_error(tail: str):
    done = run("-c", f"SELECT 1 AS x; {tail}")
    assert (done.returncode, done.stdout) == (1, b"x\n1\n")
    assert done.stderr.startswith(b"engramsql: statement 2 of 2: Parser Error: ")
    assert run("-c", tail).returncode == 1


def test_several_commands_run_in_order():
    assert (
        out("-c", "CREATE TABLE t AS SELECT 1 AS i -- one", "-c", "INSERT INTO t VALUES (2)", "-c", "FROM t")
        == "i\n1\n2\n"
    )


def test_a_command_that_is_no_text_is_named():
    done = run("-c", "SELECT '\udcff'")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"-c is not UTF-8" in done.stderr
    assert b"udcff" in done.stderr


def test_only_results_are_data():
    script = "CREATE TABLE t (i INT); INSERT INTO t VALUES (1), (2); SET threads = 1; DELETE FROM t WHERE i = 1"
    assert out("-c", script) == ""
    assert out("-c", f"{script}; INSERT INTO t VALUES (5) RETURNING i; FROM t ORDER BY i") == "i\n5\ni\n2\n5\n"
    assert out("-c", "SELECT 1 AS Count; SELECT 2 AS Success") == "Count\n1\nSuccess\n2\n"


def test_a_checkpoint_is_a_database():
    query = "SELECT rowid, head FROM engram_fetch('ple', [3, 1, 3]) ORDER BY ord"
    assert out(CHECKPOINT, "-c", query) == "rowid,head\n3,0\n1,0\n3,0\n"


def test_python_variables_are_no_tables():
    done = run("-c", "SELECT * FROM options")
    assert done.returncode == 1
    assert b"options" in done.stderr


LAST_HUGE = 170141183460469231731687303715884105727
LAST_UNSIGNED = 340282366920938463463374607431768211455
BIG = 10**100 + 1

VALUES = """
    SELECT 9007199254740993 AS big, 18446744073709551615::UBIGINT AS unsigned,
           170141183460469231731687303715884105727 AS huge, 0.1::FLOAT AS single, 0.1::DOUBLE AS double,
           'nan'::FLOAT AS nan, 'inf'::DOUBLE AS inf, '-inf'::FLOAT AS minus,
           1.50::DECIMAL(10, 2) AS decimal, true AS yes, NULL AS nothing, '' AS empty,
           E'a,"b"\\n|\\t' AS text, '\\x00\\xFFz'::BLOB AS blob, DATE '2024-02-29' AS day,
           [1, NULL, 3] AS list, [0.5, 'nan'::FLOAT]::FLOAT[2] AS vector, [[1], [], NULL] AS nested,
           {'a': 1, 'b': ['x'::BLOB]} AS struct, MAP {'k': 1} AS map, 'ü' AS unicode
"""
AS_JSON = {
    "big": 9007199254740993,
    "unsigned": 18446744073709551615,
    "huge": 170141183460469231731687303715884105727,
    "single": 0.1,
    "double": 0.1,
    "nan": "NaN",
    "inf": "Infinity",
    "minus": "-Infinity",
    "decimal": 1.5,
    "yes": True,
    "nothing": None,
    "empty": "",
    "text": 'a,"b"\n|\t',
    "blob": "00ff7a",
    "day": "2024-02-29",
    "list": [1, None, 3],
    "vector": [0.5, "NaN"],
    "nested": [[1], [], None],
    "struct": {"a": 1, "b": ["78"]},
    "map": {"k": 1},
    "unicode": "ü",
}


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def test_json_is_exact():
    text = out("--format", "json", "-c", VALUES)
    assert json.loads(text, parse_constant=refuse_constant) == [AS_JSON]
    assert "1.50" in text  # a decimal keeps its digits


# Values that Python or Arrow have no room for, and DuckDB's text of them.
TEXTS = {
    "INTERVAL '1 month -3 days'": "1 month -3 days",
    "'12:00:00+02'::TIMETZ": "12:00:00+02",
    "'2020-01-01 00:00:00+00'::TIMESTAMPTZ": "2020-01-01 00:00:00+00",
    "'0101'::BIT": "0101",
    "DATE 'infinity'": "infinity",
    "TIMESTAMP '-infinity'": "-infinity",
    "DATE '290000-01-01'": "290000-01-01",
    "DATE '0044-03-15 (BC)'": "0044-03-15 (BC)",
    "TIMESTAMP '290000-01-01 00:00:00'": "290000-01-01 00:00:00",
    "'2020-01-01 00:00:00.123456789'::TIMESTAMP_NS": "2020-01-01 00:00:00.123456789",
    "'a'::ENUM('a')": "a",
    "'00000000-0000-0000-0000-00000000000f'::UUID": "00000000-0000-0000-0000-00000000000f",
    "union_value(a := [1])": "[1]",
    "row(1, NULL)::VARCHAR": "(1, NULL)",
}
NUMBERS = {
    f"{LAST_UNSIGNED}::UHUGEINT": str(LAST_UNSIGNED),
    f"-{LAST_HUGE}::HUGEINT": str(-LAST_HUGE),
    f"{BIG}::BIGNUM": str(BIG),
    "18446744073709551615::UBIGINT": "18446744073709551615",
    "0.0000000001::DECIMAL(38, 20)": "0.00000000010000000000",
    "'-0.0'::DOUBLE": "-0.0",
    "'-0.0'::FLOAT": "-0.0",
    "NULL::HUGEINT": "null",
    "'\\x00\\xFF'::BLOB": '"00ff"',
    **{sql: json.dumps(text) for sql, text in TEXTS.items()},
}


def test_values_are_the_same_inside_as_outside():
    wrappers = {
        "{}": "{}",
        "[{}, NULL]": "[{},null]",
        "[[{}], NULL]": "[[{}],null]",
        "array_value({})": "[{}]",
        "{{'a \"b': [{}]}}": '{{"a \\"b":[{}]}}',
        "MAP {{'k': {}}}": '{{"k":{}}}',
    }
    selected, expected = [], []
    for sql, text in NUMBERS.items():
        for wrapper, written in wrappers.items():
            selected.append(wrapper.format(sql))
            expected.append(written.format(text))
    names = [f"c{number}" for number in range(len(selected))]
    query = ", ".join(f"{value} AS {name}" for value, name in zip(selected, names, strict=True))
    line = out("--format", "jsonl", "-c", f"SELECT {query}").rstrip("\n")
    assert line == "{" + ",".join(f'"{name}":{text}' for name, text in zip(names, expected, strict=True)) + "}"
    cells = dict(zip(names, next(csv.reader(out("-c", f"SELECT {query}").splitlines()[1:])), strict=True))
    for name, text in zip(names, expected, strict=True):
        assert cells[name] == ("" if text == "null" else json.loads(text) if text.startswith('"') else text)


def test_keys_of_maps_and_rows_without_names():
    query = f"SELECT MAP {{DATE 'infinity': 1}} AS a, MAP {{{LAST_UNSIGNED}::UHUGEINT: [INTERVAL 1 DAY]}} AS b"
    assert json.loads(out("--format", "jsonl", "-c", query)) == {
        "a": {"infinity": 1},
        "b": {str(LAST_UNSIGNED): ["1 day"]},
    }
    assert "1 day" in out(
        "--format", "jsonl", "-c", "SELECT row(1, INTERVAL 1 DAY) AS r, [row(1, INTERVAL 1 DAY)] AS l"
    )


def test_what_pyarrow_cannot_hold_is_one_line(monkeypatch: pytest.MonkeyPatch):
    from engramsql import connect, errors, export
    from engramsql.export import text

    def fail(*_: object) -> None:
        raise pa.ArrowNotImplementedError("no such type")

    monkeypatch.setattr(text, "write_csv", fail)
    with connect() as db, pytest.raises(errors.ArgumentError, match=r"'x' \(INTEGER\).*VARCHAR"):
        export.write(db.sql("SELECT 1 AS x"), "csv", io.BytesIO())


def test_jsonl_is_the_same_line_by_line():
    lines = out("--format", "jsonl", "-c", f"{VALUES} UNION ALL {VALUES}").splitlines()
    assert [json.loads(line) for line in lines] == [AS_JSON, AS_JSON]


def test_json_of_no_rows_and_of_equal_names():
    assert json.loads(out("--format", "json", "-c", "SELECT 1 AS x WHERE false")) == []
    assert out("--format", "jsonl", "-c", "SELECT 1 AS x WHERE false") == ""
    assert json.loads(out("--format", "json", "-c", "SELECT 1 AS a, 2 AS a")) == [{"a": 1, "a_1": 2}]


def test_csv_round_trip():
    text = out("--format", "csv", "-c", VALUES)
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["text"] == 'a,"b"\n|\t'
    assert (row["big"], row["blob"], row["nan"], row["yes"]) == ("9007199254740993", "00ff7a", "NaN", "true")
    assert json.loads(row["vector"]) == [0.5, "NaN"]
    assert (row["nothing"], row["empty"]) == ("", "")
    assert ',"",' in text  # an empty text is not NULL


def test_tsv_has_one_line_per_row():
    header, row, end = out("--format", "tsv", "-c", VALUES).split("\n")
    assert end == ""
    cells = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert (cells["text"], cells["nothing"], cells["empty"]) == ('a,"b"\\n|\\t', "\\N", "")


def test_vertical_has_one_line_per_value():
    text = out("--format", "vertical", "-c", f"{VALUES} UNION ALL {VALUES}")
    assert [line for line in text.splitlines() if line.startswith("***")] == ["*** row 1 ***", "*** row 2 ***"]
    lines = text.splitlines()[1 : 1 + len(AS_JSON)]
    assert [line.split(": ", 1)[0].strip() for line in lines] == list(AS_JSON)
    cells = dict(line.lstrip().split(": ", 1) for line in lines)
    assert (cells["text"], cells["nothing"], cells["empty"]) == ('a,"b"\\n|\\t', "\\N", "")
    assert out("--format", "vertical", "-c", "SELECT 1 AS a, NULL AS bcd") == "*** row 1 ***\n  a: 1\nbcd: \\N\n"
    assert out("--format", "vertical", "-c", "SELECT 1 AS x WHERE false") == ""


def test_vertical_counts_across_batches():
    lines = out("--format", "vertical", "-c", "FROM range(5000)").splitlines()
    assert lines[-2:] == ["*** row 5000 ***", "range: 4999"]


def test_markdown_is_whole():
    lines = out(CHECKPOINT, "--format", "markdown", "-c", "SELECT embedding, 'a|b' AS t FROM ple LIMIT 1").splitlines()
    assert lines[:2] == ["| embedding | t |", "| --- | --- |"]
    assert lines[2].count(",") == 159
    assert lines[2].endswith("| a\\|b |")


@pytest.mark.parametrize("format", ["csv", "tsv", "json", "jsonl", "markdown", "vertical"])
def test_machine_formats_never_cut(format: str):
    text = out(CHECKPOINT, "--format", format, "-c", "SELECT rowid, embedding, row FROM ple")
    assert text.count("\n") >= ROWS
    assert "…" not in text
    assert "\x1b" not in text


def test_arrow_is_a_stream_with_its_end_marker():
    done = run(CHECKPOINT, "--format", "arrow", "-c", "SELECT rowid, embedding FROM ple ORDER BY rowid")
    assert done.stdout.endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")
    table = pa.ipc.open_stream(done.stdout).read_all()
    table.validate(full=True)
    assert table.num_rows == ROWS
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 160)


def test_a_failed_arrow_stream_does_not_look_whole():
    query = "SELECT CASE WHEN range = 50000 THEN error('stop') ELSE range END AS x FROM range(100000)"
    done = run("--format", "arrow", "-c", f"SET threads = 1; {query}")
    assert done.returncode == 1
    assert not done.stdout.endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")


@pytest.mark.parametrize("format", ["arrow", "parquet"])
@pytest.mark.parametrize(
    "value", ["{}::UHUGEINT", "[{}::UHUGEINT]", "{{'a': [{}::UHUGEINT]}}", "MAP {{1: {}::UHUGEINT}}", "[-{}::HUGEINT]"]
)
def test_a_number_too_wide_for_arrow_is_refused(format: str, value: str):
    number = LAST_HUGE if value.endswith("::HUGEINT]") else LAST_UNSIGNED
    done = run("--format", format, "-c", f"SELECT 1 AS fits, {value.format(number)} AS wide")
    assert done.returncode == 1
    (message,) = done.stderr.decode().splitlines()
    assert message.startswith("engramsql: column 'wide' (")
    assert str(number) in message
    assert 'CAST("wide" AS VARCHAR)' in message


def test_arrow_holds_every_value_as_it_is():
    text = f"""
        SELECT 1 AS a, {10**37}::HUGEINT AS a, -5::HUGEINT AS huge, [7::UHUGEINT, NULL] AS list,
               {BIG}::BIGNUM AS bignum, '0101'::BIT AS bit, ['12:00:00+02'::TIMETZ] AS time,
               {{'x y': 9::UHUGEINT, 'z': 'k'::ENUM('k')}} AS struct, [1::HUGEINT]::HUGEINT[1] AS fixed
    """
    for format in ("arrow", "parquet"):
        done = run("--format", format, "-c", text)
        assert (done.returncode, done.stderr) == (0, b"")
        stream = io.BytesIO(done.stdout)
        table = pa.ipc.open_stream(stream).read_all() if format == "arrow" else pq.read_table(stream)
        table.validate(full=True)
        (row,) = table.to_pylist()
        assert row == {
            "a": 1,
            "a_1": 10**37,
            "huge": -5,
            "list": [7, None],
            "bignum": str(BIG),
            "bit": "0101",
            "time": ["12:00:00+02"],
            "struct": {"x y": 9, "z": "k"},
            "fixed": [1],
        }


def test_equal_names_in_arrow():
    for value in ("2", "2::HUGEINT"):
        done = run("--format", "arrow", "-c", f"SELECT 1 AS a, {value} AS a")
        assert pa.ipc.open_stream(done.stdout).read_all().to_pylist() == [{"a": 1, "a_1": 2}]


@pytest.mark.parametrize("value", ["INTERVAL 1 MONTH", "[{'a': INTERVAL 1 MONTH}]", "union_value(a := 1)"])
def test_what_parquet_cannot_hold_is_named(value: str):
    done = run("--format", "parquet", "-c", f"SELECT 1 AS x, {value} AS odd")
    assert (done.returncode, done.stdout) == (1, b"")
    (message,) = done.stderr.decode().splitlines()
    assert message.startswith("engramsql: column 'odd' (")


def test_parquet(tmp_path: Path):
    done = run("--format", "parquet", "-c", "SELECT range AS x FROM range(10000)")
    assert pq.read_table(io.BytesIO(done.stdout)).num_rows == 10000


def test_box_into_a_pipe_is_plain():
    text = out(CHECKPOINT, "--format", "box", "-c", "SELECT rowid, head FROM ple LIMIT 2")
    assert "│ rowid │" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "xml"],
        ["-c", "SELECT 1", "-f", "x.sql"],
        ["--nonsense"],
        ["db", "another"],
        [".", "SELECT 1"],
        ["SELECT 1"],
        ["register", "x"],
        ["register", "x", "y"],
        ["drop"],
        ["check"],
        ["--vers"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(arguments: list[str]):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"usage: engramsql" in done.stderr


def test_errors_are_one_line(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("hello")
    for arguments in [
        [tmp_path, "-c", "SELECT 1"],
        ["-f", tmp_path / "none.sql"],
        ["drop", "x", "--db", tmp_path / "db"],
    ]:
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"engramsql: ")
        assert done.stderr.count(b"\n") == 1


def test_only_register_makes_a_database(tmp_path: Path):
    missing = tmp_path / "my db"
    for words in [
        [missing, "-c", "SELECT 1"],
        [missing, "--read-only", "-c", "SELECT 1"],
        ["tables", "--db", missing],
        ["tables", missing],
        ["check", missing],
        ["drop", "x", "--db", missing],
    ]:
        done = run(*words)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.decode() == (
            f"engramsql: '{missing}' does not exist; make a database with: "
            f"engramsql register NAME SOURCE --db '{missing}'\n"
        )
        assert not missing.exists()
    missing.mkdir()
    done = run("check", missing)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"is empty; make a database" in done.stderr
    assert out(":memory:", "-c", "SELECT 1 AS x") == "x\n1\n"


def test_a_misspelt_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    from engramsql.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["regster", "x", "y"]) == 2
    said = "engramsql: no command or directory 'regster'; did you mean 'register'?\n"
    assert capfd.readouterr() == ("", said)
    (tmp_path / "table").mkdir()
    assert main(["table", "--format", "csv", "-c", "SELECT 1 AS x"]) == 0
    assert capfd.readouterr() == ("x\n1\n", "")


def test_help_as_a_word_leads_to_the_option(tmp_path: Path):
    done = run("help", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"engramsql --help" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_file_is_no_database(tmp_path: Path):
    (tmp_path / "corpus.txt").write_text("17 4 256\n")
    said = b"engramsql: 'corpus.txt' is a file; a database, checkpoint or store is a directory\n"
    for words in [
        ["corpus.txt", "-c", "SELECT 1"],
        ["tables", "corpus.txt"],
        ["export", "ple", "--db", "corpus.txt", "--output", "x.csv"],
    ]:
        done = run(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (1, b"", said)


@pytest.mark.parametrize("words", [["warm", "ple"], ["export", "ple", "--output", "x.csv"]], ids=" ".join)
def test_ids_in_place_of_a_file_are_told_to_be_written_into_one(tmp_path: Path, words: list[str]):
    done = run(*words, "--db", CHECKPOINT, "--ids", "3,5", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"ids are read from files" in done.stderr
    # The remedy works.
    remedy = done.stderr.decode().rstrip().partition("ids.txt: ")[2]
    subprocess.run(remedy, shell=True, check=True, cwd=tmp_path)
    assert (tmp_path / "ids.txt").read_text() == "3\n5\n"
    assert run(*words, "--db", CHECKPOINT, "--ids", "ids.txt", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("words", [[".", "SELECT 1"], ["SELECT 1"]], ids=" ".join)
def test_sql_without_its_option_is_told_so(words: list[str]):
    assert b"SQL is given with -c" in run(*words).stderr


def test_what_a_database_does_not_keep_is_named(tmp_path: Path):
    db = tmp_path / "db"
    out("register", "ple", CHECKPOINT, "--db", db)
    done = run(db, "-c", "CREATE TABLE t AS SELECT 1 AS x; CREATE OR REPLACE VIEW v AS FROM t; FROM v")
    assert (done.returncode, done.stdout) == (0, b"x\n1\n")
    (warning,) = done.stderr.decode().splitlines()
    assert warning.startswith("engramsql: warning: table t, view v: not kept")
    assert out(db, "-c", "CREATE TEMP TABLE t AS SELECT 1 AS x; FROM t") == "x\n1\n"
    assert out(db, "-c", "CREATE TABLE t AS SELECT 1 AS x; FROM t; DROP TABLE t") == "x\n1\n"
    assert out(CHECKPOINT, "-c", "CREATE TABLE t AS SELECT 1 AS x; FROM t") == "x\n1\n"


def test_a_script_file_that_cannot_be_read_is_named(tmp_path: Path):
    for name, reason in [("no file.sql", "No such file or directory"), (".", "Is a directory")]:
        done = run("-f", tmp_path / name)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.decode() == f"engramsql: cannot read '{tmp_path / name}': {reason}\n"


def test_a_bad_script_file_is_an_error(tmp_path: Path):
    script = tmp_path / "latin.sql"
    script.write_bytes("SELECT 'ü'".encode("latin-1"))
    done = run("-f", script)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"utf-8" in done.stderr


def test_register_tables_drop(tmp_path: Path):
    db = tmp_path / "my db"
    assert out("register", "ple", CHECKPOINT, "--db", db).startswith(f"ple: {ROWS} rows x 160 bytes")
    (row,) = csv.DictReader(io.StringIO(out("tables", "--db", db)))
    assert (row["name"], row["rows"], row["format"]) == ("ple", str(ROWS), "fp8_e4m3")
    assert json.loads(out("tables", db, "--format", "json"))[0]["rows"] == ROWS
    assert out(db, "-c", "SELECT count(*) AS n FROM ple") == f"n\n{ROWS}\n"
    assert out("drop", "ple", "--db", db) == ""
    assert run("drop", "ple", "--db", db).returncode == 1
    assert CHECKPOINT.is_dir()


def test_a_change_of_a_checkpoint_is_refused():
    done = run("register", "x", CHECKPOINT, "--db", CHECKPOINT)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"is no database directory" in done.stderr


def test_a_store_needs_what_its_files_do_not_say(tmp_path: Path):
    shards = tmp_path / "store"
    shards.mkdir()
    for number in range(3):
        (shards / f"shard_{number:03}.bin").write_bytes(bytes([number]) * 80)
    db = tmp_path / "db"
    assert run("register", "s", shards, "--db", db).returncode == 1
    assert out("register", "s", shards, "--db", db, "--width", "8", "--rows-per-shard", "10").startswith("s: 30 rows")
    query = "SELECT rowid, row FROM engram_fetch('s', [29, 0, 10]) ORDER BY ord"
    assert out(db, "-c", query) == f"rowid,row\n29,{'02' * 8}\n0,{'00' * 8}\n10,{'01' * 8}\n"
    assert run("register", "t", shards, "--db", db, "--width", "7", "--rows-per-shard", "10").returncode == 1


def test_check(tmp_path: Path):
    assert out("check", CHECKPOINT).startswith("ple: ok")
    db = tmp_path / "db"
    source = tmp_path / "source"
    shutil.copytree(CHECKPOINT, source)
    out("register", "ple", source, "--db", db)
    assert out("check", "--db", db).startswith("ple: ok")
    shutil.copy(source / "model-00001-of-00002.safetensors", source / "stray.safetensors")
    assert "ple: 'stray.safetensors' is named by no index" in out("check", source)
    shard = source / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-17])
    done = run("check", "--db", db)
    assert done.returncode == 1
    assert b"ple: " in done.stdout
    assert shard.name.encode() in done.stdout
    assert run("check", tmp_path / "none").returncode == 1


def test_check_goes_on_after_a_source_that_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from engramsql import checking, connect
    from engramsql.errors import SourceError

    with connect(tmp_path / "db") as db:
        db.register("a", CHECKPOINT)
        db.register("b", GOLDEN / "ckpt_qwen4_exp_bf16")

    def stray_files(source: Path) -> list[str]:
        if source == CHECKPOINT:
            raise SourceError("its index is gone")
        return []

    monkeypatch.setattr(checking, "stray_files", stray_files)
    assert checking.check(str(tmp_path / "db")) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == "a: its index is gone"
    assert second.startswith("b: ok")


def test_the_value_format_is_called_format_as_in_sql_and_python(tmp_path: Path):
    done = run("register", "ple", CHECKPOINT, "--db", tmp_path / "db", "--format", "bf16")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"bf16" in done.stderr
    assert out("register", "ple", CHECKPOINT, "--db", tmp_path / "db", "--format", "fp8_e4m3").startswith("ple: ")


def test_extension_path():
    path = Path(out("extension-path").strip())
    assert path.name == "engramsql.duckdb_extension"
    assert path.is_file()


def test_a_closed_pipe_is_quiet():
    reader = subprocess.Popen([*PROGRAM, "-c", "FROM range(10000000)"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"range\n"
    reader.stdout.close()
    assert reader.stderr is not None
    assert reader.stderr.read() == b""
    reader.wait(timeout=60)
    reader.stderr.close()


LONG = "SELECT 1 AS ready; SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"


@pytest.mark.parametrize("route", ["to the process", "to another thread"])
def test_interrupt_stops_the_query(route: str):
    with interruptible("-c", LONG) as process:
        read_ready(process)
        started = time.monotonic()
        if route == "to the process":
            process.send_signal(signal.SIGINT)
        else:
            signal_another_thread(process.pid)
        assert process.wait(timeout=60) == 130
        assert time.monotonic() - started < 5
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_an_ignored_interrupt_stays_ignored():
    """As in a background job of a shell script, and under nohup."""
    text = "SELECT 1 AS ready; SELECT sum(a.range * b.range) FROM range(20000) a, range(10000) b; SELECT 2 AS end"
    with interruptible("-c", text, handler="SIG_IGN") as process:
        read_ready(process)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.read().endswith(b"\nend\n2\n")
        assert process.wait(timeout=60) == 0


def test_an_interrupt_ends_a_script_whose_output_nobody_reads():
    """No query runs that could be interrupted: the script waits for room in the pipe. A second Ctrl-C does not wait."""
    with interruptible("-c", "SELECT 1 AS ready; FROM range(100000000)") as process:
        read_ready(process)
        # The process may be anywhere; whenever it is in the pipe, one of these ends it.
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.wait(timeout=1) == 130


def test_the_handler_is_put_back():
    from engramsql import commands

    before = signal.getsignal(signal.SIGINT)
    commands.run_script(None, "SET threads = 1", "csv")
    assert signal.getsignal(signal.SIGINT) is before


@contextmanager
def interruptible(*arguments: str, handler: str = "default_int_handler") -> "Iterator[subprocess.Popen[bytes]]":
    """The program with a handler of its own for Ctrl-C: whoever runs the tests may ignore it."""
    code = (
        f"import signal, sys; signal.signal(signal.SIGINT, signal.{handler}); "
        "from engramsql.cli import main; sys.exit(main())"
    )
    words = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def read_ready(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"ready\n", b"1\n"]


def signal_another_thread(pid: int) -> None:
    """Sends SIGINT to a thread that is not the main one: Python's handler runs when the main thread wakes up."""
    import ctypes

    others = [int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid]
    tgkill = 234 if os.uname().machine == "x86_64" else 131
    assert ctypes.CDLL(None, use_errno=True).syscall(tgkill, pid, others[0], int(signal.SIGINT)) == 0


def on_a_terminal(*arguments: str) -> tuple[int, str]:
    """Runs the program with a terminal at both ends; exit code and what the terminal showed."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "80"}
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    return process.wait(timeout=60), shown.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_box():
    code, shown = on_a_terminal("-c", "SELECT 1 AS x")
    assert code == 0
    assert "\u250c" in shown


def test_output_is_whole_where_python_does_not_buffer():
    """A bare file may take a part of what is written, and nobody would ask for the rest."""
    code = "import io; from engramsql.commands import output; print(isinstance(output(), io.BufferedWriter))"
    done = subprocess.run([sys.executable, "-u", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    done = subprocess.run([sys.executable, "-u", *PROGRAM[1:], "-c", "SELECT 1 AS x"], capture_output=True, check=True)
    assert done.stdout == b"x\n1\n"


def test_stdin_may_be_closed():
    done = subprocess.run(f"{sys.executable} -m engramsql <&-", shell=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("arguments", ["-c 'SELECT 1'", "--version", "tables --db nowhere", "extension-path"])
def test_a_closed_stdout_is_an_error(arguments: str):
    command = f"{sys.executable} -m engramsql {arguments} >&-"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"engramsql: stdout is closed; redirect it to a file or to /dev/null\n"


def test_a_closed_stderr_sends_no_message_into_the_data():
    command = f"{sys.executable} -m engramsql -c 'SELECT * FROM nowhere' 2>&-"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_script_may_begin_with_the_mark_of_utf8(tmp_path: Path):
    script = b"\xef\xbb\xbf.mode jsonl\nSELECT 1 AS x;\n"
    (tmp_path / "script.sql").write_bytes(script)
    assert out("-f", tmp_path / "script.sql") == '{"x":1}\n'
    assert out(stdin=script.decode()) == '{"x":1}\n'
