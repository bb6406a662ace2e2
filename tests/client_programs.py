"""DuckDB's other clients, installed once below build/clients, and the programs of tests/clients that use them.

What a client needs is pinned beside its program. A client whose tool is missing, or whose packages cannot be fetched,
skips its tests with a reason that says what was missing; with ENGRAMSQL_CLIENTS=required it fails them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import alone
from oldest import oldest_python

PROGRAMS = Path(__file__).parent / "clients"
INSTALLED = Path(__file__).parent.parent / "build" / "clients"
NEEDED = (1, 5, 6)


def unavailable(client: str, why: str) -> None:
    """Skips the running test, or fails it where every client is required."""
    reason = f"DuckDB's client {client} is not tested: {why}"
    if os.environ.get("ENGRAMSQL_CLIENTS") == "required":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def check_version(client: str, version: str) -> None:
    """The extension needs a DuckDB that is new enough."""
    found = tuple(int(part) for part in version.removeprefix("v").split("-")[0].split(".")[:3])
    if found < NEEDED:
        unavailable(client, f"it is DuckDB {version}, and the extension needs {'.'.join(map(str, NEEDED))}")


def tool(client: str, name: str) -> str:
    """A program on the path."""
    path = shutil.which(name)
    if path is None:
        unavailable(client, f"{name} is not installed")
    assert path is not None
    return path


def installed(client: str, pins: list[str], fetch: Callable[[Path], None]) -> Path:
    """The directory with a client's packages and the pins beside them; ``fetch`` fills it where the pins are new."""
    directory = INSTALLED / client
    sources = [PROGRAMS / client / pin for pin in pins]
    state = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    stamp = directory / "installed"
    with alone(client):
        if not (stamp.is_file() and stamp.read_text() == state):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            for source in sources:
                shutil.copy(source, directory)
            fetch(directory)
            # Last, so that an install that was interrupted is not taken for one.
            stamp.write_text(state)
    return directory


def fetched(client: str, command: list[str], directory: Path) -> None:
    """Runs a package manager; what it cannot fetch is missing."""
    done = subprocess.run(
        command, cwd=directory, env=go_environment(), capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        # npm and Maven begin with what is wrong, Go ends with it.
        wrong = [line for line in said if "error" in line.lower()] or said[-1:] or ["it said nothing"]
        unavailable(client, f"`{' '.join([Path(command[0]).name, *command[1:]])}` failed: {wrong[0]}")


def go_environment() -> dict[str, str]:
    """The environment that Go builds in: no other toolchain, no change of what is pinned."""
    return {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "1"}


def node_modules() -> Path:
    """The directory whose node_modules holds the client for Node."""
    npm = tool("node", "npm")
    command = [npm, "ci", "--no-audit", "--no-fund", "--prefer-offline"]
    return installed("node", ["package.json", "package-lock.json"], lambda d: fetched("node", command, d))


def java_path() -> str:
    """The class path with the JDBC driver."""
    mvn = tool("java", "mvn")
    command = [
        mvn,
        "--quiet",
        "--batch-mode",
        "-Dstyle.color=never",
        "dependency:copy-dependencies",
        "-DoutputDirectory=lib",
    ]
    return str(installed("java", ["pom.xml"], lambda d: fetched("java", command, d)) / "lib" / "*")


def go_program(sources: list[Path], name: str) -> str:
    """A program in Go, built."""
    go = tool("go", "go")
    tool("go", "cc")
    directory = INSTALLED / "go" / name
    directory.mkdir(parents=True, exist_ok=True)
    for source in [PROGRAMS / "go" / "go.mod", PROGRAMS / "go" / "go.sum", *sources]:
        shutil.copy(source, directory)
    # Fetches what the program imports and no more: the libraries of the other platforms are 0.4 GB.
    fetched("go", [go, "list", "-deps", "."], directory)
    done = subprocess.run(
        [go, "build", "-ldflags=-s -w", "-o", "program", "."],
        cwd=directory, env=go_environment(), capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return str(directory / "program")


def duckdb_program() -> str:
    """DuckDB's command line, of the test extra or installed otherwise."""
    program = shutil.which("duckdb", path=str(Path(sys.executable).parent)) or shutil.which("duckdb")
    if program is None:
        unavailable("cli", "duckdb is not installed; the test extra brings duckdb-cli")
    assert program is not None
    return program


def require_adbc() -> None:
    """The driver manager is there."""
    if importlib.util.find_spec("adbc_driver_manager") is None:
        unavailable("adbc", "adbc-driver-manager is not installed; the test extra brings it")


def client_command(client: str) -> list[str]:
    """What runs the program of a client, to be followed by the extension and the file of sessions."""
    if client == "node":
        directory = node_modules()
        # Packages are looked up beside the program.
        shutil.copy(PROGRAMS / "node" / "client.mjs", directory)
        return [tool("node", "node"), str(directory / "client.mjs")]
    if client == "java":
        # Most of the time would go to the second compiler.
        path = java_path()
        return [tool("java", "java"), "-XX:TieredStopAtLevel=1", "-cp", path, str(PROGRAMS / "java" / "Client.java")]
    if client == "go":
        return [go_program(sorted((PROGRAMS / "go").glob("*.go")), "matrix")]
    if client == "adbc":
        require_adbc()
        return [sys.executable, str(PROGRAMS / "adbc" / "client.py")]
    if client == "cli":
        return [sys.executable, str(PROGRAMS / "cli" / "client.py"), duckdb_program()]
    python = {"python": sys.executable, "python-oldest": str(oldest_python())}[client]
    return [python, str(PROGRAMS / "python" / "client.py")]
