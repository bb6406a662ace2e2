"""engram_ngrams: the ids that each head hashes, for constants, parameters, subqueries and columns."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from golden_data import GOLDEN, case
from helpers import one, q, sql_refuses
from ngram_reference import EOS, Gram, corpus_grams, qwen_grams

TOKENS = [7, 1, 1, 300, 7, 1, 5, 300, 7, 511, 0, 1]


@pytest.fixture
def ple(db: Any) -> Any:
    db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
    return db


def grams(db: Any, sql: str, *params: object) -> list[Gram]:
    return [Gram(*line[:3], tuple(line[3])) for line in q(db, sql, *params)]


@pytest.mark.parametrize("seed", range(5))
def test_ngrams_are_those_of_the_published_rule(ple: Any, seed: int) -> None:
    draw = np.random.default_rng(seed)
    # Few distinct ids, so that EOS is frequent.
    history, tokens = draw.integers(0, 6, seed).tolist(), draw.integers(0, 6, 50).tolist()
    found = grams(ple, "FROM engram_ngrams('ple', ?, ?)", tokens, history)
    assert found == qwen_grams(tokens, history)
    rowids = one(ple, "SELECT rowids_for_seq('ple', ?::BIGINT[], ?::BIGINT[])", tokens, history)
    assert [gram.rowid for gram in found] == [rowid for of_token in rowids for rowid in of_token]


@pytest.mark.parametrize("name", ["fp8", "bf16", "nvfp4"])
def test_row_ids_are_the_golden_ones(db: Any, name: str) -> None:
    db.register("t", GOLDEN / f"ckpt_qwen4_exp_{name}")
    golden = case(f"ckpt_qwen4_exp_{name}_expected", "main")
    tokens, rowids = golden["tokens"].tolist(), golden["rowids"].astype(np.int64)
    found = grams(db, "FROM engram_ngrams('t', ?)", tokens)
    assert [gram.rowid for gram in found] == rowids.ravel().tolist()
    # What a gram ends with is its token, and what it begins with is the EOS before the sequence.
    assert [gram.ngram[-1] for gram in found] == np.repeat(tokens, rowids.shape[1]).tolist()
    assert found[0].ngram == (EOS, tokens[0])
    assert len({(gram.head, gram.ngram) for gram in found}) >= len({gram.rowid for gram in found})


@pytest.mark.parametrize("layer", [1, 3])
def test_compressed_ids_pads_and_images(db: Any, layer: int) -> None:
    db.register("v", GOLDEN / "ckpt_deepseek_v41")
    golden = case("ckpt_deepseek_v41_expected", "main")
    tokens, compressed = golden["tokens"].tolist(), golden["token_map"].tolist()
    found = grams(db, f"FROM engram_ngrams('v_l{layer}', ?)", tokens)
    assert [gram.rowid for gram in found] == golden["ids"][:, [1, 3].index(layer)].ravel().tolist()
    orders = [order for (order,) in q(db, f"SELECT ngram_order FROM engram_heads('v_l{layer}') ORDER BY head")]
    pad = found[0].ngram[0]
    for gram in found:
        window = []
        for place in range(gram.token, gram.token - orders[gram.head], -1):
            visible = place >= 0 and not golden["dead"][place : gram.token + 1].any()
            window.append(compressed[tokens[place]] if visible else pad)
        assert gram.ngram == tuple(reversed(window))
    assert golden["dead"].any()
    assert any(set(gram.ngram) == {pad} for gram in found)


def test_equal_ngrams_of_a_head_have_one_row(ple: Any) -> None:
    corpus = np.random.default_rng(3).integers(0, 30, (40, 60)).tolist()
    ple.connection.execute("CREATE TABLE docs AS SELECT unnest(?::BIGINT[][]) AS tokens", [corpus])
    several = "SELECT g.head, g.ngram FROM docs, engram_ngrams('ple', docs.tokens) AS g GROUP BY ALL"
    assert q(ple, f"{several} HAVING count(DISTINCT g.rowid) > 1") == []
    found = Counter(grams(ple, "SELECT g.* FROM docs, engram_ngrams('ple', docs.tokens) AS g"))
    assert found == Counter(corpus_grams(corpus))


def test_every_form_of_an_argument(ple: Any) -> None:
    want = qwen_grams(TOKENS, [9, 9])
    ple.connection.execute("CREATE TABLE one AS SELECT ?::BIGINT[] AS tokens, [9, 9] AS before", [TOKENS])
    for sql in [
        f"FROM engram_ngrams('ple', {TOKENS}, [9, 9])",
        f"FROM engram_ngrams('ple', {TOKENS}, history := [9, 9])",
        f"FROM engram_ngrams('ple', {TOKENS}::UTINYINT[], [9, 9])".replace("300", "30").replace("511", "51"),
        "FROM engram_ngrams('ple', (SELECT tokens FROM one), (SELECT before FROM one))",
        "SELECT g.* FROM one, engram_ngrams('ple', one.tokens, one.before) AS g",
        "SELECT g.* FROM one, LATERAL (SELECT * FROM engram_ngrams('ple', tokens, before)) AS g",
    ]:
        found = grams(ple, sql)
        if "UTINYINT" in sql:
            assert found == qwen_grams([30 if t == 300 else 51 if t == 511 else t for t in TOKENS], [9, 9])
        else:
            assert found == want
    assert grams(ple, f"FROM engram_ngrams('ple', {TOKENS}, NULL)") == qwen_grams(TOKENS)
    assert q(ple, "FROM engram_ngrams('ple', NULL)") == q(ple, "FROM engram_ngrams('ple', [])") == []


def test_a_lateral_column_needs_no_join(ple: Any) -> None:
    ple.connection.execute("CREATE TABLE docs AS SELECT [i, i + 1] AS tokens FROM range(100) t(i)")
    asked = "EXPLAIN SELECT g.rowid, count(*) FROM docs, engram_ngrams('ple', docs.tokens) AS g GROUP BY g.rowid"
    plan = q(ple, asked)[0][1].upper()
    assert "JOIN" not in plan
    assert "UNNEST" in plan


def test_null_lists_and_many_rows(ple: Any) -> None:
    sql = """
        SELECT d.i, count(*), min(g.rowid) FROM
            (SELECT i, CASE WHEN i % 3 = 0 THEN NULL ELSE range(i % 7) END AS tokens FROM range(6000) t(i)) AS d,
            engram_ngrams('ple', d.tokens) AS g
        GROUP BY d.i ORDER BY d.i"""
    want = []
    for i in range(6000):
        if i % 3 and i % 7:
            of_row = qwen_grams(list(range(i % 7)))
            want.append((i, len(of_row), min(gram.rowid for gram in of_row)))
    assert q(ple, sql) == want


def test_what_is_refused(ple: Any, tmp_path: Any) -> None:
    sql_refuses(ple, "FROM engram_ngrams('ple', [1, 512])", "token id 512", "position 1")
    sql_refuses(ple, "FROM engram_ngrams('ple', [1, NULL])", "position 1 is NULL")
    sql_refuses(ple, "FROM engram_ngrams('ple', [1.5])", "token ids must be integers")
    sql_refuses(ple, "FROM engram_ngrams('ple', [1], [-1])", "history", "-1")
    sql_refuses(ple, "FROM engram_ngrams('nope', [1])", "nope")
    (tmp_path / "shard_000.bin").write_bytes(bytes(64))
    ple.register("s", tmp_path, width=8)
    sql_refuses(ple, "FROM engram_ngrams('s', [1])", "table 's' has no hash spec")


def test_a_long_constant_list_takes_no_more_than_a_column_does(ple: Any) -> None:
    """A result that DuckDB folds to a constant takes about 600 bytes a line."""
    code = """
import sys
import engramsql
db = engramsql.connect()
db.register("ple", sys.argv[1])
sql = f"SELECT count(*), sum(len(ngram)) FROM engram_ngrams('ple', {[7, 8, 9, 1] * 75_000})"
print(db.sql(sql).fetchall())
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""
    command = [sys.executable, "-c", code, str(GOLDEN / "ckpt_qwen4_exp_fp8")]
    found, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    orders = q(ple, "SELECT sum(ngram_order), count(*) FROM engram_heads('ple')")
    assert found == str([(300_000 * orders[0][1], 300_000 * orders[0][0])])
    assert int(peak) < 1_500_000
