"""The macros that ship: what engram_functions() says of them is what they are, and where they are made."""

from __future__ import annotations

from pathlib import Path

import duckdb
import examples
import pytest
from extension_support import connect
from helpers import one, q

VIEWS = Path(__file__).parent.parent / "catalog" / "views"
MACROS = "SELECT name, signature, description, example FROM engram_functions() WHERE kind = 'macro'"


def test_signatures_are_those_of_the_results() -> None:
    with examples.example_database() as database:
        found = q(database, MACROS)
        assert len(found) == sum(path.read_text().count("CREATE OR REPLACE MACRO") for path in VIEWS.glob("*.sql"))
        for name, signature, description, example in found:
            declared = signature.partition(") -> (")[2].rstrip(")").split(", ")
            start = example.index(f"{name}(")
            call = example[start : example.index(")", start) + 1]
            described = q(database, f"DESCRIBE FROM {call}")
            assert [column for column, *_ in described] == declared, name
            for column, kind, *_ in described:
                assert kind in ("BIGINT", "INTEGER", "DOUBLE", "FLOAT", "BOOLEAN", "BIGINT[]"), (name, column)
            assert description.endswith(".")
            # Tables without broken rows have none to show; what an example counts is there.
            assert q(database, example), name


def test_every_file_of_macros_ships() -> None:
    """A file that nobody includes would be one that no client has."""
    written = {
        line.removeprefix("CREATE OR REPLACE MACRO main.").partition("(")[0]
        for path in VIEWS.glob("*.sql")
        for line in path.read_text().splitlines()
        if line.startswith("CREATE")
    }
    assert written == {name for name, *_ in q(connect(), MACROS)}


def test_a_database_file_gets_no_macros(tmp_path: Path) -> None:
    """They would be written into it; the files can be run there by whoever wants them."""
    path = tmp_path / "mine.duckdb"
    con = connect(str(path))
    assert q(con, "SELECT count(*) FROM duckdb_functions() WHERE function_name = 'engram_head_primes'") == [(0,)]
    with pytest.raises(duckdb.Error, match="engram_head_primes"):
        con.execute("FROM engram_head_primes('t')")
    assert q(con, MACROS) == []
    assert q(con, "SELECT count(*) FROM engram_functions() WHERE kind <> 'macro'")[0][0] > 30
    con.close()
    assert (
        one(duckdb.connect(str(path)), "SELECT count(*) FROM duckdb_functions() WHERE function_name = 'engram_drift'")
        == 0
    )
