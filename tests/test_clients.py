"""One extension file, several clients: the DuckDB command line (no Python there), the oldest and newest wheels."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checkpoints import make_store
from golden_data import GOLDEN, case
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


def cli(*statements: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs statements in the DuckDB command line with the extension loaded."""
    binary = shutil.which("duckdb", path=str(Path(sys.executable).parent)) or shutil.which("duckdb")
    assert binary is not None, "the test extra brings duckdb-cli"
    done = subprocess.run(
        [binary, "-unsigned", "-json", "-c", f"LOAD '{extension()}'", *[x for s in statements for x in ("-c", s)]],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) == (expect == 0), done.stdout + done.stderr
    return done


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


def test_command_line_answers_golden_rowids() -> None:
    c = case("qwen_ple_v1", "readme_example")
    done = cli("SELECT rowids_for_seq([248044, 1000, 99999, 42]) AS r")
    assert json.loads(done.stdout)[0]["r"] == c["rowids"].tolist()


def test_command_line_reads_a_checkpoint() -> None:
    c = case("ckpt_qwen4_exp_fp8_expected", "main")
    tokens = c["tokens"].tolist()
    path = GOLDEN / "ckpt_qwen4_exp_fp8"
    done = cli(
        f"CALL engram_register('fp8', '{path}')",
        f"SELECT rowid, hex(row) AS row FROM engram_fetch('fp8', rowids_for_seq('fp8', {tokens}))",
    )
    rows = json.loads(done.stdout[done.stdout.index('[{"rowid"') :])
    assert [r["rowid"] for r in rows] == c["rowids"].ravel().tolist()
    assert "".join(r["row"] for r in rows) == c["rows"].tobytes().hex().upper()
    # A path takes the place of a name, without registering.
    done = cli(f"SELECT count(*) AS n FROM engram_fetch('{path}', [1, 2, 3])")
    assert json.loads(done.stdout) == [{"n": 3}]


def test_command_line_opens_a_database(tmp_path: Path) -> None:
    import engramsql

    make_store(tmp_path / "s", manifest=True)
    with engramsql.connect(tmp_path / "db") as db:
        db.register("t", tmp_path / "s")
    done = cli(f"CALL engram_attach('{tmp_path / 'db'}')", "SELECT name, rows FROM engram_tables()")
    assert '{"name":"t","rows":30}' in done.stdout.replace(" ", "")


def test_command_line_errors_are_errors(tmp_path: Path) -> None:
    done = cli("SELECT engram_row('nope', 1)", expect=1)
    assert "nope" in done.stderr
    make_store(tmp_path, manifest=True)
    done = cli(f"SELECT engram_row('{tmp_path}', 30)", expect=1)
    assert "30" in done.stderr


def test_oldest_duckdb_loads_the_extension() -> None:
    """Without the package: only the extension file and the old wheel."""
    out = run_oldest(
        """
import sys, json, duckdb
assert duckdb.__version__ == "1.5.6", duckdb.__version__
con = duckdb.connect(config={"allow_unsigned_extensions": True})
con.execute(f"LOAD '{sys.argv[1]}'")
con.execute("CALL engram_register('fp8', ?)", [sys.argv[2]])
sql = "SELECT rowid, row FROM engram_fetch('fp8', rowids_for_seq('fp8', ?::BIGINT[]))"
rows = con.execute(sql, [json.loads(sys.argv[3])]).fetchall()
print(json.dumps([[i for i, _ in rows], b"".join(r for _, r in rows).hex()]))
try:
    con.execute("SELECT engram_row('fp8', 1408)").fetchall()
except duckdb.Error as e:
    assert "1408" in str(e) and "fp8" in str(e), e
else:
    raise SystemExit("not refused")
assert con.execute("SELECT 42").fetchall() == [(42,)]
""",
        str(extension()),
        str(GOLDEN / "ckpt_qwen4_exp_fp8"),
        json.dumps(case("ckpt_qwen4_exp_fp8_expected", "main")["tokens"].tolist()),
    )
    c = case("ckpt_qwen4_exp_fp8_expected", "main")
    ids, rows = json.loads(out)
    assert ids == c["rowids"].ravel().tolist()
    assert rows == c["rows"].tobytes().hex()


def test_newest_duckdb_loads_the_extension_file() -> None:
    """The same file with LOAD in the wheel of this environment, without the package."""
    code = """
import sys, duckdb
con = duckdb.connect(config={"allow_unsigned_extensions": True})
con.execute(f"LOAD '{sys.argv[1]}'")
print(con.execute("SELECT rowids_for_seq([248044, 1000, 99999, 42])[2][1]").fetchall()[0][0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(extension())], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "1876085\n", done.stderr


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


def test_numpy_is_what_comes_out() -> None:
    """The arrays are plain NumPy arrays that own their memory or keep it alive."""
    import engramsql

    with engramsql.connect(GOLDEN / "ckpt_qwen4_exp_fp8") as db:
        (name,) = db.sql("SELECT name FROM engram_tables()").fetchall()[0]
        rows = db.table(name).fetch([1, 2, 3])
        assert type(rows) is np.ndarray
        assert rows.flags.c_contiguous
