"""Decoding: bytes to float32 on one thread, checked bit for bit first, and tokens to e_t."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from engramsql.bench.arrays import aligned
from engramsql.bench.hot import bring_in, first_calls, limit_loop, warm
from engramsql.bench.limits import rate
from engramsql.bench.measure import Contender, Result, Section, a_b_b_a, in_memory, plural
from engramsql.bench.progress import progress
from engramsql.bench.target import paths_since_now
from engramsql.engine import Probe, decode, set_threads
from engramsql.errors import InternalError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engramsql.bench.target import Target

__all__ = ["TOKENS", "check_fp8", "e4m3_values", "run"]

TOKENS = (1, 16, 512, 4096)
_ROW_BYTES = 160
_SCALE = 209 / 2**20


def run(target: Target, repeats: int) -> Section:
    """FP8 to float32 in L2 and from memory beside plain widening; then e_t of the table's own spec, hot."""
    section = Section("decode", "decode: bytes to float32, and tokens to float32 e_t (hot); one thread")
    check_fp8()
    section.notes.append("FP8 E4M3 was checked bit for bit: all 256 bytes at several scales")
    formats: list[tuple[str, int, float | None]] = [("fp8_e4m3", _ROW_BYTES, _SCALE)]
    if target.format is not None and (target.format, target.row_bytes) != ("fp8_e4m3", _ROW_BYTES):
        formats.append((target.format, target.row_bytes, target.scale))
    for format, row_bytes, scale in formats:
        for place in ("cache", "memory"):
            progress(f"decode: {format} {place}")
            limit = rate("widen", place, "value")
            ours = rate(format, place, "value", f"{format} to float32", row_bytes=row_bytes, scale=scale)
            results = a_b_b_a([limit, ours], repeats)
            results[1].compare(results[:1])
            section.results += results
    spec = target.open().spec
    if target.dim is None or spec is None or not spec.can_hash:
        section.notes.append("no e_t: the table has no value format or no hash spec that can hash")
    elif target.hot_rows < target.rows:
        section.notes.append("no e_t: tokens reach any row, and memory does not hold them all")
    else:
        section.results += _e_t(section, target, repeats)
    return section


def _e_t(section: Section, target: Target, repeats: int) -> list[Result]:
    bring_in(target)
    table, probe = target.open(), Probe(target.extents(), target.hot_rows)
    spec, dim = table.spec, table.dim
    assert spec is not None
    assert dim is not None
    found: list[Result] = []
    # As the copy loop beside it.
    set_threads(1)
    warm(table, target)
    for tokens in TOKENS:
        progress(f"decode: e_t of {tokens} tokens")
        rows = tokens * target.heads
        limit = limit_loop(probe, target, rows, aligned((rows, target.row_bytes), np.uint8), 1)
        limit.result.unit, limit.result.units = "token", tokens
        out = aligned((tokens, target.heads * dim), np.float32)

        def prepare(tokens: int = tokens, out: NDArray[np.float32] = out) -> Callable[[], object]:
            ids = np.random.default_rng().integers(0, spec.vocab_size, tokens)
            return lambda: table.e_t(ids, out=out)

        result = Result(f"Table.e_t(tokens, out=), {plural(tokens, 'token')}", "engramsql", "token", tokens)
        ours = Contender(result, prepare, paths_since_now(table))
        with in_memory(section, f"e_t of {tokens} tokens"):
            count = max(100, repeats * 40) if tokens < 100 else repeats * 5
            results = a_b_b_a([limit, ours], count, first_calls(rows))
        results[1].compare(results[:1])
        found += results
    return found


def check_fp8() -> None:
    """Every byte at ordinary, tiny, huge and negative scales, against the definition of the format.

    Raises:
        InternalError: If one value differs in one bit.
    """
    values = e4m3_values()
    data = np.arange(256, dtype=np.uint8)
    for scale in (1.0, _SCALE, 2.0**-149, 3e38, -0.37):
        with np.errstate(over="ignore"):
            expected = values * np.float32(scale)
        found = decode(data, "fp8_e4m3", scale)
        nan = np.isnan(expected)
        same = np.array_equal(found.view(np.uint32)[~nan], expected.view(np.uint32)[~nan])
        if not same or not np.array_equal(np.isnan(found), nan):
            raise InternalError(f"FP8 decoding at scale {scale} differs from the format's definition; please report it")


def e4m3_values() -> NDArray[np.float32]:
    """The 256 values of FP8 E4M3 (FN): sign, 4 bits of exponent (bias 7), 3 of mantissa; NaN at 0x7F and 0xFF."""
    byte = np.arange(256)
    exponent, mantissa = (byte >> 3) & 15, byte & 7
    value = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7))
    value[(byte & 0x7F) == 0x7F] = np.nan
    return np.where(byte >= 128, -value, value).astype(np.float32)
