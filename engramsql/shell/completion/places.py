"""What is wanted at a place of a statement that is in no string and no comment."""

from __future__ import annotations

from dataclasses import replace

from engramsql.shell.completion.calls import argument_begins, innermost
from engramsql.shell.completion.parts import Part, compared, part_of
from engramsql.shell.completion.relations import Source, block, scope
from engramsql.shell.completion.tokens import Kind, Token, unquoted
from engramsql.shell.completion.tree import (
    CURSOR,
    Group,
    Item,
    Tree,
    build,
    is_name,
    is_operator,
    name_of,
    place,
    upper,
)
from engramsql.shell.completion.want import Want, Wanted
from engramsql.shell.completion.words import (
    AFTER,
    COPY_FORMATS,
    COPY_OPTIONS,
    JOINS,
    NO_FUNCTION,
    OPERANDS,
    OPERATORS,
    QUERIES,
    QUERY_WORDS,
    STATEMENTS,
    TAIL,
)

__all__ = ["in_statement"]

_SCOPES = ("GLOBAL", "SESSION", "LOCAL", "VARIABLE")
_CREATED = ("VIEW", "TABLE", "TEMP TABLE", "TEMP VIEW", "MACRO", "SCHEMA", "TYPE")
# Statements that name nothing which is known here, or name it in quotes.
_SILENT = frozenset({"ATTACH", "DETACH", "LOAD", "INSTALL", "USE", "BEGIN", "COMMIT", "ROLLBACK", "CHECKPOINT"})
# Words before a bracket that a query can stand in.
_OF_QUERIES = frozenset({"AS", "FROM", "JOIN", "EXISTS", "MATERIALIZED", "COPY", "LATERAL"})


def in_statement(tokens: list[Token], rest: list[Token]) -> Wanted:
    """What is wanted between the tokens before and after the cursor; where the word begins is not told."""
    qualifier = _qualifier(tokens)
    if not qualifier and tokens and tokens[-1].operator("."):
        return _of_value(tokens)
    tree = build(tokens[: len(tokens) - 2 * len(qualifier)], rest)
    items = tree.path[-1].items
    at = place(items, CURSOR)
    low, _ = block(items, at)
    part = part_of(items[low:at])
    seen = scope(tree)
    base = Wanted(0, sources=seen.sources, ctes=seen.ctes, qualifier=qualifier, call=innermost(tree))
    if qualifier:
        return replace(base, kinds=(Want.RELATION,) if part.relation else (Want.COLUMN, Want.FIELD, Want.RELATION))
    if at and (is_operator(items[at - 1], "::") or _casts(tree, items[at - 1])):
        return replace(base, kinds=(Want.TYPE,))
    found = _by_first_word(base, items, low, at) if len(tree.path) == 1 else _in_brackets(base, tree, at)
    return found if found is not None else _by_part(base, part, tree, at)


def _qualifier(tokens: list[Token]) -> tuple[str, ...]:
    """The dotted names right before the cursor: ``a.b.`` gives both."""
    parts: list[str] = []
    at = len(tokens) - 1
    while at >= 1 and tokens[at].operator(".") and tokens[at - 1].kind in (Kind.WORD, Kind.QUOTED):
        parts.append(unquoted(tokens[at - 1]))
        at -= 2
    return tuple(reversed(parts))


def _of_value(tokens: list[Token]) -> Wanted:
    """What is wanted after the dot behind a value: the fields of what a function returns."""
    items = build(tokens[:-1], []).path[-1].items[:-1]
    called = len(items) >= 2 and isinstance(items[-1], Group) and items[-1].open == "(" and tokens[-2].operator(")")
    name = items[-2] if called else None
    if not is_name(name) or upper(name) in NO_FUNCTION:
        return Wanted(0)
    return Wanted(0, kinds=(Want.FIELD,), subject=name_of(name))


def _casts(tree: Tree, previous: Item) -> bool:
    """Whether a type comes next: ``CAST(x AS``."""
    if upper(previous) != "AS" or len(tree.path) < 2:
        return False
    outer = tree.path[-2].items
    at = place(outer, tree.path[-1])
    return at > 0 and upper(outer[at - 1]) in ("CAST", "TRY_CAST")


def _words(base: Wanted, words: tuple[str, ...]) -> Wanted:
    return replace(base, kinds=(Want.KEYWORD,), keywords=words)


def _by_first_word(base: Wanted, items: list[Item], low: int, at: int) -> Wanted | None:
    """What the first words of a statement say about the cursor, if they say it alone."""
    first = upper(items[low]) if at > low else ""
    second = upper(items[low + 1]) if at > low + 1 else ""
    if at == low:
        return _words(base, STATEMENTS if low == 0 else ("ALL", "BY NAME", *QUERY_WORDS))
    if first == "EXPLAIN" and at <= low + 2 and second in ("", "ANALYZE"):
        return _words(base, QUERY_WORDS if second else ("ANALYZE", *QUERY_WORDS))
    if first == "ALL" and at == low + 1:
        return _words(base, QUERY_WORDS)
    if first == "CALL":
        return replace(base, kinds=(Want.CALLED,) if at == low + 1 else ())
    if first in ("SET", "RESET", "PRAGMA"):
        return _of_setting(base, items, at)
    if first == "DROP" and at == low + 2 and second in ("TABLE", "VIEW"):
        return replace(base, kinds=(Want.RELATION, Want.KEYWORD), keywords=("IF EXISTS",))
    if first == "WITH" and at == low + 1:
        return _words(base, ("RECURSIVE",))
    if first == "SHOW" and at == low + 1:
        return _words(base, ("TABLES", "ALL TABLES", "DATABASES"))
    if first in ("CREATE", "PREPARE") and upper(items[at - 1]) == "AS":
        return _words(base, QUERY_WORDS)
    if first == "CREATE" and upper(items[at - 1]) in ("CREATE", "REPLACE"):
        return _words(base, _CREATED)
    if first in _SILENT or (first == "COPY" and upper(items[at - 1]) == "TO"):
        return base
    return None


