"""Settings of reading, from SQL, Python and the environment: the reader, the RAM budget, threads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from checkpoints import make_store
from helpers import one, q, refuses, run_python, sql_refuses
from oldest import oldest_python
from readers import READERS, forced
from reading import WIDTH, added, random_store

import engramsql
from engramsql.engine import cache_usage, set_ram_budget, set_reader, set_threads, threads
from engramsql.errors import EngramError

pytestmark = pytest.mark.usefixtures("settings")

BAD_SIZES = ["8G", "-1GB", "8 bananas", "1e9", "80%", "0.5"]


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_gives_the_same_rows(db: Any, tmp_path: Path, reader: str) -> None:
    """By SET, for SQL; the counters prove which way the rows came."""
    forced(reader)
    data = random_store(tmp_path, rows=2000)
    db.register("t", tmp_path, width=WIDTH)
    ids = np.random.default_rng(1).integers(0, 4000, 3000)
    db.connection.execute(f"SET engram_reader = '{reader}'")
    rows = q(db, "SELECT row FROM engram_fetch('t', ?::BIGINT[])", ids.tolist())
    assert b"".join(row for (row,) in rows) == data[ids].tobytes()
    assert q(db, "SELECT path, rows FROM engram_stats()") == [(reader, 3000)]
    set_reader(reader)
    table = db.table("t")
    before = table.stats()
    assert np.array_equal(table.fetch(ids), data[ids])
    assert added(before, table.stats()) == {reader: 3000}


@pytest.mark.parametrize("reader", READERS)
def test_the_environment_chooses_a_reader_for_sql_and_python(tmp_path: Path, reader: str) -> None:
    random_store(tmp_path, rows=2000)
    code = """
import subprocess
import sys
import numpy as np
import engramsql
db = engramsql.connect()
db.register("t", sys.argv[1], width=160)
ids = np.random.default_rng(1).integers(0, 4000, 3000)
expected = b"".join(open(f"{sys.argv[1]}/shard_{s:03}.bin", "rb").read() for s in range(2))
expected = b"".join(expected[i * 160 : i * 160 + 160] for i in ids.tolist())
assert db.table("t").fetch(ids).tobytes() == expected
sql = "SELECT row FROM engram_fetch('t', ?::BIGINT[])"
assert b"".join(row for (row,) in db.connection.execute(sql, [ids.tolist()]).fetchall()) == expected
print({stats.path for stats in db.table("t").stats()}, db.sql("SELECT DISTINCT path FROM engram_stats()").fetchall())
"""
    done = run_python(code, args=[str(tmp_path)], env=forced(reader))
    assert done.stdout == f"{{'{reader}'}} [('{reader}',)]\n"


@pytest.mark.parametrize("name", ["positional", "MAPPED", "cache", " pread", "ring"])
def test_a_name_that_is_no_reader_is_refused(golden_db: Any, name: str) -> None:
    refuses(
        lambda: set_reader(name), f"no reader '{name}'", "engram_reader", "auto, mapped, io_uring, pread, sequential"
    )
    golden_db.connection.execute(f"SET engram_reader = '{name}'")
    # DuckDB tells nobody of a SET, so whatever is asked next says it, as long as it stays.
    for _ in range(2):
        sql_refuses(golden_db, "SELECT engram_row('fp8', 1)", f"no reader '{name}'", "auto, mapped, io_uring, pread")
    golden_db.connection.execute("RESET engram_reader")
    assert len(one(golden_db, "SELECT engram_row('fp8', 1)")) == 160


@pytest.mark.parametrize("size", BAD_SIZES)
def test_a_text_that_is_no_size_is_refused(golden_db: Any, size: str) -> None:
    parts = (f"'{size}' is not a size", "write it like 8GB")
    before = cache_usage().budget
    refuses(lambda: set_ram_budget(size), *parts)
    refuses(lambda: golden_db.set_ram_budget(size), *parts)
    refuses(lambda: engramsql.connect(ram_budget=size), *parts)
    refuses(lambda: golden_db.table("fp8").warm(size), *parts)
    sql_refuses(golden_db, f"SELECT * FROM engram_warm('fp8', '{size}')", *parts)
    golden_db.connection.execute(f"SET engram_ram_budget = '{size}'")
    for _ in range(2):
        sql_refuses(golden_db, "SELECT * FROM engram_cache()", *parts)
    golden_db.connection.execute("RESET engram_ram_budget")
    assert one(golden_db, "SELECT budget FROM engram_cache()") == before == cache_usage().budget


@pytest.mark.parametrize("size", [-1, 1.5, [], b"8GB", 1 << 64])
def test_what_is_no_size_at_all_is_refused(db: Any, size: object) -> None:
    refuses(lambda: db.set_ram_budget(size), "a size is a number of bytes or a text like '8GB', got")


@pytest.mark.parametrize("route", ["python", "sql", "command line"])
def test_an_environment_with_a_wrong_budget_is_refused(tmp_path: Path, route: str) -> None:
    make_store(tmp_path, manifest=True)
    code = {
        "python": "engramsql.connect(sys.argv[1]).table('rows')",
        "sql": "engramsql.connect(sys.argv[1]).sql(\"SELECT engram_row('rows', 1)\").fetchall()",
        "command line": "from engramsql.cli import main; "
        "sys.exit(main([sys.argv[1], '-c', \"SELECT engram_row('rows', 1)\"]))",
    }[route]
    done = run_python(
        f"import sys, engramsql; {code}", args=[str(tmp_path)], env={"ENGRAMSQL_RAM_BUDGET": "8G"}, expect=1
    )
    assert "ENGRAMSQL_RAM_BUDGET: '8G' is not a size" in done.stderr.splitlines()[-1]
    if route == "command line":
        assert len(done.stderr.splitlines()) == 1


def test_a_reset_restores_what_the_environment_says(tmp_path: Path) -> None:
    make_store(tmp_path, manifest=True)
    code = """
