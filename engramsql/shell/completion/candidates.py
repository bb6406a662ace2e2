"""The names that fit what is wanted, the best first: pure functions of a snapshot and of what was typed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engramsql.engine import FORMATS
from engramsql.quoting import folded, identifier
from engramsql.shell.completion.files import matching
from engramsql.shell.completion.lookup import columns_of, distance, fields
from engramsql.shell.completion.relations import Source
from engramsql.shell.completion.want import Want, Wanted

if TYPE_CHECKING:
    from engramsql.shell.completion.catalog import Function, Relation, Snapshot

__all__ = ["Candidate", "Match", "candidates", "match", "written"]

# More than a menu can show is not worth sorting out.
LIMIT = 300

_PLAIN = re.compile(r"[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*")
_WORD_STARTS = re.compile(r"(?<![^\W_])[^\W_]|(?<=[a-z0-9])[A-Z]")
_LEVELS = ("headers", "sample", "full")
# Functions of DuckDB whose first argument is a file.
_OF_FILES = re.compile(r"(?:read|sniff|parquet)_\w+|\w+_scan|glob|st_read", re.IGNORECASE)
# Named arguments of the registry whose text is a path or one of a few words.
_FILE_PARAMETERS = frozenset({"source", "dir", "tokenizer", "spec"})
# Files with lists that DuckDB reads as a relation by their name.
_CORPUS_FILES = (".parquet", ".jsonl", ".ndjson", ".json")
_READERS = ("auto", "mapped", "io_uring", "pread", "sequential")
_BOOLEANS = ("true", "false")


class Match:
    """How well a name fits, the best first."""

    PREFIX = 0
    WORD = 1
    LETTERS = 2


@dataclass(frozen=True)
class Candidate:
    """A name that fits.

    Attributes:
        text: What is written in place of the word.
        label: What the menu shows.
        meta: Type or kind, shown beside it.
        quoted: Whether ``text`` belongs between quotes that the word was begun with, and is closed by one.
    """

    text: str
    label: str
    meta: str = ""
    quoted: bool = False


@dataclass(frozen=True)
class _Offer:
    """A candidate before it was matched: its rank among kinds and its place within them."""

    candidate: Candidate
    name: str
    rank: int
    worst: int = Match.LETTERS


def match(word: str, name: str) -> int | None:
    """How ``word`` fits ``name``, without regard to case; None if it does not.

    Example:
        >>> match("eng", "engram_fetch"), match("fet", "engram_fetch"), match("efch", "engram_fetch")
        (0, 1, 2)
        >>> match("xy", "engram_fetch")
    """
    low, whole = word.lower(), name.lower()
    if whole.startswith(low):
        return Match.PREFIX
    if low in whole and any(whole.startswith(low, found.start()) for found in _WORD_STARTS.finditer(name)):
        return Match.WORD
    # Letters anywhere fit nearly everything: the first must be the name's first.
    if len(low) < 2 or not whole.startswith(low[0]):
        return None
    position = 0
    for letter in low:
        position = whole.find(letter, position) + 1
        if position == 0:
            return None
    return Match.LETTERS


def written(name: str, snapshot: Snapshot) -> str:
    """``name`` as it is written in SQL: in quotes only where it must be.

    Example:
        >>> from engramsql.shell.completion.catalog import Snapshot
        >>> written("head", Snapshot()), written("my table", Snapshot())
        ('head', '"my table"')
    """
    if (
        _PLAIN.fullmatch(name)
        and not any(letter.isspace() for letter in name)
        and name.lower() not in snapshot.reserved
    ):
        return name
    return identifier(name)


def candidates(wanted: Wanted, snapshot: Snapshot) -> list[Candidate]:
    """What can stand at the cursor, the best first, each text once."""
    if wanted.kinds == (Want.FILE,):
        return list(_files(wanted))
    offers = [offer for rank, kind in enumerate(wanted.kinds) for offer in _offers(kind, rank, wanted, snapshot)]
    ranked: list[tuple[int, int, int, Candidate]] = []
    for place, offer in enumerate(offers):
        fits = match(wanted.word, offer.name)
        if fits is None or fits > offer.worst:
            continue
        ranked.append((fits, offer.rank, place, offer.candidate))
    ranked.sort(key=lambda entry: entry[:3])
    if ranked and ranked[0][0] < Match.LETTERS:
        # Letters that stand anywhere are for those who remember no more.
        ranked = [entry for entry in ranked if entry[0] < Match.LETTERS]
    found: dict[str, Candidate] = {}
    for *_, candidate in ranked:
        found.setdefault(candidate.text, candidate)
        if len(found) >= LIMIT:
            break
    if len(found) == 1 and wanted.word in found:
        return []  # it is there already
    return list(found.values())


def _offers(kind: Want, rank: int, wanted: Wanted, snapshot: Snapshot) -> Iterator[_Offer]:
    if kind is Want.COLUMN:
        yield from _columns(rank, wanted, snapshot)
    elif kind is Want.FIELD:
        for field in fields(wanted, snapshot):
            yield _named(field.name, field.type, rank, wanted, snapshot)
    elif kind is Want.SOURCE:
        for source in wanted.sources:
            if source.alias:
                yield _named(source.alias, "in this statement", rank, wanted, snapshot)
    elif kind is Want.RELATION:
        yield from _relations(rank, wanted, snapshot)
    elif kind is Want.FUNCTION:
        yield from _functions(rank, wanted, snapshot, ("scalar", "aggregate", "macro", "window"))
    elif kind is Want.TABLE_FUNCTION:
        yield from _functions(rank, wanted, snapshot, ("table",))
    elif kind is Want.CALLED:
        yield from _functions(rank, wanted, snapshot, ("call",))
    elif kind is Want.TYPE:
        yield from (_plain(name.lower() if wanted.lower else name, "type", rank) for name in snapshot.types)
    elif kind is Want.SETTING:
        for setting in snapshot.settings:
            yield _plain(setting.name, setting.value or setting.type, rank)
    elif kind is Want.SETTING_VALUE:
        yield from (_plain(value, "value", rank, bool(wanted.quote)) for value in _setting_values(wanted, snapshot))
    elif kind is Want.PARAMETER:
        yield from _parameters(rank, wanted, snapshot)
    elif kind is Want.VALUE:
        yield from _values(rank, wanted, snapshot)
    elif kind is Want.STRING:
        yield from _texts(rank, wanted, snapshot)
    elif kind is Want.KEYWORD:
        yield from _keywords(rank, wanted, snapshot)


def _plain(text: str, meta: str, rank: int, quoted: bool = False) -> _Offer:
    return _Offer(Candidate(text, text, meta, quoted), text, rank)


def _named(name: str, meta: str, rank: int, wanted: Wanted, snapshot: Snapshot) -> _Offer:
    """An identifier, which may have been begun with a quote."""
    if wanted.quote:
        return _Offer(Candidate(name.replace('"', '""'), name, meta, quoted=True), name, rank)
    return _Offer(Candidate(written(name, snapshot), name, meta), name, rank)


def _columns(rank: int, wanted: Wanted, snapshot: Snapshot) -> Iterator[_Offer]:
    if wanted.qualifier:
        if len(wanted.qualifier) == 1:
            owners = [source for source in wanted.sources if folded(source.alias) == folded(wanted.qualifier[0])]
        else:
            owners = []
        if not owners:
            owners = [Source("", name=wanted.qualifier)]
            owners += [
                Source("", columns=cte.source.columns, stars=cte.source.stars, file=cte.source.file)
                for cte in wanted.ctes
                if (folded(cte.name),) == tuple(map(folded, wanted.qualifier))
            ]
        for owner in owners[:1] if wanted.sources else owners:
            for column in columns_of(owner, snapshot):
                yield _named(column.name, column.type or "column", rank, wanted, snapshot)
        return
    if wanted.sources:
        for source in wanted.sources:
            for column in columns_of(source, snapshot):
                meta = column.type or "column"
                if len(wanted.sources) > 1 and source.alias:
                    meta += f" of {source.alias}"
                yield _named(column.name, meta, rank, wanted, snapshot)
        return
    # Nothing was named yet: a column of any table, those of the database's own tables first.
    for relation in sorted(snapshot.relations, key=lambda relation: relation.name not in snapshot.tables):
        for column in relation.columns:
            yield _named(column.name, f"{column.type} of {relation.name}", rank, wanted, snapshot)
    if wanted.word:
        for function in (function for function in snapshot.functions.values() if function.ours):
            for name in function.signature.columns:
                yield _named(name, f"column of {function.name}", rank, wanted, snapshot)


def _relations(rank: int, wanted: Wanted, snapshot: Snapshot) -> Iterator[_Offer]:
    if wanted.qualifier:
        for relation in snapshot.relations:
            place = (folded(relation.database), folded(relation.schema))
            given = tuple(map(folded, wanted.qualifier))
            if given == place or (len(given) == 1 and given[0] in place):
                yield _named(relation.name, relation.kind, rank, wanted, snapshot)
        (outermost, *inner) = map(folded, wanted.qualifier)
        if not inner:
            for schema in dict.fromkeys(one.schema for one in snapshot.relations if folded(one.database) == outermost):
                yield _named(schema, "schema", rank, wanted, snapshot)
        return
    for cte in wanted.ctes:
        yield _named(cte.name, "in this statement", rank, wanted, snapshot)
    for relation in sorted(snapshot.relations, key=lambda relation: (distance(relation, snapshot), relation.name)):
        if distance(relation, snapshot) < 2:
            yield _named(relation.name, relation.kind, rank, wanted, snapshot)
        elif not wanted.quote:
            parts = (relation.schema, relation.name)
            if relation.database != snapshot.database:
                parts = (relation.database, *(parts if relation.schema != "main" else parts[1:]))
            text = ".".join(written(part, snapshot) for part in parts)
            yield _Offer(Candidate(text, text, relation.kind), text, rank)
    # What is not found without its schema or database.
    far = [relation for relation in snapshot.relations if distance(relation, snapshot) >= 2]
    for schema in dict.fromkeys(one.schema for one in far if one.database == snapshot.database):
        yield _named(schema, "schema", rank, wanted, snapshot)
    for database in dict.fromkeys(one.database for one in far if one.database != snapshot.database):
        yield _named(database, "database", rank, wanted, snapshot)


def _functions(rank: int, wanted: Wanted, snapshot: Snapshot, kinds: tuple[str, ...]) -> Iterator[_Offer]:
    if wanted.quote:
        return
    offered = [function for function in snapshot.functions.values() if function.kind in kinds]
    for function in sorted(offered, key=lambda function: (not function.ours, function.name)):
        yield _Offer(Candidate(_call_of(function), function.name, _told(function)), function.name, rank)


def _call_of(function: Function) -> str:
    """The name and an opening bracket, also the closing one if there is nothing to give."""
    return function.name + ("()" if not any(function.signature.overloads) else "(")


def _told(function: Function) -> str:
    if not function.ours:
        return "function" if function.kind != "table" else "table function"
    return function.description.split(". ", 1)[0].rstrip(".")


def _setting_values(wanted: Wanted, snapshot: Snapshot) -> tuple[str, ...]:
    subject = wanted.subject.lower()
    if subject == "engram_reader":
        return _READERS if wanted.quote else tuple(f"'{reader}'" for reader in _READERS)
    if any(setting.name == subject and setting.type == "BOOLEAN" for setting in snapshot.settings):
        return _BOOLEANS
    return ()


def _parameters(rank: int, wanted: Wanted, snapshot: Snapshot) -> Iterator[_Offer]:
    """Optional arguments of the call, which can be named."""
    function = snapshot.functions.get(wanted.call.function.lower()) if wanted.call is not None else None
    if function is None or not function.ours or wanted.quote:
        return
    if function.kind in ("table", "call"):
        for parameter in {p.name: p for form in function.signature.overloads for p in form if p.optional}.values():
            yield _plain(f"{parameter.name} := ", "argument", rank)


def _values(rank: int, wanted: Wanted, snapshot: Snapshot) -> Iterator[_Offer]:
    """Heads, for a comparison with the column of that name."""
    if folded(wanted.subject) != "head":
        return
    for source in wanted.sources:
        for head in snapshot.heads.get(folded(source.name[-1]), ()) if source.name else ():
            yield _plain(str(head.head), f"{head.ngram_order}-gram, {head.size:,} rows", rank)


def _texts(rank: int, wanted: Wanted, snapshot: Snapshot) -> Iterator[_Offer]:
    """What a function takes as text at this place: names of tables and views, files, a few words."""
    call = wanted.call
    if call is None:
        return
    function = snapshot.functions.get(call.function.lower())
    if function is None or not function.ours:
        if call.index == 0 and _OF_FILES.fullmatch(call.function):
            yield from (_of_file(candidate, wanted, rank) for candidate in _files(wanted))
        return
    parameter = function.signature.parameter(call.index, call.named, call.text_first or call.index == 0)
    name = parameter.name if parameter is not None else ""
    names: dict[str, str] = {}
    if name in ("table", "a", "b", "corpus") or (
        name == "name" and function.name in ("engram_drop", "engram_relocate")
    ):
        names |= {} if name == "corpus" else {table: f"table, {told}" for table, told in snapshot.tables.items()}
    if name == "view" or (function.name in ("engram_drop", "engram_verify") and name in ("name", "table")):
        names |= {view: f"materialised view, {told}" for view, told in snapshot.views.items()}
    if name == "corpus":
        names |= {cte.name: "in this statement" for cte in wanted.ctes}
        with_tokens = [relation for relation in snapshot.relations if _has_tokens(relation)]
        names |= {relation.name: relation.kind for relation in with_tokens}
    if name == "format":
        names |= dict.fromkeys(FORMATS, "value format")
    if name == "level":
        names |= dict.fromkeys(_LEVELS, "level")
    for text, meta in names.items():
        yield _Offer(Candidate(text.replace("'", "''"), text, meta, quoted=True), text, rank)
    takes_path = name in _FILE_PARAMETERS or (name in ("table", "a", "b", "corpus") and _is_path(wanted.word))
    if takes_path and not (name == "spec" and not _is_path(wanted.word)):
        yield from (_of_file(candidate, wanted, rank) for candidate in _files(wanted))
    elif name == "corpus":
        # A name without a directory may be a file of this one; DuckDB reads these.
        for candidate in _files(wanted):
            if candidate.quoted and candidate.label.lower().endswith(_CORPUS_FILES):
                yield _of_file(candidate, wanted, rank + 1)


def _has_tokens(relation: Relation) -> bool:
    return any(column.name == "tokens" and column.type.endswith("[]") for column in relation.columns)


def _is_path(word: str) -> bool:
    return "/" in word or word.startswith((".", "~"))


def _of_file(candidate: Candidate, wanted: Wanted, rank: int) -> _Offer:
    """A file fits already; its name is matched as it was typed."""
    return _Offer(candidate, wanted.word + candidate.label, rank)


def _files(wanted: Wanted) -> Iterable[Candidate]:
    for file in matching(wanted.word):
        text = file.path.replace("'", "''")
        if file.directory:
            yield Candidate(text + "/", file.name + "/", "directory")
        else:
            yield Candidate(text, file.name, "file", quoted=True)


def _keywords(rank: int, wanted: Wanted, snapshot: Snapshot) -> Iterator[_Offer]:
    if wanted.quote:
        return
    # Their letters alone would fit all over the place.
    for word in wanted.keywords:
        text = word.lower() if wanted.lower else word
        yield _Offer(Candidate(text, text, "keyword"), text, rank, worst=Match.WORD)
    # Where nothing else can stand, all that DuckDB has; beside names most of them are only noise.
    if len(wanted.word) < 2 or wanted.kinds != (Want.KEYWORD,):
        return
    for word in snapshot.keywords:
        text = word.lower() if wanted.lower else word
        yield _Offer(Candidate(text, text, "keyword"), text, rank + 1, worst=Match.PREFIX)
