"""What the functions write, looked over by DuckDB itself: sizes of nested vectors, NULLs of their children, text."""

from __future__ import annotations

import duckdb
import pytest
from helpers import run_python

# The setting holds for the whole process, and what it finds costs the database: an interpreter of its own.
VERIFIED = """
import sys

from extension_support import connect_ple

con = connect_ple()
con.execute("SET debug_verification_mode = 'VERIFY_VECTORS'")
con.execute('''
    CREATE TEMP TABLE kept AS
    SELECT n, if(n % 5 = 1, NULL, n % 1408) AS id, [(n * 31 + i) % 500 for i in range(n % 9)] AS ids,
        if(n % 7 = 3, NULL, [(n * 31 + i) % 500 for i in range(n % 9)]) AS tokens
    FROM range(5000) AS t(n)
''')
for statement in sys.argv[1:]:
    rows = con.execute(statement).fetchall()
    assert rows, statement
"""

SOURCES = {
    "all": "kept",
    "the first of a chunk": "(FROM kept WHERE n < 50)",
    "the last": "(FROM kept WHERE n > 4950)",
    "some": "(FROM kept WHERE n % 3 = 1)",
    "sorted": "(FROM kept ORDER BY n DESC)",
    "from one list": "(SELECT unnest(lists) AS ids, 7 AS id, ids AS tokens FROM (SELECT list(ids) AS lists FROM kept))",
    "one for all": "(SELECT [1, 2] AS ids, 3 AS id, [4] AS tokens FROM range(3000))",
}

CALLS = [
    "_engram_list('ple', ids)",
    "_engram_list('ple', [ids])",
    "_engram_sequence('ple', tokens, NULL)",
    "_engram_ngrams('ple', tokens, tokens)",
    "_engram_pieces('ple', tokens, NULL)",
    "_engram_grams('ple', tokens, NULL)",
    "rowids_for_seq('ple', tokens)",
    "engram_row('ple', id)",
    "engram_vector('ple', id)",
    "_engram_vector('ple', id, NULL::FLOAT[160][])",
    "engram_e_t('ple', ids)",
    "engram_row_stats('ple', id)",
    "engram_row_hash('ple', id)",
    "engram_head('ple', id)",
    "_engram_row_distance('ple', 'ple', id)",
]


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB verifies vectors from 2.0 on")
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_duckdb_finds_no_fault_in_what_functions_write(source: str) -> None:
    statements = [f"SELECT {call} FROM {source}" for call in CALLS]
    statements.append(f"SELECT ids, f.* FROM {source} AS s, engram_fetch('ple', s.ids) AS f")
    # An interpreter that ends well had nothing to complain of.
    run_python(VERIFIED, args=statements)
