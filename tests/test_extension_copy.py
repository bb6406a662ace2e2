"""COPY ... TO (FORMAT engram): a store that is complete and says what it is, or nothing at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest
from extension_support import FP8, FP8_ROWS, connect, connect_ple, run_python
from helpers import refuses
from oldest import run_oldest

from engramsql.udf import extension_path

# The settings of that checkpoint's config.json, as a spec of its own.
SPEC = """
name = "small"
family = "qwen_ple_v1"

[config]
model_type = "qwen4_exp_text"
ple_layer_ids = [2]
ple_embed_dim = 2560
ngram_size = 3
heads_per_ngram = 8
ngram_vocab_size_base = 50
make_ngram_vocab_size_divisible_by = 128
split_ngram_parts = 4
vocab_size = 512
eos_token_id = 1
seed = 1234
"""


def copy(con: duckdb.DuckDBPyConnection, select: str, target: Path, options: str = "") -> int:
    """Rows written."""
    (count,) = con.execute(
        f"COPY ({select}) TO '{target}' (FORMAT engram{', ' if options else ''}{options})"
    ).fetchone()
    return count


def rows_of(con: duckdb.DuckDBPyConnection, table: str) -> list[bytes]:
    """All rows, in the order of their ids."""
    return [row for (row,) in con.execute(f"SELECT row FROM engram_scan('{table}') ORDER BY rowid").fetchall()]


def nothing_in(directory: Path) -> None:
    """No store, and no trace of an unfinished one."""
    assert sorted(path.name for path in directory.iterdir()) == []


@pytest.fixture
def con():
    return connect_ple()


def test_a_copy_of_a_table_is_that_table(con, tmp_path):
    """In place or copied, a table answers the same: its rows, its vectors, its row ids."""
    (scale,) = con.execute(
        "SELECT engram_vector('ple', 7)[1] / engram_decode(engram_row('ple', 7), 'fp8_e4m3', 1)[1]"
    ).fetchone()
    spec = tmp_path / "small.toml"
    spec.write_text(SPEC)
    options = f"VALUE_FORMAT fp8_e4m3, SCALE {scale!r}, SHARD_BYTES '64KB', SPEC '{spec}', LAYER 1"
    target = tmp_path / "store"
    assert copy(con, "SELECT rowid, row FROM ple", target, options) == FP8_ROWS
    # 400 rows of 160 bytes are 64000.
    rows = [path.stat().st_size // 160 for path in sorted(target.glob("shard_*.bin"))]
    assert sum(rows) == FP8_ROWS
    assert rows[:-1] == [400] * 3
    con.execute(f"CALL engram_register('again', '{target}')")
    assert con.execute("SELECT rows, dim, format, row_bytes FROM engram_tables() WHERE name = 'again'").fetchall() == [
        (FP8_ROWS, 160, "fp8_e4m3", 160)
    ]
    assert rows_of(con, "again") == rows_of(con, "ple")
    tokens = "[1, 2, 3, 500, 7]"
    rowids = con.execute(f"SELECT rowids_for_seq('again', {tokens}) = rowids_for_seq('ple', {tokens})")
    assert rowids.fetchall() == [(True,)]
    different = "SELECT count(*) FROM ple a JOIN again b USING (rowid) WHERE a.embedding <> b.embedding"
    assert con.execute(different).fetchall() == [(0,)]


def test_rows_are_numbered_as_they_come(con, tmp_path):
    con.execute("SET threads = 4")
    con.execute("CREATE TABLE t AS SELECT i, lpad(i::VARCHAR, 12, '0')::BLOB AS row FROM range(300000) t(i)")
    copy(con, "SELECT row FROM t", tmp_path / "numbered")
    copy(con, "SELECT row, i FROM t", tmp_path / "given")
    # The pieces of a union run at the same time where order does not matter; here it always does.
    con.execute("SET preserve_insertion_order = false")
    copy(con, "SELECT row FROM t WHERE i < 150000 UNION ALL SELECT row FROM t WHERE i >= 150000", tmp_path / "union")
    expected = [f"{i:012}".encode() for i in range(300000)]
    for name in ("numbered", "given", "union"):
        assert rows_of(con, str(tmp_path / name)) == expected, name


@pytest.mark.parametrize(
    ("select", "fragments"),
    [
        ("SELECT rowid, row FROM ple ORDER BY rowid DESC", ["row id 1407 where 0 must come"]),
        ("SELECT rowid + 1, row FROM ple", ["row id 1 where 0 must come"]),
        ("SELECT rowid, row FROM ple WHERE rowid <> 3", ["row id 4 where 3 must come"]),
        ("SELECT rowid // 2, row FROM ple", ["row id 0 where 1 must come"]),
        ("SELECT CASE WHEN rowid <> 5 THEN rowid END, row FROM ple", ["row id 5 is NULL"]),
        ("SELECT 18446744073709551615::UBIGINT, row FROM ple", ["row id 18446744073709551615 where 0 must come"]),
        ("SELECT CASE WHEN rowid <> 1200 THEN row END FROM ple", ["row 1200 is NULL"]),
        ("SELECT CASE WHEN rowid <> 1200 THEN row ELSE 'x'::BLOB END FROM ple", ["row 1200 has 1 bytes", "160"]),
        ("SELECT ''::BLOB", ["row 0 is empty"]),
        ("SELECT row FROM ple WHERE false", ["no rows"]),
        ("SELECT rowid FROM ple", ["no column has rows"]),
        ("SELECT row, row FROM ple", ["column 2", "one more BLOB"]),
        ("SELECT rowid, rowid, row FROM ple", ["column 2", "one more BIGINT"]),
        ("SELECT row, 'x' FROM ple", ["column 2 is VARCHAR"]),
        ("SELECT [1.5]", ["DECIMAL(2,1)[]", "cast it"]),
        ("SELECT embedding FROM ple", ["VALUE_FORMAT f32"]),
        ("SELECT CASE WHEN rowid = 1300 THEN error('no such row') ELSE row END FROM ple", ["no such row"]),
    ],
)
def test_refused_rows_leave_nothing(con, tmp_path, select, fragments):
    refuses(lambda: copy(con, select, tmp_path / "store"), *fragments)
    nothing_in(tmp_path)
    assert con.execute("SELECT 42").fetchall() == [(42,)]


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        ("VALUE_FORMAT fp8_e4m3", ["fp8_e4m3", "needs a scale"]),
        ("VALUE_FORMAT fp8", ["unknown value format 'fp8'"]),
        ("VALUE_FORMAT f32, SCALE 2", ["takes no scale"]),
        ("VALUE_FORMAT nvfp4, SCALE 1", ["160 bytes", "nvfp4"]),
        ("SCALE 2", ["scale says nothing without value_format"]),
        ("LAYER 1", ["layer says nothing without spec"]),
        ("TOKENIZER 'x'", ["tokenizer says nothing without spec"]),
        ("SPEC 'nobody'", ["unknown spec 'nobody'"]),
        ("SPEC 'qwen_ple_v1'", ["is a hash family, not a spec", "qwen3.8-flash-next"]),
        ("SPEC 'qwen3.8-flash-next'", ["1408 rows", "reaches 320001446"]),
        ("SHARD_BYTES 'many'", ["'many' is not a size"]),
        ("SHARD_BYTES -1", ["shard_bytes cannot be -1"]),
        ("ROWS_PER_SHARD 3", ["unknown option rows_per_shard", "shard_bytes"]),
        ("SCALE 'x', VALUE_FORMAT fp8_e4m3", ["scale must be a number"]),
        ("PARTITION_BY (k)", ["not offered"]),
        ("PER_THREAD_OUTPUT true", ["not offered"]),
    ],
)
def test_refused_options_leave_nothing(con, tmp_path, options, fragments):
    select = "SELECT row, rowid % 2 AS k FROM ple" if "PARTITION" in options else "SELECT row FROM ple"
    refuses(lambda: copy(con, select, tmp_path / "store", options), *fragments)
    # DuckDB 1.5 leaves the empty directory that it made for its partitions.
    assert [path for path in tmp_path.rglob("*") if path.is_file() or ".building" in path.name] == []


def test_vectors_are_written_exactly(con, tmp_path):
    values = np.array([[0.0, -0.0, 1.5, -3.25], [np.inf, 2.0**-14, 65504.0, 1.0]], np.float32)
    lists = ", ".join("([" + ", ".join(f"'{value}'" for value in row) + "]::FLOAT[])" for row in values)
    for name, dtype in (("f32", "<f4"), ("f16", "<f2")):
        copy(con, f"SELECT v FROM (VALUES {lists}) t(v)", tmp_path / name, f"VALUE_FORMAT {name}")
        assert rows_of(con, str(tmp_path / name)) == [row.astype(dtype).tobytes() for row in values]
    # Arrays of a fixed size, and what bfloat16 holds: the upper half of a float.
    copy(con, "SELECT [1.5, -2, 3e38]::FLOAT[3] FROM range(3)", tmp_path / "f32a", "VALUE_FORMAT f32")
    assert rows_of(con, str(tmp_path / "f32a")) == [np.array([1.5, -2, 3e38], "<f4").tobytes()] * 3
    copy(con, "SELECT [1.5, -2.0]::FLOAT[]", tmp_path / "bf16", "VALUE_FORMAT bf16")
    assert rows_of(con, str(tmp_path / "bf16")) == [bytes([0xC0, 0x3F, 0x00, 0xC0])]
    back = con.execute(f"SELECT embedding FROM engram_scan('{tmp_path / 'f16'}') ORDER BY rowid").fetchall()
    assert np.array([row for (row,) in back], np.float32).tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("select", "options", "fragments"),
    [
        ("SELECT [1, 0.1]::FLOAT[]", "VALUE_FORMAT bf16", ["row 0 has 0.1 at position 1", "no bf16"]),
        ("SELECT [1, 65520]::FLOAT[]", "VALUE_FORMAT f16", ["row 0 has 65520.0 at position 1", "no f16"]),
        ("SELECT [1, i]::FLOAT[] FROM range(3000) t(i)", "VALUE_FORMAT f16", ["row 2049 has 2049.0"]),
        ("SELECT [1, NULL]::FLOAT[]", "VALUE_FORMAT f32", ["row 0 has a NULL at position 1"]),
        ("SELECT unnest([[1], NULL])::FLOAT[]", "VALUE_FORMAT f32", ["row 1 is NULL"]),
        ("SELECT unnest([[1], [1, 2]])::FLOAT[]", "VALUE_FORMAT f32", ["row 1 has 8 bytes", "4"]),
        ("SELECT [1]::FLOAT[]", "VALUE_FORMAT fp8_e4m3, SCALE 1", ["encode", "fp8_e4m3 is not offered"]),
    ],
)
def test_vectors_that_a_format_cannot_hold(con, tmp_path, select, options, fragments):
    refuses(lambda: copy(con, select, tmp_path / "store", options), *fragments)
    nothing_in(tmp_path)


def test_where_a_store_may_be(con, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_bytes(b"mine")
    (tmp_path / "empty").mkdir()
    for name, fragment in (
        ("file", "is a file"),
        ("full", "exists and is not empty"),
        ("none/store", "is no directory; make it first"),
        ("file/store", "file"),
    ):
        refuses(lambda name=name: copy(con, "SELECT row FROM ple", tmp_path / name), fragment)
    assert (tmp_path / "file").read_bytes() == b"mine"
    assert (tmp_path / "full" / "mine").read_bytes() == b"mine"
    copy(con, "SELECT row FROM ple", tmp_path / "empty")
    con.execute(f"COPY (SELECT row FROM ple) TO '{tmp_path / 'slash'}/' (FORMAT engram)")
    refuses(lambda: copy(con, "SELECT row FROM ple", tmp_path / "empty"), "exists and is not empty")
    assert rows_of(con, str(tmp_path / "empty")) == rows_of(con, str(tmp_path / "slash")) == rows_of(con, "ple")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "full", "slash"]


def test_a_prepared_copy_may_fail_and_run_again(con, tmp_path):
    con.execute(
        "PREPARE p AS COPY (SELECT CASE WHEN rowid = $1 THEN error('asked for') ELSE row END FROM ple) "
        f"TO '{tmp_path / 'store'}' (FORMAT engram)"
    )
    for _ in range(2):
        refuses(lambda: con.execute("EXECUTE p(1407)"), "asked for")
    con.execute("EXECUTE p(-1)")
    assert rows_of(con, str(tmp_path / "store")) == rows_of(con, "ple")
    refuses(lambda: con.execute("EXECUTE p(-1)"), "exists and is not empty")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_there_is_no_copy_from(con, tmp_path):
    copy(con, "SELECT row FROM ple", tmp_path / "store")
    con.execute("CREATE TABLE t (row BLOB)")
    refuses(lambda: con.execute(f"COPY t FROM '{tmp_path / 'store'}' (FORMAT engram)"), "COPY FROM")


def test_an_interrupt_leaves_nothing(con, tmp_path):
    building = tmp_path / ".store.building"
    asked = []

    def interrupt() -> None:
        while not building.exists() and not asked:
            time.sleep(0.01)
        asked.append(time.perf_counter())
        con.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        row = "repeat('x', 1000)::BLOB"
        refuses(lambda: copy(con, f"SELECT {row} FROM range(100000000)", tmp_path / "store"), "interrupt")
        assert time.perf_counter() - asked[0] < 1
    finally:
        asked.append(0)
        thread.join()
    nothing_in(tmp_path)
    assert con.execute("SELECT 42").fetchall() == [(42,)]


def test_a_killed_copy_leaves_no_store(tmp_path):
    """What is left has another name, and a second attempt begins anew."""
    code = f"""
