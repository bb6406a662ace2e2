"""Every mode that a machine reads, written into a pipe by the program and read back by others: nothing may change.

The readers are those that users have: csv, json and html.parser of Python, pandas, polars, pyarrow; for Markdown,
vertical and hex, which nobody has a reader for, the few lines that docs/cli.md promises to be enough.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import subprocess
from collections.abc import Callable
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden_data import GOLDEN
from program import PROGRAM

Row = tuple[Any, ...]
Rows = list[Row]

TEXT_MODES = ["markdown", "csv", "tsv", "json", "jsonl", "vertical", "html", "hex"]
MODES = [*TEXT_MODES, "arrow", "parquet"]
CHECKPOINT = GOLDEN / "ckpt_qwen4_exp_fp8"

# One line per row: integers at the ends of their types, floats that JSON has no numbers for, texts that are not lines,
# bytes, and a NULL row among vectors, also as the last one.
NAMES = ["i", "u", "h", "f", "d", "y", "t", "b", "v", "l", "s", "m"]
QUERY = """
    SELECT * FROM (VALUES
        (9007199254740993::BIGINT, 18446744073709551615::UBIGINT, 170141183460469231731687303715884105727::HUGEINT,
         'nan'::FLOAT, 'inf'::DOUBLE, true, E'a,"b"\\n|\\tc', '\\x00\\xFFz'::BLOB, ['0.5', 'nan', '-0.0']::FLOAT[3],
         [1, NULL, 9007199254740993], {'k': 'x"y', 'w': ['\\x00'::BLOB]}, MAP {'a b': 1.5::DOUBLE}),
        (-9223372036854775808, 0, -99999999999999999999999999999999999999, '-inf', '-0.0', false, '', ''::BLOB, NULL,
         [], NULL, NULL),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, [1, 2, 3]::FLOAT[3], NULL, {'k': NULL, 'w': []}, MAP {}),
        (0, 9007199254740993, 0, 0.1, 1e300, true, ' 表 \U0001f468\u200d\U0001f469 e\u0301\\N <br>&lt; NULL \\|',
         'plain ascii, more than a line'::BLOB, ['inf', '-inf', '3.4028235e38']::FLOAT[3], [NULL],
         {'k': '', 'w': NULL}, MAP {E'q"\\n': -0.0::DOUBLE}),
        (1, 1, 1, 1e-45, 5e-324, false, 'NULL', 'x'::BLOB, NULL, [-1], {'k': 'z', 'w': [NULL]}, MAP {'': NULL})
    ) AS rows(i, u, h, f, d, y, t, b, v, l, s, m)
