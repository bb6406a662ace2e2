"""Runs the suite once per reader and once per kernel level of this machine: ``python tests/paths.py [--quick]``.

Stops at the first failure; the summary at the end says what ran, for how long, and what is not available here.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent
READERS = ["mapped", "io_uring", "pread", "sequential"]
KERNELS = ["portable", "neon", "avx2", "avx512"]

# What a reader or a kernel can get wrong, in seconds instead of minutes.
QUICK = {
    # Files that change while they are read are tested with every reader by the suite itself.
    "reader": ["test_golden_tables.py", "test_extension_fetch.py", "test_faults_runtime.py"],
    "kernel": ["test_golden_decode.py", "test_golden_qwen.py", "test_golden_engram.py", "test_golden_tables.py"],
}


def refusal(option: str, name: str) -> str | None:
    """Why this machine lacks the reader or kernel, or None if it has it."""
    code = """
import sys
import engramsql
with engramsql.connect(sys.argv[1]) as db:
    db.table("ple").fetch([0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(TESTS / "golden" / "ckpt_qwen4_exp_fp8")],
        env={**os.environ, f"ENGRAMSQL_{option.upper()}": name},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def run(option: str, name: str, files: list[str]) -> str:
    """Runs ``files`` of the suite (all if empty) on one reader or kernel; a failure ends this program."""
    # Said, because a failure may depend on the order of the tests.
    words = ["pytest", "-q", f"--{option}", name, f"--randomly-seed={random.randrange(1 << 32)}"]
    words += [os.path.join(TESTS.name, file) for file in files]
    print("===", *words, flush=True)
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", *words], cwd=TESTS.parent, check=False)
    seconds = f"{time.perf_counter() - started:.0f} s"
    return f"passed in {seconds}" if done.returncode == 0 else f"FAILED after {seconds} (exit code {done.returncode})"


def main(quick: bool) -> int:
    """Everything in turn; the exit code."""
    every = [*(("reader", name) for name in READERS), *(("kernel", name) for name in KERNELS)]
    refusals = {path: refusal(*path) for path in every}
    # What the suite takes by itself: rows in memory by the map, the fastest kernel.
    usual = {("reader", "mapped"), [path for path in every if not refusals[path]][-1]}
    summary = []
    code = 0
    for path in every:
        option, name = path
        if refusals[path]:
            outcome = f"not here: {refusals[path]}"
        elif quick and path in usual:
            outcome = "left out: the suite itself takes it"
        else:
            outcome = run(option, name, QUICK[option] if quick else [])
        summary.append(f"{option} {name}: {outcome}")
        if outcome.startswith("FAILED"):
            code = 1
            break
    print("\n".join(["=== summary", *summary]))
    return code


if __name__ == "__main__":
    sys.exit(main("--quick" in sys.argv[1:]))
