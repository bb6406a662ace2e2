"""The scanner under completion: it must see strings, comments and names where DuckDB sees them."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engramsql.shell.completion import tokens
from engramsql.shell.completion.tokens import Kind, scan, scan_further, unquoted, word_end

PIECES = st.lists(
    st.sampled_from(
        [
            "SELECT", " ", "\n", "ple", "t.", "'a'", "'it''s'", "'", '"', '"q"', "$$", "$x$", "$x", "--", "-- c\n",
            "/*", "*/",
            "/* c */", "1", "1.5e3", ", ", "(", ")", "[", "]", "{", "}", ";", "e'", "e'\\''", "x'00'", "é", "\u3042",
            "\\",
            "::", ":=", "=", "*", ".", "\r", "\t", "engram_fetch", "\0", "?", "$1",
        ]
    ),
    max_size=30,
).map("".join)  # fmt: skip


def seen(text: str) -> list[tuple[str, str]]:
    return [(token.kind.value, token.text) for token in scan(text)]


@pytest.mark.parametrize(
    ("text", "last", "closed"),
    [
        ("SELECT 'a ; -- x", "'a ; -- x", False),
        ("SELECT 'it''s", "'it''s", False),
        ("SELECT 'it''s'", "'it''s'", True),
        ('SELECT "a ""b', '"a ""b', False),
        ("SELECT $$ a ' ; ", "$$ a ' ; ", False),
        ("SELECT $x$ a $$ b", "$x$ a $$ b", False),
        ("SELECT $x$ a $$ b $x$", "$x$ a $$ b $x$", True),
        ("SELECT e'a\\'", "e'a\\'", False),
        ("SELECT e'a\\", "e'a\\", False),
        ("SELECT e'a\\''", "e'a\\''", True),
        ("SELECT x'0", "x'0", False),
        ("SELECT 1 -- it's", "-- it's", False),
        ("SELECT 1 /* a /* b */ c", "/* a /* b */ c", False),
        ("SELECT \u00e4\u3042$1", "\u00e4\u3042$1", True),
        ("SELECT a$b$c", "a$b$c", True),
    ],
)
def test_the_last_token_says_whether_its_end_is_missing(text: str, last: str, closed: bool):
    token = scan(text)[-1]
    assert (token.text, token.closed) == (last, closed)


def test_comments_that_end_are_left_out():
    assert seen("a -- x\n/* y /* z */ */ b") == [("word", "a"), ("word", "b")]


def test_a_list_of_numbers_is_one_token():
    ids = ", ".join(str(i * 1_000_003) for i in range(2000))
    assert seen(f"f([{ids}, x])")[2:4] == [("operator", "["), ("numbers", ids)]


def test_quotes_are_taken_off():
    assert [unquoted(token) for token in scan("""'it''s' "a""b" ple 'op""")] == ["it's", 'a"b', "ple", "op"]


def test_a_word_ends_where_no_letter_follows():
    assert word_end("SELECT embedding FROM", 9) == 16


@settings(max_examples=300)
@given(PIECES)
def test_tokens_cover_the_text_in_order(text: str):
    position = 0
    for token in scan(text):
        assert position <= token.start < token.end <= len(text)
        assert text[token.start : token.end] == token.text
        position = token.end


@settings(max_examples=300)
@given(PIECES, PIECES)
def test_a_text_that_grows_gives_the_same_tokens(first: str, more: str):
    for end in range(len(first), len(first + more) + 1):
        text = (first + more)[:end]
        assert scan_further(text) == tuple(tokens._scan(text, [], 0))


@pytest.mark.skipif(int(duckdb.__version__.split(".")[0]) < 2, reason="it gives nothing for what is not closed")
@settings(max_examples=500)
@given(PIECES.filter(lambda text: "\0" not in text and "\\" not in text))
def test_strings_and_comments_are_where_duckdb_has_them(text: str):
    """Each token is a token of DuckDB's of the same kind; lists of numbers are several there."""
    offsets = {offset: str(kind).rpartition(".")[2] for offset, kind in duckdb.tokenize(text)}
    kinds = {
        Kind.STRING: "string_const",
        Kind.DOLLAR: "string_const",
        Kind.QUOTED: "identifier",
        Kind.COMMENT: "comment",
    }
    for token in scan(text):
        start = len(text[: token.start].encode())
        if token.kind in kinds:
            assert offsets.get(start) == kinds[token.kind], (token, offsets)
    for token in scan(text):
        # And nothing of DuckDB's begins inside of one.
        start, end = len(text[: token.start].encode()), len(text[: token.end].encode())
        if token.kind in kinds:
            assert not any(start < offset < end for offset in offsets), (token, offsets)
