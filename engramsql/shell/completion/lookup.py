"""What a name of the statement stands for in the catalog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engramsql.quoting import folded
from engramsql.shell.completion.catalog import Column

if TYPE_CHECKING:
    from engramsql.shell.completion.catalog import Relation, Snapshot
    from engramsql.shell.completion.relations import Source
    from engramsql.shell.completion.want import Wanted

__all__ = ["columns_of", "distance", "fields", "relation_of"]

# A field: its name, perhaps in quotes, and its type.
_FIELD = re.compile(r'\s*(?:([^\s",]+)|"((?:[^"]|"")*)")\s+([^,]+)(?:,|$)')


def columns_of(source: Source, snapshot: Snapshot) -> list[Column]:
    """The columns of a relation of the statement, each name once."""
    return list(_columns(source, snapshot, {}).values())


def _columns(source: Source, snapshot: Snapshot, known: dict[int, dict[str, Column]]) -> dict[str, Column]:
    # A CTE that is named twice by each of the next ones would be gone through a million times.
    if id(source) in known:
        return known[id(source)]
    columns = {name: Column(name) for name in source.columns}
    for star in source.stars:
        for name, column in _columns(star, snapshot, known).items():
            columns.setdefault(name, column)
    function = snapshot.functions.get(source.function.lower())
    if function is not None:
        columns |= {name: Column(name) for name in function.signature.columns}
    relation = relation_of(source.name, snapshot) if source.name else None
    if relation is not None:
        columns |= {column.name: column for column in relation.columns}
    if source.file:
        columns |= {column.name: column for column in snapshot.files.get(source.file, ())}
    known[id(source)] = columns
    return columns


def relation_of(name: tuple[str, ...], snapshot: Snapshot) -> Relation | None:
    """The relation of a dotted name: ``t``, ``schema.t``, ``database.t`` or all three."""
    wanted = [folded(part) for part in name]
    found = []
    for relation in snapshot.relations:
        full = [folded(part) for part in (relation.database, relation.schema, relation.name)]
        if full[2] == wanted[-1] and (
            len(wanted) == 1 or (len(wanted) == 2 and wanted[0] in full[:2]) or full == wanted
        ):
            found.append(relation)
    return min(found, key=lambda relation: distance(relation, snapshot), default=None)


def distance(relation: Relation, snapshot: Snapshot) -> int:
    """How far from where DuckDB looks for a name: temporary relations first, then the current schema."""
    if relation.database == "temp":
        return 0
    if relation.database == snapshot.database:
        return 1 if relation.schema == snapshot.schema else 2
    return 3


def fields(wanted: Wanted, snapshot: Snapshot) -> list[Column]:
    """Fields of the struct before the dot: a column, or what a function returns."""
    if wanted.subject:
        function = snapshot.functions.get(wanted.subject.lower())
        type_ = function.signature.text.partition(" -> ")[2] if function is not None else ""
    else:
        *owner, name = map(folded, wanted.qualifier)
        sources = [source for source in wanted.sources if not owner or folded(source.alias) == owner[-1]]
        columns = (column for source in sources for column in columns_of(source, snapshot))
        type_ = next((column.type for column in columns if folded(column.name) == name), "")
    return [
        Column(found[1] or found[2].replace('""', '"'), found[3].strip()) for found in _FIELD.finditer(_inside(type_))
    ]


def _inside(type_: str) -> str:
    """The fields of a STRUCT, without what is nested in them."""
    if not type_.startswith("STRUCT("):
        return ""
    text, depth = [], 0
    for letter in type_[len("STRUCT(") : type_.rfind(")")]:
        depth -= letter == ")"
        if not depth:
            text.append(letter)
        depth += letter == "("
    return "".join(text)
