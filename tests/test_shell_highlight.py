"""Colours of what is typed: which words get one, how much is looked at again, and whether they can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.document import Document
from prompt_toolkit.styles import Attrs

from engramsql.shell.completion.signatures import parse
from engramsql.shell.highlight import COLORS, LEXER, Highlighter, style

if TYPE_CHECKING:
    import engramsql


def pieces(text: str, highlighter: Highlighter | None = None) -> list[list[tuple[str, str]]]:
    """Kind and text of each piece of each line; blanks left out."""
    get_line = (highlighter or Highlighter()).lex_document(Document(text))
    return [
        [(part[0].removeprefix("class:pygments."), part[1]) for part in get_line(number) if part[1].strip()]
        for number in range(text.count("\n") + 1)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT", [("keyword", "SELECT")]),
        ("select lateral qualify", [("keyword", "select"), ("keyword", "lateral"), ("keyword", "qualify")]),
        ("emb", [("name", "emb")]),
        ("row rows name", [("name", "row"), ("name", "rows"), ("name", "name")]),
        ("ROWS", [("keyword", "ROWS")]),
        ("count(", [("name.function", "count"), ("punctuation", "(")]),
        ("IN (", [("keyword", "IN"), ("punctuation", "(")]),
        ("engram_fetch", [("name.builtin", "engram_fetch")]),
        ("rowids_for_seq(", [("name.builtin", "rowids_for_seq"), ("punctuation", "(")]),
        ("1.5e-3", [("literal.number", "1.5e-3")]),
        ("0x1F", [("literal.number", "0x1F")]),
        ("$name ?", [("name.variable", "$name"), ("name.variable", "?")]),
        ("-- SELECT 'a", [("comment.single", "-- SELECT 'a")]),
        ("\u00e4\u3042", [("name", "\u00e4\u3042")]),
        (".tables ple", [("keyword", ".tables"), ("", " ple")]),
        ("\\d ple", [("keyword", "\\d"), ("", " ple")]),
        (".5", [("literal.number", ".5")]),
    ],
)
def test_words_have_their_kind(text: str, expected: list[tuple[str, str]]):
    assert pieces(text) == [expected]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("'a ; -- SELECT", "literal.string"),
        ("'it''s'", "literal.string"),
        ("e'a\\'b'", "literal.string"),
        ("x'00ff'", "literal.string"),
        ("$$ SELECT ' $$", "literal.string"),
        ("$x$ $$ -- $x$", "literal.string"),
        ('"SELECT', "name"),
        ("/* SELECT /* ' */ */", "comment.multiline"),
    ],
)
def test_strings_and_comments_are_of_one_kind(text: str, kind: str):
    (line,) = pieces(text)
    assert {found for found, _ in line} == {kind}
    assert "".join(piece for _, piece in line).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("'a\n SELECT \n'", "literal.string"),
        ("e'a\n \\' SELECT\n'", "literal.string"),
        ("$x$ a\n SELECT $$\n$x$", "literal.string"),
        ('"a\n SELECT\n"', "name"),
        ("/* a\n /* SELECT */\n*/", "comment.multiline"),
    ],
)
def test_strings_and_comments_go_on_in_the_next_line(text: str, kind: str):
    *inside, after = pieces(text + "\nFROM")
    assert {found for line in inside for found, _ in line} == {kind}
    assert after == [("keyword", "FROM")]


def test_a_dot_begins_a_command_only_where_no_statement_has_begun():
    kinds = [line[0] for line in pieces("SELECT 1;\n.tables\n.mode box\nSELECT\n.tables\n-- ;\n.x")]
    assert [kind for kind, _ in kinds] == [
        "keyword",
        "keyword",
        "keyword",
        "keyword",
        "punctuation",
        "comment.single",
        "punctuation",
    ]


def test_no_column_or_argument_of_ours_is_coloured_as_a_keyword(db: engramsql.Database):
    names = set()
    for (text,) in db.sql("SELECT signature FROM engram_functions()").fetchall():
        signature = parse(text)
        if signature is not None:
            names |= set(signature.columns) | {p.name for form in signature.overloads for p in form}
    assert "rows" in names
    # Words that a statement cannot do without are keywords all the same.
    assert {name for name in names if pieces(name) == [[("keyword", name)]]} == {"table", "replace"}


PIECES = st.lists(
    st.sampled_from(
        ["SELECT", " ", "\n", "ple", "'a'", "'", '"', "$$", "$x$", "-- c", "/*", "*/", "1", ",", "(", ";", "e'",
        "\\", ".x", "\u3042"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@settings(max_examples=300)
@given(PIECES)
def test_no_character_is_lost(text: str):
    get_line = Highlighter().lex_document(Document(text))
    lines = text.split("\n")
    assert ["".join(part[1] for part in get_line(number)) for number in range(len(lines))] == lines
    assert get_line(len(lines)) == []


@settings(max_examples=300)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.02), PIECES), min_size=1, max_size=5))
def test_an_edited_line_looks_as_if_it_were_new(edits: list[tuple[float, float, str]]):
    text = "SELECT a, 'b' FROM t /* c */ WHERE x IN (1, 2, 3) AND f($1) " * 20
    highlighter = Highlighter()
    pieces(text, highlighter)
    for place, removed, inserted in edits:
        start = int(place * len(text))
        text = text[:start] + inserted + text[start + int(removed * len(text)) :]
        assert pieces(text, highlighter) == pieces(text)


def test_typing_in_a_long_line_looks_at_the_change_only():
    ids = ", ".join(str(number * 1_000_003) for number in range(2000))
    text = f"SELECT * FROM engram_fetch('ple', [{ids}]) WHERE "
    assert len(text) > 20_000
    highlighter = Highlighter()
    pieces(text, highlighter)
    assert highlighter.lexed == len(text)
    middle = len(text) // 2
    for typed in ("h", "he", "hea", "head", "head ", "head =", "head = '", "head = '1", "head = '1'"):
        before = highlighter.lexed
        assert pieces(text + typed, highlighter)[0][-1][1]
        assert highlighter.lexed - before < 100, typed
    text += "head = '1'"
    for typed in ("7", "78", "78,", "78, 9"):
        before = highlighter.lexed
        pieces(text[:middle] + typed + text[middle:], highlighter)
        assert highlighter.lexed - before < 100, typed


def test_a_list_of_ids_is_one_piece():
    (line,) = pieces("f([" + ", ".join(map(str, range(2000))) + "])")
    assert len(line) == 4


def test_other_lines_are_not_looked_at_again():
    text = "SELECT a, b FROM t WHERE x = 'y' AND\n" * 600
    highlighter = Highlighter()
    pieces(text, highlighter)
    before = highlighter.lexed
    pieces(text + "z", highlighter)
    assert highlighter.lexed - before == 1
    pieces(text.replace("\n", " \n", 1), highlighter)
    assert highlighter.lexed - before < 50


def test_lines_that_are_not_asked_for_are_not_looked_at():
    highlighter = Highlighter()
    get_line = highlighter.lex_document(Document("\n".join(f"SELECT {number}" for number in range(10, 99))))
    get_line(2)
    assert highlighter.lexed == 3 * len("SELECT 10")


def test_there_is_one_lexer():
    assert isinstance(LEXER, Highlighter)


def attributes(color: bool) -> dict[str, Attrs]:
    classes = [
        "pygments.keyword", "pygments.literal.string", "pygments.literal.number", "pygments.name.variable",
        "pygments.name.function", "pygments.name.builtin", "pygments.comment.single", "pygments.comment.multiline",
        "pygments.name", "pygments.text", "pygments.punctuation", "completion-menu.completion.current",
        "bottom-toolbar",
        "hint.argument",
    ]  # fmt: skip
    return {name: style(color).get_attrs_for_style_str(f"class:{name}") for name in classes}


def test_without_colour_there_is_none():
    found = attributes(color=False)
    assert all(not attrs.color and not attrs.bgcolor for attrs in found.values())
    assert not any(attrs.bold or attrs.italic for name, attrs in found.items() if name.startswith("pygments"))
    assert found["completion-menu.completion.current"].reverse


def test_each_kind_has_a_colour_of_its_own():
    found = attributes(color=True)
    kinds = ["keyword", "literal.string", "literal.number", "name.function", "name.builtin", "comment.single"]
    assert len({found[f"pygments.{kind}"].color for kind in kinds}) == len(kinds)
    assert not found["pygments.name"].color


@pytest.mark.parametrize("color", sorted(set(COLORS.values())))
def test_colours_can_be_read_on_black_and_on_white(color: str):
    """Contrast by WCAG 2.1: relative luminance of sRGB."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    luminance = sum(value * weight for value, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))
    assert min((luminance + 0.05) / 0.05, 1.05 / (luminance + 0.05)) > 4.3
