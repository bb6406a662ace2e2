"""rowids_for_seq: the golden row ids, and tokens that must be refused."""

from __future__ import annotations

import json

import duckdb
import pytest
from extension_support import GOLDEN, connect, connect_ple, golden
from golden_data import arrays_of


@pytest.fixture(scope="module")
def con():
    return connect_ple()


def released_cases():
    document = json.loads((GOLDEN / "qwen_ple_v1.json").read_text())
    return document["cases"], arrays_of(GOLDEN / "qwen_ple_v1.npz")


def test_released_spec_without_history(con):
    cases, arrays = released_cases()
    checked = 0
    for case in cases:
        tokens, starts, context, want = (
            arrays[case["arrays"][key]] for key in ("tokens", "query_start_loc", "context", "rowids")
        )
        if len(starts) != 2 or context.size:
            continue
        got = con.execute("SELECT rowids_for_seq(?::BIGINT[])", [tokens.tolist()]).fetchone()[0]
        assert got == want.tolist(), case["name"]
        checked += 1
    assert checked or all(arrays[case["arrays"]["context"]].size for case in cases)


def test_history_continues_a_sequence(con):
    tokens = golden("ckpt_qwen4_exp_fp8")["tokens"].tolist()
    whole = con.execute("SELECT rowids_for_seq('ple', ?)", [tokens]).fetchone()[0]
    assert whole == golden("ckpt_qwen4_exp_fp8")["rowids"].tolist()
    for cut in range(1, len(tokens)):
        got = con.execute(
            "SELECT rowids_for_seq('ple', $t, $h), rowids_for_seq_with_history('ple', $h, $t)",
            {"t": tokens[cut:], "h": tokens[:cut]},
        ).fetchone()
        assert got == (whole[cut:], whole[cut:])


def test_deepseek_layers_differ(con):
    con = connect()
    con.execute(f"CALL engram_register('v', '{GOLDEN / 'ckpt_deepseek_v41'}')")
    names = [row[0] for row in con.execute("SELECT name FROM engram_tables() ORDER BY name").fetchall()]
    assert names == ["v_l1", "v_l3"]
    one, three = con.execute("SELECT rowids_for_seq('v_l1', [5, 6, 7]), rowids_for_seq('v_l3', [5, 6, 7])").fetchone()
    assert one != three
    assert len(one) == len(three) == 3


@pytest.mark.parametrize(
    "tokens", ["[1, 2]", "range(1, 3)", "[1, 2]::UBIGINT[]", "[1, 2]::UTINYINT[]", "[1, 2]::INTEGER[2]"]
)
def test_token_list_types(con, tokens):
    want = con.execute("SELECT rowids_for_seq([1::BIGINT, 2])").fetchone()
    assert con.execute(f"SELECT rowids_for_seq({tokens})").fetchone() == want


def test_empty_and_null(con):
    got = con.execute(
        "SELECT rowids_for_seq([]), rowids_for_seq(NULL), rowids_for_seq('ple', NULL), rowids_for_seq('ple', [], []), "
        "rowids_for_seq('ple', [1], NULL)"
    ).fetchone()
    assert got == ([], None, None, [], None)


def test_lists_in_a_column(con):
    con.execute(
        "CREATE OR REPLACE TABLE seqs AS SELECT i, "
        "CASE WHEN i % 7 = 3 THEN NULL ELSE range(i % 200, i % 200 + i % 5) END tokens FROM range(5000) t(i)"
    )
    got = con.execute("SELECT i, tokens, rowids_for_seq('ple', tokens) FROM seqs ORDER BY i").fetchall()
    alone = {}
    for _, tokens, rowids in got:
        if tokens is None:
            assert rowids is None
            continue
        key = tuple(tokens)
        if key not in alone:
            alone[key] = con.execute("SELECT rowids_for_seq('ple', ?::BIGINT[])", [tokens]).fetchone()[0]
        assert rowids == alone[key]


@pytest.mark.parametrize("bad", [-1, 248320, 2**31, 2**40, 2**63 - 1, 2**63, -(2**64)])
def test_tokens_outside_the_vocabulary(con, bad):
    text = rf"token id {bad} at position 2 is outside the vocabulary \(0 to 248319\)"
    with pytest.raises(duckdb.Error, match=text):
        con.execute(f"SELECT rowids_for_seq([1, 2, '{bad}'::HUGEINT])")
    with pytest.raises(duckdb.Error, match="history"):
        con.execute(f"SELECT rowids_for_seq('ple', [1], [1, 2, '{bad}'::HUGEINT])")


def test_null_inside_a_list(con):
    with pytest.raises(duckdb.Error, match="rowids_for_seq: token id at position 1 is NULL"):
        con.execute("SELECT rowids_for_seq([5, NULL])")
    with pytest.raises(duckdb.Error, match="history token id at position 0 is NULL"):
        con.execute("SELECT rowids_for_seq('ple', [5], [NULL])")
    with pytest.raises(duckdb.Error, match="token id at position 0 is NULL"):
        con.execute("SELECT rowids_for_seq([NULL])")


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("[1.5]", r"token ids must be integers, got DECIMAL\(2,1\) in \[1.5\]"),
        ("['a']", r"token ids must be integers, got VARCHAR in \['a'\]"),
        ("5", "token ids must be a list of integers, got INTEGER 5"),
        ("[[5]]", r"token ids must be a list of integers, got INTEGER\[\]\[\]"),
    ],
)
def test_what_is_no_token_list(con, tokens, text):
    with pytest.raises(duckdb.Error, match=f"rowids_for_seq: {text}"):
        con.execute(f"SELECT rowids_for_seq({tokens})")


def test_a_table_without_a_spec(con, tmp_path):
    (tmp_path / "shard_000.bin").write_bytes(bytes(80))
    con.execute(f"CALL engram_register('bare', '{tmp_path}', width := 8)")
    for call in (
        "rowids_for_seq('bare', [1])",
        "(SELECT count(*) FROM engram_heads('bare'))",
        "(SELECT count(*) FROM engram_embeddings('bare', [1]))",
    ):
        with pytest.raises(duckdb.Error, match="table 'bare' has no hash spec"):
            con.execute(f"SELECT {call}")
    con.execute("CALL engram_drop('bare')")