def _of_setting(base: Wanted, items: list[Item], at: int) -> Wanted:
    first, second = upper(items[0]), upper(items[1]) if at > 1 else ""
    if at == 1:
        return replace(base, kinds=(Want.SETTING, Want.KEYWORD), keywords=_SCOPES if first != "PRAGMA" else ())
    if at == 2 and second in _SCOPES[:3]:
        return replace(base, kinds=(Want.SETTING,))
    named = items[at - 2]
    if is_operator(items[at - 1], "=") and is_name(named):
        if second == "VARIABLE":
            return replace(base, kinds=(Want.FUNCTION, Want.KEYWORD), keywords=OPERANDS)
        return replace(base, kinds=(Want.SETTING_VALUE,), subject=name_of(named))
    return base


def _in_brackets(base: Wanted, tree: Tree, at: int) -> Wanted | None:
    """What stands before a bracket says about what is in it, if it says it alone."""
    group, outer = tree.path[-1], tree.path[-2].items
    if group.open != "(":
        return None
    before = outer[: place(outer, group)]
    word = upper(before[-1]) if before else ""
    target = _inserted_into(before)
    if target is not None:
        return replace(base, kinds=(Want.COLUMN,), sources=(target,))
    if word == "USING":
        return replace(base, kinds=(Want.COLUMN,))
    if len(before) > 1 and upper(before[0]) == "CREATE" and upper(before[-2]) in ("TABLE", "EXISTS"):
        # New columns: a name, then its type.
        return replace(base, kinds=(Want.TYPE,) if at and is_name(group.items[at - 1]) else ())
    if before and upper(before[0]) == "COPY" and any(upper(item) in ("TO", "FROM") for item in before):
        return _copy_options(base, group.items[:at])
    if at == 0 and (word in _OF_QUERIES or not before):
        found = _words(base, QUERY_WORDS)
        if word in ("FROM", "JOIN"):
            return replace(found, kinds=(Want.KEYWORD, Want.RELATION, Want.TABLE_FUNCTION))
        return found
    if at == 0 and word in ("OVER", "WINDOW"):
        return _words(base, ("PARTITION BY", "ORDER BY", "ROWS BETWEEN", "RANGE BETWEEN"))
    begins = argument_begins(group.items[at - 1] if at else None)
    if base.call is not None and begins and not base.call.named and not part_of(group.items[:at]).relation:
        # The first word of an argument can be its name.
        kinds = (Want.COLUMN, Want.PARAMETER, Want.SOURCE, Want.FUNCTION, Want.KEYWORD)
        return replace(base, kinds=kinds, keywords=("DISTINCT", "SELECT", *OPERANDS))
    return None


def _inserted_into(before: list[Item]) -> Source | None:
    """The table whose columns are listed: ``INSERT INTO t (``."""
    into = next((at for at in range(len(before) - 1, -1, -1) if upper(before[at]) == "INTO"), None)
    if into is None:
        return None
    names = before[into + 1 :]
    if not names or any(not isinstance(item, Token) or upper(item) in QUERIES for item in names):
        return None
    return Source("", name=tuple(name_of(item) for item in names if is_name(item)))


def _copy_options(base: Wanted, before: list[Item]) -> Wanted:
    if before and upper(before[-1]) == "FORMAT":
        return _words(base, COPY_FORMATS)
    return _words(base, COPY_OPTIONS if argument_begins(before[-1] if before else None) else ())


def _by_part(base: Wanted, part: Part, tree: Tree, at: int) -> Wanted:
    """What the part of the statement says about the cursor."""
    items = tree.path[-1].items
    previous = upper(items[at - 1]) if at else ""
    if part.new or (part.operand and part.name == "LIMIT"):
        return base
    if not part.operand:
        if previous in ("GROUP", "ORDER", "PARTITION"):
            return _words(base, ("BY",))
        if previous in JOINS:
            return _words(base, ("JOIN", "OUTER JOIN", "JOIN LATERAL"))
        return _words(base, AFTER.get(part.name, (*OPERATORS, *TAIL)))
    if part.relation:
        relations = ("LATERAL", "VALUES") if part.name == "FROM" else ()
        return replace(base, kinds=(Want.RELATION, Want.TABLE_FUNCTION, Want.KEYWORD), keywords=relations)
    kinds: tuple[Want, ...] = (Want.COLUMN, Want.SOURCE, Want.FUNCTION, Want.KEYWORD)
    words = OPERANDS
    if previous == "SELECT":
        words = ("DISTINCT", *OPERANDS)
    elif at == 0 and tree.path[-1].open == "(":
        words = ("SELECT", "FROM", "WITH", *OPERANDS)  # a subquery
    elif previous == "IS":
        words = ("NULL", "NOT NULL", "DISTINCT FROM", *OPERANDS)
    elif previous == "NOT":
        words = ("NULL", "IN", "LIKE", "ILIKE", "BETWEEN", *OPERANDS)
    column = compared(tree, at)
    return replace(base, kinds=(Want.VALUE, *kinds) if column else kinds, keywords=words, subject=column)
