"""What Cargo makes of the workspace."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


def crates(package: str, edges: str) -> set[str]:
    """The crates that a package is built from, each with its features."""
    words = ["cargo", "tree", "--locked", "--package", package, "--edges", edges]
    words += ["--prefix", "none", "--no-dedupe", "--format", "{p} {f}"]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return {line for line in done.stdout.splitlines() if line}


# What only build scripts need is told apart: Cargo gives it features of its own.
@pytest.mark.parametrize("edges", ["normal", "normal,build"])
def test_both_libraries_are_built_from_the_same_crates(edges: str) -> None:
    """A crate with other features, and all that stands on it, would be compiled twice: minutes for the engine."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    only = crates("engram-duckdb", edges) - crates("engram-python", edges)
    assert only == set(), "give the extension's crate the features that the Python module asks for, in its Cargo.toml"
