"""The examples of docs/clients.md run as they stand and print what the page says, with the versions that are tested."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from client_programs import PROGRAMS, duckdb_program, go_program, java_path, node_modules, require_adbc, tool
from golden_data import GOLDEN

import engramsql
from engramsql.udf import extension_path

PAGE = Path(__file__).parent.parent / "docs" / "clients.md"
EXAMPLE = re.compile(r"^```\w+\n(?P<code>[^`]*)```\n\n```text\n(?P<output>[^`]*)```\n", re.MULTILINE)


def example(name: str) -> tuple[str, str]:
    """Code and output of the section of a client."""
    (section,) = [part for part in PAGE.read_text(encoding="utf-8").split("\n## ") if part.startswith(f"{name}\n")]
    found = EXAMPLE.search(section)
    assert found is not None, name
    return found["code"], found["output"]


def command(name: str, code: str, directory: Path) -> list[str]:
    """What runs an example that lies in a directory."""
    if name == "Node":
        (directory / "node_modules").symlink_to(node_modules() / "node_modules")
        (directory / "example.mjs").write_text(code, encoding="utf-8")
        return [tool("node", "node"), "example.mjs"]
    if name == "Java":
        (directory / "Example.java").write_text(code, encoding="utf-8")
        return [tool("java", "java"), "-cp", java_path(), "Example.java"]
    if name == "Go":
        (directory / "main.go").write_text(code, encoding="utf-8")
        return [go_program([directory / "main.go"], "example")]
    if name == "Command line":
        return ["bash", "-c", code]
    if name == "ADBC":
        require_adbc()
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("name", ["Command line", "Python", "Node", "Java", "Go", "ADBC"])
@pytest.mark.timeout(900)
def test_the_example_of_the_page_runs(name: str, tmp_path: Path) -> None:
    with engramsql.connect(tmp_path / "clientdb") as db:
        db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
    shutil.copy(extension_path(), tmp_path)
    code, output = example(name)
    environment = dict(os.environ)
    if name == "Command line":
        environment["PATH"] = f"{Path(duckdb_program()).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        command(name, code, tmp_path),
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == output


def test_the_page_names_the_versions_that_are_tested() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for client, pins, pattern, shown in [
        ("node", "package.json", r'"@duckdb/node-api": "(.+)"', "@duckdb/node-api@{}"),
        ("java", "pom.xml", r"<artifactId>duckdb_jdbc</artifactId>\s*<version>(.+)</version>", "duckdb_jdbc:{}"),
        ("go", "go.mod", r"duckdb-go/v2 v(\S+)", "duckdb-go/v2@v{}"),
    ]:
        pinned = re.search(pattern, (PROGRAMS / client / pins).read_text(encoding="utf-8"))
        assert pinned, client
        assert shown.format(pinned[1]) in page
