"""The words of SQL that say what comes next, and those that can."""

from __future__ import annotations

__all__ = [
    "AFTER",
    "CLAUSES",
    "COPY_FORMATS",
    "COPY_OPTIONS",
    "EXPRESSION",
    "JOINS",
    "NO_FUNCTION",
    "OPERANDS",
    "OPERATORS",
    "QUERIES",
    "QUERY_WORDS",
    "RELATION_WORDS",
    "SET_OPERATIONS",
    "STATEMENTS",
    "TAIL",
]


def _words(text: str) -> tuple[str, ...]:
    """Words and phrases, one after each comma."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


# Words after which a relation is named.
RELATION_WORDS = frozenset(
    _words("FROM, JOIN, INTO, UPDATE, TABLE, VIEW, DESCRIBE, SUMMARIZE, PIVOT, UNPIVOT"),
)
# First words of what can stand in brackets as a relation.
QUERIES = frozenset(_words("SELECT, FROM, WITH, VALUES, PIVOT, UNPIVOT, DESCRIBE, SUMMARIZE, SHOW, TABLE"))
SET_OPERATIONS = frozenset(_words("UNION, EXCEPT, INTERSECT"))
JOINS = frozenset(_words("JOIN, LEFT, RIGHT, FULL, INNER, OUTER, CROSS, NATURAL, ASOF, POSITIONAL, SEMI, ANTI"))
# Words that begin another part of a query and so end the one before.
CLAUSES = SET_OPERATIONS | frozenset(
    _words(
        """
        SELECT, FROM, WHERE, GROUP, HAVING, QUALIFY, WINDOW, ORDER, LIMIT, OFFSET, RETURNING, SET, VALUES, TO, INSERT,
        DELETE, COPY, WITH
        """
    )
)
# How statements begin.
STATEMENTS = _words(
    """
    SELECT, FROM, WITH, EXPLAIN, EXPLAIN ANALYZE, DESCRIBE, SUMMARIZE, SHOW TABLES, COPY, CREATE VIEW, CREATE TABLE,
    CREATE OR REPLACE, CREATE TEMP TABLE, CALL, INSERT INTO, UPDATE, DELETE FROM, DROP TABLE, DROP VIEW, ALTER TABLE,
    ATTACH, DETACH, SET, SET VARIABLE, RESET, PRAGMA, PIVOT, UNPIVOT, VALUES, USE, BEGIN, COMMIT, ROLLBACK, PREPARE,
    EXECUTE, EXPORT DATABASE, IMPORT DATABASE, INSTALL, LOAD, CHECKPOINT
    """
)
QUERY_WORDS = _words("SELECT, FROM, WITH, VALUES")
OPERANDS = _words("CASE, CAST, TRY_CAST, NOT, NULL, TRUE, FALSE, EXISTS, INTERVAL, DATE, TIMESTAMP, COLUMNS, LAMBDA")
_COMPARISONS = _words(
    """
    IN, NOT IN, IS NULL, IS NOT NULL, IS DISTINCT FROM, IS NOT DISTINCT FROM, BETWEEN, LIKE, ILIKE, COLLATE, OVER
    """
)
OPERATORS = ("AND", "OR", *_COMPARISONS)
_AFTER_GROUPS = _words(
    "ORDER BY, LIMIT, OFFSET, USING SAMPLE, UNION, UNION ALL, UNION BY NAME, EXCEPT, INTERSECT",
)
_AFTER_WHERE = ("GROUP BY", "HAVING", "QUALIFY", "WINDOW", *_AFTER_GROUPS)
TAIL = ("WHERE", *_AFTER_WHERE)
_JOINED = _words(
    """
    JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN, INNER JOIN, CROSS JOIN, SEMI JOIN, ANTI JOIN, ASOF JOIN, POSITIONAL JOIN,
    NATURAL JOIN, TABLESAMPLE
    """
)
# What can follow an operand, by the part of the statement.
AFTER: dict[str, tuple[str, ...]] = {
    "SELECT": ("FROM", "AS", "EXCLUDE", "REPLACE", *OPERATORS, *TAIL),
    "FROM": ("AS", "WHERE", *_JOINED, "ON", "USING", *_AFTER_WHERE, "SELECT"),
    "ON": ("AND", "OR", "WHERE", *_JOINED, *_AFTER_WHERE, *_COMPARISONS),
    "WHERE": ("AND", "OR", *_AFTER_WHERE, *_COMPARISONS),
    "GROUP": ("HAVING", "QUALIFY", *_AFTER_GROUPS, *OPERATORS),
    "ORDER": ("ASC", "DESC", "NULLS FIRST", "NULLS LAST", "LIMIT", "OFFSET", *OPERATORS),
    "LIMIT": ("OFFSET", "PERCENT"),
    "UPDATE": ("SET",),
    "SET": ("WHERE", "FROM", "RETURNING", *OPERATORS),
    "INTO": ("VALUES", "SELECT", "FROM", "BY NAME", "DEFAULT VALUES"),
    "COPY": ("TO", "FROM"),
    "WITH": ("AS", "AS MATERIALIZED", "SELECT", "FROM", "INSERT INTO", "UPDATE", "DELETE FROM"),
    "CASE": ("WHEN", "THEN", "ELSE", "END", *OPERATORS),
}
# Words after which an expression begins, and the part of the statement that they begin, if they do.
EXPRESSION = {
    **dict.fromkeys(_words("BY, AND, OR, NOT, IN, LIKE, ILIKE, BETWEEN, DISTINCT, ALL, VALUES, IS, EXCLUDE"), ""),
    **dict.fromkeys(_words("HAVING, QUALIFY"), "GROUP"),
    **dict.fromkeys(_words("LIMIT, OFFSET"), "LIMIT"),
    **dict.fromkeys(_words("CASE, WHEN, THEN, ELSE"), "CASE"),
    **dict.fromkeys(_words("SELECT, RETURNING"), "SELECT"),
    "WHERE": "WHERE",
    "ON": "ON",
    "SET": "SET",
}
# What can stand before a bracket without being called; left and right are functions as well.
NO_FUNCTION = (
    frozenset(EXPRESSION)
    | CLAUSES
    | RELATION_WORDS
    | (JOINS - {"LEFT", "RIGHT"})
    | frozenset(_words("AS, USING, EXISTS, OVER, FILTER, MATERIALIZED, LATERAL, ANY, SOME, RECURSIVE"))
)
COPY_FORMATS = ("engram", "parquet", "csv", "json")
# Ours last: they go with FORMAT engram.
COPY_OPTIONS = _words(
    """
    FORMAT, COMPRESSION, HEADER, DELIMITER, ROW_GROUP_SIZE, PARTITION_BY, OVERWRITE, VALUE_FORMAT, SCALE, SPEC, LAYER,
    TOKENIZER, SHARD_BYTES
    """
)