from extension_support import connect
con = connect()
print("ready", flush=True)
con.execute("COPY (SELECT repeat('x', 1000)::BLOB FROM range(100000000)) TO '{tmp_path / "store"}' (FORMAT engram)")
"""
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while not any(path.stat().st_size for path in tmp_path.glob(".*/shard_*")):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "store").exists()
    con = connect_ple()
    copy(con, "SELECT row FROM ple", tmp_path / "store")
    assert rows_of(con, str(tmp_path / "store")) == rows_of(con, "ple")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("point", ["copy", "finalize"])
def test_a_panic_is_an_error_and_leaves_nothing(tmp_path, point):
    code = f"""
from extension_support import connect_ple
import duckdb
con = connect_ple()
for _ in range(2):
    try:
        con.execute("COPY (SELECT row FROM ple) TO '{tmp_path / "store"}' (FORMAT engram)")
        raise SystemExit("no error")
    except duckdb.Error as error:
        assert "internal error: fault injected at '{point}'" in str(error), error
    assert con.execute("SELECT 42").fetchall() == [(42,)]
print("done")
"""
    done = run_python(code, ENGRAMSQL_FAULT=f"panic@{point}")
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("done", "", 0)
    nothing_in(tmp_path)


OTHER = f"""
LOAD '{extension_path()}';
CALL engram_register('ple', '{FP8}');
"""


def test_the_command_line(tmp_path):
    program = Path(sys.executable).with_name("duckdb")
    assert program.is_file(), "the test extra brings duckdb-cli"
    script = f"{OTHER} COPY (SELECT rowid, row FROM ple) TO '{tmp_path / 'store'}' (FORMAT engram);"
    done = subprocess.run(
        [program, "-unsigned", "-init", "/dev/null"], input=script, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert rows_of(connect(), str(tmp_path / "store")) == rows_of(connect_ple(), "ple")


def test_the_oldest_duckdb(tmp_path):
    code = """
