"""Pictures: what they are of is compared with numpy and SQL, how they are drawn is looked at line by line."""

from __future__ import annotations

import io
import json
import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_data import GOLDEN
from helpers import one, q, refuses, run_python
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from program import on_terminal, run

from engramsql.export.style import Style
from engramsql.export.visible import width_of
from engramsql.plot.drawing import command
from engramsql.plot.extents import CELLS
from engramsql.plot.figure import Bars, Figure, Line, Mark, Range, Ranges, Strips
from engramsql.plot.latency import latency_figure
from engramsql.plot.norms import norms_figure
from engramsql.plot.plan import plan_figure
from engramsql.plot.residency import residency_figure
from engramsql.plot.tables import sample_of
from engramsql.plot.text import LEAST_WIDTH, lines
from engramsql.plot.values import values_figure
from engramsql.progress import size

FP8 = GOLDEN / "ckpt_qwen4_exp_fp8"
V41 = GOLDEN / "ckpt_deepseek_v41"

BARS = Bars("title", (), "value", "count", ("0", "1", "2", "3", "4"), (0, 1, 50, 100))
MARKS = (Mark("none", "·", ".", "#ffffff"), Mark("some", "▒", "=", "#888888"))


def drawn(db: Any, *words: str, style: Style | None = None) -> str:
    sink = io.BytesIO()
    command(db, words, sink, style)
    return sink.getvalue().decode()


# How a picture is drawn.


def test_bars_have_the_heights_of_their_values():
    out = lines(BARS, 60)
    rows = [line.split("│", 1)[1] for line in out if "│" in line]
    each = (60 - len("100") - 3) // 4
    assert rows[0].rstrip() == " " * (3 * each) + "█" * each
    assert rows[-1] == (" " * each + "█" * 0 + "▁" * each + "█" * 2 * each), "what is not zero is seen"
    # Half the height is half the rows.
    assert sum(row[2 * each] == "█" for row in rows) == len(rows) // 2
    assert out[0] == "title"
    assert [line.strip() for line in out if line.strip() in ("count", "value")] == ["count", "value"]
    assert [line for line in out if line.split() == ["0", "1", "2", "3", "4"]], "borders of the bars"


@pytest.mark.parametrize("log", [False, True])
def test_ascii_has_no_other_characters(log: bool):
    ranges = Ranges("t\u00fc", (), "x", "y", (Range("\u8868", 1, 2, 3, 4, 5), Range("b", 2, 2, 2, 2, 2)), log)
    strips = Strips("t", ("note",), "x", "y", MARKS, (Line("a", (0, 1, 1), "\u00fc"),))
    for figure in (BARS, ranges, strips):
        assert all(line.isascii() for line in lines(figure, 60, unicode=False))
    bars = [line.split("|", 1)[1] for line in lines(BARS, 60, unicode=False) if "|" in line]
    assert set("".join(bars)) == {"#", " "}


def test_ranges_stand_where_their_values_are():
    figure = Ranges("t", (), "x", "y", (Range("a", 0, 25, 50, 75, 100), Range("b", 0, 0, 0, 0, 0)))
    out = lines(figure, 60)
    wide = next(line for line in out if line.startswith("a "))
    cells = wide[2:].rsplit(" ", 1)[0]
    assert (cells[0], cells[-1]) == ("├", "┤")
    assert abs(cells.index("┃") - len(cells) / 2) <= 1
    assert abs(cells.count("█") + 1 - len(cells) / 2) <= 2
    assert wide.endswith(" 50")
    point = next(line for line in out if line.startswith("b "))
    assert point.split() == ["b", "┃", "0"]


def test_a_logarithmic_axis():
    figure = Ranges("t", (), "x", "y", (Range("a", 1, 10, 10, 10, 100),), log=True)
    cells = next(line for line in lines(figure, 60) if line.startswith("a "))[2:].rsplit(" ", 1)[0]
    assert abs(cells.index("┃") - len(cells) / 2) <= 1


def test_strips_keep_every_mark():
    cells = [0] * 1000
    cells[777] = 1
    (line,) = [
        line for line in lines(Strips("t", (), "x", "", MARKS, (Line("a", tuple(cells), "r"),)), 60) if "│" in line
    ]
    assert line.count("▒") == 1
    assert line.endswith("│ r")


numbers = st.floats(0, 1e15)
texts = st.text(max_size=30)


