"""Verification, comparison and builds from SQL: what they say, and that an interrupt ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest
from extension_support import FP8, connect, connect_ple
from helpers import refuses
from oldest import run_oldest

from engramsql.udf import extension_path

# A table that takes minutes to read and no space: 512 GB of zeros in a sparse file.
HUGE = 512 << 30
WIDTH = 160


def huge_store(directory: Path) -> Path:
    """A store of one shard that is a hole."""
    directory.mkdir()
    rows = HUGE // WIDTH
    with (directory / "shard_000.bin").open("wb") as file:
        file.truncate(rows * WIDTH)
    return directory


def copy(con: duckdb.DuckDBPyConnection, select: str, target: Path, options: str = "") -> Path:
    """A new store."""
    con.execute(f"COPY ({select}) TO '{target}' (FORMAT engram{options})")
    return target


def interrupted(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Runs ``sql``, which would take minutes, and interrupts it; it ends within a second and leaves no thread."""
    asked: list[float] = []

    def interrupt() -> None:
        asked.append(time.perf_counter())
        con.interrupt()

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    try:
        refuses(lambda: con.execute(sql).fetchall(), "interrupt")
        ended = time.perf_counter()
    finally:
        timer.cancel()
        timer.join()
    assert ended - asked[0] < 1
    assert con.execute("SELECT 42").fetchall() == [(42,)]
    # Readers that wait for a disk are kept; what belonged to the query is not.
    names = [Path(f"/proc/self/task/{task}/comm").read_text() for task in os.listdir("/proc/self/task")]
    assert not [name for name in names if name.startswith("engram_")], names


@pytest.fixture
def con():
    return connect_ple()


def test_verify_finds_a_flipped_bit(con, tmp_path):
    con.execute(f"CALL engram_attach('{tmp_path / 'db'}')")
    con.execute(f"CALL engram_register('ple', '{FP8}')")
    (built,) = con.execute("CALL engram_build('mine', 'ple', shard_bytes := '64KB', jobs := 2)").fetchall()
    assert built[0] == "mine"
    columns = [column[0] for column in con.execute("SELECT * FROM engram_verify('mine')").description]
    assert columns == ["check", "shard", "ok", "expected", "found", "detail"]
    for level in ("headers", "sample", "full"):
        assert con.execute(f"SELECT count(*) > 0, bool_and(ok) FROM engram_verify('mine', '{level}')").fetchall() == [
            (True, True)
        ], level
    (source,) = con.execute("SELECT source FROM engram_tables() WHERE name = 'mine'").fetchone()
    verified = "SELECT verified_at IS NOT NULL FROM engram_tables() WHERE name = 'mine'"
    assert con.execute(verified).fetchall() == [(True,)]
    shard = Path(source) / "shard_002.bin"
    data = bytearray(shard.read_bytes())
    data[1234] ^= 1
    os.chmod(shard, 0o644)
    shard.write_bytes(data)
    bad = con.execute(
        "SELECT \"check\", shard, ok, expected <> found FROM engram_verify('mine') WHERE NOT ok"
    ).fetchall()
    assert ("block", 2, False, True) in bad
    assert con.execute("SELECT rowid, byte FROM engram_diff('ple', 'mine')").fetchall() == [
        (800 + 1234 // 160, 1234 % 160)
    ]


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        ("engram_verify('ple', 'thorough')", ["no verification level 'thorough'", "headers, sample, full"]),
        ("engram_verify('nobody')", ["no table or view named 'nobody'"]),
        ("engram_verify(NULL)", ["table is NULL"]),
        ("engram_diff('ple', 'nobody')", ["no table named 'nobody'"]),
        ("engram_diff('ple', '{short}')", ["1408", "1400"]),
        ("engram_diff('ple', '{narrow}')", ["160", "159"]),
    ],
)
def test_what_cannot_be_asked(con, tmp_path, call, fragments):
    short = copy(con, "SELECT row FROM ple WHERE rowid < 1400", tmp_path / "short")
    narrow = copy(con, "SELECT unhex(hex(row)[3:]) FROM ple", tmp_path / "narrow")
    call = call.format(short=short, narrow=narrow)
    refuses(lambda: con.execute(f"SELECT * FROM {call}").fetchall(), *fragments)


