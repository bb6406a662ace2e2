"""A Python with the oldest supported DuckDB, made once below the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from helpers import alone

from engramsql.udf import extension_path

OLDEST = "1.5.6"
OLDEST_VENV = Path(__file__).parent.parent / ".venv-oldest"


def oldest_python() -> Path:
    """The interpreter; the first call makes it."""
    python = OLDEST_VENV / "bin" / "python"
    with alone("oldest"):
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


def answers_of_oldest(prepare: list[str], asked: list[str]) -> list[str]:
    """What a database in memory there, with the extension and after some statements, answers to others; a line each."""
    code = """
import duckdb, json, sys
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.load_extension(sys.argv[1])
prepare, asked = json.load(open(sys.argv[2]))
for sql in prepare:
    con.execute(sql)
for sql in asked:
    print(con.execute(sql).fetchall())
"""
    with TemporaryDirectory() as directory:
        statements = Path(directory) / "statements.json"
        statements.write_text(json.dumps([prepare, asked]), encoding="utf-8")
        return run_oldest(code, str(extension_path()), str(statements)).splitlines()