# Figures of many lines take their time to be made up.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.one_of(
        st.lists(numbers, min_size=1, max_size=64).map(
            lambda heights: Bars("t", ("n",), "x", "y", tuple(map(str, range(len(heights) + 1))), tuple(heights))
        ),
        st.lists(st.tuples(texts, st.lists(numbers, min_size=5, max_size=5).map(sorted)), max_size=9).map(
            lambda found: Ranges("t", ("n",), "x", "y", tuple(Range(name, *values) for name, values in found))
        ),
        st.lists(st.tuples(texts, st.lists(st.integers(0, 1), min_size=1, max_size=99)), max_size=9).map(
            lambda found: Strips(
                "t", (), "x", "y", MARKS, tuple(Line(name, tuple(cells), "10 MB") for name, cells in found)
            )
        ),
    ),
    st.integers(LEAST_WIDTH, 200),
    st.booleans(),
)
def test_no_line_is_wider_than_asked_for(figure: Figure, width: int, unicode: bool):
    out = lines(figure, width, unicode=unicode)
    assert max(map(width_of, out)) <= width
    assert not any(re.search("[\x00-\x1f\x7f-\x9f]", line) for line in out)


# What a picture is of.


def test_values_are_those_of_the_table(db: Any):
    db.register("ple", FP8)
    figure = values_figure(db, "ple")
    table = db.table("ple")
    values = table.vectors(range(table.rows)).ravel()
    finite = values[np.isfinite(values)]
    assert sum(figure.heights) == finite.size
    assert figure.title == f"values of ple, all 1,408 rows: {finite.size:,} fp8_e4m3 values"
    expected, edges = np.histogram(finite, len(figure.heights))
    # A value on a border may be counted on its other side.
    assert np.abs(np.cumsum(expected) - np.cumsum(figure.heights)).max() <= finite.size // 100
    assert float(figure.edges[0]) == pytest.approx(edges[0], rel=1e-3)
    assert float(figure.edges[-1]) == pytest.approx(edges[-1], rel=1e-3)


def test_values_of_a_wide_format_have_a_bar_per_power_of_two(db: Any):
    db.register("wide", GOLDEN / "ckpt_qwen4_exp_bf16")
    table = db.table("wide")
    values = table.vectors(range(table.rows)).ravel()
    figure = values_figure(db, "wide")
    assert sum(figure.heights) == np.isfinite(values).sum()
    # The outermost bar on the right, by its borders.
    low, high = float(figure.edges[-2]), float(figure.edges[-1])
    assert figure.heights[-1] == ((values >= low) & (values < high)).sum()
    assert any("power of two" in note for note in figure.notes)


@pytest.mark.parametrize("source, name", [(V41, "t_l1"), (GOLDEN / "ckpt_qwen4_exp_nvfp4", "t")])
def test_scales_that_are_not_applied_are_named(db: Any, source: Path, name: str):
    db.register("t", source)
    figure = values_figure(db, name)
    assert "before block scales" in figure.x
    assert any("not applied" in note for note in figure.notes)


def test_scales_are_told_by_the_format_whatever_the_first_row_has(db: Any, tmp_path: Path):
    # One block of a row: the values, then two scales that are NaN.
    (tmp_path / "shard_000.bin").write_bytes((b"\x11" * 16 + b"\x7f" * 2) * 4)
    db.register("t", tmp_path, format="nvfp4", scale=0.5, width=18, rows_per_shard=4)
    assert "before block scales" in values_figure(db, "t").x


def test_norms_are_those_of_the_heads(db: Any):
    db.register("ple", FP8)
    figure = norms_figure(db, "ple")
    heads = db.table("ple").heads()
    assert [line.label for line in figure.lines] == [f"{head.head} ({head.ngram_order}-gram)" for head in heads]
    for line, head in zip(figure.lines, heads, strict=True):
        rows = db.table("ple").vectors(range(head.first_row, head.first_row + head.rows)).astype(np.float64)
        norms = np.sqrt((rows**2).sum(axis=1))
        found = [line.low, line.first, line.median, line.third, line.high]
        assert np.allclose(found, np.quantile(norms, [0, 0.25, 0.5, 0.75, 1]), rtol=1e-9)
    assert "16 rows that no head reaches are left out" in figure.notes


def test_a_sample_says_so(db: Any):
    db.register("ple", FP8)
    values = values_figure(db, "ple", 100)
    assert values.title == "values of ple, sample of 100 of 1,408 rows, in 64 runs: 16,000 fp8_e4m3 values"
    norms = norms_figure(db, "ple", 160)
    seen = re.search(r"sample of (\d+) of 1,392 rows", norms.title)
    assert seen is not None
    assert 100 <= int(seen[1]) <= 200
    assert len(norms.lines) == 16