import sys, engramsql
db = engramsql.connect(sys.argv[1])
def budget(statement):
    db.connection.execute(statement).fetchall()
    return db.sql("SELECT budget FROM engram_cache()").fetchall()[0][0]
def path(statement):
    db.connection.execute(statement).fetchall()
    before = dict(db.sql("SELECT path, rows FROM engram_stats()").fetchall())
    db.sql("SELECT engram_row('rows', 1)").fetchall()
    after = dict(db.sql("SELECT path, rows FROM engram_stats()").fetchall())
    return [path for path in after if after[path] != before.get(path)]
print(budget("SELECT 1"), budget("SET engram_ram_budget = '9MB'"), budget("RESET engram_ram_budget"))
print(path("SELECT 1"), path("SET engram_reader = 'pread'"), path("RESET engram_reader"))
"""
    env = {"ENGRAMSQL_RAM_BUDGET": "17MB", "ENGRAMSQL_READER": "sequential"}
    done = run_python(code, args=[str(tmp_path)], env=env)
    assert done.stdout.splitlines() == ["17000000 9000000 17000000", "['sequential'] ['pread'] ['sequential']"]


@pytest.mark.parametrize("route", ["python", "sql"])
def test_what_is_set_before_the_first_table_opens_stays(tmp_path: Path, route: str) -> None:
    """The environment speaks first, however late it is looked at."""
    make_store(tmp_path / "store", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("rows", tmp_path / "store")
    code = """
import sys, engramsql
from engramsql.engine import set_reader
db = engramsql.connect(sys.argv[1])
if sys.argv[2] == "python":
    set_reader("pread")
    db.table("rows").fetch([1])
    print([stats.path for stats in db.table("rows").stats()])
else:
    db.connection.execute("SET engram_reader = 'pread'").fetchall()
    db.sql("SELECT engram_row('rows', 1)").fetchall()
    print([path for (path,) in db.sql("SELECT path FROM engram_stats()").fetchall()])
"""
    done = run_python(code, args=[str(tmp_path / "db"), route], env={"ENGRAMSQL_READER": "sequential"})
    assert done.stdout == "['pread']\n"


def test_a_database_does_not_undo_what_another_has_set(golden_db: Any) -> None:
    """Settings are the process's: the last word counts, and a database that says nothing has none."""
    with engramsql.connect() as other:
        golden_db.connection.execute("SET engram_ram_budget = '9MB'")
        assert one(golden_db, "SELECT budget FROM engram_cache()") == 9_000_000
        assert one(other, "SELECT budget FROM engram_cache()") == 9_000_000
        other.connection.execute("SET engram_ram_budget = '15MB'")
        assert one(other, "SELECT budget FROM engram_cache()") == 15_000_000
        for _ in range(2):
            assert one(golden_db, "SELECT budget FROM engram_cache()") == 15_000_000
        golden_db.connection.execute("SET engram_ram_budget = '14MB'")
        assert one(golden_db, "SELECT budget FROM engram_cache()") == 14_000_000
        assert one(other, "SELECT budget FROM engram_cache()") == 14_000_000