def test_diff_names_every_row_that_differs(con, tmp_path):
    assert con.execute("SELECT * FROM engram_diff('ple', 'PLE')").fetchall() == []
    # Their last byte: where it was 0 already, a row does not differ.
    changed = "CASE WHEN rowid % 3 = 1 THEN unhex(hex(row)[:318]) || '\\x00'::BLOB ELSE row END"
    target = copy(con, f"SELECT {changed} FROM ple", tmp_path / "other")
    rows = {rowid: (byte, a, b) for rowid, byte, a, b in con.execute(f"FROM engram_diff('ple', '{target}')").fetchall()}
    ours = con.execute(
        f"SELECT a.rowid, a.row, b.row FROM ple a JOIN engram_scan('{target}') b USING (rowid)"
    ).fetchall()
    for rowid, a, b in ours:
        byte = next((i for i in range(160) if a[i] != b[i]), None)
        assert rows.get(rowid) == (None if byte is None else (byte, a[byte], b[byte])), rowid
    assert len(rows) == con.execute(f"SELECT count(*) FROM engram_diff('{target}', 'ple')").fetchone()[0]


def test_diff_sends_rows_as_they_are_found(con, tmp_path):
    """Few rows of many: the comparison ends with the query, however large the tables are."""
    if duckdb.__version__.startswith("1."):
        pytest.skip("DuckDB 1 waits for one row more than LIMIT asks for")
    huge_store(tmp_path / "huge")
    other = huge_store(tmp_path / "other")
    with (other / "shard_000.bin").open("r+b") as file:
        file.write(b"\x01")
    for name in ("huge", "other"):
        con.execute(f"CALL engram_register('{name}', '{tmp_path / name}', width := {WIDTH})")
    began = time.perf_counter()
    assert con.execute("SELECT * FROM engram_diff('huge', 'other') LIMIT 1").fetchall() == [(0, 0, 0, 1)]
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize("name", ["engram_diff", "engram_verify", "engram_build"])
def test_an_interrupt_ends_them(tmp_path, name):
    con = connect()
    con.execute(f"CALL engram_attach('{tmp_path / 'db'}')")
    huge_store(tmp_path / "huge")
    con.execute(f"CALL engram_register('huge', '{tmp_path / 'huge'}', width := {WIDTH})")
    if name == "engram_build":
        # The disk has no such space, which is told before the first byte.
        refuses(lambda: con.execute("CALL engram_build('copy', 'huge')"), "bytes and its disk has")
        with (tmp_path / "huge" / "shard_000.bin").open("r+b") as file:
            file.truncate(WIDTH * 25_000_000)
        con.execute("CALL engram_drop('huge')")
        con.execute(f"CALL engram_register('huge', '{tmp_path / 'huge'}', width := {WIDTH})")
    sql = {
        "engram_diff": "SELECT count(*) FROM engram_diff('huge', 'HUGE')",
        "engram_verify": "SELECT count(*) FROM engram_verify('huge')",
        "engram_build": "CALL engram_build('copy', 'huge', shard_bytes := '16MB')",
    }[name]
    interrupted(con, sql)
    if name == "engram_build":
        assert con.execute("SELECT name FROM engram_tables()").fetchall() == [("huge",)]
        # What was done is kept; nobody goes on with it, or throws it away, unasked.
        refuses(lambda: con.execute(sql).fetchall(), "unfinished")
        target = tmp_path / "huge" / "shard_000.bin"
        rows = 100_000
        con.execute("CALL engram_drop('huge')")
        with target.open("r+b") as file:
            file.truncate(WIDTH * rows)
        con.execute(f"CALL engram_register('huge', '{tmp_path / 'huge'}', width := {WIDTH})")
        built = con.execute("CALL engram_build('copy', 'huge', restart := true)").fetchall()
        assert [(row[0], row[3]) for row in built] == [("copy", rows)]


def test_ctrl_c_ends_a_build(tmp_path):
    """DuckDB's Python client looks for signals once per fifty chunks: enough of them come while the build works."""
    huge_store(tmp_path / "huge")
    with (tmp_path / "huge" / "shard_000.bin").open("r+b") as file:
        file.truncate(WIDTH * 25_000_000)
    code = f"""
import signal, time
from extension_support import connect
signal.signal(signal.SIGINT, signal.default_int_handler)
con = connect()
# With more, another thread may run the function, and the one that waits does not look for signals.
con.execute("SET threads = 1")
con.execute("CALL engram_attach('{tmp_path / "db"}')")
con.execute("CALL engram_register('huge', '{tmp_path / "huge"}', width := {WIDTH})")
print("ready", flush=True)
try:
    con.execute("CALL engram_build('copy', 'huge', shard_bytes := '16MB')")
except BaseException as error:
    print(type(error).__name__, flush=True)
print(con.execute("SELECT count(*) FROM engram_tables()").fetchall(), flush=True)
"""
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            building = tmp_path / "db" / "tables" / ".copy.building"
            while not list(building.glob("shard_*.sums")):
                assert process.poll() is None
            asked = time.perf_counter()
            process.send_signal(signal.SIGINT)
            ended = process.stdout.readline()
            # The rest is a busy machine.
            assert time.perf_counter() - asked < 3
            # It did not run to its end.
            assert building.exists()
            assert ended in ("KeyboardInterrupt\n", "InterruptException\n", "RuntimeError\n")
            assert process.stdout.readline() == "[(1,)]\n"
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


