"""Row ids of the qwen_ple_v1 family equal those of the published engines, through Spec and through SQL."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from golden_data import case, cases, names
from helpers import one, q, refuses, sql_refuses

from engramsql.engine import Spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

RELEASE = cases("qwen_ple_v1")[0].top


def release_spec() -> Spec:
    return Spec.from_config("qwen_ple_v1", RELEASE["config"], 1, None)


def requests(c: Any) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """(tokens, history, expected row ids) of each request of a packed batch; history is oldest first."""
    cuts = c["query_start_loc"].astype(int)
    return [
        (c["tokens"][a:b].astype(np.int64), c["context"][r].astype(np.int64), c["rowids"][a:b].astype(np.int64))
        for r, (a, b) in enumerate(itertools.pairwise(cuts))
    ]


def test_release_constants() -> None:
    spec = release_spec()
    assert list(spec.multipliers) == RELEASE["layer_multipliers"]
    assert list(spec.head_sizes) == RELEASE["head_vocab_sizes"]
    assert list(spec.head_offsets) == RELEASE["head_offsets"]


@pytest.mark.parametrize("name", names("qwen_ple_v1"))
def test_release_rowids(name: str) -> None:
    spec = release_spec()
    for tokens, history, expected in requests(case("qwen_ple_v1", name)):
        found = np.asarray(spec.rowids(tokens, history=history))
        assert found.dtype == np.int64
        assert found.shape == expected.shape
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("name", names("qwen_ple_v1"))
def test_release_rowids_in_sql(ple: Any, name: str) -> None:
    for tokens, history, expected in requests(case("qwen_ple_v1", name)):
        found = one(
            ple,
            "SELECT rowids_for_seq_with_history('ple', ?::BIGINT[], ?::BIGINT[])",
            history.tolist(),
            tokens.tolist(),
        )
        assert found == expected.tolist()
        assert found == one(
            ple, "SELECT rowids_for_seq('ple', ?::BIGINT[], ?::BIGINT[])", tokens.tolist(), history.tolist()
        )
        if (history == RELEASE["config"]["eos_token_id"]).all():
            assert found == one(ple, "SELECT rowids_for_seq(?::BIGINT[])", tokens.tolist())
            assert found == one(ple, "SELECT rowids_for_seq('ple', ?::BIGINT[])", tokens.tolist())


def test_types_of_rowids(db: Any) -> None:
    assert one(db, "SELECT typeof(rowids_for_seq([1, 2]))") == "BIGINT[][]"
    assert one(db, "SELECT rowids_for_seq([]::BIGINT[])") == []
    assert one(db, "SELECT rowids_for_seq(NULL::BIGINT[])") is None


@pytest.mark.parametrize("type_", ["UTINYINT", "SMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT", "HUGEINT"])
def test_any_integer_type_binds_as_tokens(db: Any, type_: str) -> None:
    expected = one(db, "SELECT rowids_for_seq([1, 2, 3]::BIGINT[])")
    assert one(db, f"SELECT rowids_for_seq([1, 2, 3]::{type_}[])") == expected
    assert one(db, "SELECT rowids_for_seq(range(1, 4))") == expected
    assert one(db, f"SELECT rowids_for_seq(t) FROM (SELECT [1, 2, 3]::{type_}[] AS t)") == expected


def test_worked_example(db: Any) -> None:
    found = one(db, "SELECT rowids_for_seq([248044, 1000, 99999, 42])")
    assert found[1][:2] == [1876085, 31308566]
    assert found[2][0] == 4504090
    assert found[2][8] == 172823072


def test_streaming_at_every_cut() -> None:
    spec = release_spec()
    (tokens, history, expected) = requests(case("qwen_ple_v1", "stream_full"))[0]
    whole = np.concatenate([history, tokens])
    for cut in range(len(tokens) + 1):
        head = np.asarray(spec.rowids(tokens[:cut], history=history))
        tail = np.asarray(spec.rowids(tokens[cut:], history=whole[: len(history) + cut]))
        assert np.array_equal(np.concatenate([head.reshape(-1, 16), tail.reshape(-1, 16)]), expected)


def test_longer_history_changes_nothing() -> None:
    spec = release_spec()
    rng = np.random.default_rng(5)
    history, tokens = rng.integers(0, 248320, 50), rng.integers(0, 248320, 20)
    assert np.array_equal(spec.rowids(tokens, history=history), spec.rowids(tokens, history=history[-2:]))


@pytest.mark.parametrize("name", names("qwen_generic"))
def test_other_geometries(name: str) -> None:
    c = case("qwen_generic", name)
    per = c.own["config"]["heads_per_ngram"]
    n = c.own["config"]["ngram_size"]
    config = {**c.own["config"], "ple_layer_ids": [5, 3, 9], "ple_embed_dim": 16 * per * (n - 1)}
    layer = [2, 4, 8][c.own["dense_layer"]]
    spec = Spec.from_config("qwen_ple_v1", config, layer, None)
    assert list(spec.multipliers) == c.own["layer_multipliers"]
    assert list(spec.head_sizes) == c.own["head_vocab_sizes"]
    assert list(spec.head_offsets) == c.own["head_offsets"]
    for tokens, history, expected in requests(c):
        assert np.array_equal(spec.rowids(tokens, history=history), expected)


def test_out_of_vocabulary_is_refused_with_its_position(db: Any) -> None:
    """Implementations disagree outside the vocabulary (golden keeps three answers): refuse, as the contract says."""
    spec = release_spec()
    for token in (
        case("qwen_out_of_vocab", "oov")["tokens"].tolist() + case("qwen_out_of_vocab", "negative")["tokens"].tolist()
    ):
        if 0 <= token < 248320:
            spec.rowids([token])
            continue
        refuses(lambda token=token: spec.rowids([5, token]), token, "position 1")
        refuses(lambda token=token: spec.rowids([5], history=[token]), token)
        sql_refuses(db, "SELECT rowids_for_seq([5, 6, ?::BIGINT])", token, "position 2", params=[token])


def test_random_ids_stay_inside_their_head(db: Any) -> None:
    spec = release_spec()
    tokens = np.random.default_rng(11).integers(0, 248320, 5000)
    ids = np.asarray(spec.rowids(tokens))
    low = np.array(RELEASE["head_offsets"])
    assert ((ids >= low) & (ids < low + np.array(RELEASE["head_vocab_sizes"]))).all()
    found = q(db, "SELECT rowids_for_seq(?::BIGINT[])", tokens.tolist())[0][0]
    assert np.array_equal(np.array(found), ids)
