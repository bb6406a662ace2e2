"""What is wanted at the cursor, which is where the bar stands: plain strings, no terminal and no database."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engramsql.shell.completion import tokens
from engramsql.shell.completion.context import call_at, wanted
from engramsql.shell.completion.want import Call, Want, Wanted

EXPRESSION = (Want.COLUMN, Want.SOURCE, Want.FUNCTION, Want.KEYWORD)
RELATION = (Want.RELATION, Want.TABLE_FUNCTION, Want.KEYWORD)


def at(marked: str) -> Wanted:
    cursor = marked.rindex("|")
    return wanted(marked[:cursor] + marked[cursor + 1 :], cursor)


def call(marked: str) -> Call | None:
    cursor = marked.rindex("|")
    return call_at(marked[:cursor] + marked[cursor + 1 :], cursor)


def sources(marked: str) -> list[tuple[str, str]]:
    """Alias of each relation, and its name, function or columns."""
    return [
        (source.alias, ".".join(source.name) or source.function or ",".join(source.columns))
        for source in at(marked).sources
    ]


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT |",
        "SELECT emb|",
        "SELECT a, |",
        "SELECT a + |",
        "SELECT a * |",
        "SELECT (a + |",
        "SELECT a FROM t WHERE |",
        "SELECT a FROM t WHERE x AND |",
        "SELECT a FROM t WHERE NOT |",
        "SELECT a FROM t JOIN u ON |",
        "SELECT a FROM t GROUP BY |",
        "SELECT a FROM t GROUP BY a HAVING |",
        "SELECT a FROM t ORDER BY a, |",
        "FROM t SELECT |",
        "SELECT CASE WHEN |",
        "SELECT a FROM t WHERE a IS DISTINCT FROM |",
        "SELECT DISTINCT |",
        "UPDATE t SET |",
        "SELECT 1; SELECT |",
        "SELECT 1 UNION SELECT |",
        "EXPLAIN SELECT |",
        "SELECT '\u00e4\u3042' || |",
        "SELECT [|",
        "SELECT {'a': |",
        "SELECT a[|",
    ],
)
def test_columns_come_first_in_expressions(marked: str):
    kinds = at(marked).kinds
    assert kinds[0] is Want.COLUMN
    assert Want.FUNCTION in kinds


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT * FROM |",
        "SELECT * FROM pl|",
        "SELECT * FROM ple, |",
        "SELECT * FROM ple JOIN |",
        "SELECT * FROM ple LEFT JOIN |",
        "FROM |",
        "DESCRIBE |",
        "SUMMARIZE |",
        "INSERT INTO |",
        "UPDATE |",
        "DELETE FROM |",
        "COPY |",
        "SELECT 1; FROM |",
        "SELECT * FROM a JOIN b ON a.x = b.x, |",
        "SELECT * FROM ple WHERE rowid IN (SELECT r FROM |",
        "WITH a AS (SELECT * FROM |",
    ],
)
def test_relations_come_first_where_one_is_named(marked: str):
    assert at(marked).kinds == RELATION


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT 'x|",
        "SELECT 'it''s |",
        "SELECT * FROM t WHERE name = 'pl|",
        "SELECT '|'",
        "SELECT 'a'|",
        "SELECT 'a|b' FROM ple",
        "-- x|",
        "SELECT 1 -- FROM |",
        "SELECT /* FROM |",
        "/* SELECT */ /* /* */ |",
        "SELECT $$ SELECT |",
        "SELECT $x$ $$ FROM |",
        "SELECT e'\\'|",
        "SELECT x'0|",
        "SELECT 12|",
        "SELECT 1.5e|",
        "SELECT 12a|",
        "SELECT $na|",
        "SELECT $1|",
        "SELECT a AS |",
        "SELECT a AS na|",
        "CREATE TABLE |",
        "CREATE VIEW my|",
        'SELECT "a"|',
        "SELECT 1.|",
        "SELECT (a + b).|",
        "SELECT [1, 2].|",
        "CREATE TABLE t (|",
        "CREATE TABLE t (a INTEGER, |",
        "WITH a AS (SELECT 1), |",
        "SELECT * FROM t LIMIT |",
        "SELECT 'a' || 'pl|",
        "SELECT * FROM t WHERE x LIKE 'a%|",
        "SELECT count(*) FILTER (WHERE x = 'pl|",
    ],
)
def test_nothing_is_wanted_in_strings_comments_numbers_and_new_names(marked: str):
    assert at(marked).kinds == ()


@pytest.mark.parametrize(
    ("marked", "word", "start", "quote"),
    [
        ("SELECT emb|", "emb", 7, ""),
        ("SELECT emb|edding", "emb", 7, ""),
        ("SELECT |embedding", "", 7, ""),
        ("SELECT t.emb|", "emb", 9, ""),
        ('SELECT "my c|', "my c", 8, '"'),
        ('SELECT "a ""b|', 'a "b', 8, '"'),
        ("SELECT \u00e4\u3042\U0001f600|", "\u00e4\u3042\U0001f600", 7, ""),
        ("SELECT '\U0001f600', \u00e4b|", "\u00e4b", 12, ""),
        ("SELECT a+b|", "b", 9, ""),
        ("SELECT\n  emb|", "emb", 9, ""),
        ("FROM 'da|", "da", 6, "'"),
    ],
)
def test_the_word_is_what_was_typed_of_it(marked: str, word: str, start: int, quote: str):
    found = at(marked)
    assert (found.word, found.start, found.quote) == (word, start, quote)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("SELECT | FROM ple", [("ple", "ple")]),
        ("SELECT | FROM ple p", [("p", "ple")]),
        ("SELECT | FROM ple AS p", [("p", "ple")]),
        ("SELECT | FROM p: ple", [("p", "ple")]),
        ('SELECT | FROM "my table" AS "T"', [("T", "my table")]),
        ("SELECT | FROM memory.main.ple", [("ple", "memory.main.ple")]),
        ("SELECT | FROM a, b JOIN c USING (x) LEFT JOIN d ON a.x = d.x WHERE y", [(name, name) for name in "abcd"]),
        ("SELECT | FROM a WHERE x IN (SELECT y FROM b)", [("a", "a")]),
        ("SELECT x FROM a WHERE x IN (SELECT | FROM b)", [("b", "b"), ("a", "a")]),
        ("SELECT | FROM engram_fetch('ple', [1, 2])", [("engram_fetch", "engram_fetch")]),
        ("SELECT | FROM engram_fetch('ple', [1, 2]) AS f", [("f", "engram_fetch")]),
        ("SELECT x FROM engram_fetch('ple', [|", []),
        ("SELECT x FROM s, engram_fetch('ple', |", [("s", "s")]),
        ("SELECT | FROM (SELECT rowid AS r, head FROM ple) AS s", [("s", "r,head")]),
        ("SELECT | FROM (SELECT rowid r, t.head FROM ple t) s(a, b)", [("s", "a,b")]),
        ("SELECT | FROM (FROM ple SELECT x: rowid, lower(y))", [("", "x")]),
        ("WITH a AS (SELECT rowid AS r FROM ple) SELECT | FROM a", [("a", "r")]),
        ("WITH a(x, y) AS (SELECT 1, 2) SELECT | FROM a b", [("b", "x,y")]),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT | FROM a) SELECT y FROM c", [("a", "x")]),
        ("WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT | FROM a) SELECT 1", [("a", "n")]),
        ("SELECT x FROM a UNION ALL SELECT | FROM b", [("b", "b")]),
        ("SELECT | FROM a UNION SELECT y FROM b", [("a", "a")]),
        ("SELECT 1 FROM x; SELECT | FROM a; SELECT 2 FROM y", [("a", "a")]),
        ("UPDATE ple SET |", [("ple", "ple")]),
        ("DELETE FROM ple WHERE |", [("ple", "ple")]),
        ("SELECT count(| FROM ple", [("ple", "ple")]),
        ("SELECT a IS DISTINCT FROM | FROM ple", [("ple", "ple")]),
        ("SELECT \"em| FROM ple", [("ple", "ple")]),
        ("SELECT | FROM (a JOIN b ON x)", [("a", "a"), ("b", "b")]),
        ("SELECT | FROM 'data.parquet' d", [("d", "")]),
        ("SELECT x FROM (SELECT | FROM a) s, b", [("a", "a"), ("b", "b")]),
        ("SELECT | FROM t TABLESAMPLE 10%", [("t", "t")]),
        ("INSERT INTO t SELECT | FROM s", [("s", "s")]),
    ],
)  # fmt: skip
def test_relations_of_the_statement_are_known(marked: str, expected: list[tuple[str, str]]):
    assert sources(marked) == expected


def test_stars_of_subqueries_hand_columns_on():
    (source,) = at("WITH a AS (SELECT *, 1 AS one FROM ple), b AS (FROM a) SELECT | FROM b").sources
    (through,) = source.stars
    assert (through.columns, through.stars[0].name) == (("one",), ("ple",))
    (chosen,) = at("SELECT | FROM (SELECT u.* FROM ple t, norms u)").sources
    assert [star.name for star in chosen.stars] == [("norms",)]


@pytest.mark.parametrize(
    ("marked", "qualifier", "kinds"),
    [
        ("SELECT t.| FROM ple t", ("t",), (Want.COLUMN, Want.FIELD, Want.RELATION)),
        ("SELECT main.ple.em|", ("main", "ple"), (Want.COLUMN, Want.FIELD, Want.RELATION)),
        ('SELECT "my t".|', ("my t",), (Want.COLUMN, Want.FIELD, Want.RELATION)),
        ("SELECT * FROM main.|", ("main",), (Want.RELATION,)),
        ("SELECT a FROM t WHERE t.| = 3", ("t",), (Want.COLUMN, Want.FIELD, Want.RELATION)),
    ],
)
def test_what_stands_before_a_dot_qualifies(marked: str, qualifier: tuple[str, ...], kinds: tuple[Want, ...]):
    found = at(marked)
    assert (found.qualifier, found.kinds) == (qualifier, kinds)


def test_names_of_ctes_are_relations():
    assert [cte.name for cte in at("WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM |").ctes] == ["a", "b"]
    assert [cte.name for cte in at("WITH a AS (SELECT 1), b AS (SELECT * FROM |").ctes] == ["a"]


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT * FROM 'da|",
        "FROM 'da|'",
        "SELECT * FROM a JOIN 'da|",
        "SELECT * FROM a, 'da|",
        "COPY ple TO 'out/|",
        "COPY (SELECT * FROM ple) TO '|",
        "COPY ple FROM '|",
        "ATTACH '|",
        "EXPORT DATABASE '|",
        "LOAD '|",
        "DESCRIBE '|",
    ],
)
def test_files_are_wanted_in_quotes_where_a_relation_or_target_stands(marked: str):
    assert at(marked).kinds == (Want.FILE,)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("SELECT * FROM engram_fetch('pl|", Call("engram_fetch", 0)),
        ("SELECT * FROM engram_fetch('|', [1])", Call("engram_fetch", 0)),
        ("SELECT engram_decode(row, '|", Call("engram_decode", 1)),
        ("SELECT * FROM engram_verify('ple', level := '|", Call("engram_verify", 1, "level", True)),
        ("SELECT * FROM engram_verify('ple', level => '|", Call("engram_verify", 1, "level", True)),
        ("CALL engram_register('x', '|", Call("engram_register", 1, text_first=True)),
        ("SELECT * FROM read_csv('|", Call("read_csv", 0)),
        ("SELECT * FROM read_csv(['a', '|", Call("read_csv", 0)),
    ],
)
def test_texts_are_wanted_where_an_argument_begins(marked: str, expected: Call):
    found = at(marked)
    assert (found.kinds, found.call) == ((Want.STRING,), expected)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("SELECT engram_row(|", Call("engram_row", 0)),
        ("SELECT engram_row('ple', |", Call("engram_row", 1, text_first=True)),
        ("SELECT engram_row('ple', abs(|", Call("abs", 0)),
        ("SELECT engram_row('ple', abs(1)|", Call("engram_row", 1, text_first=True)),
        ("SELECT * FROM engram_fetch('ple', [1, 2, |", Call("engram_fetch", 1, text_first=True)),
        ("SELECT f(1, 2, |", Call("f", 2)),
        ("SELECT f(1, 2, 3|", Call("f", 2)),
        ("SELECT f(x, (1 + |", Call("f", 1)),
        ("SELECT f(a, b := |", Call("f", 1, "b")),
        ("SELECT f('a;b', '(', |", Call("f", 2, text_first=True)),
        ("SELECT engram_row('pl|", Call("engram_row", 0, text_first=True)),
        ('SELECT "f"(|', Call("f", 0)),
        ("SELECT main.f(|", Call("f", 0)),
        ("SELECT f(|)", Call("f", 0)),
        ("SELECT f(1)|", None),
        ("SELECT f(1) -- f(|", None),
        ("SELECT f(1); SELECT |", None),
        ("SELECT x IN (|", None),
        ("SELECT f((SELECT |", None),
        ("INSERT INTO t (|", None),
        ("SELECT * FROM (|", None),
        ("SELECT * FROM t JOIN u USING (|", None),
        ("WITH a(|", Call("a", 0)),
        ("", None),
    ],
)  # fmt: skip
def test_the_call_around_the_cursor_is_known(marked: str, expected: Call | None):
    assert call(marked or "|") == expected


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("|", ["SELECT", "FROM", "WITH"]),
        ("SELECT 1; |", ["SELECT", "FROM", "WITH"]),
        ("EXPLAIN |", ["ANALYZE", "SELECT"]),
        ("SELECT * |", ["FROM"]),
        ("SELECT a |", ["FROM", "AS"]),
        ("SELECT * FROM ple |", ["WHERE", "JOIN", "GROUP BY", "ORDER BY", "LIMIT"]),
        ("SELECT * FROM ple WHERE x = 1 |", ["AND", "OR", "GROUP BY"]),
        ("SELECT * FROM ple GROUP |", ["BY"]),
        ("SELECT * FROM ple ORDER BY x |", ["ASC", "DESC", "LIMIT"]),
        ("SELECT * FROM ple LEFT |", ["JOIN"]),
        ("SELECT * FROM ple UNION |", ["ALL", "SELECT"]),
        ("SELECT x IS |", ["NULL", "NOT NULL"]),
        ("CREATE OR REPLACE |", ["VIEW", "TABLE"]),
        ("CREATE VIEW v AS |", ["SELECT", "FROM"]),
        ("WITH a AS (|", ["SELECT"]),
        ("WITH |", ["RECURSIVE"]),
        ("WITH a |", ["AS"]),
        ("WITH a AS (SELECT 1) |", ["SELECT", "FROM"]),
        ("SHOW |", ["TABLES"]),
        ("PREPARE q AS |", ["SELECT"]),
        ("SET VARIABLE ids = (|", ["SELECT"]),
        ("SELECT * FROM t WHERE x IN (|", ["SELECT"]),
        ("SELECT EXISTS (|", ["SELECT"]),
        ("UPDATE t |", ["SET"]),
        ("INSERT INTO t |", ["VALUES", "SELECT"]),
        ("COPY ple |", ["TO", "FROM"]),
        ("COPY ple TO 'x' (|", ["FORMAT"]),
        ("COPY ple TO 'x' (FORMAT |", ["engram", "parquet"]),
        ("SELECT CASE WHEN x |", ["THEN"]),
        ("SELECT sum(x) OVER (|", ["PARTITION BY", "ORDER BY"]),
    ],
)
def test_keywords_that_can_come_next_are_offered(marked: str, words: list[str]):
    found = at(marked)
    assert Want.KEYWORD in found.kinds
    assert set(words) <= set(found.keywords)


@pytest.mark.parametrize(
    ("marked", "kind", "subject"),
    [
        ("SET |", Want.SETTING, ""),
        ("SET GLOBAL eng|", Want.SETTING, ""),
        ("RESET |", Want.SETTING, ""),
        ("SET engram_reader = '|", Want.SETTING_VALUE, "engram_reader"),
        ("SET preserve_insertion_order = |", Want.SETTING_VALUE, "preserve_insertion_order"),
        ("CALL eng|", Want.CALLED, ""),
        ("SELECT CAST(x AS |", Want.TYPE, ""),
        ("SELECT x::VAR|", Want.TYPE, ""),
        ("CREATE TABLE t (a |", Want.TYPE, ""),
        ("CREATE TABLE IF NOT EXISTS t (a INTEGER, b |", Want.TYPE, ""),
        ("SELECT engram_row_stats('ple', 7).|", Want.FIELD, "engram_row_stats"),
        ("SELECT * FROM ple WHERE head = |", Want.VALUE, "head"),
        ("SELECT * FROM ple WHERE head >= |", Want.VALUE, "head"),
        ("SELECT * FROM ple t WHERE t.head IN (|", Want.VALUE, "head"),
        ("SELECT * FROM ple WHERE head NOT IN (1, |", Want.VALUE, "head"),
        ("DROP VIEW |", Want.RELATION, ""),
        ("INSERT INTO t (a, |", Want.COLUMN, ""),
        ("SELECT * FROM a JOIN b USING (|", Want.COLUMN, ""),
    ],
)
def test_other_statements_name_other_things(marked: str, kind: Want, subject: str):
    found = at(marked)
    assert (found.kinds[0], found.subject) == (kind, subject)


@pytest.mark.parametrize(
    ("marked", "kind", "subject", "argument", "word", "quote"),
    [
        (".re|", Want.COMMAND, "", 0, ".re", ""),
        ("  .|", Want.COMMAND, "", 0, ".", ""),
        ("\\d|", Want.COMMAND, "", 0, "\\d", ""),
        (".read |", Want.ARGUMENT, ".read", 0, "", ""),
        (".read da|", Want.ARGUMENT, ".read", 0, "da", ""),
        (".read 'my da|", Want.ARGUMENT, ".read", 0, "my da", "'"),
        (".export ple da|", Want.ARGUMENT, ".export", 1, "da", ""),
        ("SELECT 1;\n.mode |", Want.ARGUMENT, ".mode", 0, "", ""),
    ],
)
def test_dot_commands_have_arguments(marked: str, kind: Want, subject: str, argument: int, word: str, quote: str):
    found = at(marked)
    assert (found.kinds, found.subject, found.argument) == ((kind,), subject, argument)
    assert (found.word, found.quote) == (word, quote)


@pytest.mark.parametrize("marked", ["SELECT 1; .mo|", "SELECT\n.mo|", "SELECT x .re|", ".read x\n|"])
def test_a_dot_elsewhere_is_no_command(marked: str):
    assert Want.COMMAND not in at(marked).kinds
    assert Want.ARGUMENT not in at(marked).kinds


@pytest.mark.parametrize(
    ("marked", "lower"),
    [("sel|", True), ("SEL|", False), ("Sel|", False), ("select x |", True), ("SELECT x |", False), ("|", False),
     ("select x FROM t |", False), ("SELECT \u3042|", False)],
)  # fmt: skip
def test_keywords_follow_the_case_that_is_typed(marked: str, lower: bool):
    assert at(marked).lower is lower


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "SELECT ", "FROM ", "WITH a AS (", "ple", " t", ".", ", ", "(", ")", "[", "]", "{", "}", "'", '"',
                "$$", "$x$",
                ";", "\n", "--", "/*", "*/", "1", "1, 2", "*", "::", ":=", " AS ", " JOIN ", " UNION ",
                "engram_fetch", " IN ",
                "INSERT INTO ", "COPY ", " TO ", "SET ", "=", " VALUES ", ".read ", "CASE ", "WITH RECURSIVE ",
                " EXCLUDE ",
                "EXPLAIN ", "CALL ", "CAST(", "LATERAL ", " IS DISTINCT FROM ", "e'\\", "\0", "\ud800", "\u3042",
                " NOT ",
            ]
        ),
        st.text(max_size=4),
    ),
    max_size=40,
).map("".join)  # fmt: skip


@settings(max_examples=1000)
@given(PIECES, st.integers(0, 200))
@example("(" * 5000, 5000)
@example("SELECT (" * 3000, 24_000)
@example("WITH a AS (" * 3000, 33_000)
@example("SELECT " + "a." * 5000, 10_007)
@example("'" * 5001, 5001)
@example("$" * 5001, 5001)
@example("/*" * 5000, 10_000)
def test_any_text_has_an_answer(text: str, cursor: int):
    found = wanted(text, cursor)
    assert 0 <= found.start <= max(len(text), 0)
    assert found.start <= min(cursor, len(text)) or not found.kinds
    call_at(text, cursor)


def scanned(monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> list[int]:
    """How many tokens were made for each text in turn."""
    made: list[int] = []
    token = tokens.Token

    def counted(*values: object, **named: object) -> tokens.Token:
        made[-1] += 1
        return token(*values, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(tokens, "Token", counted)
    for text in texts:
        made.append(0)
        wanted(text, len(text))
        call_at(text, len(text))
    return made


def test_a_long_list_of_ids_costs_no_more_than_a_short_one(monkeypatch: pytest.MonkeyPatch):
    ids = [f"SELECT * FROM engram_fetch('ple', [{', '.join(map(str, range(n)))}]) WHERE h" for n in (2, 2000)]
    few, many = scanned(monkeypatch, ids)
    assert len(ids[1]) > 8000
    assert many <= few < 20


def test_a_text_that_grows_is_not_scanned_again(monkeypatch: pytest.MonkeyPatch):
    text = "SELECT a, b FROM t WHERE x = 'y' AND\n" * 600  # 22 KB
    first, *typed = scanned(monkeypatch, [text + "SELECT emb"[:n] for n in range(11)])
    assert first > 5000
    assert max(typed) < 20


def test_a_megabyte_has_a_bounded_number_of_tokens():
    text = "SELECT a, b FROM t WHERE x = 1;\n" * 32_000
    assert len(text) > 1_000_000
    assert len(tokens.scan_further(text)) == tokens.LIMIT
    assert wanted(text, len(text)).kinds == ()
    ids = f"SELECT * FROM engram_fetch('ple', [{', '.join(str(i * 7) for i in range(130_000))}]) WHERE hea"
    assert len(ids) > 1_000_000
    assert wanted(ids, len(ids)).kinds == EXPRESSION
