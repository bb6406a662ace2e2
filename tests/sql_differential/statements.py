"""The statements of forms.sql with random keys: odd syntax, several statements, tables made from rows."""

from __future__ import annotations

import random
from pathlib import Path

from sql_differential.nodes import Text
from sql_differential.oracle import Case

__all__ = ["CLEAN", "FORMS", "form"]

_LINES = (Path(__file__).parent / "forms.sql").read_text().splitlines()

# As they stand in the file, a line break as an escape.
FORMS = tuple(line.replace("\\n", "\n") for line in _LINES if line and not line.startswith("-- "))

# `scratch` may be any of these.
CLEAN = tuple(f"DROP {kind} IF EXISTS scratch" for kind in ("TABLE", "VIEW", "MACRO TABLE", "MACRO"))

_AFTER = (
    "SET search_path = 'main'",
    *CLEAN,
    "DEALLOCATE scratch",
    "DROP TABLE IF EXISTS temp.v41_l1",
    "DROP TABLE IF EXISTS temp.keys",
    "DROP VIEW IF EXISTS temp.v41_l3",
    "DROP SCHEMA IF EXISTS other CASCADE",
    "RESET VARIABLE chosen",
    "SET VARIABLE wanted = 42",
)

_KEYS = (
    "SELECT id FROM keys",
    "SELECT id FROM keys WHERE id IS NOT NULL",
    "SELECT DISTINCT id FROM keys32 WHERE w = 1",
    "SELECT id + 1 FROM keys16",
    "SELECT unnest(ids) FROM lists",
    "SELECT a FROM pairs UNION SELECT b FROM pairs",
    "SELECT id FROM nokeys",
    "VALUES (3), (NULL), (77)",
    "FROM range(5, 9)",
    "SELECT id FROM keys ORDER BY id DESC NULLS LAST LIMIT 4",
    "SELECT rowid FROM v41_l3 WHERE head = 1",
    "SELECT rid FROM renamed WHERE h = 2",
    "SELECT id FROM arrow_keys",
)

_TABLES = ("ple", "ple", "v41_l1", "v41_l3", "PLE")


def form(number: int, rng: random.Random) -> Case:
    """The case of one form with keys drawn from ``rng``."""
    ids = [-1, 0, 1, 5, 5, 7, 60, 111, 112, 252, 700, 1392, 1407, 1408, "NULL"]
    words = {
        "{t}": rng.choice(_TABLES),
        "{k}": rng.choice(_KEYS),
        "{n}": str(rng.choice([0, 1, 5, 7, 52, 53, 111, 112, 251, 252, 1391, 1407, 1408, 3000])),
        "{l}": ", ".join(str(rng.choice(ids)) for _ in range(rng.randint(1, 7))),
    }
    text = FORMS[number]
    for word, value in words.items():
        text = text.replace(word, value)
    *before, query = text.split(" ;; ")
    return Case(Text([query]), before=tuple(before), after=_AFTER, judge=rng.choice(["tables", "views"]))
