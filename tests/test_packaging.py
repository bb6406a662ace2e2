"""The finished wheel: what it holds, and whether what it holds can be loaded."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
EXTENSION = "engramsql/udf/engramsql.duckdb_extension"
FOOTER_BYTES = 512


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel that `make` installed; this file tests nothing without it, so it must be there."""
    found = sorted((REPOSITORY / "dist").glob("engramsql-*.whl"))
    assert found, "no wheel in dist; run the tests with `make python`"
    return found[-1]


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path):
    held = names(wheel)
    for expected in [
        "engramsql/__init__.py",
        "engramsql/py.typed",
        "engramsql/engine/_native.pyi",
        "engramsql/engine/_native.abi3.so",
        EXTENSION,
    ]:
        assert expected in held
    assert any(name.startswith("engramsql/catalog/specs/") and name.endswith(".toml") for name in held)
    views = {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "catalog" / "views").glob("*.sql")}
    assert views
    assert {f"engramsql/{name}" for name in views} <= set(held)
    assert any(name.endswith("licenses/LICENSE") for name in held)
    top = {name.split("/")[0] for name in held}
    assert {entry for entry in top if not entry.endswith(".dist-info")} == {"engramsql"}
    assert not [name for name in held if "/native/" in name or name.endswith((".rs", ".toml.orig", ".pyc"))]


def test_every_python_file_is_in_the_wheel(wheel: Path):
    held = set(names(wheel))
    sources = {
        path.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / "engramsql").rglob("*.py")
        if "native" not in path.parts
    }
    assert sources <= held


def test_the_wheel_is_for_every_python_from_3_10(wheel: Path):
    assert "-cp310-abi3-" in wheel.name


def test_the_extension_has_its_footer(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        footer = archive.read(EXTENSION)[-FOOTER_BYTES:]
    fields = [footer[at : at + 32].rstrip(b"\0").decode() for at in range(0, 256, 32)]
    _, _, _, abi, version, api, platform, kind = fields
    assert (abi, version, kind) == ("C_STRUCT", wheel.name.split("-")[1], "4")
    assert api.startswith("v1.")
    assert platform


def test_what_is_in_the_wheel_loads(wheel: Path, tmp_path: Path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = """
import engramsql
assert engramsql.__file__.startswith(TARGET), engramsql.__file__
with engramsql.connect() as db:
    assert db.sql("SELECT len(rowids_for_seq([248044, 1000, 99999, 42]))").fetchall() == [(4,)]
import duckdb
from engramsql import udf
assert str(udf.extension_path()).startswith(TARGET)
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
udf.load(connection)
udf.load(connection)
assert connection.sql("SELECT len(rowids_for_seq([1]))").fetchall() == [(1,)]
""".replace("TARGET", repr(str(tmp_path)))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    # In a folder of its own: the repository's package would be found first.
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_extension_needs_no_python(wheel: Path, tmp_path: Path):
    with zipfile.ZipFile(wheel) as archive:
        shared_object = archive.extract(EXTENSION, tmp_path)
    text = Path(shared_object).read_bytes()
    assert b"PyObject_" not in text
    assert b"libpython" not in text


def test_loading_without_permission_says_what_to_do():
    import duckdb

    from engramsql import udf
    from engramsql.errors import ExtensionError

    connection = duckdb.connect()
    if int(duckdb.__version__.split(".")[0]) >= 2:
        udf.load(connection)  # part of DuckDB already
        return
    with pytest.raises(ExtensionError, match="allow_unsigned_extensions"):
        udf.load(connection)
