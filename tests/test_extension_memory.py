"""DuckDB's memory limit reached while rows are written into its vectors: an error, and the process goes on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engramsql.udf import extension_path

_DIM = 65536
_ROWS = 512

# A chunk of 512 vectors takes 128 MiB, of rows as much; DuckDB may have 40 MB.
_STATEMENTS = {
    "lists of floats": "SELECT count(engram_vector('wide', rowid)) FROM ids",
    "blobs": "SELECT count(engram_row('wide', rowid)) FROM ids",
    "rows to be sorted": "SELECT count(*) FROM (SELECT row, rowid FROM wide ORDER BY hash(rowid), row)",
}
_PREPARATION = """
    CREATE TABLE ids AS SELECT range AS rowid FROM range(512);
    SET threads = 1;
    SET temp_directory = '';
    SET memory_limit = '40MB';
"""
_CHILD = f"""
import sys
import duckdb

connection = duckdb.connect(config={{"allow_unsigned_extensions": "true"}})
connection.load_extension(sys.argv[1])
connection.execute(f"CALL engram_register('wide', '{{sys.argv[2]}}', width := {_DIM * 4}, format := 'f32')")
connection.execute('''{_PREPARATION}''')
try:
    connection.execute(sys.argv[3]).fetchall()
except duckdb.Error as error:
    print(str(error).splitlines()[0])
connection.execute("RESET memory_limit")
print(connection.execute("SELECT count(*) FROM engram_fetch('wide', [1, 2])").fetchone())
"""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sparse store of very wide rows."""
    directory = tmp_path_factory.mktemp("wide")
    with open(directory / "shard_000.bin", "wb") as shard:
        shard.truncate(_ROWS * _DIM * 4)
    return directory


@pytest.mark.parametrize("name", _STATEMENTS)
def test_reaching_the_limit_is_an_error_in_duckdbs_words(wide: Path, name: str) -> None:
    child = [sys.executable, "-c", _CHILD, str(extension_path()), str(wide), _STATEMENTS[name]]
    done = subprocess.run(child, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    error, after = done.stdout.splitlines()
    assert ": Out of Memory Error: failed to allocate" in error
    assert "internal error" not in error
    assert after == "(2,)"


def test_the_limit_in_a_program_without_python(wide: Path) -> None:
    program = shutil.which("duckdb", path=str(Path(sys.executable).parent))
    assert program is not None
    prepared = f"""
        LOAD '{extension_path()}';
        CALL engram_register('wide', '{wide}', width := {_DIM * 4}, format := 'f32');
        {_PREPARATION}
    """
    for statement in _STATEMENTS.values():
        words = [program, "-unsigned", "-csv", "-c", f"{prepared}{statement};"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode == 1, (done.returncode, done.stderr)
        assert ": Out of Memory Error: failed to allocate" in done.stderr