import sys, duckdb
extension, checkpoint, target = sys.argv[1:]
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute(f"LOAD '{extension}'")
con.execute(f"CALL engram_register('ple', '{checkpoint}')")
print(con.execute(f"COPY (SELECT rowid, row FROM ple) TO '{target}' (FORMAT engram)").fetchall())
try:
    con.execute(f"COPY (SELECT row FROM ple) TO '{target}' (FORMAT engram)")
except duckdb.Error as error:
    print("not empty" in str(error))
"""
    target = tmp_path / "store"
    assert run_oldest(code, str(extension_path()), str(FP8), str(target)).splitlines() == [f"[({FP8_ROWS},)]", "True"]
    assert rows_of(connect(), str(target)) == rows_of(connect_ple(), "ple")


def test_what_the_peer_reads(con, tmp_path):
    """engramdb-python opens what is written here."""
    engramdb = pytest.importorskip("engramdb")
    copy(con, "SELECT row FROM ple", tmp_path / "store", "SHARD_BYTES 64000")
    layout = json.loads((tmp_path / "store" / "manifest.json").read_text())["layout"]
    assert (layout["shards"], layout["rows_per_shard"], layout["total_rows"]) == (4, 400, FP8_ROWS)
    store = engramdb.Store(str(tmp_path / "store"), shards=4, rows_per_shard=400, width=160)
    ids = [0, 399, 400, 1199, 7, 7]
    assert store.fetch(ids) == b"".join(rows_of(con, "ple")[i] for i in ids)
    store.close()