@given(st.integers(1, 10**9), st.integers(1, 10**7))
@example(132, 130)
def test_samples_are_as_large_as_asked_for(rows: int, most: int):
    sample = sample_of(rows, most)
    assert sum(count for _, count in sample.runs) == min(rows, most)
    ends = [0, *(first + count for first, count in sample.runs)]
    assert all(first >= end for (first, _), end in zip(sample.runs, ends, strict=False))
    assert ends[-1] <= rows
    # They reach from the beginning to the end.
    assert len(sample.runs) == 1 or ends[-1] == rows
    assert ("sample" in sample.words) == (rows > most)


def test_pictures_of_a_table_of_released_size_look_at_a_part_only(ple: Any):
    """320 million rows, 51 GB: each picture is there at once, and says what it left out."""
    table = ple.table("ple")
    before = sum(stats.rows for stats in table.stats())
    texts = [
        drawn(ple, *words.split()) for words in ("values ple", "norms ple", "residency ple", "plan ple 7 320000000")
    ]
    for text, words in zip(
        texts, ("sample of 1,000,000 of 320,001,536", "sample of", "a sample", "2 row ids"), strict=True
    ):
        assert words in " ".join(text.split())
    assert sum(stats.rows for stats in table.stats()) - before < 1_200_000


def test_a_plan_has_its_reads_where_they_are(db: Any):
    db.register("ple", FP8)
    shards = db.table("ple").shards()
    figure = plan_figure(db, "ple", [0, shards[2].first_row])
    assert [line.label for line in figure.lines][:1] == ["shard 0"]
    first = figure.lines[0]
    assert first.cells[0] > 0
    assert len(first.cells) == CELLS
    plan = q(db, "SELECT sum(bytes), sum(bytes_used), count(*) FROM engram_plan('ple', ?)", [0, shards[2].first_row])
    amplification = float(plan[0][0] / plan[0][1])
    assert any(note.endswith(f"read amplification {amplification:.2f}") for note in figure.notes)


def test_norms_of_a_table_without_a_spec_are_one_bar(db: Any, tmp_path: Path):
    values = np.arange(40, dtype=np.float32).reshape(10, 4)
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "shard_000.bin").write_bytes(values.tobytes())
    db.register("t", tmp_path / "store", width=16, rows_per_shard=10, format="f32")
    (line,) = norms_figure(db, "t").lines
    assert line.label == "all rows"
    norms = np.sqrt((values.astype(np.float64) ** 2).sum(axis=1))
    found = [line.low, line.first, line.median, line.third, line.high]
    assert np.allclose(found, np.quantile(norms, [0, 0.25, 0.5, 0.75, 1]), rtol=1e-9)


def test_a_read_of_several_extents_counts_once_in_a_strip_and_is_told(db: Any):
    db.register("ple", FP8)
    ids = list(range(1408))
    figure = plan_figure(db, "ple", ids)
    reads = q(db, "SELECT count(*) FROM engram_plan('ple', ?)", ids)[0][0]
    counted = sum(int(line.remark.split()[0]) for line in figure.lines)
    crossing = [note for note in figure.notes if "more than one" in note]
    assert counted >= reads
    assert bool(crossing) == (counted > reads)


def test_a_plan_of_two_extents_per_row(db: Any):
    db.register("v41", V41)
    figure = plan_figure(db, "v41_l1", [1, 2, 100])
    assert [line.label for line in figure.lines] == ["shard 0, part 1", "shard 0, part 2"]


