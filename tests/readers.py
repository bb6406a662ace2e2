"""The code paths that a batch can take; ``ENGRAMSQL_READER`` forces one."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest
from checkpoints import make_store
from helpers import run_python

READERS = ["mapped", "io_uring", "pread", "sequential"]


def forced(reader: str) -> dict[str, str]:
    """The environment that forces ``reader``; skips the test, saying why, where the system refuses it."""
    said = _refusal(reader)
    if said:
        pytest.skip(said)
    return {"ENGRAMSQL_READER": reader}


@functools.cache
def _refusal(reader: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        make_store(Path(folder))
        done = run_python(
            """
import sys
import engramsql
db = engramsql.connect()
db.register("t", sys.argv[1], width=8)
try:
    db.table("t").fetch([0])
except Exception as e:
    assert f"reader '{sys.argv[2]}'" in str(e) and "is not available here" in str(e), e
    print(e)
""",
            args=[folder, reader],
            env={"ENGRAMSQL_READER": reader},
        )
    return done.stdout.strip()


def is_available(reader: str) -> bool:
    """Whether the system has ``reader``."""
    return not _refusal(reader)
