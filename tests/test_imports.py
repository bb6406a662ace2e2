"""Starting must be cheap: what is heavy is imported by what needs it."""

import subprocess
import sys

import pytest

HEAVY = ["duckdb", "numpy", "pyarrow", "sqlglot", "prompt_toolkit", "matplotlib", "wcwidth"]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["register", "--help"], ["plot", "norms", "--help"]])
def test_the_command_line_answers_without_heavy_imports(arguments: list[str]):
    code = f"""
import sys
from engramsql.cli import main
try:
    main({arguments!r})
except SystemExit as exit:
    assert exit.code == 0
print("HEAVY", [name for name in {HEAVY!r} if name in sys.modules])
"""
    assert run(code).splitlines()[-1] == "HEAVY []"


@pytest.mark.parametrize("format", ["csv", "json", "box", "vertical"])
def test_a_query_imports_no_pandas(format: str):
    """Arrow would, which is a third of the time of a short command."""
    code = f"""
import importlib.util, sys
assert importlib.util.find_spec("pandas") is not None
sys.argv[1:] = ["--format", {format!r}, "-c", "SELECT [1.5, 2] AS a, 'x' AS b, NULL AS c"]
from engramsql.cli import main
assert main() == 0
assert "pyarrow" in sys.modules
assert "pandas" not in sys.modules
"""
    assert "1.5" in run(code)


def test_a_program_that_calls_the_command_line_keeps_pandas():
    code = """
from engramsql.cli import main
assert main(["--format", "csv", "-c", "SELECT 1 AS a"]) == 0
import engramsql
print(engramsql.connect().sql("SELECT 2 AS a").df()["a"].sum())
"""
    assert run(code) == "a\n1\n2\n"


def test_importing_the_package_is_light():
    assert run(f"import sys, engramsql; print([name for name in {HEAVY!r} if name in sys.modules])") == "[]\n"


@pytest.mark.parametrize("order", ["import engramsql, duckdb", "import duckdb, engramsql"])
def test_functions_are_there_after_the_import_where_duckdb_allows_it(order: str):
    code = f"""
{order}
major = int(duckdb.__version__.split(".")[0])
try:
    rows = duckdb.connect().sql("SELECT len(rowids_for_seq([248044, 1000]))").fetchall()
except duckdb.CatalogException:
    assert major < 2
else:
    assert rows == [(2,)]
"""
    run(code)


def test_the_import_hook_steps_aside():
    code = """
import sys, engramsql
before = len(sys.meta_path)
import duckdb
assert len(sys.meta_path) == before - 1
assert duckdb.__spec__.loader is duckdb.__loader__
"""
    run(code)


def test_asking_whether_duckdb_is_installed_changes_nothing():
    code = """
import importlib.util, sys, threading, engramsql
def ask():
    assert importlib.util.find_spec("duckdb") is not None
for _ in range(2):
    ask()
thread = threading.Thread(target=ask)
thread.start()
thread.join()
import duckdb
if int(duckdb.__version__.split(".")[0]) >= 2:
    assert duckdb.connect().sql("SELECT len(rowids_for_seq([248044, 1000]))").fetchall() == [(2,)]
assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("engramsql")]
"""
    run(code)


def test_duckdb_that_is_not_installed_is_an_import_error():
    code = """
import importlib.util, sys, engramsql
sys.path[:] = []
assert importlib.util.find_spec("duckdb") is None
try:
    import duckdb
except ModuleNotFoundError as error:
    assert error.name == "duckdb"
else:
    raise SystemExit("imported from nowhere")
"""
    run(code)


def test_unknown_attributes_are_attribute_errors():
    import engramsql

    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        engramsql.conect  # noqa: B018