def test_residency_is_what_the_page_cache_holds(db: Any, tmp_path: Path):
    from engramsql.bench.measure import drop_pages

    rows = 65536
    (tmp_path / "store").mkdir()
    file = tmp_path / "store" / "shard_000.bin"
    with file.open("wb") as out:
        out.write(np.arange(rows * 20, dtype=np.uint64).tobytes())
        out.flush()
        os.fsync(out.fileno())
    drop_pages([str(file)])
    db.register("t", tmp_path / "store", width=160, rows_per_shard=rows)
    if one(db, "SELECT sum(resident_bytes) FROM engram_shards('t')"):
        pytest.skip("this file system keeps its files in memory")
    assert set(residency_figure(db, "t").lines[0].cells) == {0}
    half = rows * 160 // 2
    with file.open("rb") as data:
        # Without reading ahead into the other half.
        os.posix_fadvise(data.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(data.fileno(), half, 0)
    (line,) = residency_figure(db, "t").lines
    assert set(line.cells[: CELLS // 2 - 1]) == {3}
    assert set(line.cells[CELLS // 2 + 1 :]) == {0}
    resident = one(db, "SELECT sum(resident_bytes) FROM engram_shards('t')")
    assert line.remark == f"{resident / (rows * 160):.1%} of 10.5 MB".replace("%", " %")


def bench_text(*results: tuple[str, list[Any]]) -> str:
    entries = [{"name": name, "unit": "row", "units": 2, "seconds": seconds} for name, seconds in results]
    return json.dumps({"schema": 1, "measurements": {"hot": {"results": entries}}})


def bench_file(directory: Path, *results: tuple[str, list[float]]) -> Path:
    path = directory / "bench.json"
    path.write_text(bench_text(*results))
    return path


def test_latencies_of_a_bench(tmp_path: Path):
    path = bench_file(tmp_path, ("one", [2e-6, 4e-6, 6e-6, 8e-6, 10e-6]), ("two", [1e-3]))
    figure = latency_figure(str(path))
    assert isinstance(figure, Ranges)
    assert figure.lines[0] == Range("hot: one", *map(pytest.approx, (1, 2, 3, 4, 5)))  # type: ignore[arg-type]
    assert figure.lines[1].median == pytest.approx(500)
    assert figure.log
    single = latency_figure(str(path), "one")
    assert isinstance(single, Bars)
    assert sum(single.heights) == 5
    assert single.x == "microseconds per row"
    refuses(lambda: latency_figure(str(path), "three"), "three", "hot")


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "no JSON"),
        ("[]", "not what engramsql bench --json writes"),
        ('{"schema": 2}', "schema 2"),
        ('{"schema": 1, "measurements": {"hot": {"results": [{"name": "x"}]}}}', "not what engramsql bench"),
        (bench_text(("x", ["soon"])), "not what engramsql bench"),
        (bench_text(("x", [float("nan")])), "a time is not finite"),
        (bench_text(("x", [1.0])).replace('"unit"', '"per"'), "not what engramsql bench"),
    ],
)
def test_what_is_no_bench_is_refused(tmp_path: Path, content: str, words: str):
    path = tmp_path / "x.json"
    path.write_text(content)
    refuses(lambda: latency_figure(str(path)), "x.json", words)
    refuses(lambda: latency_figure(str(tmp_path / "none.json")), "none.json")


def test_a_table_without_a_format_is_refused(db: Any, tmp_path: Path):
    (tmp_path / "shard_000.bin").write_bytes(bytes(1600))
    db.register("t", tmp_path, width=160, rows_per_shard=10)
    refuses(lambda: values_figure(db, "t"), "'t'", "value format")
    refuses(lambda: norms_figure(db, "t"), "'t'", "value format")
    refuses(lambda: values_figure(db, "nowhere"), "nowhere")
    assert "map of all rows" in " ".join(drawn(db, "residency", "t").split())
    assert drawn(db, "plan", "t", "9").startswith("read plan of t: 1 row id\n")


# The command and the shell's line.


def test_words_that_are_no_picture_are_refused_and_end_nothing(db: Any, tmp_path: Path):
    db.register("ple", FP8)
    for words, fragments in [
        ([], ("plot",)),
        (["pie", "ple"], ("pie",)),
        (["norm", "ple"], ("did you mean norms?",)),
        (["values"], ("TABLE",)),
        (["values", "none"], ("none",)),
        (["values", "ple", "--rows", "0"], ("0",)),
        (["plan", "ple", "seven"], ("seven", "row id")),
        (["plan", "ple", "999999"], ("999999", "1408")),
        (["plan", "ple", ","], ("no row ids",)),
        (["values", "ple", "--output", "x.pdf"], ("x.pdf", ".png")),
        (["values", "ple", "--output", str(tmp_path / "no" / "x.png")], ("x.png",)),
        (["values", "ple", "--width", "10"], ("10", str(LEAST_WIDTH))),
    ]:
        message = refuses(lambda words=words: drawn(db, *words), *fragments)  # type: ignore[misc]
        assert "\n" not in message.strip()
    assert one(db, "SELECT 42") == 42


def test_a_plan_of_the_rows_that_files_name(db: Any, tmp_path: Path):
    db.register("ple", FP8)
    typed = drawn(db, "plan", "ple", "17", "4", "256")
    (tmp_path / "ids.txt").write_text("17 4\n256\n")
    assert drawn(db, "plan", "ple", "--ids", str(tmp_path / "ids.txt")) == typed
    (tmp_path / "ids.csv").write_text("a,id\nx,17\nx,4\nx,\ny,256\n")
    assert drawn(db, "plan", "ple", "--ids", str(tmp_path / "ids.csv"), "--column", "id") == typed
    (tmp_path / "tokens.txt").write_text("17 4\n")
    rows = one(db, "SELECT rowids_for_seq('ple', [17, 4])")
    assert drawn(db, "plan", "ple", "--tokens", str(tmp_path / "tokens.txt")) == drawn(
        db, "plan", "ple", *map(str, rows)
    )
    (tmp_path / "far.txt").write_text("1408\n")
    for words, fragments in (
        (["--ids", "far.txt"], ("far.txt", "1408", "outside")),
        (["--ids", "missing.txt"], ("missing.txt",)),
        (["7", "--column", "id"], ("--column",)),
    ):
        given = [str(tmp_path / word) if word.endswith(".txt") else word for word in words]
        refuses(lambda given=given: drawn(db, "plan", "ple", *given), *fragments)  # type: ignore[misc]
    both = ["plan", "ple", "7", "--ids", str(tmp_path / "ids.txt")]
    refuses(lambda: drawn(db, *both), "not both")


def test_ids_with_commas_and_brackets(db: Any):
    db.register("ple", FP8)
    assert drawn(db, "plan", "ple", "[17,", "4]", "256") == drawn(db, "plan", "ple", "17", "4", "256")


def test_the_width_of_the_terminal_is_kept(db: Any):
    db.register("ple", FP8)
    for width in (60, 132):
        text = drawn(db, "norms", "ple", style=Style(width))
        assert width - 8 <= max(map(width_of, text.splitlines())) <= width
    assert drawn(db, "norms", "ple", style=Style(60, unicode=False)).isascii()


@pytest.mark.parametrize("words", ["values ple", "norms ple", "residency ple", "plan ple 1 2 900"])
def test_a_terminal_of_80_columns_gets_a_picture(words: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    code, text = on_terminal("plot", *words.split(), "--db", FP8)
    assert code == 0
    assert max(map(width_of, text.splitlines())) <= 80
    assert not text.isascii()
    monkeypatch.setenv("TERM", "dumb")
    assert on_terminal("plot", *words.split(), "--db", FP8)[1].isascii()


def test_a_pipe_gets_the_same_text_without_codes(db: Any):
    done = run("plot", "values", FP8)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) > 12


def test_commands_that_are_wrong(tmp_path: Path):
    done = run("plot", "values", "ple")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--db" in done.stderr
    assert done.stderr.startswith("usage: engramsql plot")
    done = run("plot", "norm", FP8)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("did you mean 'norms'?\n")
    assert run("plot", "pie").returncode == 2
    assert run("plot", "values", "ple", "--db", tmp_path / "none").returncode == 1


@pytest.mark.parametrize("words", ["values ple", "values ple --log", "norms ple", "residency ple", "plan ple 1 900"])
def test_pictures_as_files(db: Any, tmp_path: Path, words: str):
    db.register("ple", FP8)
    said = drawn(db, *words.split(), "--output", str(tmp_path / "x.svg"))
    assert said == f"{tmp_path / 'x.svg'}: {size((tmp_path / 'x.svg').stat().st_size)}\n"
    root = ET.parse(tmp_path / "x.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    text = " ".join("".join(root.itertext()).split())
    assert "ple" in text
    first = (tmp_path / "x.svg").read_bytes()
    drawn(db, *words.split(), "--output", str(tmp_path / "x.svg"))
    if not words.startswith("residency"):
        assert (tmp_path / "x.svg").read_bytes() == first, "the same picture is the same file"
    umask = os.umask(0o027)
    try:
        drawn(db, *words.split(), "--output", str(tmp_path / "x.PNG"))
    finally:
        os.umask(umask)
    assert (tmp_path / "x.PNG").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "x.PNG").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.PNG", "x.svg"], "nothing else is left"


def test_latencies_as_files_have_their_names(tmp_path: Path):
    path = bench_file(tmp_path, ("one $x_1$ <&>", [2e-6, 4e-6]), ("two", [1e-3, 2e-3]))
    done = run("plot", "latency", path, "--output", tmp_path / "x.svg")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{tmp_path / 'x.svg'}: ")
    assert "one $x_1$ <&>" in "".join(ET.parse(tmp_path / "x.svg").getroot().itertext())


def test_without_matplotlib_a_file_is_refused_with_the_remedy(tmp_path: Path):
    code = """
        import sys
        sys.modules["matplotlib"] = None
        from engramsql.cli import main
        sys.exit(main(sys.argv[1:]))
    """
    done = run_python(code, args=["plot", "values", str(FP8), "--output", str(tmp_path / "x.png")], expect=1)
    assert done.stderr.splitlines()[-1].endswith("pip install 'engramsql[plot]'")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    assert run_python(code, args=["plot", "values", str(FP8)]).stdout, "text needs no matplotlib"
