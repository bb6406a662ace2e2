"""What is said beside DuckDB's own message where a table function is given what it does not take."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import duckdb
import pytest
from golden_data import GOLDEN
from helpers import q, sql_refuses

import engramsql
from engramsql.errors import EngramWarning


@pytest.fixture
def ple(db: Any) -> Any:
    db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
    db.execute("CREATE TABLE keys AS SELECT unnest([7, 9]) AS id, 'ple' AS name")
    return db


@pytest.mark.parametrize("name", ["plan", "prefetch"])
def test_lists_of_plan_and_prefetch_are_constants(ple: Any, name: str) -> None:
    remedy = "SET VARIABLE ids = (SELECT list(id) FROM ...), then getvariable('ids')"
    for sql in (
        f"FROM engram_{name}('ple', (SELECT list(id) FROM keys))",
        f"SELECT p.* FROM keys AS k, engram_{name}('ple', [k.id]) AS p",
    ):
        with pytest.raises(Exception, match="SET VARIABLE") as raised:
            ple.sql(sql).fetchall()
        assert remedy in str(raised.value)
    # The remedy works.
    ple.execute("SET VARIABLE ids = (SELECT list(id) FROM keys)")
    assert ple.sql(f"SELECT sum(rows) FROM engram_{name}('ple', getvariable('ids'))").fetchall() == [(2,)]


def test_names_of_tables_are_constants(ple: Any) -> None:
    for sql in (
        "SELECT d.* FROM keys AS k, engram_dead_rows(k.name) AS d",
        "FROM engram_row_norms((SELECT name FROM keys LIMIT 1))",
    ):
        with pytest.raises(Exception, match="the name of a table") as raised:
            ple.sql(sql).fetchall()
        assert "engram_plan" not in str(raised.value)


def test_no_internal_name_is_told(ple: Any) -> None:
    for sql, said in [
        ("FROM engram_dead_rows(NULL)", "engramsql: table is NULL"),
        ("FROM engram_ngrams('ple', [1, NULL])", "engram_ngrams: token id at position 1 is NULL"),
        ("FROM engram_distance('ple', NULL)", "engram_distance: "),
    ]:
        sql_refuses(ple, sql, said)
        with pytest.raises(Exception, match=r".") as raised:
            q(ple, sql)
        assert "_engram_" not in str(raised.value)


@pytest.mark.parametrize(
    "sql, said",
    [
        (
            "FROM engram_coverage('ple', [17, 4])",
            ["engram_coverage: the corpus is named", "got INTEGER[]", "AS tokens"],
        ),
        (
            "FROM engram_coverage('ple', 'keys')",
            ["engram_coverage: the corpus has no column tokens", "CREATE TEMP VIEW docs"],
        ),
        ("FROM engram_row_ngrams('ple', keys, 5)", ["engram_row_ngrams: the corpus has no column tokens"]),
        ("FROM engram_hot_rows('ple', 'nowhere')", ["engram_hot_rows: there is no table or view 'nowhere'", "tokens"]),
        ("FROM engram_reuse('ple', 'scalars', 2)", ["engram_reuse: the column tokens of the corpus holds INTEGER"]),
        ("FROM engram_coverage('ple', (FROM keys))", ["engram_coverage: the corpus is named", "give its name: 'keys'"]),
        ("FROM engram_coverage('ple', (SELECT 1 AS tokens))", ["the corpus is named", "CREATE TEMP VIEW docs"]),
        ("FROM engram_profile(5)", ["engram_profile: a table is given by its name", "'ple'"]),
        ("FROM engram_verify(5)", ["engram_verify: a table is given by its name"]),
        ("FROM engram_changed_rows(1, 2)", ["engram_changed_rows: a table is given by its name"]),
        ("FROM engram_distance('ple', 3)", ["engram_distance: a table is given by its name"]),
        ("FROM engram_head_primes(5)", ["engram_head_primes: a table is given by its name"]),
        ("FROM engram_row_norms(ple)", ["engram_row_norms: a table is given by its name, as a text ('ple')"]),
        ("FROM engram_diff('ple', 5), engram_heads('ple')", ["a question about a table: a table is given by its name"]),
    ],
)
def test_a_question_answers_in_the_words_of_the_call(ple: Any, sql: str, said: list[str]) -> None:
    ple.execute("CREATE TABLE scalars AS SELECT 5 AS tokens")
    for run in (ple.sql, ple.execute):
        with pytest.raises(duckdb.Error) as raised:
            run(sql)
        message = str(raised.value)
        assert all(words in message for words in said), message
        assert message.count(" Error: ") == 1
        for inner in ("query_table", '_c"', "_engram_", "Candidate"):
            assert inner not in message


def test_a_file_of_tokens_that_sql_does_not_read(ple: Any, tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("17 4 256 17 4\n4 8 17\n")
    with pytest.raises(duckdb.Error, match="engram_coverage: SQL cannot read") as raised:
        ple.sql(f"FROM engram_coverage('ple', '{file}')")
    message = str(raised.value)
    assert "extension" not in message
    assert "Parquet or JSON lines" in message
    # The remedy works.
    remedy = re.search(r"CREATE TEMP VIEW docs .*?(?=; then)", message)
    assert remedy, message
    ple.execute(remedy.group())
    assert ple.sql("SELECT tokens FROM docs").fetchall() == [([17, 4, 256, 17, 4],), ([4, 8, 17],)]
    assert ple.sql("SELECT tokens FROM engram_coverage('ple', 'docs')").fetchall() == [(8,)]
    (tmp_path / "corpus.arrow").write_bytes(b"ARROW1")
    with pytest.raises(duckdb.Error, match="read it in Python"):
        ple.sql(f"FROM engram_coverage('ple', '{tmp_path}/corpus.arrow')")


def test_a_table_that_is_not_there_has_the_nearest_names(ple: Any) -> None:
    for run in (ple.sql, ple.execute):
        with pytest.raises(duckdb.CatalogException) as raised:
            run("SELECT *\nFROM pel")
        message = str(raised.value)
        assert 'Table with name pel does not exist! Did you mean "ple"?' in message
        assert "pg_" not in message
        with pytest.raises(duckdb.CatalogException) as raised:
            run("FROM nothing_like_it")
        assert "Did you mean" not in str(raised.value)
    # The place of it stays, as the shell looks for it.
    assert "\n\nLINE 2: FROM pel\n             ^" in message
    # A temporary table is there for its connection alone.
    ple.execute("CREATE TEMP TABLE docs AS SELECT [17] AS tokens")
    with pytest.raises(duckdb.CatalogException, match='Did you mean "docs"'):
        ple.sql("FROM dosc")


def test_a_materialised_view_is_no_relation(ple: Any) -> None:
    ple.build_view("chat", "ple", [[17, 4, 256]])
    for run in (ple.sql, ple.execute):
        with pytest.raises(duckdb.CatalogException, match="'chat' is a materialised view: engram_view_fetch"):
            run("FROM chat")


def test_a_result_that_is_not_read_to_its_end_outlives_a_wrong_name(ple: Any) -> None:
    result = ple.execute("SELECT rowid FROM ple ORDER BY rowid")
    assert result.fetchone() == (0,)
    with pytest.raises(duckdb.CatalogException, match='Did you mean "ple"'):
        ple.sql("FROM pel")
    assert result.fetchone() == (1,)


def test_every_question_about_a_corpus_is_known(ple: Any) -> None:
    ple.execute("CREATE TABLE scalars AS SELECT 5 AS tokens")
    signatures = q(ple, "SELECT name, signature FROM engram_functions() WHERE signature LIKE '%corpus%'")
    assert signatures
    for name, signature in signatures:
        parameters = signature.split("(", 1)[1].split(")", 1)[0].split(", ")
        given = ", ".join({"table": "'ple'", "corpus": "'keys'"}.get(parameter, "1") for parameter in parameters)
        with pytest.raises(duckdb.Error, match=f"{name}: the corpus has no column tokens"):
            ple.sql(f"FROM {name}({given})")


def test_a_question_asked_from_another_database(ple: Any) -> None:
    ple.execute("ATTACH ':memory:' AS other; USE other")
    with pytest.raises(duckdb.CatalogException, match=r"memory\.main\.engram_dead_rows") as raised:
        ple.sql("FROM engram_dead_rows('ple')")
    assert "Did you mean" not in str(raised.value)
    # The remedy works.
    assert ple.sql("FROM memory.main.engram_dead_rows('ple')").fetchall() == []
    ple.execute("USE memory.main")
    assert ple.sql("FROM engram_dead_rows('ple')").fetchall() == []


def test_other_messages_are_left_as_they_are(ple: Any) -> None:
    for sql, said in [
        ("SELECT * FROM engram_coverage('ple', 'keys2') JOIN nowhere ON true", "keys2"),
        ("SELECT nothing FROM engram_heads('ple')", 'Referenced column "nothing" not found'),
        ("SELECT len(head) FROM engram_heads('ple')", "'len(INTEGER)'"),
        ("FROM engram_heads('nope')", "no table named 'nope'"),
    ]:
        with pytest.raises(duckdb.Error) as raised:
            ple.sql(sql)
        assert said in str(raised.value)


@pytest.mark.parametrize(
    "name, text, said, remedy",
    [
        ("bare.jsonl", "[17, 4, 256]\n[4, 8]\n", "no column tokens but json (BIGINT[])", True),
        ("other.jsonl", '{"ids": [17, 4, 256]}\n{"ids": [4, 8]}\n', "no column tokens but ids (BIGINT[])", True),
        ("lists.csv", 'tokens\n"[17, 4, 256]"\n"[4, 8]"\n', "(a CSV file has none)", True),
        ("words.jsonl", '{"words": "hello world hello"}\n{"words": "hello world"}\n', "but words (VARCHAR)", True),
        ("words.csv", "tokens\nhello world hello\nhello world\n", "the column tokens of the corpus holds texts", True),
        ("empty.jsonl", "", "empty.jsonl' is empty", False),
        ("numbers.csv", "a,b\n1,2\n", "no column tokens but a (BIGINT), b (BIGINT)", False),
    ],
)
def test_a_corpus_file_without_lists_of_tokens(
    db: Any, tmp_path: Path, name: str, text: str, said: str, remedy: bool
) -> None:
    tokenizer = Path(__file__).parent.parent / "docs" / "tokenizer.json"
    db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8", tokenizer=tokenizer)
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(duckdb.Error) as raised:
        db.execute(f"FROM engram_coverage('ple', '{file}')").fetchall()
    message = str(raised.value)
    assert message.count("engram_coverage: ") == 1
    assert "engram_ngrams" not in message
    assert said in message
    found = re.search(r"CREATE TEMP VIEW docs .*?(?=; then)", message)
    assert (found is not None) == remedy, message
    if found:
        # The remedy works.
        db.execute(found.group())
        assert q(db, "SELECT tokens FROM engram_coverage('ple', 'docs')") == [(5,)]


def test_text_where_token_ids_belong(db: Any) -> None:
    tokenizer = Path(__file__).parent.parent / "docs" / "tokenizer.json"
    db.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8", tokenizer=tokenizer)
    for text, remedy in [
        ("hello world", "engram_tokens('ple', 'hello world')"),
        ("[17, 4]", "'[17, 4]'::BIGINT[]"),
    ]:
        with pytest.raises(duckdb.Error) as raised:
            db.execute(f"SELECT round(token, 2) FROM engram_embeddings('ple', '{text}')").fetchall()
        assert str(raised.value).endswith(f"; its token ids are {remedy}")
        assert q(db, f"SELECT token_id FROM engram_embeddings('ple', {remedy})") == [(17,), (4,)]


def test_a_scalar_function_is_no_table(ple: Any) -> None:
    for name in ("engram_e_t", "rowids_for_seq", "engram_tokens"):
        with pytest.raises(duckdb.CatalogException, match=f"Catalog Error: {name} is a scalar function") as raised:
            ple.sql(f"FROM {name}('ple', [17])")
        assert "SELECT" in str(raised.value)
        assert "Did you mean" not in str(raised.value)


def test_few_candidates_of_many(ple: Any) -> None:
    with pytest.raises(duckdb.BinderException) as raised:
        ple.execute("SELECT embedding + 1 FROM ple")
    message, _, picture = str(raised.value).partition("\n\nLINE 1: ")
    assert message.count("\n\t") == 5
    assert " more; " in message
    assert picture.startswith("SELECT embedding + 1 FROM ple\n")
    # The remedy works.
    remedy = re.search(r"list_transform\(.*\)", message)
    assert remedy
    assert q(ple, f"SELECT len({remedy.group()}) FROM ple WHERE rowid = 3") == [(160,)]
    with pytest.raises(duckdb.BinderException) as raised:
        ple.execute("SELECT engram_tokens('ple', [1])")
    assert "engram_tokens(VARCHAR, VARCHAR) -> BIGINT[]" in str(raised.value)


def test_dropping_a_table_of_the_catalog_in_sql(ple: Any) -> None:
    with pytest.raises(duckdb.CatalogException, match=r"CALL engram_drop\('ple'\)"):
        ple.execute("DROP TABLE ple")
    ple.execute("CREATE VIEW plain AS SELECT 1 AS one")
    with pytest.raises(duckdb.CatalogException) as raised:
        ple.execute("DROP TABLE plain")
    assert "engram_drop" not in str(raised.value)
    ple.create_view("kept", "SELECT 2 AS two")
    for name, kind in [("ple", "table"), ("KEPT", "view")]:
        with pytest.warns(EngramWarning, match=rf"{kind} '{name}' stays .* CALL engram_drop\('{name}'\)"):
            ple.execute(f"DROP VIEW IF EXISTS {name}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ple.execute("DROP VIEW plain")
    # The remedy works.
    ple.execute("CALL engram_drop('ple')")
    assert ple.tables() == []


def test_rows_of_two_formats_are_compared_by_values(ple: Any, tmp_path: Path) -> None:
    ple.register("engram", GOLDEN / "ckpt_deepseek_v41")
    ple.execute(
        f"COPY (SELECT embedding FROM ple ORDER BY rowid) TO '{tmp_path}/wide' (FORMAT engram, VALUE_FORMAT f32)"
    )
    ple.register("wide", tmp_path / "wide")
    instead = "compare values with engram_distance, engram_drift or engram_changed_rows"
    for run, hinted in [
        (lambda: ple.diff("ple", "wide"), True),
        (lambda: ple.verify("ple", against="wide"), True),
        (lambda: ple.execute("FROM engram_diff('ple', 'wide')"), True),
        (lambda: ple.diff("ple", "engram_l1"), False),
        (lambda: ple.execute("FROM engram_diff('ple', 'engram_l1')"), False),
    ]:
        with pytest.raises(Exception, match="cannot be compared") as raised:
            run()
        assert (instead in str(raised.value)) == hinted, raised.value
    assert q(ple, "SELECT sum(changed) FROM engram_distance('ple', 'wide')") == [(0,)]


def test_an_empty_database_says_so(tmp_path: Path) -> None:
    with engramsql.connect(tmp_path / "misspelt") as empty:
        for ask in (
            lambda: empty.sql("FROM pel"),
            lambda: empty.sql("FROM engram_scan('pel', 0, 5)"),
            lambda: empty.table("pel"),
        ):
            with pytest.raises(Exception, match="pel") as raised:
                ask()
            assert f"'{tmp_path}/misspelt' is an empty database" in str(raised.value)
        empty.register("ple", GOLDEN / "ckpt_qwen4_exp_fp8")
        with pytest.raises(duckdb.CatalogException) as raised:
            empty.sql("FROM nothing")
        assert "empty database" not in str(raised.value)