def test_a_build_is_resumed_or_begun_anew(con, tmp_path):
    con.execute(f"CALL engram_attach('{tmp_path / 'db'}')")
    con.execute(f"CALL engram_register('ple', '{FP8}')")
    built = con.execute(f"CALL engram_build('a', '{FP8}')").fetchall()
    assert [row[0] for row in built] == ["a"]
    assert con.execute("SELECT in_place FROM engram_tables() WHERE name = 'a'").fetchall() == [(False,)]
    refuses(lambda: con.execute("CALL engram_build('a', 'ple')"), "'a'")
    con.execute("CALL engram_build('a', 'ple', replace := true, shard_bytes := 32000)")
    assert con.execute("SELECT shards FROM engram_tables() WHERE name = 'a'").fetchall() == [(8,)]
    assert con.execute("SELECT count(*) FROM engram_diff('a', 'ple')").fetchall() == [(0,)]
    assert (
        con.execute("SELECT count(*), sum(embedding[1]) FROM a").fetchall()
        == con.execute("SELECT count(*), sum(embedding[1]) FROM ple").fetchall()
    )
    for call, fragment in (
        ("engram_build('b', 'nobody')", "no table named 'nobody'"),
        ("engram_build('b', 'ple', width := 3)", "is a registered table"),
        ("engram_build('b', 'ple', shard_bytes := 0)", "shard_bytes cannot be 0"),
        ("engram_build('b', 'ple', jobs := 0)", "jobs"),
        ("engram_build('b', './nowhere')", "nowhere"),
        ("engram_build('b', 'ple', resume := true, restart := true)", "give one of them"),
    ):
        refuses(lambda call=call: con.execute(f"CALL {call}").fetchall(), fragment)


def test_a_database_in_memory_has_no_place_for_a_build(con):
    refuses(lambda: con.execute("CALL engram_build('a', 'ple')").fetchall(), "in memory", "engram_attach")


def test_a_file_database_has_the_functions_themselves(tmp_path):
    """Without the macros there are no rows of NULLs."""
    con = connect(str(tmp_path / "file.db"))
    con.execute(f"CALL engram_attach('{tmp_path / 'db'}')")
    con.execute(f"CALL engram_register('ple', '{FP8}')")
    assert [row[0] for row in con.execute("CALL engram_build('a', 'ple')").fetchall()] == ["a"]
    assert con.execute("SELECT count(*) FROM engram_verify('a', level := 'headers') WHERE ok IS NULL").fetchall() == [
        (0,)
    ]
    assert con.execute("SELECT count(*) FROM engram_diff('a', 'ple')").fetchall() == [(0,)]


def test_the_command_line(tmp_path):
    program = Path(sys.executable).with_name("duckdb")
    assert program.is_file(), "the test extra brings duckdb-cli"
    script = f"""
LOAD '{extension_path()}';
CALL engram_attach('{tmp_path / "db"}');
CALL engram_register('ple', '{FP8}');
.mode csv
SELECT name FROM engram_build('a', 'ple');
SELECT bool_and(ok) FROM engram_verify('a');
SELECT count(*) FROM engram_diff('a', 'ple');
"""
    done = subprocess.run(
        [program, "-unsigned", "-init", "/dev/null"], input=script, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.split()[-6:] == ["name", "a", "bool_and(ok)", "true", "count_star()", "0"]


def test_the_oldest_duckdb(tmp_path):
    code = """
import sys, duckdb
extension, checkpoint, target = sys.argv[1:]
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute(f"LOAD '{extension}'")
con.execute(f"CALL engram_attach('{target}')")
con.execute(f"CALL engram_register('ple', '{checkpoint}')")
print([row[0] for row in con.execute("CALL engram_build('a', 'ple')").fetchall()])
print(con.execute("SELECT bool_and(ok), bool_or(ok IS NULL) FROM engram_verify('a')").fetchall())
print(con.execute("SELECT count(*) FROM engram_diff('a', 'ple')").fetchall())
"""
    lines = run_oldest(code, str(extension_path()), str(FP8), str(tmp_path / "db")).splitlines()
    assert lines == ["['a']", "[(True, False)]", "[(0,)]"]
