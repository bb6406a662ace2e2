"""The database that examples in docs/ are run on, and their output as the pages show it."""

from __future__ import annotations

import io
import os
import re
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import engramsql
from engramsql.export import write

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parent
GOLDEN = DOCS.parent / "tests" / "golden"

# The sequences of the materialised view `corpus`.
CORPUS = [[17, 4, 256, 17, 4]]

# A block of SQL and the table below it, if there is one. Between the two a mark says that the values are those of one
# machine or moment.
_BLOCK = re.compile(
    r"^```sql\n(?P<sql>.*?)^```\n(?P<mark>\n<!-- differs [^\n]*-->\n)?(?P<table>\n(?:^\|[^\n]*\n)+)?",
    re.MULTILINE | re.DOTALL,
)

# The two statements of the cookbook that make the second table.
_TUNED = re.compile(r"TO 'tuned'|engram_register\('tuned'")


@contextmanager
def example_database(*, tuned: bool = True) -> Iterator[engramsql.Database]:
    """The database that examples are run on, in a new directory that is the working directory meanwhile.

    ``ple`` and ``engram_l1``, ``engram_l3`` are golden checkpoints, which also lie under ``models``; ``corpus`` is a
    view of ``ple``, ``docs`` a table of token lists.

    Args:
        tuned: Whether there is also ``tuned``, the second table of the cookbook.
    """
    before = os.getcwd()
    with TemporaryDirectory() as directory:
        os.chdir(directory)
        try:
            with _prepared() as database:
                if tuned:
                    _tune(database)
                yield database
        finally:
            os.chdir(before)


@contextmanager
def _prepared() -> Iterator[engramsql.Database]:
    os.mkdir("models")
    os.symlink(GOLDEN / "ckpt_qwen4_exp_fp8", "models/qwen")
    os.symlink(GOLDEN / "ckpt_deepseek_v41", "models/deepseek")
    with engramsql.connect("mydb") as database:
        # The golden checkpoints come without a tokenizer.
        database.register("ple", "models/qwen", tokenizer=DOCS / "tokenizer.json")
        database.register("engram", "models/deepseek")
        database.build_view("corpus", "ple", CORPUS)
        database.execute("CREATE TABLE docs (name TEXT, tokens BIGINT[])")
        database.execute("INSERT INTO docs VALUES ('a', [17, 4, 256]), ('b', [4, 256, 17, 4])")
        yield database


def _tune(database: engramsql.Database) -> None:
    """Makes ``tuned`` with the statements of the cookbook, so that a reader has the table of the pages."""
    cookbook = (DOCS / "cookbook.md").read_text(encoding="utf-8")
    statements = [match["sql"] for match in _BLOCK.finditer(cookbook) if _TUNED.search(match["sql"])]
    assert len(statements) == 2, "the cookbook makes 'tuned' in a COPY and a CALL"
    for sql in statements:
        database.execute(sql)


def output(database: engramsql.Database, sql: str) -> str:
    """The result of a query, as a Markdown table."""
    text = io.BytesIO()
    write(database.sql(sql), "markdown", text)
    return text.getvalue().decode()


def refreshed(database: engramsql.Database, page: str) -> str:
    """A page whose blocks of SQL are followed by what they give now; only queries show something.

    A marked table stays as it is while its columns are those of the query.
    """

    def block(match: re.Match[str]) -> str:
        found = f"```sql\n{match['sql']}```\n"
        if not match["sql"].startswith(("SELECT", "FROM", "WITH")):
            database.execute(match["sql"])
            return found
        shown = f"\n{output(database, match['sql'])}"
        mark, before = match["mark"] or "", match["table"] or ""
        # A table begins with an empty line and the names of its columns.
        if mark and before.split("\n")[1:2] == shown.split("\n")[1:2]:
            shown = before
        return f"{found}{mark}{shown}"

    return _BLOCK.sub(block, page)
