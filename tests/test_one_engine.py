"""Python and SQL on one engine: where DuckDB registers extensions statically, the extension file is not loaded."""

from __future__ import annotations

import duckdb
import pytest
from extension_support import FP8, run_python

from engramsql.engine import register_static
from engramsql.udf import EXTENSION_FILE, extension_path

STATIC = int(duckdb.__version__.split(".")[0]) >= 2

# What of ours is mapped into the process.
MAPPED = f"""
def mapped():
    with open("/proc/self/maps") as maps:
        paths = {{line.split()[-1] for line in maps}}
    return sorted(name for name in ({EXTENSION_FILE!r}, "_native.abi3.so") if any(name in path for path in paths))
"""


def run(code: str, *, stderr: str = "", **environment: str) -> str:
    done = run_python(MAPPED + code, **environment)
    assert (done.returncode, done.stderr) == (0, stderr), done.stderr
    return done.stdout


@pytest.mark.skipif(not STATIC, reason="this DuckDB has no static registration")
@pytest.mark.parametrize("order", ["import duckdb, engramsql", "import engramsql, duckdb"])
def test_a_database_loads_no_second_engine(order: str):
    code = f"""
{order}
with engramsql.connect({str(FP8)!r}) as db:
    ((vector,),) = db.sql("SELECT engram_vector('ple', 7)").fetchall()
    assert list(vector) == db.table("ple").vectors([7])[0].tolist()
    how = "SELECT install_mode FROM duckdb_extensions() WHERE extension_name = 'engramsql'"
    print(db.sql(how).fetchall(), mapped())
    print(duckdb.connect().sql(how).fetchall(), mapped())
"""
    assert run(code) == "[('STATICALLY_LINKED',)] ['_native.abi3.so']\n" * 2


@pytest.mark.skipif(not STATIC, reason="this DuckDB has no static registration")
def test_both_sides_share_the_state_of_one_engine():
    """The engine looks at ENGRAMSQL_FAULT at its first use: one that Python used before does not look again."""
    code = f"""
import os, tempfile
from engramsql.engine import Session
table = Session.open(tempfile.mkdtemp(), create=True).table({str(FP8)!r})
table.fetch([0])
os.environ["ENGRAMSQL_FAULT"] = "panic@gather"
import duckdb, engramsql
con = duckdb.connect()
print(con.sql("SELECT octet_length(engram_row('{FP8}', 0))").fetchall())
"""
    assert run(code) == "[(160,)]\n"


def test_a_database_opened_before_the_import_loads_the_file():
    code = f"""
import duckdb
con = duckdb.connect(config={{"allow_unsigned_extensions": "true"}})
import engramsql
with engramsql.connect({str(FP8)!r}) as db:
    con.load_extension({str(extension_path())!r})
    con.execute("CALL engram_register('ple', '{FP8}')")
    for connection in (con, db.connection):
        print(connection.execute("SELECT rowid, octet_length(row) FROM engram_fetch('ple', [7])").fetchall())
print(mapped())
"""
    rows = "[(7, 160)]"
    assert run(code).splitlines() == [rows, rows, "['_native.abi3.so', 'engramsql.duckdb_extension']"]


@pytest.mark.parametrize("first", ["sql", "python"])
def test_panics_of_both_sides_stay_quiet_and_say_where(first: str):
    """Both skins install a panic hook in one library; each must still get its own panics."""
    code = f"""
import engramsql
from engramsql.errors import InternalError
import duckdb
db = engramsql.connect({str(FP8)!r})
def sql():
    try:
        db.sql("SELECT engram_row('ple', 1)").fetchall()
    except duckdb.Error as error:
        return str(error)
def python():
    try:
        db.table("ple").fetch([1])
    except InternalError as error:
        return str(error)
for call in [sql, python, sql, python][{first!r} == "python":]:
    message = call()
    assert "internal error: fault injected at 'gather'" in message, message
    assert "fault.rs:" in message, message
print("done")
"""
    assert run(code, ENGRAMSQL_FAULT="panic@gather") == "done\n"


def test_a_panic_while_opening_is_an_error_and_not_the_end():
    code = f"""
import duckdb, engramsql
try:
    engramsql.connect()
    raise SystemExit("no error")
except Exception as error:
    assert "fault injected at 'entry'" in str(error), error
from engramsql.engine import Session
import tempfile
print(len(Session.open(tempfile.mkdtemp(), create=True).table({str(FP8)!r}).fetch([0])))
"""
    assert run(code, ENGRAMSQL_FAULT="panic@entry") == "1\n"


def test_refusals_of_the_registration():
    assert register_static("/nowhere/_duckdb.so") == "engramsql: /nowhere/_duckdb.so is not loaded in this process"
    with pytest.raises(ValueError, match="NUL byte"):
        register_static("a\0b")


@pytest.mark.skipif(not STATIC, reason="this DuckDB has no static registration")
def test_a_missing_extension_file_is_no_loss(tmp_path):
    """The functions are in the module; the file is for others."""
    code = f"""
import engramsql
from engramsql import udf
udf.EXTENSION_FILE = "missing"
import duckdb
print(duckdb.connect().sql("SELECT octet_length(engram_row('{FP8}', 3))").fetchall())
"""
    assert run(code) == "[(160,)]\n"
