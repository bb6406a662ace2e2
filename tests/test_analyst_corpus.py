"""Macros about corpora, against counts in Python over n-grams hashed in Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import duckdb
import numpy as np
import pytest
from golden_data import GOLDEN
from helpers import q, sql_refuses
from ngram_reference import ORDERS, SIZES, Gram, corpus_grams
from oldest import answers_of_oldest

HEADS = range(len(SIZES))


def make_corpus(seed: int, sequences: int = 30) -> list[list[int] | None]:
    """Sequences of different lengths with frequent tokens and EOS; an empty one and a NULL among them."""
    draw = np.random.default_rng(seed)
    corpus: list[list[int] | None] = [
        (draw.integers(0, 25, int(draw.integers(1, 60))) ** 2 % 512).tolist() for _ in range(sequences)
    ]
    return [*corpus, [], None, [1, 1, 1]]


@pytest.fixture(params=[0, 1])
def corpus(request: pytest.FixtureRequest) -> list[list[int] | None]:
    return make_corpus(request.param)


@pytest.fixture
def ple(db: Any, corpus: list[list[int] | None]) -> Any:
    db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
    db.connection.execute("CREATE TABLE docs AS SELECT unnest(?::BIGINT[][]) AS tokens", [corpus])
    return db


def by_row(grams: list[Gram]) -> dict[int, Counter[tuple[int, ...]]]:
    """Uses of each n-gram by row id."""
    found: dict[int, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for gram in grams:
        found[gram.rowid][gram.ngram] += 1
    return found


def test_head_load(ple: Any, corpus: list[list[int] | None]) -> None:
    want = []
    for head in HEADS:
        rows = by_row([gram for gram in corpus_grams(corpus) if gram.head == head])
        ngrams = sum(map(len, rows.values()))
        collided = [uses for uses in rows.values() if len(uses) > 1]
        want.append(
            (
                head, ORDERS[head], SIZES[head], sum(uses.total() for uses in rows.values()), ngrams, len(rows),
                pytest.approx(len(rows) / SIZES[head]), pytest.approx(1 - (1 - 1 / SIZES[head]) ** ngrams),
                len(collided), sum(uses.total() for uses in collided), max(map(len, rows.values())),
            )
        )  # fmt: skip
    assert q(ple, "FROM engram_head_load('ple', 'docs')") == want


def test_heads_that_a_corpus_does_not_use(ple: Any) -> None:
    ple.connection.execute("CREATE TABLE none (tokens BIGINT[])")
    lines = q(ple, "FROM engram_head_load('ple', 'none')")
    assert [line[3:] for line in lines] == [(0, 0, 0, 0.0, 0.0, 0, 0, 0)] * len(SIZES)
    assert q(ple, "FROM engram_coverage('ple', 'none')") == [(0, 0, 0, sum(SIZES), 0.0)]
    assert q(ple, "FROM engram_collisions('ple', 'none')") == []
    assert q(
        ple, "SELECT batches, lookups, rows_used, batch_rows_mean, top_100_share FROM engram_reuse('ple', 'none', 4)"
    ) == [(0, 0, 0, None, None)]


def test_collisions_and_the_ngrams_behind_them(ple: Any, corpus: list[list[int] | None]) -> None:
    rows = by_row(corpus_grams(corpus))
    heads = {gram.rowid: gram.head for gram in corpus_grams(corpus)}
    want = [
        (rowid, heads[rowid], len(uses), uses.total(), pytest.approx(max(uses.values()) / uses.total()))
        for rowid, uses in sorted(rows.items())
        if len(uses) > 1
    ]
    assert len(want) > 20
    assert q(ple, "FROM engram_collisions('ple', 'docs') ORDER BY rowid") == want
    for rowid, *_ in want[:5]:
        uses = sorted(rows[rowid].items(), key=lambda item: (-item[1], item[0]))
        lines = q(ple, "FROM engram_row_ngrams('ple', 'docs', ?)", rowid)
        total = rows[rowid].total()
        assert lines == [(list(ngram), count, pytest.approx(count / total)) for ngram, count in uses]
    # Padding, which no n-gram reaches.
    assert q(ple, "FROM engram_row_ngrams('ple', 'docs', ?)", sum(SIZES)) == []


def test_coverage(ple: Any, corpus: list[list[int] | None]) -> None:
    grams = corpus_grams(corpus)
    unique = len({gram.rowid for gram in grams})
    tokens = sum(len(tokens or []) for tokens in corpus)
    want = (tokens, len(grams), unique, sum(SIZES), pytest.approx(unique / sum(SIZES)))
    assert q(ple, "FROM engram_coverage('ple', 'docs')") == [want]


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_reuse(ple: Any, corpus: list[list[int] | None], batch: int) -> None:
    batches, uses = [], Counter[int]()
    for tokens in corpus:
        grams = corpus_grams([tokens])
        uses.update(gram.rowid for gram in grams)
        for part in range(0, len(tokens or []), batch):
            batches.append({gram.rowid for gram in grams if part <= gram.token < part + batch})
    counts = sorted(uses.values(), reverse=True)
    sizes = [len(rows) for rows in batches]
    hundredth = -(-len(counts) // 100)
    ((*found,),) = q(ple, "FROM engram_reuse('ple', 'docs', ?)", batch)
    tops = [sum(counts[:top]) / sum(counts) for top in (100, 1000, 10000, hundredth)]
    assert found == [
        len(batches), sum(counts), len(counts), pytest.approx(np.mean(sizes)), max(sizes),
        pytest.approx(sum(counts) / sum(sizes)), *map(pytest.approx, tops),
    ]  # fmt: skip


def test_a_batch_has_tokens(ple: Any) -> None:
    ple.connection.execute("CREATE TABLE none (tokens BIGINT[])")
    rule = "engram_reuse: batch must be an integer of 1 or more, got "
    for corpus in ("docs", "none"):
        for batch, shown in [
            ("0", "0"),
            ("-1", "-1"),
            ("2.5", "DECIMAL(2,1) 2.5"),
            ("1.0::DOUBLE", "DOUBLE 1.0"),
            ("'2'", "VARCHAR '2'"),
            ("NULL", "NULL"),
            ("1::HUGEINT << 100", str(1 << 100)),
            ("(SELECT 0)", "0"),
        ]:
            sql_refuses(ple, f"FROM engram_reuse('ple', '{corpus}', {batch})", rule + shown)
    whole = q(ple, "FROM engram_reuse('ple', 'docs', 3)")
    for batch in ("3::UTINYINT", "3::HUGEINT", "(SELECT 3)"):
        assert q(ple, f"FROM engram_reuse('ple', 'docs', {batch})") == whole


def test_a_row_id_is_one_of_the_table(ple: Any) -> None:
    """An empty answer would say that no n-gram leads to the row."""
    ple.connection.execute("CREATE TABLE none (tokens BIGINT[])")
    rows = "table 'ple' has 1408 rows"
    for corpus in ("docs", "none"):
        for rowid, *fragments in [
            ("3.4", "engram_row_ngrams: a row id must be an integer, got DECIMAL(2,1) 3.4", rows),
            ("'3'", "a row id must be an integer, got VARCHAR '3'", rows),
            ("-1", "row id -1 is out of range", rows),
            ("1408", "row id 1408 is out of range", rows),
            ("1::HUGEINT << 100", "is out of range", rows),
        ]:
            sql_refuses(ple, f"FROM engram_row_ngrams('ple', '{corpus}', {rowid})", *fragments)
        assert q(ple, f"FROM engram_row_ngrams('ple', '{corpus}', NULL)") == []
    want = q(ple, "FROM engram_row_ngrams('ple', 'docs', 55)")
    assert want
    for rowid in ("rowid := 55", "55::UTINYINT", "(SELECT 55)"):
        assert q(ple, f"FROM engram_row_ngrams('ple', 'docs', {rowid})") == want


def test_hot_rows(ple: Any, corpus: list[list[int] | None]) -> None:
    uses = Counter(gram.rowid for gram in corpus_grams(corpus))
    heads = {gram.rowid: gram.head for gram in corpus_grams(corpus)}
    ordered = sorted(uses.items(), key=lambda item: (-item[1], item[0]))
    total, running, want = uses.total(), 0, []
    for place, (rowid, count) in enumerate(ordered, 1):
        running += count
        want.append((place, rowid, heads[rowid], count, pytest.approx(count / total), pytest.approx(running / total)))
    assert q(ple, "FROM engram_hot_rows('ple', 'docs')") == want


def test_what_a_corpus_can_be(ple: Any, tmp_path: Any) -> None:
    con = ple.connection
    con.execute("CREATE VIEW a_view AS SELECT tokens FROM docs")
    con.execute("CREATE TEMP TABLE a_temporary AS FROM docs")
    con.execute('CREATE SCHEMA s; CREATE TABLE s."odd name" AS FROM docs')
    con.execute(f"COPY docs TO '{tmp_path / 'docs.parquet'}'")
    want = q(ple, "FROM engram_coverage('ple', 'docs')")
    names = ["a_view", "a_temporary", 's."odd name"', str(tmp_path / "docs.parquet"), "DOCS"]
    assert [q(ple, "FROM engram_coverage('ple', $$" + name + "$$)") for name in names] == [want] * len(names)
    assert q(ple, "WITH part AS (FROM docs) FROM engram_coverage('ple', 'part')") == want
    # A relation that is called as the macros call theirs.
    con.execute("CREATE TABLE _engram_lookups AS FROM docs")
    assert q(ple, "FROM engram_reuse('ple', 'docs', 4)") != []
    variable = con.sql("FROM docs").to_arrow_table()
    assert con.execute("FROM engram_coverage('ple', 'variable')").fetchall() == want
    assert variable.num_rows == len(q(ple, "FROM docs"))


def test_what_no_corpus_is(ple: Any) -> None:
    sql_refuses(ple, "FROM engram_coverage('ple', 'nothing')", "nothing")
    sql_refuses(ple, "FROM engram_coverage('nope', 'docs')", "nope")
    ple.connection.execute("CREATE TABLE texts AS SELECT 'a' AS tokens; CREATE TABLE other AS SELECT [1] AS x")
    sql_refuses(ple, "FROM engram_coverage('ple', 'texts')", "token ids must be")
    sql_refuses(ple, "FROM engram_coverage('ple', 'other')", "tokens")
    ple.connection.execute("CREATE TABLE wild AS SELECT [600] AS tokens")
    sql_refuses(ple, "FROM engram_head_load('ple', 'wild')", "token id 600")
    # Which of many sequences it is.
    ple.connection.execute("INSERT INTO wild VALUES ([1]), ([7, 8, NULL, 1, 2, 3, 4, 5, 6, 9])")
    for name in ("head_load", "collisions", "coverage", "hot_rows"):
        ple.connection.execute("CREATE OR REPLACE TABLE a_part AS FROM wild LIMIT 2")
        said = "token id 600 at position 0 is outside the vocabulary (0 to 511), in the list [600]"
        sql_refuses(ple, f"FROM engram_{name}('ple', 'a_part')", said)
        ple.connection.execute("CREATE OR REPLACE TABLE a_part AS FROM wild OFFSET 1")
        said = "token id at position 2 is NULL, in the list [7, 8, NULL, 1, 2, 3, 4, 5, ...]"
        sql_refuses(ple, f"FROM engram_{name}('ple', 'a_part')", said)


def test_the_v41_checkpoint(db: Any) -> None:
    """Counts over row ids that the golden tests prove."""
    db.register("v", GOLDEN / "ckpt_deepseek_v41")
    corpus = np.random.default_rng(5).integers(4, 100, (20, 30)).tolist()
    db.connection.execute("CREATE TABLE docs AS SELECT unnest(?::BIGINT[][]) AS tokens", [corpus])
    for table in ("v_l1", "v_l3"):
        rows = np.concatenate([db.table(table).rowids(tokens) for tokens in corpus])
        load = q(db, f"SELECT head, lookups, rows_used FROM engram_head_load('{table}', 'docs')")
        assert load == [(head, 600, len(set(rows[:, head].tolist()))) for head in range(rows.shape[1])]
        assert q(db, f"SELECT rows_used FROM engram_coverage('{table}', 'docs')") == [
            (len(set(rows.ravel().tolist())),)
        ]


@pytest.mark.skipif(duckdb.__version__.startswith("1."), reason="compares with the oldest DuckDB")
def test_the_oldest_duckdb_says_the_same(ple: Any, corpus: list[list[int] | None]) -> None:
    asked = [
        "SELECT sum(lookups), sum(ngrams), sum(collisions) FROM engram_head_load('ple', 'docs')",
        "SELECT count(*), sum(lookups) FROM engram_collisions('ple', 'docs')",
        "FROM engram_coverage('ple', 'docs')",
        "FROM engram_reuse('ple', 'docs', 4)",
        "SELECT count(*), sum(place * lookups) FROM engram_hot_rows('ple', 'docs')",
        "SELECT count(*), sum(lookups) FROM engram_row_ngrams('ple', 'docs', 7)",
        "SELECT count(*), sum(g.rowid) FROM docs, engram_ngrams('ple', docs.tokens) AS g",
    ]
    literal = str(corpus).replace("None", "NULL")
    prepare = [
        f"CALL engram_register('ple', '{GOLDEN / 'ckpt_qwen4_exp_fp8'}')",
        f"CREATE TABLE docs AS SELECT unnest({literal}::BIGINT[][]) AS tokens",
    ]
    assert answers_of_oldest(prepare, asked) == [str(q(ple, sql)) for sql in asked]
