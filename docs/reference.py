"""Writes docs/sql.md and docs/functions/, and the outputs in docs/cookbook.md: ``make reference``.

A page per function, from the registry (``engram_functions()``), with the types of its result and the output of its
example as a database over the golden checkpoints gives it. tests/test_reference.py holds the pages against a new run.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from examples import CORPUS, DOCS, example_database, output, refreshed

if TYPE_CHECKING:
    import engramsql

# Between these two lines of docs/sql.md stands the list of functions.
BEGIN = "<!-- written by `make reference` -->\n"
END = "<!-- end -->\n"

# Their output tells of the machine or of the moment: paths, times, what is in memory.
UNSTABLE = {
    "engram_attach",
    "engram_build",
    "engram_cache",
    "engram_drop",
    "engram_plan",
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


# What examples name. The cookbook makes the tables as `example_database` does.
MADE_IN_THE_COOKBOOK = ("ple", "engram_l1", "tuned", "docs")

# How a reader makes the view that the database of the examples has.
_OF_CORPUS = "`corpus` is a [materialised view](../building.md#view) of `ple`, made in Python"
_MAKING_CORPUS = f'db.build_view("corpus", "ple", {CORPUS})'


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


def functions(database: engramsql.Database) -> list[Function]:
    """The registry."""
    rows = database.sql("SELECT name, kind, signature, description, example FROM engram_functions()").fetchall()
    return [Function(*row) for row in rows]


def pages() -> dict[str, str]:
    """File name below docs to text, of all pages."""
    with example_database() as database:
        found = functions(database)
        written = {"sql.md": _index(found)} | {f"functions/{entry.file}": _page(database, entry) for entry in found}
    # The cookbook makes its second table itself.
    with example_database(tuned=False) as database:
        written["cookbook.md"] = refreshed(database, (DOCS / "cookbook.md").read_text(encoding="utf-8"))
    return written


def _index(found: list[Function]) -> str:
    parts = []
    for group, title in GROUPS:
        lines = [
            f"| [`{entry.name}`](functions/{entry.file}) | {_first_sentence(entry.description)} |\n"
            for entry in found
            if entry.group == group
        ]
        parts.append(f"\n## {title}\n\n| | |\n|---|---|\n{''.join(lines)}")
    before, _, after = (DOCS / "sql.md").read_text(encoding="utf-8").partition(BEGIN)
    return "".join([before, BEGIN, *parts, "\n", END, after.partition(END)[2]])


def _page(database: engramsql.Database, entry: Function) -> str:
    parts = [f"# {entry.name}\n\n    {entry.signature}\n\n{entry.description}\n"]
    if entry.kind == "copy":
        database.execute(entry.example)
        parts.append(f"\n## Example\n\n    {entry.example};\n{_origin(entry)}")
        return "".join(parts)
    if entry.group in ("table", "macro"):
        parts.append(_columns(database, entry))
    shown = output(database, entry.example)
    parts.append(f"\n## Example\n\n    {entry.example};\n")
    if entry.name not in UNSTABLE:
        parts.append(f"\n{shown}")
    parts.append(_origin(entry))
    return "".join(parts)


def _origin(entry: Function) -> str:
    """Where what the example names comes from: a reader has none of it."""
    named = [f"`{name}`" for name in MADE_IN_THE_COOKBOOK if re.search(rf"\b{name}\b", entry.example)]
    lines = []
    if named:
        verb = "are" if len(named) > 1 else "is"
        lines.append(f"{' and '.join(named)} {verb} made in [the cookbook](../cookbook.md).")
    if "'corpus'" in entry.example:
        lines.append(f"{_OF_CORPUS}:\n\n    {_MAKING_CORPUS}")
    return f"\n{' '.join(lines)}\n" if lines else ""


def _columns(database: engramsql.Database, entry: Function) -> str:
    """Names and types of a table function's columns, as the call in its example has them."""
    start = end = entry.example.index(f"{entry.name}(")
    depth = 0
    for end in range(start + len(entry.name), len(entry.example)):
        depth += {"(": 1, ")": -1}.get(entry.example[end], 0)
        if depth == 0:
            break
    described = database.sql(f"DESCRIBE FROM {entry.example[start : end + 1]}").fetchall()
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
