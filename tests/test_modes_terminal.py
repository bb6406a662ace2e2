"""What a terminal gets: nothing wider than it, no control character of a value, vectors by their first values.

Layout and widths are functions of texts and numbers; the last tests ask the program on a terminal of its own.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pyte
import pytest
from golden_data import GOLDEN
from helpers import refuses
from hypothesis import given
from hypothesis import strategies as st
from program import on_terminal, run

from engramsql.export import BINARY, FORMATS, write
from engramsql.export.layout import Need, layout
from engramsql.export.sparkline import sparkline
from engramsql.export.style import Style
from engramsql.export.visible import cut, pad, visible, visible_lines, width_of
from engramsql.plot.options import KINDS

CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"
# What would move a cursor, ring a bell, colour, retitle a window, or turn a line around.
NASTY = "a\x1b[2J\x07\r\n\t\x9b31m\x1b]0;t\x07\u202eb\u2028\x7fz"
SHOWN = r"a\x1b[2J\x07\r\n\t\x9b31m\x1b]0;t\x07\u202eb\u2028\x7fz"


def shown(db: Any, sql: str, style: Style | None = Style(), mode: str = "box") -> str:  # noqa: B008 - frozen
    sink = io.BytesIO()
    write(db.sql(sql), mode, sink, style)
    return sink.getvalue().decode()


def body(text: str) -> list[list[str]]:
    """The cells of the lines below the header of a box."""
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(("├", "+")) and k > 0)
    end = next(k for k, line in enumerate(lines) if k > start and line.startswith(("└", "+")))
    return [[cell.strip() for cell in re.split("[│|]", line)[1:-1]] for line in lines[start + 1 : end]]


def test_control_characters_become_escapes():
    assert visible(NASTY) == SHOWN
    assert (
        visible("\u8868 \U0001f468\u200d\U0001f469 e\u0301 \u00e4")
        == "\u8868 \U0001f468\u200d\U0001f469 e\u0301 \u00e4"
    )
    assert visible_lines("a\tb\nc\x1b") == "a\tb\nc\\x1b"


@given(st.text())
def test_nothing_hidden_is_left(text: str):
    assert all(
        ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0 and c not in "\u2028\u2029\u202e\u2066\u200b\xad\ufeff"
        for c in visible(text)
    )


@pytest.mark.parametrize(
    "text, width",
    [("", 0), ("abc", 3), ("\u8868\u8868", 4), ("e\u0301", 1), ("\U0001f600", 2), ("\U0001f1e9\U0001f1ea", 2)],
)
def test_widths_are_terminal_cells(text: str, width: int):
    assert width_of(text) == width
    assert width_of(pad(text, 9)) == width_of(pad(text, 9, right=True)) == 9


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=60), st.integers(1, 40))
def test_what_is_cut_fits_and_says_how_much_is_missing(text: str, width: int):
    found = cut(text, width, "\u2026")
    if width_of(text) <= width:
        assert found == text
        return
    assert width_of(found) <= width
    if mark := re.search("\u2026\\+([0-9]+)$", found):
        kept = found[: mark.start()]
        assert text.startswith(kept)
        assert len(kept) + int(mark[1]) == len(text)
    else:
        assert found == "\u2026"


def test_clusters_are_not_cut_apart():
    assert cut("abc\u0301defghij", 6, "\u2026") == "abc\u0301\u2026+7"
    assert cut("ab\U0001f1e9\U0001f1ea0123456", 7, "\u2026") == "ab\U0001f1e9\U0001f1ea\u2026+7"


@given(
    st.lists(
        st.tuples(st.integers(1, 300), st.integers(1, 300)).map(lambda pair: Need(max(pair), min(pair))), min_size=1
    ),
    st.integers(20, 200),
)
def test_a_layout_fits(needs: list[Need], width: int):
    found = layout(needs, width)
    assert found.columns[0] == 0
    assert list(found.columns) == sorted(set(found.columns))
    gap = 4 if found.gap is not None else 0
    total = sum(found.widths) + 3 * len(found.widths) + 1 + gap
    assert total <= max(width, 20) or len(found.columns) == 1
    assert (found.gap is None) == (len(found.columns) == len(needs))
    if len(found.columns) > 1:
        assert all(w >= needs[column].least for column, w in zip(found.columns, found.widths, strict=True))
    if found.gap is not None:
        # The next one, from the side that has fewer, would not fit.
        before, after = found.gap, len(found.columns) - found.gap
        kept = [*found.columns, len(needs) - 1 - after if after < before else before]
        assert sum(needs[k].least for k in kept) + 3 * len(kept) + 1 + gap > width


def test_a_layout_without_a_limit():
    assert layout([Need(500, 1)] * 3, 0).widths == (500, 500, 500)


def test_sparklines():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, 1], 8) == "▄▄"
    assert sparkline([], 8) == sparkline([None, float("nan")], 8) == ""
    assert sparkline([0, float("inf"), 1], 3) == "▁ █"
    assert sparkline([1e308, 1e308, -1e308, -1e308], 2) == "█▁"
    assert len(sparkline(range(1000), 12)) == 12


def test_a_box_is_as_wide_as_the_terminal(db: Any):
    db.register("ple", CHECKPOINT)
    for width in (40, 80, 81, 120):
        for sql in ("FROM ple", "FROM engram_tables()", "FROM engram_functions()", "FROM engram_shards('ple')"):
            lines = shown(db, sql, Style(width)).splitlines()
            assert {width_of(line) for line in lines[:-1]} == {width_of(lines[0])}
            assert width_of(lines[0]) <= width


def test_vectors_and_blobs_are_shortened_on_terminals_only(db: Any):
    db.register("ple", CHECKPOINT)
    sql = "SELECT embedding, row FROM ple WHERE rowid = 5"
    embedding, row = db.sql(sql).fetchall()[0]
    ((vector, blob),) = body(shown(db, sql, Style(160)))
    first = ", ".join(f"{value:.3g}" for value in embedding[:3])
    assert vector == f"[{first}, …] 160 x FLOAT {sparkline(embedding, 12)}"
    assert blob == f"{row[:8].hex()}… 160 bytes {sparkline(row, 12)}"
    ((vector, blob),) = body(shown(db, sql, Style(80)))
    assert vector.startswith(f"[{embedding[0]:.3g}, …] 160 ")
    assert blob.startswith(f"{row[:4].hex()}… 160 bytes ")
    for style in (Style(0, shorten=False), None):
        ((vector, blob),) = body(shown(db, sql, style))
        assert vector.count(",") == 159
        assert blob == row.hex()
    lines = shown(db, sql, Style(80), "vertical").splitlines()
    assert lines[1].startswith("embedding: [")
    assert lines[1].endswith(f"160 x FLOAT {sparkline(embedding, 12)}")
    whole = shown(db, sql, None, "vertical").splitlines()
    assert whole[2] == f"      row: {row.hex()}"


def test_short_lists_are_whole(db: Any):
    ((short, nested, texts, empty, none),) = body(
        shown(db, "SELECT [1, 2, NULL], [[1], []], range(9)::VARCHAR[], []::INTEGER[], NULL::FLOAT[2]", Style(160))
    )
    assert (short, nested, empty, none) == ("[1,2,null]", "[[1],[]]", "[]", "NULL")
    assert texts == '["0", "1", "2", …] 9 x VARCHAR'


def test_null_is_not_the_text_null(db: Any):
    sql = "SELECT * FROM (VALUES (NULL), ('NULL'), ('''NULL'''), (''), ('null'), ('NULLs')) AS t(x)"
    for style in (Style(), None):
        cells = [cell for (cell,) in body(shown(db, sql, style))]
        assert cells == ["NULL", "'NULL'", "''NULL''", "", "null", "NULLs"]
    assert "\x1b[2mNULL" in shown(db, sql, Style(color=True))
    assert "\x1b[2m'NULL" not in shown(db, sql, Style(color=True))
    assert "\x1b" not in shown(db, sql, Style())


@pytest.mark.parametrize("mode", sorted(FORMATS.keys() - BINARY))
def test_no_value_and_no_name_sends_codes_to_a_terminal(db: Any, mode: str):
    db.connection.execute("CREATE TABLE nasty AS SELECT ? AS t, [?] AS l, {'k': ?} AS s, ''::BLOB AS b", [NASTY] * 3)
    name = '"' + NASTY.replace('"', '""') + '"'
    db.connection.execute(f"ALTER TABLE nasty RENAME b TO {name}")
    text = shown(db, "FROM nasty", Style(200), mode)
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", text) is None
    if mode in ("box", "csv"):
        assert "\\x1b" in text


@pytest.mark.parametrize("mode", sorted(BINARY))
def test_binary_is_not_for_terminals(db: Any, mode: str):
    refuses(lambda: shown(db, "SELECT 1", Style(), mode), mode, "pipe")


@pytest.mark.parametrize(
    "count, limit, expected",
    [
        (0, 4, []),
        (1, 4, [0]),
        (4, 4, [0, 1, 2, 3]),
        (5, 4, [0, 1, "·", 3, 4]),
        (5, 1, [0]),
        (10_000, 5, [0, 1, 2, "·", 9998, 9999]),
        (10_001, 4, [0, 1, 2, 3]),
        (5000, 3000, [*range(1500), "·", *range(3500, 5000)]),
    ],
)
def test_long_results_show_both_ends(db: Any, count: int, limit: int, expected: list[object]):
    text = shown(db, f"FROM range({count})", Style(max_rows=limit))
    assert [cell for (cell,) in body(text)] == list(map(str, expected))
    summary = text.splitlines()[-1]
    if count > 10_000:
        assert summary == f"more than 10,000 rows (first {limit} shown)"
    else:
        rows = f"{count:,} row{'' if count == 1 else 's'}"
        assert summary == (rows if count <= limit else f"{rows} ({limit:,} shown)")


def test_a_result_without_end_is_not_counted(db: Any):
    """It ends after a bounded number of rows: this one would take an hour, and the memory of the machine."""
    text = shown(db, "SELECT range AS n, repeat('x', 100) AS t FROM range(100000000000)")
    assert text.splitlines()[-1] == "more than 10,000 rows (first 40 shown)"
    assert shown(db, "SELECT 1 AS x").endswith("1 row\n"), "the connection is free again"
    wide = shown(db, "SELECT repeat('x', 1000000) || range AS t FROM range(1000)")
    assert re.search(r"more than \d+ rows \(first 40 shown\)$", wide.rstrip())


def test_all_rows_where_there_is_no_limit(db: Any):
    text = shown(
        db, "SELECT range AS n, repeat('y', (range % 50)::INTEGER) AS t FROM range(12000)", Style(60, max_rows=0)
    )
    lines = text.splitlines()
    assert len(lines) == 12000 + 6
    assert {width_of(line) for line in lines[:-1]} == {width_of(lines[0])}


def test_a_pipe_gets_every_row_of_a_box(db: Any):
    text = shown(db, "SELECT range AS n, repeat('z', (range // 100)::INTEGER) AS t FROM range(12000)", None)
    assert len(text.splitlines()) == 12000 + 6
    assert "z" * 119 in text
    assert text.endswith("\n12,000 rows\n")


def test_numbers_are_never_cut(db: Any):
    number = 170141183460469231731687303715884105727
    text = shown(db, f"SELECT {number} AS h, repeat('x', 90) AS t, {number} AS g", Style(110))
    ((first, text_cell, second),) = body(text)
    assert (first, second) == (str(number), str(number))
    assert re.fullmatch(r"x+…\+\d+", text_cell)


def test_columns_that_have_no_room_are_counted(db: Any):
    columns = ", ".join(f"{k} AS column_{k}" for k in range(30))
    lines = shown(db, f"SELECT {columns}", Style(60)).splitlines()
    assert "│ … │" in lines[1]
    assert lines[1].startswith("│ column_0 │")
    assert body("\n".join(lines))[0][-1] == "29"
    assert lines[-1] == f"1 row, 30 columns ({lines[1].count('column_')} shown)"


def test_ascii_terminals(db: Any):
    db.register("ple", CHECKPOINT)
    text = shown(db, "SELECT embedding, row, '\u8868' AS \"\u00e4\" FROM ple", Style(100, unicode=False, max_rows=4))
    assert text.isascii()
    lines = text.splitlines()
    assert {len(line) for line in lines[:-1]} == {len(lines[0])}
    assert "\\u8868" in text


def test_explain_is_a_picture(db: Any):
    text = shown(db, "EXPLAIN SELECT 42")
    assert "\\n" not in text
    assert len(text.splitlines()) >= 3


def test_wide_characters_keep_the_bars_in_line(db: Any):
    text = shown(db, "SELECT * FROM (VALUES ('\u8868\u8868', 1), ('e\u0301', 22), ('abc', 333)) AS t(a, b)")
    screen = pyte.Screen(80, 24)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    columns = [[x for x in range(80) if screen.buffer[y][x].data == "│"] for y in (1, 2, 4, 5, 6)]
    assert all(found == columns[0] for found in columns)


def test_a_real_terminal_gets_a_box_that_fits(tmp_path: Path):
    code, text = on_terminal(CHECKPOINT, "-c", "FROM ple", "--read-only")
    assert code == 0
    plain = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert max(map(width_of, plain.splitlines())) == 80
    assert "1,408 rows (40 shown)" in plain
    assert "160 bytes" in plain


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[2mNULL" in on_terminal("-c", "SELECT NULL AS x")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on_terminal("-c", "SELECT NULL AS x")[1]
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in on_terminal("-c", "SELECT NULL AS x")[1]


def test_values_cannot_write_to_a_real_terminal():
    for mode in ("box", "csv", "vertical", "json"):
        code, text = on_terminal("--format", mode, "-c", "SELECT chr(27) || '[2J' || chr(155) || '31m' AS x")
        assert code == 0
        assert "\x1b[2J" not in text
        assert "\x9b" not in text


def test_errors_quote_no_codes():
    done = run("-c", "SELECT (chr(27) || '[31m')::INTEGER")
    assert done.returncode == 1
    assert "\x1b" not in done.stderr
    assert "\\x1b[31m" in done.stderr


def test_every_format_is_documented():
    text = (Path(__file__).parent.parent / "docs" / "cli.md").read_text()
    for name in FORMATS:
        assert f"\n| `{name}` | " in text
    for kind in KINDS:
        assert f"\n| `{kind} " in text


def test_a_real_terminal_gets_no_binary():
    code, text = on_terminal("--format", "parquet", "-c", "SELECT 1 AS x")
    assert (code, text) == (1, "")
    assert on_terminal("-c", "SELECT 1 AS x")[0] == 0