def test_a_refused_setting_names_itself_and_python_puts_it_right(golden_db: Any) -> None:
    for setting, value, why in [
        ("engram_ram_budget", "lots", "'lots' is not a size"),
        ("engram_ram_budget", "7MB", "7000000 bytes is too small to keep rows; give 8MB or more"),
        ("engram_reader", "uring", "no reader 'uring'"),
    ]:
        golden_db.connection.execute(f"SET {setting} = '{value}'")
        for _ in range(2):
            with pytest.raises(duckdb.Error, match=f"the setting {setting} was refused: .*{re.escape(why)}") as refused:
                golden_db.sql("SELECT budget FROM engram_cache()").fetchall()
            assert f"RESET {setting}" in str(refused.value)
        golden_db.connection.execute(f"RESET {setting}")
        golden_db.sql("SELECT budget FROM engram_cache()").fetchall()
    golden_db.connection.execute("SET engram_ram_budget = 'lots'")
    golden_db.set_ram_budget("9MB")
    assert one(golden_db, "SELECT budget FROM engram_cache()") == cache_usage().budget == 9_000_000
    with pytest.raises(EngramError, match="too small to keep rows"):
        golden_db.set_ram_budget(1)


@pytest.mark.parametrize("count", [0, -1, 1 << 40])
def test_a_number_of_threads_that_cannot_be_is_refused(db: Any, count: int) -> None:
    for call in (lambda: set_threads(count), lambda: db.set_threads(count), lambda: engramsql.connect(threads=count)):
        refuses(call, "threads must be", count)
    assert threads() >= 1


def test_threads_are_those_of_duckdb_too(db: Any) -> None:
    every = threads()
    db.set_threads(1)
    assert (threads(), one(db, "SELECT current_setting('threads')")) == (1, 1)
    with engramsql.connect(threads=2) as other:
        assert (threads(), one(other, "SELECT current_setting('threads')")) == (2, 2)
    db.set_threads(None)
    assert threads() == every


# Runs under both DuckDBs: in the oldest the extension is a library of its own, with settings and counters of its own.
BOTH = """
import subprocess
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import duckdb, engramsql
from engramsql.engine import cache_usage
shared = int(duckdb.__version__.split(".")[0]) >= 2
db = engramsql.connect(ram_budget="32MiB")
db.register("t", sys.argv[2], width=160)
data = np.concatenate([np.fromfile(f"{sys.argv[2]}/shard_{s:03}.bin", np.uint8).reshape(-1, 160) for s in range(2)])
ids = np.random.default_rng(2).integers(0, len(data), 500)
def rows():
    found = db.connection.execute("SELECT row FROM engram_fetch('t', ?::BIGINT[])", [ids.tolist()]).fetchall()
    return b"".join(row for (row,) in found) == data[ids].tobytes()
def one(sql):
    return db.sql(sql).fetchall()[0][0]
table = db.table("t")
assert rows() and (table.fetch(ids) == data[ids]).all()
share = 32 << 20 if shared else 16 << 20
assert (cache_usage().budget, one("SELECT budget FROM engram_cache()")) == (share, share)
held = [cache_usage().bytes, one("SELECT bytes FROM engram_cache()")]
assert all(held) and (held[0] == held[1] if shared else sum(held) <= 32 << 20), held
distinct = len(np.unique(ids))
assert one("SELECT rows FROM engram_cache()") == cache_usage().rows == distinct
db.connection.execute("SET engram_reader = 'pread'")
assert rows()
assert one("SELECT rows FROM engram_stats() WHERE path = 'pread'") == 500
assert ("pread" in {stats.path for stats in table.stats()}) == shared
db.connection.execute("RESET engram_reader")
assert one(f"SELECT bytes FROM engram_prefetch('t', range(100))") == 16000
assert one("SELECT sum(resident_bytes) FROM engram_warm('t', '1MB')") == 1_000_000 // 160 * 160
db.set_ram_budget(0)
assert (cache_usage().bytes, one("SELECT bytes FROM engram_cache()")) == (0, 0)
db.set_ram_budget(None)
default = one("SELECT budget FROM engram_cache()")
assert default == cache_usage().budget > 32 << 20, (default, cache_usage().budget)
db.close()
print("right")
"""


@pytest.mark.chooses_reader
@pytest.mark.parametrize("python", ["this", "oldest"])
def test_both_duckdbs(tmp_path: Path, python: str) -> None:
    random_store(tmp_path)
    program = sys.executable if python == "this" else str(oldest_python())
    site = str(Path(engramsql.__file__).parent.parent)
    done = subprocess.run(
        [program, "-c", BOTH, site, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "right\n", done.stderr
