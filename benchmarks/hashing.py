"""Hashing: tokens to row ids, native and through SQL, beside engramdb-python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import Sample, a_b_b_a, repeat

VOCAB = 248_320


def run(repeats: int) -> dict[str, Any]:
    """rowids_for_seq under the released PLE spec, 10 to 100000 tokens per call."""
    import engramsql
    from engramsql.engine import Spec

    rng = np.random.default_rng()
    spec = Spec.released_qwen_ple()
    samples: list[Sample] = []
    try:
        import engramdb
    except ImportError:
        engramdb = None
    for tokens in (10, 512, 100_000):
        ours = Sample(f"Spec.rowids, {tokens} tokens", "token", tokens)

        def mine(tokens: int = tokens) -> Callable[[], object]:
            ids = rng.integers(0, VOCAB, tokens)
            return lambda: spec.rowids(ids)

        rounds = repeats if tokens > 10_000 else repeats * 20
        if engramdb is None:
            samples.append(repeat(ours, mine, rounds))
            continue
        theirs = Sample(f"engramdb.rowids_for_seq, {tokens} tokens", "token", tokens)

        def peers(tokens: int = tokens) -> Callable[[], object]:
            ids = rng.integers(0, VOCAB, tokens).tolist()
            return lambda: engramdb.rowids_for_seq(ids)

        a_b_b_a((ours, mine), (theirs, peers), max(rounds // 2, 2))
        samples += [ours, theirs]
    with engramsql.connect() as db:
        con = db.connection
        con.execute(
            f"CREATE TABLE seqs AS SELECT list((random() * {VOCAB - 1})::BIGINT) AS t "
            "FROM range(1024000) r(i) GROUP BY i // 512"
        )
        sample = Sample("SQL rowids_for_seq over 2000 lists of 512", "token", 1_024_000)
        samples.append(
            repeat(sample, lambda: lambda: con.execute("SELECT count(rowids_for_seq(t)) FROM seqs").fetchall(), repeats)
        )
    print("hashing")
    for s in samples:
        print("  " + s.line())
    return {"hashing": {"samples": [s.record() for s in samples]}}
