"""The footer that makes the shared object an extension."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest
from extension_support import run_python

from engramsql.udf import extension_path

BACKEND = Path(__file__).parents[1] / "build_backend"


@pytest.fixture
def footer(monkeypatch):
    if not (BACKEND / "footer.py").exists():
        pytest.skip("the build backend is not here")
    monkeypatch.syspath_prepend(str(BACKEND))
    import footer

    yield footer
    sys.modules.pop("footer", None)


def test_platform_is_what_duckdb_says(footer):
    assert (footer.platform_name(),) == duckdb.execute("PRAGMA platform").fetchone()


def test_layout(footer):
    data = footer.footer("1.2.3", "linux_amd64")
    assert len(data) == 512
    fields = [data[i * 32 : i * 32 + 32].rstrip(b"\0").decode() for i in range(8)]
    assert fields == ["", "", "", "C_STRUCT", "1.2.3", "v1.5.6", "linux_amd64", "4"]
    assert data[256:] == bytes(256)
    with pytest.raises(ValueError, match="longer than 32 bytes"):
        footer.footer("x" * 33, "linux_amd64")


def test_a_new_file_replaces_the_old_one(footer, tmp_path):
    source, target = tmp_path / "lib.so", tmp_path / "out" / "x.duckdb_extension"
    source.write_bytes(b"object")
    footer.append_footer(source, target, "1.0.0")
    inode = target.stat().st_ino
    with target.open("rb") as held:
        footer.append_footer(source, target, "1.0.1")
        assert target.stat().st_ino != inode
        assert b"1.0.0" in held.read()
    assert b"1.0.1" in target.read_bytes()
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_the_built_extension_carries_it(footer):
    tail = extension_path().read_bytes()[-512:]
    fields = [tail[i * 32 : i * 32 + 32].rstrip(b"\0").decode() for i in range(8)]
    assert fields[3] == footer.ABI
    assert fields[5] == footer.API_VERSION
    assert fields[7] == "4"
    # Not in this process: importing the package registers it statically, and DuckDB then shows no version.
    done = run_python(f"""
import duckdb
con = duckdb.connect(config={{"allow_unsigned_extensions": "true"}})
con.load_extension({str(extension_path())!r})
sql = "SELECT extension_version FROM duckdb_extensions() WHERE extension_name = 'engramsql'"
print(con.execute(sql).fetchone()[0])
""")
    assert done.stdout.strip() == fields[4], done.stderr
