"""docs/sql.md, written from the registry of the SQL functions: ``make reference``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["reference"]

_HEADER = """# The SQL functions

Written by `make reference` from `SELECT * FROM engram_functions()`; change the registry, not this page.

`table` is the name of a registered table, or a path (a text with a separator, such as `./store`) to a checkpoint or
store. Row ids, token ids and positions are BIGINT and 0-based. An id that is negative, fractional or out of range is an
error that names it. n ids in, n rows out, in the order given, duplicates kept. Only the columns a query uses are read.

`head` is NULL for rows that no head reaches: padding at the end of a table, and all rows of a table without a spec.
"""

_FOOTER = """
## Settings

    SET engram_ram_budget = '8GB';
    SET engram_reader = 'io_uring';
    RESET engram_reader;

| setting | unset | |
|---|---|---|
| `engram_ram_budget` | `ENGRAMSQL_RAM_BUDGET`, or an eighth of the memory | memory for rows: `8GB`, ...; `0` for none |
| `engram_reader` | `ENGRAMSQL_READER`, or `auto` | `mapped`, `io_uring`, `pread`, `sequential`, or `auto` |

A budget is at least 8MB, or 0. A reader is the path that every batch takes; `auto` chooses for each batch. They hold
for all databases of the process. A `SET` takes effect when the next function of this page is prepared, and a wrong
value is refused there, until it is put right. [memory.md](memory.md) tells what budget and paths are, and what the
columns of `engram_stats()` count.

## What is not there yet

- `WHERE rowid = ...`, `IN`, `BETWEEN` and joins on `rowid` go through all row ids of the table, and read every row
  if the query uses one of the columns `embedding` and `row`. Name the ids instead: `engram_fetch`, `engram_row`,
  `engram_vector`, or `engram_scan(table, first, count)` for a range.
- A list argument of a table function is a constant, a parameter or a variable, not a column or a subquery. For lists in
  columns use the scalars: `engram_row` and `engram_vector` over `unnest`, `engram_e_t` for whole lists.
"""

_KINDS = (("scalar", "Scalar functions"), ("table", "Table functions"), ("call", "Catalog"), ("copy", "Stores"))


def reference(connection: duckdb.DuckDBPyConnection) -> str:
    """The page, as Markdown.

    Args:
        connection: A connection that has the functions.
    """
    rows = connection.execute("SELECT name, kind, signature, description, example FROM engram_functions()").fetchall()
    grouped: dict[str, list[str]] = {kind: [] for kind, _ in _KINDS}
    for name, kind, signature, description, example in rows:
        # A procedure is a table function that is CALLed.
        group = "call" if signature.startswith("CALL ") else kind
        grouped[group].append(f"\n### {name}\n\n    {signature}\n\n{description}\n\n    {example};\n")
    sections = (f"\n## {title}\n{''.join(grouped[kind])}" for kind, title in _KINDS)
    return "".join([_HEADER, *sections, _FOOTER])


def main() -> None:
    """Prints the page."""
    import engramsql

    with engramsql.connect() as database:
        sys.stdout.write(reference(database.connection))


if __name__ == "__main__":
    main()
