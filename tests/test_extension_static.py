"""Static registration: every database opened after the import has the functions, where DuckDB offers it."""

from __future__ import annotations

import pytest
from extension_support import FP8, run_python

from engramsql.udf import extension_path

# Not through the package: importing it registers by itself.
REGISTER = f"""
import ctypes
import _duckdb
import duckdb
EXTENSION = {str(extension_path())!r}
library = ctypes.CDLL(EXTENSION)
register = library.engramsql_register_static
register.argtypes, register.restype = [ctypes.c_char_p], ctypes.c_char_p
"""


def offers_static() -> bool:
    import ctypes

    import _duckdb

    return hasattr(ctypes.CDLL(_duckdb.__file__), "duckdb_register_static_extension")


def test_every_new_database_has_the_functions(tmp_path):
    if not offers_static():
        pytest.skip("this DuckDB has no static registration")
    code = f"""{REGISTER}
before = duckdb.connect()
assert register(_duckdb.__file__.encode()) is None
assert register(_duckdb.__file__.encode()) is None, "twice"
for database in (":memory:", ":memory:", {str(tmp_path / "a.db")!r}):
    con = duckdb.connect(database)
    con.execute("CALL engram_register('ple', '{FP8}')")
    assert con.execute("SELECT count(*) FROM ple").fetchone() == (1408,)
    assert con.execute("SELECT rowid FROM engram_scan('ple', first := 5, count := 1)").fetchall() == [(5,)]
    vectors = "SELECT len(engram_vector('ple', i)) FROM range(1408) t(i)"
    assert con.execute(vectors).fetchall() == [(160,)] * 1408
    con.close()
con = duckdb.connect()
assert con.execute("SELECT count(*) FROM engram_tables()").fetchone() == (0,)
how = con.execute("SELECT install_mode FROM duckdb_extensions() WHERE extension_name = 'engramsql'").fetchone()
assert how == ("STATICALLY_LINKED",), how
con = duckdb.connect(config={{"allow_unsigned_extensions": "true"}})
con.load_extension(EXTENSION)
assert con.execute("SELECT count(*) FROM engram_tables()").fetchone() == (0,)
try:
    before.execute("SELECT * FROM engram_tables()")
    raise SystemExit("an older database has the functions")
except duckdb.CatalogException:
    pass
print("done")
"""
    done = run_python(code)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("done", "", 0)


def test_a_refusal_says_why_and_breaks_nothing():
    code = f"""{REGISTER}
print(register(b"/nowhere/_duckdb.so").decode())
import ctypes.util
other = ctypes.util.find_library("c")
print(register(other.encode()).decode())
assert duckdb.connect().execute("SELECT 42").fetchone() == (42,)
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "engramsql: /nowhere/_duckdb.so is not loaded in this process",
        "engramsql: this DuckDB has no static registration (2.0 and later do); use LOAD",
    ]


@pytest.mark.parametrize("first", ["registered", "loaded"])
def test_a_second_duckdb_library_is_refused(tmp_path, first):
    if not offers_static():
        pytest.skip("this DuckDB has no static registration")
    code = f"""{REGISTER}
import shutil
copy = {str(tmp_path / "_other_duckdb.so")!r}
shutil.copyfile(_duckdb.__file__, copy)
ctypes.CDLL(copy)
if {first!r} == "registered":
    assert register(_duckdb.__file__.encode()) is None
else:
    con = duckdb.connect(config={{"allow_unsigned_extensions": "true"}})
    con.load_extension(EXTENSION)
print(register(copy.encode()).decode())
assert register(_duckdb.__file__.encode()) is None
con = duckdb.connect()
assert con.execute("SELECT count(*) FROM engram_tables()").fetchone() == (0,)
"""
    done = run_python(code)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == [
        "engramsql: this file is already loaded by another DuckDB library in this process; load a copy of the file"
    ]


def test_a_failing_registration_of_an_older_duckdb():
    if offers_static():
        pytest.skip("this DuckDB has static registration")
    done = run_python(f"{REGISTER}\nprint(register(_duckdb.__file__.encode()).decode())")
    assert "has no static registration" in done.stdout, done.stderr
