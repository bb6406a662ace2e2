"""What is said beside DuckDB's own message where a table function is given what it does not take."""

from __future__ import annotations

from typing import Any

import pytest
from golden_data import GOLDEN
from helpers import q, sql_refuses


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
