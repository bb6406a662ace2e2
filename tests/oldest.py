"""A Python with the oldest supported DuckDB, made once below the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

OLDEST = "1.5.6"
OLDEST_VENV = Path(__file__).parent.parent / ".venv-oldest"


def oldest_python() -> Path:
    """The interpreter; the first call makes it."""
    python = OLDEST_VENV / "bin" / "python"
    if not python.exists():
        venv.create(OLDEST_VENV, with_pip=True)
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "-q", f"duckdb=={OLDEST}", "numpy", "pyarrow", "sqlglot"],
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        if done.returncode:
            shutil.rmtree(OLDEST_VENV)
            pytest.skip(f"cannot install duckdb {OLDEST}: {done.stderr.strip().splitlines()[-1]}")
    return python


def run_oldest(code: str, *args: str) -> str:
    """Runs ``code`` there and returns its output."""
    # Unbuffered, print() loses what one write to a pipe does not take.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [str(oldest_python()), "-c", code, *args],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
