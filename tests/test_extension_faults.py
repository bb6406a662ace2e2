"""The boundary: panics become SQL errors, and the connection, the process and stderr stay clean."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from extension_support import FP8, run_python

from engramsql.udf import extension_path

STATEMENTS = {
    "bind": "SELECT engram_row('ple', 1)",
    # Registering runs an init too, so this one names the table by its path.
    "init": f"SELECT * FROM engram_fetch('{FP8}', [1])",
    "scalar": "SELECT engram_row('ple', 1)",
    "table": "SELECT * FROM engram_scan('ple')",
    "gather": "SELECT engram_vector('ple', 1)",
    "replacement": "SELECT * FROM ple",
}


@pytest.mark.parametrize("point", STATEMENTS)
def test_a_panic_is_an_error_and_the_connection_lives(point):
    code = f"""
from extension_support import FP8, connect
import duckdb
con = connect()
register = f"CALL engram_register('ple', '{{FP8}}')"
try:
    con.execute(register)
except duckdb.Error as error:
    assert "fault injected at" in str(error), error
for _ in range(3):
    try:
        con.execute({STATEMENTS[point]!r}).fetchall()
        raise SystemExit("no error")
    except duckdb.Error as error:
        assert "internal error: fault injected at '{point}'" in str(error), error
        assert "please report" in str(error), error
    assert con.execute("SELECT 41 + 1").fetchall() == [(42,)]
print("done")
"""
    done = run_python(code, ENGRAMSQL_FAULT=f"panic@{point}")
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("done", "", 0)


def test_a_panic_while_loading_is_an_error():
    # Not through the package: importing it loads the extension into every database.
    code = f"""
import duckdb
con = duckdb.connect(config={{"allow_unsigned_extensions": "true"}})
try:
    con.load_extension({str(extension_path())!r})
    raise SystemExit("no error")
except duckdb.Error as error:
    assert "fault injected at 'entry'" in str(error), error
print(con.execute("SELECT 42").fetchone()[0])
"""
    done = run_python(code, ENGRAMSQL_FAULT="panic@entry")
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("42", "", 0)


def test_load_twice():
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for _ in range(3):
        con.execute(f"LOAD '{extension_path()}'")
    assert con.execute("SELECT count(*) > 0 FROM engram_functions()").fetchall() == [(True,)]


def test_the_extension_needs_no_python():
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("readelf is not installed")
    symbols = subprocess.run(
        [readelf, "-Ws", "--dyn-syms", str(extension_path())], capture_output=True, text=True, check=True
    ).stdout
    undefined = [line.split()[-1] for line in symbols.splitlines() if " UND " in line]
    assert not [name for name in undefined if name.startswith(("Py", "_Py", "duckdb_"))]


def test_memory_does_not_grow_with_executions():
    code = """
import resource
from extension_support import connect_ple
con = connect_ple()
def work():
    for _ in range(300):
        con.execute("SELECT embedding, row FROM engram_fetch('ple', range(0, 1408))").fetchall
        con.execute("SELECT sum(len(engram_vector('ple', i % 1408))) FROM range(4000) t(i)").fetchall()
        con.execute("SELECT rowids_for_seq('ple', range(0, 100))").fetchall()
def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
work()
before = rss()
work()
work()
print(rss() - before)
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 32 << 20


def test_the_command_line():
    script = f"""
LOAD '{extension_path()}';
CALL engram_register('ple', '{FP8}');
PREPARE p AS SELECT ord, rowid FROM engram_fetch('ple', $1);
.mode csv
EXECUTE p([3, 2]);
SELECT rowid FROM engram_scan('ple', 5, 1);
SELECT count(*) FROM ple;
"""
    program = Path(sys.executable).with_name("duckdb")
    assert program.is_file(), "the test extra brings duckdb-cli"
    done = subprocess.run(
        [program, "-unsigned", "-init", "/dev/null"], input=script, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split()[-7:] == ["ord,rowid", "0,3", "1,2", "rowid", "5", "count_star()", "1408"]
