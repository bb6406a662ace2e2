"""A measurement in a process of its own: nothing is mapped, made or warm there, and its memory is its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from engramsql.errors import ReadError

__all__ = ["ask"]


def ask(module: str, question: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Runs ``engramsql.bench.MODULE``, which reads the question from stdin and prints its answer, both as JSON.

    Raises:
        ReadError: If it fails; the message names ``what``.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"engramsql.bench.{module}"],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ReadError(f"{what} failed: {lines[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