"""
NAN, INF = math.nan, math.inf
VALUES: Rows = [
    (
        9007199254740993, 18446744073709551615, 170141183460469231731687303715884105727, NAN, INF, True,
        'a,"b"\n|\tc', b"\x00\xffz", [0.5, NAN, -0.0], [1, None, 9007199254740993],
        {"k": 'x"y', "w": [b"\x00"]}, {"a b": 1.5},
    ),
    (
        -9223372036854775808, 0, -99999999999999999999999999999999999999, -INF, -0.0, False, "", b"", None, [], None,
        None,
    ),
    (None, None, None, None, None, None, None, None, [1.0, 2.0, 3.0], None, {"k": None, "w": []}, {}),
    (
        0, 9007199254740993, 0, 0.1, 1e300, True, " 表 \U0001f468\u200d\U0001f469 e\u0301\\N <br>&lt; NULL \\|",
        b"plain ascii, more than a line", [INF, -INF, 3.4028235e38], [None], {"k": "", "w": None}, {'q"\n': -0.0},
    ),
    (
        1, 1, 1, 1e-45, 5e-324, False, "NULL", b"x", None, [-1], {"k": "z", "w": [None]}, {"": None},
    ),
]  # fmt: skip
# For Arrow and Parquet, whose DECIMAL(38, 0) has less room.
FITTING = QUERY.replace("170141183460469231731687303715884105727", "99999999999999999999999999999999999999")
FITTING_VALUES: Rows = [(*VALUES[0][:2], 10**38 - 1, *VALUES[0][3:]), *VALUES[1:]]


def written(mode: str, sql: str, *words: object) -> bytes:
    """What the program writes into a pipe."""
    done = subprocess.run(
        [*PROGRAM, *map(str, words), "--format", mode, "-c", sql],
        # A terminal on the other side would get colours of such a name; a pipe must not.
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "CLICOLOR_FORCE": "1"},
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def same(found: object, expected: object, single: bool = False) -> bool:
    """Equality of values with NaN equal to itself and zeros told apart; ``single`` compares floats as float32."""
    if isinstance(expected, float) and isinstance(found, (float, int)) and not isinstance(found, bool):
        if math.isnan(expected):
            return math.isnan(found)
        if single:
            expected, found = (pa.scalar(value, pa.float32()).as_py() for value in (expected, float(found)))
        return found == expected and math.copysign(1, found) == math.copysign(1, expected)
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(found, (list, tuple))
            and len(found) == len(expected)
            and all(same(one, other, single) for one, other in zip(found, expected, strict=True))
        )
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(expected)
            and all(same(found[key], expected[key], single) for key in expected)
        )
    return type(found) is type(expected) and found == expected


def assert_rows(found: Rows, expected: Rows) -> None:
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        for name, value, other in zip(NAMES, row, wanted, strict=True):
            assert same(value, other, single=name in ("f", "v")), (name, value, other)


# From JSON values and from texts to values: what docs/cli.md says.
NUMBERS = {"NaN": NAN, "Infinity": INF, "-Infinity": -INF}


def number(value: object) -> object:
    return NUMBERS.get(value, value) if isinstance(value, str) else value


def from_json(name: str, value: Any) -> object:
    if value is None:
        return None
    if name in ("f", "d"):
        return number(value)
    if name == "b":
        return bytes.fromhex(value)
    if name == "v":
        return [number(part) for part in value]
    if name == "s":
        return {**value, "w": None if value["w"] is None else [x and bytes.fromhex(x) for x in value["w"]]}
    if name == "m":
        return {key: number(part) for key, part in value.items()}
    return value


def from_text(name: str, text: str | None) -> object:
    if text is None or name == "t":
        return text
    if name in ("f", "d"):
        return float(text)
    if name in ("i", "u", "h"):
        return int(text)
    if name == "b":
        return bytes.fromhex(text)
    return from_json(name, json.loads(text))


def from_texts(rows: list[list[str | None]]) -> Rows:
    return [tuple(from_text(name, cell) for name, cell in zip(NAMES, row, strict=True)) for row in rows]


def from_objects(objects: list[dict[str, Any]]) -> Rows:
    assert all(list(row) == NAMES for row in objects)
    return [tuple(from_json(name, row[name]) for name in NAMES) for row in objects]


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def tsv_value(cell: str) -> str | None:
    escapes = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\"}
    return None if cell == "\\N" else re.sub(r"\\.", lambda found: escapes[found[0]], cell)


def read_csv(data: bytes) -> list[list[str | None]]:
    """Polars tells an empty text from no value."""
    frame = pl.read_csv(data, infer_schema=False)
    assert frame.columns == NAMES
    return [list(row) for row in frame.rows()]


def read_csv_by_pandas(data: bytes) -> list[list[str | None]]:
    frame = pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False, skip_blank_lines=False)
    assert list(frame.columns) == NAMES
    # Pandas does not tell an empty text from no value: the texts that are empty are known here.
    empty = {(1, "t"), (1, "b")}
    return [
        [None if cell == "" and (row, name) not in empty else cell for name, cell in zip(NAMES, cells, strict=True)]
        for row, cells in enumerate(frame.itertuples(index=False))
    ]


def read_tsv(data: bytes) -> list[list[str | None]]:
    frame = pd.read_csv(io.BytesIO(data), sep="\t", dtype=str, keep_default_na=False, quoting=csv.QUOTE_NONE)
    assert list(frame.columns) == NAMES
    return [list(map(tsv_value, cells)) for cells in frame.itertuples(index=False)]


def read_markdown(data: bytes) -> list[list[str | None]]:
    """Split at bars without a backslash, without the space around; then escapes and references."""
    escapes = {"\\|": "|", "\\\\": "\\", "<br>": "\n", "&lt;": "<", "&amp;": "&"}

    def value(cell: str) -> str:
        return re.sub(
            r"\\.|<br>|&lt;|&amp;|&#(\d+);", lambda found: escapes.get(found[0]) or chr(int(found[1])), cell.strip(" ")
        )

    header, rule, *lines = data.decode().splitlines()
    assert set(rule) == {"|", "-", " "}
    rows = [re.findall(r"((?:\\.|[^|\\])*)\|", line[1:]) for line in (header, *lines)]
    assert [value(cell) for cell in rows[0]] == NAMES
    # NULL is empty, as an empty text is: those are known.
    empty = {(1, "t"), (1, "b")}
    return [
        [
            None if not value(cell) and (number, name) not in empty else value(cell)
            for name, cell in zip(NAMES, cells, strict=True)
        ]
        for number, cells in enumerate(rows[1:])
    ]


class Tables(HTMLParser):
    """The cells of a table, NULL as None."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str | None]] = []
        self.open: list[str] = []
        self._null = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._null = ("class", "null") in attributes
            self.rows[-1].append(None if self._null else "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open) and not self._null:
            last = self.rows[-1][-1]
            assert last is not None
            self.rows[-1][-1] = last + data


def read_html(data: bytes) -> list[list[str | None]]:
    tables = Tables()
    tables.feed(data.decode("ascii"))
    tables.close()
    assert not tables.open
    assert tables.rows[0] == NAMES
    return tables.rows[1:]


def read_vertical(data: bytes) -> list[list[str | None]]:
    width = max(map(len, NAMES))
    records = re.split(r"(?m)^\*\*\* row \d+ \*\*\*\n", data.decode())[1:]
    rows = []
    for record in records:
        lines = record.removesuffix("\n").split("\n")
        assert [line[:width].strip() for line in lines] == NAMES
        rows.append([tsv_value(line[width + 2 :]) for line in lines])
    return rows


def by_polars(data: bytes) -> Rows:
    types: dict[str, Any] = {"u": pl.UInt64, "i": pl.Int64, "t": pl.String, "b": pl.String, "l": pl.List(pl.Int64)}
    names = [*types, "y"]
    frame = pl.read_ndjson(data, schema={**types, "y": pl.Boolean})
    assert frame.columns == names
    rows = [dict(zip(names, row, strict=True)) for row in frame.rows()]
    return [tuple(from_json(name, row.get(name)) for name in NAMES) for row in rows]


READERS: dict[str, Callable[[bytes], Rows]] = {
    "csv polars": lambda data: from_texts(read_csv(data)),
    "csv pandas": lambda data: from_texts(read_csv_by_pandas(data)),
    "tsv pandas": lambda data: from_texts(read_tsv(data)),
    "markdown lines": lambda data: from_texts(read_markdown(data)),
    "html html.parser": lambda data: from_texts(read_html(data)),
    "vertical lines": lambda data: from_texts(read_vertical(data)),
    "json json": lambda data: from_objects(json.loads(data, parse_constant=refuse)),
    "jsonl json": lambda data: from_objects(
        [json.loads(line, parse_constant=refuse) for line in data.decode().removesuffix("\n").split("\n")]
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_texts_read_back_as_the_same_values(reader: str):
    mode = reader.split()[0]
    assert_rows(READERS[reader](written(mode, QUERY)), VALUES)


def test_polars_reads_jsonl():
    read = ["i", "u", "t", "b", "y", "l"]
    expected = [
        tuple(value if name in read else None for name, value in zip(NAMES, row, strict=True)) for row in VALUES
    ]
    assert_rows(by_polars(written("jsonl", f"SELECT u, i, t, b, l, y FROM ({QUERY})")), expected)


def test_json_of_duckdb_differs_as_documented(tmp_path: Path):
    """docs/cli.md names these differences; when DuckDB changes them, it must too."""
    sql = "SELECT 'nan'::FLOAT AS n, 'inf'::DOUBLE AS i, 0.1::FLOAT AS f, 1.50::DECIMAL(5, 2) AS d"
    sql += r", '\x00z\xFF'::BLOB AS b, 18446744073709551615::UBIGINT AS u"
    written("csv", f"COPY ({sql}) TO '{tmp_path}/x.json' (FORMAT json)")
    theirs = '{"n":NaN,"i":Infinity,"f":0.10000000149011612,"d":1.5,"b":"\\\\x00z\\\\xFF","u":18446744073709551615}'
    assert (tmp_path / "x.json").read_text().strip() == theirs
    ours = '{"n":"NaN","i":"Infinity","f":0.1,"d":1.50,"b":"007aff","u":18446744073709551615}'
    assert written("jsonl", sql).decode().strip() == ours


def exact(value: Any, name: str) -> Any:
    if isinstance(value, Decimal):
        return int(value)
    return dict(value) if name == "m" and value is not None else value


def table_rows(table: pa.Table) -> Rows:
    table.validate(full=True)
    assert table.column_names == NAMES
    return [tuple(exact(row[name], name) for name in NAMES) for row in table.to_pylist()]


def frame_rows(frame: pl.DataFrame) -> Rows:
    assert frame.columns == NAMES

    def value(cell: Any, name: str) -> Any:
        # A map is a list of entries to polars before 2.0.
        if name == "m" and isinstance(cell, list):
            return {entry["key"]: entry["value"] for entry in cell}
        return exact(cell, name)

    return [tuple(value(cell, name) for name, cell in zip(NAMES, row, strict=True)) for row in frame.rows()]


@pytest.mark.parametrize("mode", ["json", "jsonl"])
def test_decimals_that_are_all_fraction_are_json(mode: str):
    half = "0.5::DECIMAL(1,1)"
    sql = f"SELECT -0.25::DECIMAL(2,2) AS a, [0.00::DECIMAL(2,2), NULL] AS b, MAP {{{half}: {half}}} AS c"
    data = json.loads(written(mode, sql), parse_float=str)
    assert (data[0] if mode == "json" else data) == {"a": "-0.25", "b": ["0.00", None], "c": {"0.5": "0.5"}}


@pytest.mark.parametrize("mode", ["arrow", "parquet"])
@pytest.mark.parametrize(
    ("value", "type_"), [("TIME '24:00:00'", "TIME"), ("[TIME '24:00:00']", "TIME[]"), ("1::VARIANT", "VARIANT")]
)
def test_what_arrow_has_no_value_for_is_refused(mode: str, value: str, type_: str):
    words = [*PROGRAM, "--format", mode, "-c", f"SELECT {value} AS x"]
    done = subprocess.run(words, capture_output=True, check=False, timeout=120)
    assert done.returncode == 1
    assert f"column 'x' ({type_})".encode() in done.stderr
    assert b'CAST("x" AS VARCHAR)' in done.stderr


def test_arrow_reads_back_as_the_same_values():
    data = written("arrow", FITTING)
    assert_rows(table_rows(pa.ipc.open_stream(data).read_all()), FITTING_VALUES)
    assert_rows(frame_rows(pl.read_ipc_stream(io.BytesIO(data))), FITTING_VALUES)


def test_parquet_reads_back_as_the_same_values():
    data = written("parquet", FITTING)
    assert_rows(table_rows(pq.read_table(io.BytesIO(data))), FITTING_VALUES)
    assert_rows(frame_rows(pl.read_parquet(io.BytesIO(data))), FITTING_VALUES)


def test_row_groups_of_parquet_are_large_and_bounded():
    narrow = pq.ParquetFile(io.BytesIO(written("parquet", "SELECT range AS x FROM range(300000)"))).metadata
    groups = [narrow.row_group(k).num_rows for k in range(narrow.num_row_groups)]
    assert sum(groups) == 300_000
    assert all(100_000 <= rows <= 131_072 for rows in groups[:-1])
    wide = pq.ParquetFile(io.BytesIO(written("parquet", "SELECT repeat('x', 10000) AS t FROM range(10000)"))).metadata
    assert wide.num_row_groups >= 2


A, B = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]


@pytest.mark.parametrize("vectors", [[A, None, B], [A, None], [None, A], [None]], ids=str)
@pytest.mark.parametrize("mode", ["arrow", "parquet", "json", "csv"])
def test_a_null_vector_leaves_its_neighbours_where_they_are(mode: str, vectors: list[Any]):
    lines = ", ".join(f"({k}, {'NULL' if vector is None else vector}::FLOAT[3])" for k, vector in enumerate(vectors))
    data = written(mode, f"SELECT v FROM (VALUES {lines}) AS t(k, v) ORDER BY k")
    if mode == "arrow":
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
        assert table.schema.field("v").type == pa.list_(pa.float32(), 3)
        assert table["v"].to_pylist() == vectors
        assert pl.read_ipc_stream(io.BytesIO(data))["v"].to_list() == vectors
    elif mode == "parquet":
        assert pq.read_table(io.BytesIO(data))["v"].to_pylist() == vectors
        assert pl.read_parquet(io.BytesIO(data))["v"].to_list() == vectors
    elif mode == "json":
        assert [row["v"] for row in json.loads(data)] == vectors
    else:
        # A NULL in the only column is an empty line.
        header, *rows = csv.reader(io.StringIO(data.decode()))
        assert header == ["v"]
        assert [json.loads(row[0]) if row else None for row in rows] == vectors


def test_html_shows_what_it_has_no_place_for():
    data = written("html", "SELECT E'a\\rb' AS \"<i>\", chr(27) || '[31m' || chr(155) AS c, '</td>&amp;' AS d").decode()
    assert "<th>&lt;i&gt;</th>" in data
    assert "<td>a&#13;b</td><td><code>\\x1b</code>[31m<code>\\x9b</code></td><td>&lt;/td&gt;&amp;amp;</td>" in data


def read_hex(data: bytes) -> dict[tuple[str, ...], bytes | None]:
    """Row id, column where it is given, offset, bytes; what is between the bars is for people."""
    values: dict[tuple[str, ...], bytes | None] = {}
    for line in data.decode().splitlines()[1:]:
        words = line.split("|")[0].split()
        start = next(k for k, word in enumerate(words) if word == "NULL" or re.fullmatch(r"[0-9a-f]{8}", word))
        key = tuple(words[:start])
        if words[start] == "NULL":
            values[key] = None
        else:
            before = values.setdefault(key, b"")
            assert before is not None
            assert int(words[start], 16) == len(before)
            values[key] = before + bytes.fromhex("".join(words[start + 1 :]))
    return values


def test_hex_reads_back_as_the_same_bytes():
    blobs = [bytes(range(256)) * 3, b"", None, b"x", b"sixteen bytes ok", b"||||| |||||"]
    texts = ["NULL" if blob is None else f"unhex('{blob.hex()}')" for blob in blobs]
    rows = ", ".join(f"({100 + k}, {text})" for k, text in enumerate(texts))
    data = written("hex", f"SELECT * FROM (VALUES {rows}) AS t(rowid, b)")
    assert read_hex(data) == {(str(100 + k),): blob for k, blob in enumerate(blobs)}
    data = written("hex", f"SELECT b, b AS c FROM (VALUES {rows}) AS t(rowid, b)")
    assert read_hex(data) == {(str(1 + k), name): blob for k, blob in enumerate(blobs) for name in "bc"}


def test_hex_of_a_table_has_its_rows():
    import engramsql

    data = written("hex", "SELECT row, rowid, head FROM ple ORDER BY rowid LIMIT 40", CHECKPOINT)
    with engramsql.connect(CHECKPOINT) as db:
        rows = db.table("ple").fetch(range(40))
    assert read_hex(data) == {(str(k),): bytes(row) for k, row in enumerate(rows)}


def test_hex_without_blobs_is_refused():
    done = subprocess.run([*PROGRAM, "--format", "hex", "-c", "SELECT 1 AS x"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert "'x' (INTEGER)" in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


EMPTY = {
    "markdown": b"| a | b |\n| --- | --- |\n",
    "csv": b"a,b\n",
    "tsv": b"a\tb\n",
    "json": b"[]\n",
    "jsonl": b"",
    "vertical": b"",
    "hex": b"     rowid  offset    bytes\n",
}


@pytest.mark.parametrize("mode", MODES)
def test_no_rows(mode: str):
    if mode == "hex":
        assert written(mode, "SELECT 1 AS rowid, ''::BLOB AS b WHERE false") == EMPTY[mode]
        return
    data = written(mode, "SELECT 1 AS a, [0.5]::FLOAT[1] AS b WHERE false")
    if mode == "arrow":
        for table in (pa.ipc.open_stream(data).read_all(), pl.read_ipc_stream(io.BytesIO(data)).to_arrow()):
            assert (table.num_rows, table.column_names) == (0, ["a", "b"])
    elif mode == "parquet":
        for table in (pq.read_table(io.BytesIO(data)), pl.read_parquet(io.BytesIO(data)).to_arrow()):
            assert (table.num_rows, table.column_names) == (0, ["a", "b"])
    elif mode == "html":
        tables = Tables()
        tables.feed(data.decode("ascii"))
        assert (tables.rows, tables.open) == ([["a", "b"]], [])
    else:
        assert data == EMPTY[mode]


@pytest.mark.parametrize("mode", ["box", *MODES])
def test_no_escape_codes_in_a_pipe(mode: str):
    sql = "SELECT rowid, head, embedding, row FROM ple LIMIT 3"
    data = written(mode, sql, CHECKPOINT)
    if mode not in ("arrow", "parquet"):
        assert b"\x1b" not in data
        assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", data.decode()) is None
        assert "\u2026" not in data.decode()
        # All 160 values and bytes are there.
        if mode != "hex":
            assert data.count(b",") >= 3 * 159
    assert data == written(mode, sql, CHECKPOINT), "the same twice"


def peak_of(mode: str, sql: str) -> tuple[int, int]:
    """Bytes that the program had at most while it wrote a result, and bytes written."""
    with subprocess.Popen([*PROGRAM, "--format", mode, "-c", sql], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        count = 0
        while piece := process.stdout.read(1 << 20):
            count += len(piece)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024, count


# A result that is held costs at least the bytes of its Arrow values, and several times that as Python objects.
SIZES = {"arrow": 30_000_000, "parquet": 20_000_000, "csv": 3_000_000, "jsonl": 3_000_000, "box": 3_000_000}


@pytest.mark.parametrize("mode", SIZES)
def test_memory_does_not_grow_with_the_result(mode: str):
    rows = SIZES[mode]
    small, _ = peak_of(mode, "SELECT range AS a, range * 3 AS b FROM range(10000)")
    peak, count = peak_of(mode, f"SELECT range AS a, range * 3 AS b FROM range({rows})")
    assert count > rows * 4
    # What DuckDB and pyarrow keep for batches in flight; the values alone are 16 bytes a row.
    assert peak - small < min(96 << 20, rows * 16), f"{(peak - small) >> 20} MB more"
