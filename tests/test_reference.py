"""docs/sql.md is what the registry says."""

from pathlib import Path

import engramsql
from engramsql.udf.reference import reference

PAGE = Path(__file__).parent.parent / "docs" / "sql.md"


def test_the_page_of_the_functions_is_current():
    with engramsql.connect() as db:
        assert PAGE.read_text(encoding="utf-8") == reference(db.connection), "run `make reference`"


def test_every_function_has_its_entry():
    text = PAGE.read_text(encoding="utf-8")
    with engramsql.connect() as db:
        names = [name for (name,) in db.sql("SELECT name FROM engram_functions()").fetchall()]
    assert [line[4:] for line in text.splitlines() if line.startswith("### ")] == names
