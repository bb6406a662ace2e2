"""Writes docs/sql.md and docs/functions/: ``make reference``.

A page per function, from the registry (``engram_functions()``), with the types of its result and the output of its
example as a database over the golden checkpoints gives it. tests/test_reference.py holds the pages against a new run.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import engramsql
from engramsql.export import write

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parent
GOLDEN = DOCS.parent / "tests" / "golden"

# Their output tells of the machine or of the moment: paths, times, what is in memory.
UNSTABLE = {
    "engram_attach",
    "engram_build",
    "engram_cache",
    "engram_drop",
    "engram_register",
    "engram_relocate",
    "engram_stats",
}

GROUPS = (
    ("scalar", "Scalar functions"),
    ("table", "Table functions"),
    ("macro", "Questions about tables and corpora"),
    ("call", "Catalog"),
    ("copy", "Stores"),
)


class Function(NamedTuple):
    """A line of the registry."""

    name: str
    kind: str
    signature: str
    description: str
    example: str

    @property
    def group(self) -> str:
        # A procedure is a table function that is CALLed.
        return "call" if self.signature.startswith("CALL ") else self.kind

    @property
    def file(self) -> str:
        return f"{self.name.lower().replace(' ', '_')}.md"


@contextmanager
def example_database() -> Iterator[engramsql.Database]:
    """The database that examples are run on, in a new directory that is the working directory meanwhile.

    ``ple`` and ``engram_l1``, ``engram_l3`` are golden checkpoints, which also lie under ``models``; ``corpus`` is a view
    of ``ple``, ``docs`` a table of token lists.
    """
    before = os.getcwd()
    with TemporaryDirectory() as directory:
        os.chdir(directory)
        try:
            with _prepared() as database:
                yield database
        finally:
            os.chdir(before)


@contextmanager
def _prepared() -> Iterator[engramsql.Database]:
    os.mkdir("models")
    os.symlink(GOLDEN / "ckpt_qwen4_exp_fp8", "models/qwen")
    os.symlink(GOLDEN / "ckpt_deepseek_v41", "models/deepseek")
    with engramsql.connect("mydb") as database:
        database.register("ple", "models/qwen")
        database.register("engram", "models/deepseek")
        database.build_view("corpus", "ple", [[17, 4, 256, 17, 4]])
        database.execute("CREATE TABLE docs (name TEXT, tokens BIGINT[])")
        database.execute("INSERT INTO docs VALUES ('a', [17, 4, 256]), ('b', [4, 256, 17, 4])")
        yield database


def functions(database: engramsql.Database) -> list[Function]:
    """The registry."""
    rows = database.sql("SELECT name, kind, signature, description, example FROM engram_functions()").fetchall()
    return [Function(*row) for row in rows]


def pages() -> dict[str, str]:
    """File name below docs to text, of all pages."""
    with example_database() as database:
        found = functions(database)
        return {"sql.md": _index(found)} | {f"functions/{entry.file}": _page(database, entry) for entry in found}


def _index(found: list[Function]) -> str:
    parts = [(DOCS / "sql.head.md").read_text(encoding="utf-8")]
    for group, title in GROUPS:
        lines = [
            f"| [`{entry.name}`](functions/{entry.file}) | {_first_sentence(entry.description)} |\n"
            for entry in found
            if entry.group == group
        ]
        parts.append(f"\n## {title}\n\n| | |\n|---|---|\n{''.join(lines)}")
    parts.append((DOCS / "sql.tail.md").read_text(encoding="utf-8"))
    return "".join(parts)


def _page(database: engramsql.Database, entry: Function) -> str:
    parts = [f"# {entry.name}\n\n    {entry.signature}\n\n{entry.description}\n"]
    if entry.kind == "copy":
        database.execute(entry.example)
        parts.append(f"\n## Example\n\n    {entry.example};\n")
        return "".join(parts)
    relation = database.sql(entry.example)
    if entry.kind in ("table", "macro"):
        parts.append(_columns(database, entry))
    output = io.BytesIO()
    write(relation, "markdown", output)
    parts.append(f"\n## Example\n\n    {entry.example};\n")
    if entry.name not in UNSTABLE:
        parts.append(f"\n{output.getvalue().decode()}")
    return "".join(parts)


def _columns(database: engramsql.Database, entry: Function) -> str:
    """Names and types of a table function's columns, as the call in its example has them."""
    call = entry.example
    if not call.startswith("CALL "):
        start = call.index(f"{entry.name}(")
        depth, end = 0, start
        for end in range(start, len(call)):
            depth += {"(": 1, ")": -1}.get(call[end], 0)
            if depth == 0 and call[end] == ")":
                break
        call = f"FROM {call[start : end + 1]}"
        described = database.sql(f"DESCRIBE {call}").fetchall()
    else:
        return ""
    lines = [f"| `{name}` | {kind} |\n" for name, kind, *_ in described]
    return f"\n## Columns\n\n| | |\n|---|---|\n{''.join(lines)}"


def _first_sentence(text: str) -> str:
    sentence, _, _ = text.partition(". ")
    return sentence.rstrip(".").replace("|", "\\|")


def main() -> None:
    """Writes the pages, and removes those of functions that are gone."""
    wanted = pages()
    (DOCS / "functions").mkdir(exist_ok=True)
    for old in (DOCS / "functions").glob("*.md"):
        if f"functions/{old.name}" not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (DOCS / name).write_text(text, encoding="utf-8")
    print(f"{len(wanted)} pages", file=sys.stderr)


if __name__ == "__main__":
    main()
