"""Which names fit, in which order, and how they are written."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from engramsql.shell.completion.candidates import candidates, match, written
from engramsql.shell.completion.catalog import Column, Function, Head, Relation, Setting, Snapshot
from engramsql.shell.completion.commands import find
from engramsql.shell.completion.completer import completions
from engramsql.shell.completion.context import wanted
from engramsql.shell.completion.files import matching
from engramsql.shell.completion.lookup import columns_of
from engramsql.shell.completion.relations import Source
from engramsql.shell.completion.signatures import from_parameters, hint, parse

PLE = Relation(
    "memory", "main", "ple", "table, 256 rows",
    (Column("rowid", "BIGINT"), Column("head", "INTEGER"), Column("embedding", "FLOAT[32]"), Column("row", "BLOB")),
)  # fmt: skip
STATS = Relation(
    "memory", "main", "stats", "table",
    (Column("s", 'STRUCT(a INTEGER, "b ""c" STRUCT(x INTEGER, y DECIMAL(3, 1)), d FLOAT[])'),),
)  # fmt: skip
CORPUS = Relation("memory", "main", "my corpus", "table", (Column("tokens", "BIGINT[]"), Column("Order", "INTEGER")))
NORMS = Relation("memory", "main", "norms", "view", (Column("rowid", "BIGINT"), Column("norm", "DOUBLE")))
OTHER = Relation("files", "main", "other", "table", (Column("x", "INTEGER"),))
SCHEMED = Relation("memory", "lab", "inner t", "table", (Column("y", "INTEGER"),))
REGISTRY = [
    ("engram_fetch", "engram_fetch(table, rowids BIGINT[] or BIGINT[][]) -> (ord, token, head, rowid, embedding, row)"),
    ("engram_scan", "engram_scan(table [, first, count]) -> (rowid, head, embedding, row)"),
    ("engram_verify", "engram_verify(table [, level, resume]) -> (check, shard)"),
    ("engram_view_lookup", "engram_view_lookup(view, key BIGINT[]) -> BIGINT"),
    ("engram_decode", "engram_decode(blob, format [, scale]) -> FLOAT[]"),
    ("engram_coverage", "engram_coverage(table, corpus) -> (tokens, lookups)"),
    ("engram_tables", "engram_tables() -> (name, rows)"),
    ("engram_register", "CALL engram_register(name, source [, spec :=, format :=])"),
    ("engram_row_stats", "engram_row_stats(table, rowid) -> STRUCT(nans BIGINT, min FLOAT)"),
    ("rowids_for_seq", "rowids_for_seq(tokens) | (table, tokens) | (table, tokens, history) -> BIGINT[][]"),
]


def _function(name: str, text: str) -> Function:
    signature = parse(text)
    assert signature is not None
    kind = "call" if signature.called else "table" if signature.columns else "scalar"
    return Function(name, kind, signature, f"What {name} does. More.", ours=True)


SNAPSHOT = Snapshot(
    relations=(PLE, CORPUS, NORMS, STATS, OTHER, SCHEMED),
    tables={"ple": "256 rows, 4 heads"},
    views={"corpus_view": "10 slots"},
    functions={
        **{name: _function(name, text) for name, text in REGISTRY},
        "abs": Function("abs", "scalar", from_parameters("abs", ["x"], ["BIGINT"], "BIGINT"), "Absolute value"),
        "hash": Function("hash", "scalar", from_parameters("hash", ["x"], ["ANY"], "UBIGINT")),
        "read_csv": Function("read_csv", "table", from_parameters("read_csv", ["path"], ["VARCHAR"], None)),
        "now": Function("now", "scalar", from_parameters("now", [], [], "TIMESTAMP")),
    },
    settings=(Setting("engram_reader", "", "VARCHAR"), Setting("threads", "2", "BIGINT"), Setting("x", "", "BOOLEAN")),
    types=("BIGINT", "BLOB", "VARCHAR"),
    heads={"ple": (Head(0, 2, 53), Head(1, 3, 59))},
    keywords=("SELECT", "SESSION", "ORDER", "FROM"),
    reserved=frozenset({"order", "select", "from"}),
)


class Command:
    def __init__(self, name: str, argument: str, *aliases: str, usage: str = "") -> None:
        self.name = name
        self.usage = usage
        self.argument = argument
        self.aliases = aliases
        self.summary = f"what {name} does"

    def options(self, words: Sequence[str]) -> dict[str, str]:
        known = {"--output": "a file", "--per": "a record"}
        return known if self.name == ".export" and list(words[:1]) == ["ple"] else {}


COMMANDS = [
    Command(".read", "file"),
    Command(".tables", "", "\\dt"),
    Command(".schema", "table", "\\d"),
    Command(".mode", "mode"),
    Command(".help", "command", ".h"),
    Command(".plan", "sql"),
    Command(".timer", "setting", usage="[on|off]"),
    Command(".edit", "text"),
    Command(".config", "text", usage="[write]"),
    Command(".export", "table", usage="TABLE FILE ... | --sql QUERY --output FILE"),
]


def offered(marked: str, **options: bool) -> list[str]:
    cursor = marked.rindex("|")
    text = marked[:cursor] + marked[cursor + 1 :]
    return [entry.text for entry in completions(text, cursor, SNAPSHOT, COMMANDS, **options)]


def labels(marked: str) -> list[str]:
    cursor = marked.rindex("|")
    return [candidate.label for candidate in candidates(wanted(marked.replace("|", "", 1), cursor), SNAPSHOT)]


@pytest.mark.parametrize(
    ("word", "name", "expected"),
    [
        ("", "x", 0),
        ("EMB", "embedding", 0),
        ("fetch", "engram_fetch", 1),
        ("byName", "joinByName", 1),
        ("egf", "engram_fetch", 2),
        ("fetch", "prefetch", None),
        ("gf", "engram_fetch", None),
        ("e", "the", None),
        ("\u00e4", "\u00c4pfel", 0),
    ],
)
def test_names_match_by_prefix_then_word_then_letters(word: str, name: str, expected: int | None):
    assert match(word, name) == expected


def test_columns_come_before_relations_functions_and_keywords():
    found = offered("SELECT | FROM ple")
    assert found[:5] == ["rowid", "head", "embedding", "row", "ple"]
    assert found.index("engram_decode(") < found.index("abs(") < found.index("CASE")


def test_a_better_match_comes_before_a_better_kind():
    assert offered("SELECT h| FROM ple") == ["head", "hash("]
    assert offered("SELECT row| FROM ple")[:3] == ["rowid", "row", "rowids_for_seq("]


def test_without_a_relation_columns_of_all_are_offered_those_of_tables_first():
    assert offered("SELECT emb|")[0] == "embedding"
    assert offered("SELECT row|")[:2] == ["rowid", "row"]
    assert offered("SELECT loo|") == ["lookups", "engram_view_lookup("]  # of a table function


def test_relations_come_first_after_from():
    found = offered("SELECT * FROM |")
    assert found[:3] == ['"my corpus"', "norms", "ple"]
    assert {"files.other", 'lab."inner t"'} < set(found)
    assert found.index("ple") < found.index("engram_fetch(") < found.index("read_csv(")
    assert offered("SELECT * FROM pl|") == ["ple"]
    assert offered("SELECT * FROM la|")[:2] == ['lab."inner t"', "lab"]
    assert offered('SELECT * FROM "fil|') == ['files"']
    assert offered("SELECT * FROM FILES.|") == ["other", "main"]


def test_the_nearest_relation_comes_first():
    cursor = len("SELECT ")
    text = "SELECT  FROM ple a, norms b"
    metas = [(entry.text, entry.display_meta_text) for entry in completions(text, cursor, SNAPSHOT, [])][:6]
    assert metas[:2] == [("rowid", "BIGINT of a"), ("head", "INTEGER of a")]
    assert ("norm", "DOUBLE of b") in metas


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("SELECT t.| FROM ple t", ["rowid", "head", "embedding", "row"]),
        ("SELECT T.e| FROM ple t", ["embedding"]),
        ("SELECT ple.r| FROM ple", ["rowid", "row"]),
        ("SELECT b.| FROM ple a, norms b", ["rowid", "norm"]),
        ("SELECT main.ple.he|", ["head"]),
        ('SELECT c.| FROM "my corpus" c', ["tokens", '"Order"']),
        ('SELECT c."| FROM "my corpus" c', ['tokens"', 'Order"']),
        ("SELECT f.| FROM engram_fetch('ple', [1]) f", ["ord", "token", "head", "rowid", "embedding", "row"]),
        ("WITH a AS (SELECT *, 1 AS one FROM norms) SELECT a.| FROM a", ["one", "rowid", "norm"]),
        ("SELECT * FROM files.|", ["other", "main"]),
        ("SELECT * FROM lab.|", ['"inner t"']),
        ("SELECT s.| FROM (SELECT rowid AS r FROM ple) s", ["r"]),
        ("SELECT s.| FROM stats", ["a", '"b ""c"', "d"]),
        ("SELECT t.s.| FROM stats t", ["a", '"b ""c"', "d"]),
        ("SELECT engram_row_stats('ple', 7).|", ["nans", "min"]),
        ("SELECT engram_row_stats('ple', f(7)).m|", ["min"]),
    ],
)
def test_a_qualifier_gives_the_columns_of_its_relation(marked: str, expected: list[str]):
    assert offered(marked) == expected


def test_columns_come_from_the_nearest_relation_of_a_name():
    shadow = Relation("temp", "main", "PLE", "temporary table", (Column("mine"),))
    snapshot = Snapshot(relations=(PLE, shadow))
    assert columns_of(Source("ple", name=("ple",)), snapshot) == [Column("mine")]
    assert len(columns_of(Source("ple", name=("memory", "main", "ple")), snapshot)) == 4
    assert columns_of(Source("x", name=("none",)), snapshot) == []


def test_ctes_that_double_each_other_end():
    ctes = ", ".join(f"c{n} AS (SELECT * FROM c{n - 1} a, c{n - 1} b)" for n in range(1, 40))
    text = f"WITH c0 AS (SELECT * FROM ple), {ctes} SELECT "
    assert offered(text + "| FROM c39")[:4] == ["rowid", "head", "embedding", "row"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("head", "head"),
        ("Head", "Head"),
        ("my table", '"my table"'),
        ("order", '"order"'),
        ("ORDER", '"ORDER"'),
        ('a"b', '"a""b"'),
        ("1st", '"1st"'),
        ("\u00e4\u3042", "\u00e4\u3042"),
        ("a\u00a0b", '"a\u00a0b"'),
        ("", '""'),
        ("a-b", '"a-b"'),
    ],
)
def test_names_are_quoted_only_where_they_must_be(name: str, expected: str):
    assert written(name, SNAPSHOT) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("SELECT * FROM engram_fetch('|", ["ple'"]),
        ("SELECT * FROM engram_fetch('p|')", ["ple"]),
        ("SELECT * FROM engram_coverage('ple', '|", ["my corpus'"]),
        ("WITH c AS (SELECT 1) SELECT * FROM engram_coverage('ple', '|", ["c'", "my corpus'"]),
        ("SELECT engram_view_lookup('|", ["corpus_view'"]),
        ("SELECT rowids_for_seq('|", ["ple'"]),
        ("SELECT * FROM engram_verify('|", ["ple'", "corpus_view'"]),
        ("SELECT * FROM engram_verify('ple', '|", ["headers'", "sample'", "full'"]),
        ("SELECT * FROM engram_verify('ple', level := 'f|", ["full'"]),
        ("SELECT engram_decode(row, 'fp8|", ["fp8_e4m3'", "fp8_e4m3_e8m0'"]),
        ("SELECT engram_decode('|", []),
        ("SELECT lower('p|", []),
        ("SELECT abs('|", []),
    ],
)
def test_text_arguments_name_tables_views_formats_and_levels(marked: str, expected: list[str]):
    assert offered(marked) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("SELECT * FROM ple WHERE head = |", ["0", "1"]),
        ("SELECT * FROM ple p WHERE p.head IN (1, |", ["0", "1"]),
        ("SET engram_reader = 'm|", ["mapped'"]),
        ("SET engram_reader = m|", ["'mapped'"]),
        ("SET x = |", ["true", "false"]),
        ("SET th|", ["threads"]),
        ("CALL |", ["engram_register("]),
        ("SELECT 1::b|", ["bigint", "blob"]),
        ("SELECT 1::B|", ["BIGINT", "BLOB"]),
        ("SELECT * FROM engram_scan('ple', f|", ["first := ", "false"]),
        ("INSERT INTO norms (|", ["rowid", "norm"]),
    ],
)
def test_other_places_have_names_of_their_own(marked: str, expected: list[str]):
    assert [text for text in offered(marked) if text in expected][: len(expected)] == expected
    assert offered(marked)[0] == expected[0]


def test_keywords_are_written_in_the_case_that_is_typed():
    assert offered("sel|") == ["select"]
    assert "SELECT" in offered("SE|")
    assert "where" in offered("select * from ple |")


def test_functions_bring_their_bracket_but_not_twice():
    assert offered("SELECT ab|") == ["abs("]
    assert offered("SELECT ab|(x)") == ["abs"]
    assert "now()" in offered("SELECT no|")
    assert "engram_tables()" in offered("FROM engram_t|")


def test_what_is_there_already_is_not_offered():
    assert offered("SELECT * FROM ple|") == []
    assert offered("SELECT head| FROM ple", typing=True) == []


@pytest.mark.parametrize(
    "marked", ["|", "SELECT |", "SELECT a, |", "SELECT emb|edding", "SELECT * FROM ple |", "SELECT 'pl|"]
)
def test_typing_opens_no_menu_before_a_name_has_begun(marked: str):
    assert offered(marked, typing=True) == []


@pytest.mark.parametrize(
    "marked",
    [
        "FROM |",
        "SELECT t.| FROM ple t",
        "FROM engram_fetch('|",
        "SELECT engram_row_stats('ple', 7).|",
        ".mode |",
        "SELECT e|",
        "CALL |",
    ],
)
def test_typing_opens_the_menu_where_a_name_must_come(marked: str):
    assert offered(marked, typing=True)


def test_files_are_offered_by_what_was_typed_of_their_path(tmp_path: Path):
    (tmp_path / "data").mkdir()
    for name in ("data.parquet", "dat's.csv", ".hidden", "other"):
        (tmp_path / name).touch()
    assert offered(f"FROM '{tmp_path}/da|") == [
        f"{tmp_path}/data/",
        f"{tmp_path}/dat''s.csv'",
        f"{tmp_path}/data.parquet'",
    ]
    assert offered(f"FROM '{tmp_path}/o|'") == [f"{tmp_path}/other"]
    assert offered(f"COPY ple TO '{tmp_path}/.h|") == [f"{tmp_path}/.hidden'"]
    assert offered(f"SELECT * FROM read_csv('{tmp_path}/dat'|") == []
    assert offered(f"SELECT * FROM read_csv('{tmp_path}/data.|") == [f"{tmp_path}/data.parquet'"]
    assert offered(f"SELECT * FROM engram_fetch('{tmp_path}/oth|") == [f"{tmp_path}/other'"]
    assert offered(f"CALL engram_register('x', '{tmp_path}/oth|") == [f"{tmp_path}/other'"]
    assert offered(f"FROM '{tmp_path}/none/|") == []


def test_files_of_lists_are_offered_as_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("my.jsonl", "my.parquet", "my.csv", "my.txt", "other.json"):
        (tmp_path / name).touch()
    (tmp_path / "mydir").mkdir()
    monkeypatch.chdir(tmp_path)
    # Relations first.
    corpus = ["my corpus'", "my.jsonl'", "my.parquet'"]
    assert offered("SELECT * FROM engram_coverage('ple', 'my|") == corpus
    assert offered("SELECT * FROM engram_coverage('ple', './o|") == ["./other.json'"]
    assert offered("SELECT * FROM engram_coverage('my|") == []


def test_files_of_home_keep_the_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").touch()
    assert [file.path for file in matching("~/mi")] == ["~/mine"]
    assert matching("a\0b/") == []


def test_names_that_no_terminal_shows_are_left_out(tmp_path: Path):
    (tmp_path / "a\nb").touch()
    Path(bytes(tmp_path).decode() + "/a\udcff").touch()
    (tmp_path / "a\u00e4").touch()
    assert [file.name for file in matching(f"{tmp_path}/a")] == ["a\u00e4"]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        (".re|", [".read"]),
        (".h|", [".h", ".help"]),
        ("\\d|", ["\\d", "\\dt"]),
        (".schema n|", ["norms"]),
        (".schema my|", ["'my corpus'"]),
        (".schema 'my|", ["my corpus'"]),
        (".help mo|", ["mode"]),
        (".help .mo|", [".mode"]),
        (".timer o|", ["on", "off"]),
        (".timer |", ["on", "off"]),
        (".config |", ["write"]),
        (".export n|", ["norms"]),
        (".export ple tests/test_completion_can|", ["tests/test_completion_candidates.py"]),
        (".export ple --|", ["--output", "--per"]),
        (".export ple x.csv --o|", ["--output"]),
        (".export --|", []),
        (".read --|", []),
        (".help engram_f|", ["engram_fetch"]),
        (".mode cs|", ["csv"]),
        (".mode csv x|", []),
        (".tables |", []),
        (".edit |", []),
        (".nothing |", []),
        (".plan SELECT t.e| FROM ple t", ["embedding"]),
        (".plan FROM pl|", ["ple"]),
    ],
)
def test_dot_commands_and_their_arguments_are_offered(
    marked: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(Path(__file__).parent.parent)
    assert sorted(offered(marked)) == sorted(expected)


def test_files_of_dot_commands_are_quoted_where_they_must_be(tmp_path: Path):
    for name in ("a b.sql", "ab.sql", "a'c\"d.sql"):
        (tmp_path / name).touch()
    for opening in ("", "'", '"'):
        found = offered(f".read {opening}{tmp_path}/a|")
        words = [shlex.split(opening + text) for text in found]
        assert sorted(words) == [[f"{tmp_path}/a b.sql"], [f"{tmp_path}/a'c\"d.sql"], [f"{tmp_path}/ab.sql"]]
    assert offered(f".read {tmp_path}/ab|") == [f"{tmp_path}/ab.sql"]
    assert offered(f".read '{tmp_path}/a |") == [f"{tmp_path}/a b.sql'"]


def test_commands_are_found_by_every_name():
    assert find("\\d", COMMANDS) is COMMANDS[2]
    assert find("read", COMMANDS) is COMMANDS[0]
    assert find(".none", COMMANDS) is None


@pytest.mark.parametrize(
    ("text", "overloads", "columns"),
    [
        (REGISTRY[0][1], [["table", "rowids"]], 6),
        (REGISTRY[1][1], [["table", "first", "count"]], 4),
        (REGISTRY[7][1], [["name", "source", "spec", "format"]], 0),
        (REGISTRY[9][1], [["tokens"], ["table", "tokens"], ["table", "tokens", "history"]], 0),
        ("f() -> (a, b)", [[]], 2),
    ],
)
def test_signatures_are_taken_apart(text: str, overloads: list[list[str]], columns: int):
    signature = parse(text)
    assert signature is not None
    assert [[parameter.name for parameter in form] for form in signature.overloads] == overloads
    assert len(signature.columns) == columns


def test_copy_has_no_signature_of_a_function():
    assert parse("COPY (SELECT 1) TO 'dir' (FORMAT engram [, SCALE])") is None


@pytest.mark.parametrize(
    ("name", "index", "named", "text_first", "expected"),
    [
        ("engram_fetch", 0, "", False, "engram_fetch(*table*, rowids BIGINT[] or BIGINT[][])"),
        ("engram_fetch", 1, "", True, "engram_fetch(table, *rowids BIGINT[] or BIGINT[][]*)"),
        ("engram_fetch", 2, "", True, "engram_fetch(table, rowids BIGINT[] or BIGINT[][])"),
        ("engram_scan", 2, "", True, "engram_scan(table [, first, *count*])"),
        ("engram_verify", 1, "resume", True, "engram_verify(table [, level, *resume*])"),
        ("rowids_for_seq", 0, "", False, "rowids_for_seq(*tokens*) | (table, tokens) | (table, tokens, history)"),
        ("rowids_for_seq", 0, "", True, "rowids_for_seq(tokens) | (*table*, tokens) | (table, tokens, history)"),
        ("rowids_for_seq", 1, "", True, "rowids_for_seq(tokens) | (table, *tokens*) | (table, tokens, history)"),
        ("rowids_for_seq", 2, "", True, "rowids_for_seq(tokens) | (table, tokens) | (table, tokens, *history*)"),
        ("engram_register", 1, "", True, "CALL engram_register(name, *source* [, spec :=, format :=])"),
    ],
)
def test_the_hint_marks_the_argument(name: str, index: int, named: str, text_first: bool, expected: str):
    function = SNAPSHOT.functions[name]
    first, second = str(hint(function.signature, function.description, index, named, text_first)).split("\n")
    assert first.split(" -> ")[0] == expected
    assert second == f"What {name} does."


def test_of_many_parameters_the_first_are_shown():
    signature = from_parameters("read", [f"p{n}" for n in range(50)], ["ANY"] * 50, None)
    assert signature.text == "read(p0 ANY, p1 ANY, p2 ANY, p3 ANY, p4 ANY, ...)"
    assert str(hint(signature, "", 40)) == signature.text
    assert str(hint(signature, "", 1)) == "read(p0 ANY, *p1 ANY*, p2 ANY, p3 ANY, p4 ANY, ...)"


def test_letters_anywhere_fit_only_where_nothing_better_does():
    assert offered("SELECT edg| FROM ple") == ["embedding"]
    assert offered("SELECT dec| FROM ple") == ["engram_decode("]
    assert offered("SELECT em| FROM ple") == ["embedding"]  # and not engram_decode
