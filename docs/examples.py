"""The database that examples in docs/ are run on, and their output as the pages show it."""

from __future__ import annotations

import io
import os
import re
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import engramsql
from engramsql.export import write

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parent
GOLDEN = DOCS.parent / "tests" / "golden"

# A block of SQL and the table below it, if there is one. Between the two a mark says that the values are those of one
# machine or moment.
_BLOCK = re.compile(
    r"^```sql\n(?P<sql>.*?)^```\n(?P<mark>\n<!-- differs [^\n]*-->\n)?(?P<table>\n(?:^\|[^\n]*\n)+)?",
    re.MULTILINE | re.DOTALL,
)


@contextmanager
def example_database(*, tuned: bool = True) -> Iterator[engramsql.Database]:
    """The database that examples are run on, in a new directory that is the working directory meanwhile.

    ``ple`` and ``engram_l1``, ``engram_l3`` are golden checkpoints, which also lie under ``models``; ``corpus`` is a
    view of ``ple``, ``docs`` a table of token lists.

    Args:
        tuned: Whether there is also ``tuned``, the rows of ``ple`` after a training that changed some of them.
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
        database.build_view("corpus", "ple", [[17, 4, 256, 17, 4]])
        database.execute("CREATE TABLE docs (name TEXT, tokens BIGINT[])")
        database.execute("INSERT INTO docs VALUES ('a', [17, 4, 256]), ('b', [4, 256, 17, 4])")
        yield database


def _tune(database: engramsql.Database) -> None:
    table = database.table("ple")
    rows = table.fetch(np.arange(table.rows))
    # The sign bits of the first values of some rows; other rows have died.
    rows[3::100, :8] ^= 0x80
    rows[5::100] = 0
    changed = pa.table({"row": pa.array([row.tobytes() for row in rows], pa.binary())})
    assert changed.num_rows == table.rows
    database.execute(f"COPY changed TO 'models/tuned' (FORMAT engram, VALUE_FORMAT fp8_e4m3, SCALE {table.scale!r})")
    database.register("tuned", "models/tuned")


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
