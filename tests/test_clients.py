"""What the extension file is, and the package under the oldest DuckDB and beside DuckDB's own clients in Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checkpoints import make_store
from client_programs import duckdb_program, require_adbc
from golden_data import GOLDEN
from oldest import run_oldest


def extension() -> Path:
    """The extension file of the installed package."""
    done = subprocess.run(
        [sys.executable, "-m", "engramsql", "extension-path"], capture_output=True, text=True, check=True, timeout=60
    )
    path = Path(done.stdout.removesuffix("\n"))
    assert path.is_file()
    assert path.name == "engramsql.duckdb_extension"
    return path


def test_the_extension_needs_no_python() -> None:
    """No undefined Python symbol, no Python library: other clients could not load it."""
    data = extension().read_bytes()
    assert b"libpython" not in data
    assert b"Py_Initialize" not in data
    if tool := shutil.which("nm"):
        symbols = subprocess.run(
            [tool, "-D", "--undefined-only", str(extension())], capture_output=True, text=True, check=False
        )
        assert not [s for s in symbols.stdout.split() if s.startswith(("Py", "_Py"))]


def test_footer() -> None:
    """512 bytes at the very end, after any strip: eight fields of 32 bytes, then an empty signature."""
    footer = extension().read_bytes()[-512:]
    fields = [footer[k * 32 : (k + 1) * 32].rstrip(b"\0") for k in range(8)]
    assert fields[7] == b"4"
    assert fields[6].startswith((b"linux", b"osx", b"windows"))
    assert fields[5] in (b"v1.2.0", b"v1.5.6")
    assert fields[3] == b"C_STRUCT"
    assert footer[256:] == bytes(256)


def test_an_error_ends_the_command_line() -> None:
    """What runs by -c stops at the first error, which scripts see by the exit code."""
    statements = ["-c", f"LOAD '{extension()}'", "-c", "SELECT engram_row('nope', 1)", "-c", "SELECT 42"]
    done = subprocess.run(
        [duckdb_program(), "-unsigned", *statements], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert "no table named 'nope'" in done.stderr
    assert "42" not in done.stdout


def test_package_under_the_oldest_duckdb(tmp_path: Path) -> None:
    import engramsql

    data = make_store(tmp_path, manifest=True)
    site = str(Path(engramsql.__file__).parent.parent)
    out = run_oldest(
        """
import sys
sys.path.insert(0, sys.argv[1])
import duckdb, engramsql
assert duckdb.__version__ == "1.5.6"
db = engramsql.connect()
db.register("t", sys.argv[2], format="f32")
print(db.table("t").fetch(range(30)).tobytes().hex())
print(b"".join(r for (r,) in db.sql("SELECT row FROM engram_fetch('t', range(30))").fetchall()).hex())
print(db.sql("SELECT count(*) FROM t WHERE rowid BETWEEN 3 AND 7").fetchall())
""",
        site,
        str(tmp_path),
    )
    assert out.splitlines() == [data.tobytes().hex()] * 2 + ["[(5,)]"]


@pytest.mark.parametrize("order", ["before", "after"])
def test_any_duckdb_connection_after_import(order: str, tmp_path: Path) -> None:
    """Importing the package gives the functions to connections opened afterwards, where DuckDB allows it (2.0 on)."""
    import duckdb

    if int(duckdb.__version__.split(".")[0]) < 2:
        pytest.skip("this DuckDB has no static registration")
    code = """
import sys
import duckdb
if sys.argv[1] == "before":
    duckdb.connect().close()
import engramsql
con = duckdb.connect()
print(con.execute("SELECT rowids_for_seq([248044, 1000, 99999, 42])[2][1]").fetchall()[0][0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, order], capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path
    )
    assert done.stdout == "1876085\n", done.stderr


def test_adbc_after_import(tmp_path: Path) -> None:
    """The driver manager loads the library that the package has registered the functions with."""
    import duckdb

    if int(duckdb.__version__.split(".")[0]) < 2:
        pytest.skip("this DuckDB has no static registration")
    require_adbc()
    code = """
import importlib.util
import duckdb, engramsql
from adbc_driver_manager import dbapi
library = importlib.util.find_spec("_duckdb").origin
with dbapi.connect(library, entrypoint="duckdb_adbc_init", db_kwargs={"path": ":memory:"}, autocommit=True) as con:
    with con.cursor() as cursor:
        cursor.execute("SELECT rowids_for_seq([248044, 1000, 99999, 42])[2][1]")
        print(cursor.fetchone()[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path
    )
    assert done.stdout == "1876085\n", done.stderr


def test_numpy_is_what_comes_out() -> None:
    """The arrays are plain NumPy arrays that own their memory or keep it alive."""
    import engramsql

    with engramsql.connect(GOLDEN / "ckpt_qwen4_exp_fp8") as db:
        (name,) = db.sql("SELECT name FROM engram_tables()").fetchall()[0]
        rows = db.table(name).fetch([1, 2, 3])
        assert type(rows) is np.ndarray
        assert rows.flags.c_contiguous
