"""ENGRAMSQL_KERNEL: the same bits at every level, and one clear refusal where a level cannot be."""

from __future__ import annotations

import functools

import pytest
from extension_support import FP8
from golden_data import GOLDEN
from helpers import run_python

LEVELS = ["portable", "neon", "avx2", "avx512"]

# Everything that has a kernel: values of every format, and row ids of both families.
EVERYTHING = f"""
import hashlib
import numpy as np
import engramsql
from engramsql.engine import kernel
digest = hashlib.sha256()
tokens = np.random.default_rng(0).integers(0, 97, 3000)
with engramsql.connect() as db:
    for name in ("ckpt_qwen4_exp_fp8", "ckpt_qwen4_exp_bf16", "ckpt_qwen4_exp_nvfp4", "ckpt_deepseek_v41"):
        db.register(name, {str(GOLDEN)!r} + "/" + name)
    for entry in db.tables():
        table = db.table(entry.name)
        ids = np.arange(table.rows)
        digest.update(table.vectors(ids).tobytes())
        digest.update(table.vectors(ids, dtype="bfloat16").tobytes())
        digest.update(table.rowids(tokens % table.spec.vocab_size).tobytes())
        sql = f"SELECT embedding FROM engram_fetch('{{entry.name}}', range({{table.rows}}))"
        digest.update(np.array([v for (v,) in db.sql(sql).fetchall()], np.float32).tobytes())
        sql = f"SELECT rowids_for_seq('{{entry.name}}', ?::BIGINT[])"
        found = db.connection.execute(sql, [(tokens % table.spec.vocab_size).tolist()]).fetchall()
        digest.update(np.array(found[0][0], np.int64).tobytes())
print(kernel(), digest.hexdigest())
"""


@functools.cache
def everything(level: str) -> tuple[str, str]:
    """(level that ran, digest of all results), or ("", the message) where it was refused."""
    done = run_python(EVERYTHING, env={"ENGRAMSQL_KERNEL": level}, expect=None)
    if done.returncode:
        return "", done.stderr.splitlines()[-1]
    ran, digest = done.stdout.split()
    return ran, digest


def absent() -> str:
    """A level that this processor cannot have: none has both NEON and AVX."""
    return "neon" if everything("neon")[0] == "" else "avx2"


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_decodes_and_hashes_alike(level: str) -> None:
    ran, result = everything(level)
    if not ran:
        assert f"kernel level '{level}' needs instructions that this processor lacks; it has: portable" in result
        pytest.skip(result)
    assert ran == level
    assert result == everything("portable")[1]


@pytest.mark.chooses_kernel
def test_the_fastest_level_runs_by_default() -> None:
    best = [level for level in LEVELS if everything(level)[0]][-1]
    assert everything("")[0] == best


ROUTES = {
    "kernel()": "engramsql.engine.kernel()",
    "decode()": "engramsql.engine.decode(b'1', 'fp8_e4m3', 1.0)",
    "a spec": "engramsql.engine.Spec.released_qwen_ple()",
    "SQL row ids": "engramsql.connect().sql('SELECT rowids_for_seq([1, 2])').fetchall()",
    "SQL decoding": "engramsql.connect().sql(\"SELECT engram_decode('1'::BLOB, 'fp8_e4m3', 1.0)\").fetchall()",
    "SQL rows": f"engramsql.connect({str(FP8)!r}).sql(\"SELECT engram_vector('ple', 1)\").fetchall()",
    "command line": f"sys.exit(main([{str(FP8)!r}, '-c', \"SELECT engram_vector('ple', 1)\"]))",
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("wrong", ["AVX512", "absent"])
def test_a_level_that_cannot_be_is_refused(route: str, wrong: str) -> None:
    level = absent() if wrong == "absent" else wrong
    code = f"import sys, engramsql, engramsql.engine\nfrom engramsql.cli import main\n{ROUTES[route]}"
    done = run_python(code, env={"ENGRAMSQL_KERNEL": level}, expect=1)
    message = done.stderr.splitlines()[-1]
    if wrong == "absent":
        assert f"kernel level '{level}' needs instructions that this processor lacks; it has: portable" in message
        assert "unset ENGRAMSQL_KERNEL for the fastest" in message
    else:
        assert "ENGRAMSQL_KERNEL is 'AVX512'; known kernel levels: portable, neon, avx2, avx512" in message
    assert "panicked" not in done.stderr
    assert "INTERNAL" not in done.stderr
    if route == "command line":
        assert done.stderr.splitlines() == [message]
        assert done.stdout == ""
