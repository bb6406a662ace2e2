"""Hashing: tokens to row ids, beside the same hash in NumPy and engramdb-python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from engramsql.bench.measure import Contender, Result, Section, a_b_b_a
from engramsql.bench.progress import progress
from engramsql.engine import Spec
from engramsql.errors import InternalError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engramsql.bench.target import Target

__all__ = ["TOKENS", "numpy_rowids", "run"]

TOKENS = (10, 512, 100_000)
# Of the released Qwen PLE spec, which engramdb-python knows too.
_EOS = 248_044


def run(target: Target, peers: list[str], repeats: int) -> Section:
    """Spec.rowids of the released Qwen PLE spec, and of the table's if it is another, at 10, 512 and 100000 tokens."""
    section = Section("hash", "hash: tokens to row ids")
    released = Spec.released_qwen_ple()
    specs = [released]
    if (table_spec := target.open().spec) is not None and table_spec.can_hash and table_spec.name != released.name:
        specs.append(table_spec)
    for spec in specs:
        for tokens in TOKENS:
            progress(f"hash: {spec.name}, {tokens} tokens")
            section.results += _measure(spec, spec is released, tokens, peers, repeats)
    return section


def _measure(spec: Spec, is_released: bool, tokens: int, peers: list[str], repeats: int) -> list[Result]:
    def contender(name: str, role: str, path: str, hash_them: Callable[[Any], object], as_list: bool) -> Contender:
        def prepare() -> Callable[[], object]:
            ids = np.random.default_rng().integers(0, spec.vocab_size, tokens)
            given = ids.tolist() if as_list else ids
            return lambda: hash_them(given)

        return Contender(Result(f"{name}, {tokens} tokens", role, "token", tokens, code_path=path), prepare)

    contenders = [contender(f"Spec.rowids {spec.name}", "engramsql", f"engine, {spec.family}", spec.rowids, False)]
    if is_released:
        _check(spec)
        reference = lambda ids: numpy_rowids(spec, ids, _EOS)  # noqa: E731
        contenders.append(
            contender("the same in NumPy", "numpy", "vectorised over tokens, % per head", reference, False)
        )
        if "engramdb" in peers:
            import engramdb

            path = "engramdb.rowids_for_seq"
            contenders.append(contender("engramdb", "engramdb", path, engramdb.rowids_for_seq, True))
    results = a_b_b_a(contenders, repeats * (1 if tokens > 10_000 else 20))
    results[0].compare(results[1:])
    return results


def _check(spec: Spec) -> None:
    """The reference measures nothing if it hashes something else."""
    ids = np.random.default_rng().integers(0, spec.vocab_size, 200)
    ids[::7] = _EOS
    if not np.array_equal(spec.rowids(ids), numpy_rowids(spec, ids, _EOS)):
        raise InternalError("Spec.rowids and its NumPy reference disagree; please report it")


def numpy_rowids(spec: Spec, ids: NDArray[np.int64], eos: int) -> NDArray[np.int64]:
    """Row ids of a ``qwen_ple_v1`` spec: XOR of token x multiplier over the n-gram, modulo head size, plus head offset.

    A token sees nothing older than an EOS before it.
    """
    window = [ids]
    for _ in range(len(spec.multipliers) - 1):
        newer = window[-1]
        older = np.concatenate([[eos], newer[:-1]])
        if len(window) > 1:
            older[window[1] == eos] = eos
        window.append(older)
    out = np.empty((len(ids), spec.heads), np.int64)
    mixed = window[0] * spec.multipliers[0]
    head = 0
    for order in range(2, len(window) + 1):
        mixed = mixed ^ (window[order - 1] * spec.multipliers[order - 1])
        while head < spec.heads and spec.ngram_orders[head] == order:
            out[:, head] = mixed % spec.head_sizes[head] + spec.head_offsets[head]
            head += 1
    return out
